"""After a run without matches: the command that shows why, to be pasted into a shell."""

from __future__ import annotations

import shlex
from collections.abc import Iterator

from oxiseq.cli.options import QuerySource
from oxiseq.cli.request import RunRequest

STDIN = "<stdin>"


def why_command(request: RunRequest) -> str:
    """`oxiseq why` with the query, events, KB and options of the request, quoted for a shell, in one line."""
    words = ["oxiseq", "why", _file(request.query), *_options(request)]
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
    if request.query.chosen is not None:
        yield f"--language={request.query.chosen}"
    yield from (f"--stream={stream}" for stream in request.streams)
    if request.location is not None:
        yield f"--location={request.location}"
    yield from (f"--kb={kb}" for kb in request.kbs)
    for name, value in {**request.given, "rules": [_file(rules) for rules in request.rules]}.items():
        flag = f"--{name.replace('_', '-')}"
        if isinstance(value, dict):
            yield from (f"{flag}={key}={iri}" for key, iri in value.items())
        else:
            yield from (f"{flag}={each}" for each in (value if isinstance(value, list) else [value]))
