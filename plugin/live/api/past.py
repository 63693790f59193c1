"""Looking back: why a query matched or did not, what a draft would have found, which states its automaton was in, what
a match was made of."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict
from typing import Any, Final, Literal

from oxiseq.engine.errors import OxiseqError
from oxiseq.engine.matches.paging import PAGE as USUAL_PAGE
from oxiseq.engine.matches.paging import Page
from oxiseq.grammar import QueryError, load
from oxiseq.grammar.languages import media_types
from oxiseq.journal.lines import match_lines
from oxiseq.journal.rows import pack_block, unpack_matches
from oxiseq.languages.reasons.read import Span
from oxiseq.live.api.table import JSON, Call, as_problem, query_problem, unsupported
from oxiseq.live.past import Past, Told, made_of
from oxiseq.options import OPTIONS
from oxiseq.sparql.evaluation import Sink
from oxiseq.sparql.messages import Problem, Response, wanted

TRIG: Final = "application/trig"
MATCHES: Final = 100
"""Most matches for which it shows what they were made of."""
POINTS: Final = 500
USUAL_POINTS: Final = 100
"""Most instants at which an automaton is shown."""
PAGE: Final = 1_000
"""Matches of a page of those that end at one instant."""
DIGITS: Final = 1_300
"""Of a number below 2^4096: no more matches are counted."""
WHY: Final[dict[str, Literal["json", "text", "prov"]]] = {JSON: "json", "text/plain": "text", TRIG: "prov"}
MADE_OF: Final[dict[str, Literal["json", "prov"]]] = {JSON: "json", TRIG: "prov"}
_TYPES: Final = {"json": JSON, "text": "text/plain; charset=utf-8", "prov": TRIG}


def why(call: Call, query: str, since: int | None, until: int | None, limit: int | None) -> Response:
    """GET /queries/{query}/why."""
    form = wanted(call.request.header("accept"), WHY)
    most = OPTIONS["limit"].default if limit is None else limit

    def told(check: Callable[[], None]) -> str:
        found = Past(call.service, Span(since, until), check, call.request.rights).why(query, most)
        if form == "json":
            return _text(_why_value(found))
        return found.why.to_prov() if form == "prov" else str(found.why)

    return _answered(call, told, _TYPES[form])


def compare(call: Call, query: str, since: int | None, until: int | None) -> Response:
    """POST /queries/{query}/compare."""
    media_type, known = call.request.media_type or "", media_types()
    if media_type not in known:
        raise unsupported(call.request, tuple(known))
    language, text = known[media_type], call.request.text()
    try:
        draft = load(text, language)
    except QueryError as error:
        raise query_problem(error, text, language) from None

    def told(check: Callable[[], None]) -> str:
        try:
            found = Past(call.service, Span(since, until), check, call.request.rights).compare(query, draft)
        except QueryError as error:
            raise query_problem(error, text, language) from None
        return _text(found.to_json())

    return _answered(call, told, JSON)


def states(call: Call, query: str, since: int | None, until: int | None, points: int | None) -> Response:
    """GET /queries/{query}/states."""

    def told(check: Callable[[], None]) -> str:
        past = Past(call.service, Span(since, until), check, call.request.rights)
        found = past.states(query, points or USUAL_POINTS)
        return _text({"points": [asdict(point) for point in found]})

    return _answered(call, told, JSON)


def matches_at(
    call: Call, query: str, at: int | None, offset: str | None, limit: int | None, since: int | None
) -> Response:
    """GET /queries/{query}/matches-at."""
    if at is None:
        raise Problem(400, "no time", "?at= says when the matches end")
    page = Page(at, int(offset or 0), USUAL_PAGE if limit is None else limit)

    def told(check: Callable[[], None]) -> str:
        found = Past(call.service, Span(since, None), check, call.request.rights).matches_at(query, page)
        lines = match_lines(unpack_matches(pack_block(found.block), 0))
        rows = [{k: v for k, v in json.loads(line).items() if k != "id"} for line in lines]
        return _text({"total": str(found.total), "offset": offset or "0", "matches": rows})

    return _answered(call, told, JSON)


def provenance(call: Call, query: str, match: int) -> Response:
    """GET /queries/{query}/matches/{match}/provenance."""
    form = wanted(call.request.header("accept"), MADE_OF)

    def told(check: Callable[[], None]) -> str:
        found = made_of(call.service, query, match, check, call.request.rights)
        return _text(found.to_json()) if form == "json" else found.to_prov()

    return _answered(call, told, _TYPES[form])


def _answered(call: Call, told: Callable[[Callable[[], None]], str], media_type: str) -> Response:
    """The text, made on a thread with the limits of SPARQL's answers."""

    def work(sink: Sink) -> None:
        sink.begin(media_type)
        try:
            text = told(sink.check)
        except OxiseqError as error:
            raise as_problem(error) from None
        sink.write(text.encode())

    return call.evaluations.answer(work, call.request.gone)


def _why_value(told: Told) -> dict[str, Any]:
    looked = {"events": told.events, "first": told.first, "last": told.last}
    return {**told.why.to_json(), "looked": looked}


def _text(value: object) -> str:
    return json.dumps(value, ensure_ascii=False) + "\n"
