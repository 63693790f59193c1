"""`/queries/{query}/matches`: as SPARQL results, or live."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal

from pyoxigraph import QueryResultsFormat

from oxiseq.grammar.languages import STANDING
from oxiseq.journal import DamagedBatchError, StoredMatches, UnknownError
from oxiseq.journal.lines import match_lines
from oxiseq.live.answers import OF_ANSWER
from oxiseq.live.api.queries import NAME
from oxiseq.live.api.table import Answer, Call, Need, Parameter, Route, natural
from oxiseq.live.texts import results
from oxiseq.sparql.media import RESULTS, content_type, wanted
from oxiseq.sparql.messages import Response

EVENT_STREAM: Final = "text/event-stream"
LINES: Final = "application/x-ndjson"
_OFFERS: Final[Mapping[str, QueryResultsFormat | Literal["live", "lines"]]] = {
    **RESULTS,
    EVENT_STREAM: "live",
    LINES: "lines",
}


def matches(call: Call) -> Response:
    """GET /queries/{query}/matches."""
    format = wanted(call.request.header("accept"), _OFFERS)
    after = call.number("after")
    last_seen = call.request.header("last-event-id")
    if last_seen:
        after = natural(last_seen, "Last-Event-ID")  # a client that comes back knows better than its address
    if format == "live":
        subscription = call.service.subscriptions.subscribe(call.parts["query"], after)
        return Response(200, (("content-type", EVENT_STREAM), ("cache-control", "no-store")), subscription)
    return _page(call, format, after)


def _page(call: Call, format: QueryResultsFormat | Literal["lines"], after: int | None) -> Response:
    name, most = call.parts["query"], call.service.settings.page
    status = call.service.queries.get(name)
    if status.record.language == STANDING:
        raise UnknownError(OF_ANSWER.format(name))
    given = call.number("limit")
    limit = most if given is None else min(given, most)
    cursor = status.record.first - 1 if after is None else after
    parts: list[StoredMatches] = []
    while limit > 0 and (found := _read(call, name, cursor, limit, bool(parts))):
        parts += found
        limit -= sum(map(len, found))
        cursor = found[-1].last
    variables = parts[0].heading.variables if parts else status.variables
    uniform = [part for part in parts if part.heading.variables == variables]  # a query may have been replaced
    if len(uniform) < len(parts):
        other = next(i for i, part in enumerate(parts) if part.heading.variables != variables)
        uniform = parts[:other]
        cursor = uniform[-1].last
    if format == "lines":
        body = b"".join(line + b"\n" for part in uniform for line in match_lines(part))
    else:
        body = results(variables, uniform, format)
    kind = LINES if format == "lines" else content_type(format)
    headers = [("content-type", kind), ("oxiseq-last-id", str(cursor))]
    if cursor + 1 < status.record.next:
        headers.append(("link", f'<{call.request.path}?after={cursor}>; rel="next"'))
    return Response(200, tuple(headers), body)


def _read(call: Call, name: str, cursor: int, limit: int, some: bool) -> list[StoredMatches]:
    """The next stored matches; none where they are damaged and the page has `some`: the next page begins there."""
    try:
        return call.service.journal.matches.read(name, cursor, limit)
    except DamagedBatchError:
        if some:
            return []
        raise


ROUTES: Final = (
    Route(
        "GET",
        "/queries/{query}/matches",
        matches,
        "matches",
        "The matches of a query, in the order in which they were found, under ids that increase by one. As SPARQL "
        "results; as lines of JSON, one object each, as the data of live ones are; or as Server-Sent Events, live: "
        "`match` events whose ids are the matches' own, `cursor-too-old` when the matches after the cursor are "
        "deleted (it continues with those that are kept), `damaged` where some cannot be read (it continues after "
        "them), `end`, and comments while nothing happens. A slow reader is served from the journal; only one that "
        "reads nothing for long is disconnected.",
        Need("read", "query"),
        (
            NAME,
            Parameter(
                "after",
                "Matches with greater ids only. Default: all that are kept; live: those found from now on.",
                {"type": "integer", "minimum": 0},
            ),
            Parameter("limit", "How many at most.", {"type": "integer", "minimum": 0}),
            Parameter(
                "Last-Event-ID",
                "Takes precedence over ?after=; clients of Server-Sent Events send it when they reconnect.",
                {"type": "integer", "minimum": 0},
                "header",
            ),
        ),
        answers={
            200: Answer(
                "Matches. The header Oxiseq-Last-Id says where to continue.",
                (
                    "application/sparql-results+json",
                    "application/sparql-results+xml",
                    "text/csv",
                    "text/tab-separated-values",
                    LINES,
                    EVENT_STREAM,
                ),
            ),
            410: Answer("The cursor is too old: the matches after it are deleted.", ()),
            500: Answer("Matches after the cursor are damaged: members first and next give their ids.", ()),
            503: Answer("Too many live readers; see Retry-After.", ()),
        },
    ),
)
