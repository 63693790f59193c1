"""`/check` and `/mappings`: what is wrong with a text, what a mapping makes of rows; nothing is stored."""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal

import msgspec
from msgspec import Meta

from oxiseq.engine.errors import EventError, LimitError
from oxiseq.engine.events.time import to_text
from oxiseq.grammar.languages import media_types
from oxiseq.live.api.streams import MAPPING
from oxiseq.live.api.table import JSON, Call, findings, json_response, unsupported
from oxiseq.mappings.declared import StreamMapping
from oxiseq.mappings.events import Tried, suggested, tried
from oxiseq.mappings.plan import MappingError
from oxiseq.mappings.rows import ROWS, BadRow, read_table
from oxiseq.matches.text import json_term
from oxiseq.sparql.guards import check_size, check_syntax
from oxiseq.sparql.messages import Problem, Response
from oxiseq.sparql.settings import SparqlSettings

# --- check -----------------------------------------------------------------------------------------------

_UPDATE: Final = "application/sparql-update"
SPARQL: Final = ("application/sparql-query", _UPDATE)
_USUAL: Final = SparqlSettings()


def check(call: Call) -> Response:
    """POST /check."""
    media_type, known = call.request.media_type or "", media_types()
    if media_type in known:
        return json_response({"findings": findings(call.request.text(), known[media_type])})
    if media_type not in SPARQL:
        raise unsupported(call.request, (*known, *SPARQL))
    text, base = call.request.text(), call.request.origin + call.request.path
    found = call.evaluations.call(lambda: _sparql(text, base, update=media_type == _UPDATE), call.request.gone)
    return json_response({"findings": found})


def _sparql(text: str, base: str, *, update: bool) -> list[dict[str, Any]]:
    """The first error, if there is one; a text with calls to other servers is not checked."""
    try:
        check_size(text, _USUAL)
        check_syntax(text, base, update=update)
    except Problem as problem:
        line, column = (1, 1) if problem.place is None else (problem.place.line, problem.place.column)
        told = {"message": problem.detail or problem.title, "hint": "", "expected": "", "start": 0, "end": 0}
        told |= {name: value for name, value in problem.more.items() if name in told}
        end = text[: int(str(told["end"]))]
        end_line, end_column = (end.count("\n") + 1, len(end) - end.rfind("\n")) if told["end"] else (line, column)
        return [
            {
                "severity": "error",
                "code": "sparql",
                **told,
                "line": line,
                "column": column,
                "end_line": end_line,
                "end_column": end_column,
            }
        ]
    return []


# --- mappings --------------------------------------------------------------------------------------------

ROWS_TRIED: Final = 200
"""Most rows that are tried."""
EVENTS: Final = 20
_BAD: Final = 20
_LONGEST: Final = 1 << 18
"""Characters of the rows."""
_ANSWER: Final = 4 << 20
"""Characters of the events' terms."""


class Rows(msgspec.Struct, forbid_unknown_fields=True):
    """Rows as a text, and its media type."""

    rows: Annotated[str, Meta(max_length=_LONGEST)]
    type: Literal[tuple(ROWS)] = JSON  # type: ignore[valid-type]  # the words of a tuple


class MappingAndRows(Rows):
    """And a mapping that is tried on them."""

    mapping: Annotated[Any, Meta(extra_json_schema=MAPPING)] = None


def suggest_mapping(call: Call, body: Rows) -> Response:
    """POST /mappings/suggest."""

    def made() -> dict[str, Any]:
        seen: dict[str, str] = {}
        try:
            table = read_table(
                body.rows.encode("utf-8", "surrogatepass"), body.type, lambda name: seen.setdefault(name, name)
            )
        except (EventError, LimitError) as error:
            raise Problem(400, "malformed rows", str(error)) from None
        return suggested(table, tuple(seen))

    return json_response(call.evaluations.call(made, call.request.gone))


def try_mapping(call: Call, body: MappingAndRows) -> Response:
    """POST /mappings/try."""
    try:
        mapping = StreamMapping(body.mapping or {})
    except MappingError as error:
        raise Problem(400, "malformed mapping", str(error)) from None
    return json_response(call.evaluations.call(lambda: _found(body.rows, body.type, mapping), call.request.gone))


def _found(rows: str, media_type: str, mapping: StreamMapping) -> dict[str, Any]:
    """Raises Problem 400 for a text of which no row can be read."""
    seen: dict[str, None] = {}

    def key(name: str) -> str | None:
        seen[name] = None
        return mapping.key(name)

    try:
        table = read_table(rows.encode("utf-8", "surrogatepass"), media_type, key)
        first = table.slice(0, ROWS_TRIED)
        first.bad = table.bad
        found = tried(first, tuple(seen), mapping, EVENTS)
        length = sum(len(str(triple)) for _, graph in found.events for triple in graph)
        if length > _ANSWER:
            raise LimitError(length, _ANSWER, "characters of the events that come of these rows")
        return _value(found, timed=bool(mapping.time))
    except (EventError, LimitError) as error:
        raise Problem(400, "malformed rows", str(error)) from None


def _value(found: Tried, *, timed: bool) -> dict[str, Any]:
    return {
        "events": [
            {
                "time": to_text(at) if timed else None,
                "triples": [[json_term(part) for part in (t.subject, t.predicate, t.object)] for t in graph],
            }
            for at, graph in found.events
        ],
        "rejected": len(found.bad),
        "reasons": [_reason(row) for row in found.bad[:_BAD]],
        "missing": [{"column": each.column, "near": each.near} for each in found.missing],
        "unread": list(found.unread),
    }


def _reason(row: BadRow) -> dict[str, Any]:
    return {"reason": row.reason, "line": row.place, **({} if row.column is None else {"column": row.column})}
