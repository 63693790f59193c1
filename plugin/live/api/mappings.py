"""`POST /mappings/try`: what a mapping makes of the first rows of a text; `POST /mappings/suggest`: a first one."""

from __future__ import annotations

from typing import Any, Final

from oxiseq.engine.errors import EventError, LimitError
from oxiseq.engine.events.time import to_text
from oxiseq.live.api.table import JSON, Answer, Call, Need, Route, json_response
from oxiseq.mappings.declared import StreamMapping
from oxiseq.mappings.errors import MappingError
from oxiseq.mappings.rows import ROWS, BadRow, read_table
from oxiseq.mappings.suggesting import suggested
from oxiseq.mappings.trying import Tried, tried
from oxiseq.matches.text import json_term
from oxiseq.sparql.messages import Response
from oxiseq.sparql.problems import Problem

_ROWS: Final = 200
"""Most rows that are tried."""
_EVENTS: Final = 20
_BAD: Final = 20
_LONGEST: Final = 1 << 18
"""Characters of the rows."""
_ANSWER: Final = 4 << 20
"""Characters of the events' terms."""


def suggest_mapping(call: Call) -> Response:
    """POST /mappings/suggest."""
    rows, media_type = _rows(call.json(), ("rows", "type"))

    def made() -> dict[str, Any]:
        seen: dict[str, str] = {}
        try:
            table = read_table(
                rows.encode("utf-8", "surrogatepass"), media_type, lambda name: seen.setdefault(name, name)
            )
        except (EventError, LimitError) as error:
            raise Problem(400, "malformed rows", str(error)) from None
        return suggested(table, tuple(seen))

    return json_response(call.evaluations.call(made, call.request.gone))


def try_mapping(call: Call) -> Response:
    """POST /mappings/try."""
    given = call.json()
    rows, media_type = _rows(given, ("mapping", "rows", "type"))
    try:
        mapping = StreamMapping(given.get("mapping") or {})
    except MappingError as error:
        raise Problem(400, "malformed mapping", str(error)) from None
    return json_response(call.evaluations.call(lambda: _found(rows, media_type, mapping), call.request.gone))


def _rows(given: dict[str, Any], known: tuple[str, ...]) -> tuple[str, str]:
    """The rows and their media type. Raises Problem 400."""
    if unknown := set(given) - set(known):
        raise Problem(400, "unknown members", f"{', '.join(sorted(unknown))}; known: {', '.join(known)}")
    rows, media_type = given.get("rows"), given.get("type", JSON)
    if not isinstance(rows, str) or len(rows) > _LONGEST:
        raise Problem(400, "no rows", f"the member rows is a text of at most {_LONGEST:,} characters")
    if media_type not in ROWS:
        raise Problem(400, "unknown type", f"type is one of {', '.join(ROWS)}")
    return rows, media_type


def _found(rows: str, media_type: str, mapping: StreamMapping) -> dict[str, Any]:
    """Raises Problem 400 for a text of which no row can be read."""
    seen: dict[str, None] = {}

    def key(name: str) -> str | None:
        seen[name] = None
        return mapping.key(name)

    try:
        table = read_table(rows.encode("utf-8", "surrogatepass"), media_type, key)
        first = table.slice(0, _ROWS)
        first.bad = table.bad
        found = tried(first, tuple(seen), mapping, _EVENTS)
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


ROUTES: Final = (
    Route(
        "POST",
        "/mappings/suggest",
        suggest_mapping,
        "suggestMapping",
        "A first mapping for rows: each column a predicate, with the type that all of its texts have; as `oxiseq "
        "mapping suggest` prints it. Nothing is stored.",
        Need(None),
        bodies=(JSON,),
        body_schema="MappingAndRows",
        answers={200: Answer("The mapping."), 400: Answer("No rows.", ())},
    ),
    Route(
        "POST",
        "/mappings/try",
        try_mapping,
        "tryMapping",
        f"The first {_EVENTS} events that a mapping makes of the first {_ROWS} of the given rows, the rows that it "
        "leaves out, the columns that it reads and that are missing, and those that it does not read; as `oxiseq "
        "mapping try` shows them. Nothing is stored.",
        Need(None),
        bodies=(JSON,),
        body_schema="MappingAndRows",
        answers={
            200: Answer("The events that it makes.", schema="TriedMapping"),
            400: Answer("Not a mapping, or no rows.", ()),
        },
    ),
)
