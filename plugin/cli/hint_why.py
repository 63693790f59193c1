"""After a run without matches: the command that tells why, to be pasted into a shell."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence

from oxiseq.cli.options import GENERATED_AT, QuerySource
from oxiseq.cli.request import RunRequest
from oxiseq.durations import duration_text

STDIN = "<stdin>"


def why_command(request: RunRequest, place: Sequence[str] = ()) -> str:
    """`oxiseq why` with the query, streams, KB and options of the request, quoted for a shell, in one line; `place`:
    arguments that say where the events are, if they are not in the request."""
    words = ["oxiseq", "why", _file(request.query), *_options(request), *place]
    line = " ".join(shlex.quote(word) for word in words)
    piped = [source for source in (request.query, *request.rules) if source.name == STDIN]
    if not piped:
        return line
    text = piped[0].text.replace("\\", "\\\\").replace("\n", "\\n")
    return f"printf %b {shlex.quote(text)} | {line}"


def _file(source: QuerySource) -> str:
    """As the command takes it: a name that looks like an option would be taken for one."""
    if source.name == STDIN:
        return "-"
    return f"./{source.name}" if source.name.startswith("-") else source.name


def _options(request: RunRequest) -> Iterator[str]:
    type_column, time_column, time_unit = request.columns
    given: list[tuple[str, object, object]] = [
        ("language", request.query.chosen, None),
        *(("stream", stream, None) for stream in request.streams),
        *(("kb", kb, None) for kb in request.kbs),
        ("start", request.start, None),
        ("lateness", duration_text(request.lateness), "0s"),
        ("type-column", type_column, "type"),
        ("time-column", time_column, "time"),
        ("time-unit", time_unit, None),
        *(("at", instant, None) for instant in request.instants or ()),
        ("consumption", request.consumption, None),
        *(("rules", _file(rules), None) for rules in request.rules),
        ("time-predicate", request.time_predicate, GENERATED_AT),
        ("on-error", request.on_error, "stop"),
    ]
    for name, value, usual in given:
        if value != usual:
            yield f"--{name}={value}"
