"""Looking back: why a query matched or did not, what a draft would have found, which states its automaton was in, what
a match was made of."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict
from typing import Any, Final, Literal

from oxiseq.engine.errors import OxiseqError
from oxiseq.engine.matches.paging import PAGE, Page
from oxiseq.grammar import QueryError, load
from oxiseq.grammar.languages import media_types
from oxiseq.journal.lines import match_lines
from oxiseq.journal.rows import pack_block, unpack_matches
from oxiseq.languages.reasons.read import Span
from oxiseq.live.api.problems import as_problem, query_problem
from oxiseq.live.api.queries import NAME
from oxiseq.live.api.streams import time_of
from oxiseq.live.api.table import JSON, Answer, Call, Need, Parameter, Route, natural, unsupported
from oxiseq.live.made_of import made_of
from oxiseq.live.past import Past, Told
from oxiseq.options import OPTIONS
from oxiseq.sparql.evaluation import Sink
from oxiseq.sparql.media import wanted
from oxiseq.sparql.messages import Response
from oxiseq.sparql.problems import Problem

TRIG: Final = "application/trig"
_MATCHES: Final = 100
"""Most matches for which it shows what they were made of."""
_POINTS: Final = 500
_USUAL_POINTS: Final = 100
"""Most instants at which an automaton is shown."""
_PAGE: Final = 1_000
"""Matches of a page of those that end at one instant."""
_DIGITS: Final = 1_300
"""Of a number below 2^4096: no more matches are counted."""
_WHY: Final[dict[str, Literal["json", "text", "prov"]]] = {JSON: "json", "text/plain": "text", TRIG: "prov"}
_MADE_OF: Final[dict[str, Literal["json", "prov"]]] = {JSON: "json", TRIG: "prov"}
_TYPES: Final = {"json": JSON, "text": "text/plain; charset=utf-8", "prov": TRIG}


def why(call: Call) -> Response:
    """GET /queries/{query}/why."""
    form = wanted(call.request.header("accept"), _WHY)
    span, given = _span(call), call.number("limit", _MATCHES)
    most = OPTIONS["limit"].default if given is None else given

    def told(check: Callable[[], None]) -> str:
        found = Past(call.service, span, check, call.request.rights).why(call.parts["query"], most)
        if form == "json":
            return _text(_why_value(found))
        return found.why.to_prov() if form == "prov" else str(found.why)

    return _answered(call, told, _TYPES[form])


def compare(call: Call) -> Response:
    """POST /queries/{query}/compare."""
    media_type, span = call.request.media_type or "", _span(call)
    known = media_types()
    if media_type not in known:
        raise unsupported(call.request, tuple(known))
    language, text = known[media_type], call.request.text()
    try:
        draft = load(text, language)
    except QueryError as error:
        raise query_problem(error, text, language) from None

    def told(check: Callable[[], None]) -> str:
        try:
            found = Past(call.service, span, check, call.request.rights).compare(call.parts["query"], draft)
        except QueryError as error:
            raise query_problem(error, text, language) from None
        return _text(found.to_json())

    return _answered(call, told, JSON)


def states(call: Call) -> Response:
    """GET /queries/{query}/states."""
    span, given = _span(call), call.number("points", _POINTS)
    if given == 0:
        raise Problem(400, "no points", f"points is a number from 1 to {_POINTS}")

    def told(check: Callable[[], None]) -> str:
        found = Past(call.service, span, check, call.request.rights).states(call.parts["query"], given or _USUAL_POINTS)
        return _text({"points": [asdict(point) for point in found]})

    return _answered(call, told, JSON)


def matches_at(call: Call) -> Response:
    """GET /queries/{query}/matches-at."""
    given, limit, offset = call.one("at"), call.number("limit", _PAGE), call.one("offset") or "0"
    if given is None:
        raise Problem(400, "no time", "?at= says when the matches end")
    if not offset.isascii() or not offset.isdecimal() or len(offset) > _DIGITS:
        raise Problem(400, "offset is no number", f"{offset[:40]!r}: a number of at most {_DIGITS} digits is expected")
    page = Page(time_of(given, "at"), int(offset), PAGE if limit is None else limit)
    span = Span(None if (since := call.one("since")) is None else time_of(since, "since"), None)

    def told(check: Callable[[], None]) -> str:
        found = Past(call.service, span, check, call.request.rights).matches_at(call.parts["query"], page)
        lines = match_lines(unpack_matches(pack_block(found.block), 0))
        rows = [{k: v for k, v in json.loads(line).items() if k != "id"} for line in lines]
        return _text({"total": str(found.total), "offset": offset, "matches": rows})

    return _answered(call, told, JSON)


def provenance(call: Call) -> Response:
    """GET /queries/{query}/matches/{match}/provenance."""
    form = wanted(call.request.header("accept"), _MADE_OF)
    number = natural(call.parts["match"], "the match's id")

    def told(check: Callable[[], None]) -> str:
        found = made_of(call.service, call.parts["query"], number, check, call.request.rights)
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


def _span(call: Call) -> Span:
    since, until = (None if (given := call.one(name)) is None else time_of(given, name) for name in ("since", "until"))
    return Span(since, until)


_RANGE: Final = tuple(Parameter(name, OPTIONS[name].help, OPTIONS[name].kind.schema) for name in ("since", "until"))
_LATE: Final = {503: Answer("The time limit is reached.", ())}

ROUTES: Final = (
    Route(
        "GET",
        "/queries/{query}/why",
        why,
        "why",
        "Why a query matched or did not, over the events that its streams keep, with the current knowledge base: as "
        "`oxiseq why --json` prints it, times in microseconds, terms as N-Triples; `looked` is the range that was "
        "examined. As PROV-O in TriG: what the matches were derived from.",
        Need("read", "query"),
        (
            NAME,
            *_RANGE,
            Parameter("limit", OPTIONS["limit"].help, {"type": "integer", "minimum": 0, "maximum": _MATCHES}),
        ),
        answers={
            200: Answer("The report.", tuple(_WHY), "Why"),
            403: Answer("Too many events: choose a shorter time.", ()),
            **_LATE,
        },
    ),
    Route(
        "POST",
        "/queries/{query}/compare",
        compare,
        "compare",
        "The matches that a draft, the body, gains and loses against a registered query over the events that are kept; "
        "nothing is changed. Rows are compared by their time and by the variables that both answer.",
        Need("read", "query"),
        (NAME, *_RANGE),
        tuple(media_types()),
        answers={
            200: Answer("The difference.", schema="Comparison"),
            403: Answer("Too many events: choose a shorter time.", ()),
            **_LATE,
        },
    ),
    Route(
        "GET",
        "/queries/{query}/states",
        states,
        "pastStates",
        "How many groups of partial matches waited at each edge of a SPAseq query's automaton, at up to `points` "
        "instants of the events that its streams keep, with the current knowledge base: `at` in microseconds, "
        "`waiting` in the order of the explanation's edges, `matches` found until then.",
        Need("read", "query"),
        (
            NAME,
            *_RANGE,
            Parameter(
                "points",
                f"How many instants at most, equally far apart in events. Default: {_USUAL_POINTS}.",
                {"type": "integer", "minimum": 1, "maximum": _POINTS},
            ),
        ),
        answers={
            200: Answer("The states.", schema="PastStates"),
            403: Answer("Too many events: choose a shorter time.", ()),
            **_LATE,
        },
    ),
    Route(
        "GET",
        "/queries/{query}/matches-at",
        matches_at,
        "matchesAt",
        "A page of the matches of a SPAseq or CEQL query that end at one instant, of the events that its streams keep, "
        "with the current knowledge base: `limit` matches from the one at `offset` on, in the order in which they are "
        "found, and how many there are in all (`total`, a text: it may be beyond 2^53). The matches before are not "
        "listed. Every match of the instant counts, whatever GROUP BY, HAVING, ORDER BY, LIMIT, SAMPLE and DISTINCT "
        "say.",
        Need("read", "query"),
        (
            NAME,
            Parameter("at", "When they end, as `since`.", OPTIONS["since"].kind.schema),
            Parameter("offset", "The number of the first one, from 0 on.", {"type": "string", "pattern": "^[0-9]+$"}),
            Parameter("limit", "How many at most.", {"type": "integer", "minimum": 0, "maximum": _PAGE}),
            Parameter(
                "since",
                "Only events from this time on. Default: those of the query's window, without one all that are kept.",
                OPTIONS["since"].kind.schema,
            ),
        ),
        answers={
            200: Answer("It.", schema="MatchesAt"),
            403: Answer("Too many events: choose a later `since`.", ()),
            **_LATE,
        },
    ),
    Route(
        "GET",
        "/queries/{query}/matches/{match}/provenance",
        provenance,
        "provenance",
        "What a match was derived from: its events' triples, as far as the streams keep them, and for SPAseq the "
        "facts of the knowledge base that it used; also as PROV-O in TriG.",
        Need("read", "query"),
        (NAME, Parameter("match", "The match's id.", {"type": "integer", "minimum": 1}, "path", 1)),
        answers={
            200: Answer("The events and facts.", tuple(_MADE_OF), "MadeOf"),
            404: Answer("No such match.", ()),
            410: Answer("It is deleted.", ()),
            **_LATE,
        },
    ),
)
