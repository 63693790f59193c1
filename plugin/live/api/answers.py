"""`/queries/{query}/answer` and `/queries/{query}/changes`: queries over the store; `/query` as Server-Sent Events."""

from __future__ import annotations

from typing import Final, Literal, cast

from pyoxigraph import QueryResultsFormat, RdfFormat
from werkzeug.datastructures import MIMEAccept
from werkzeug.http import parse_accept_header

from oxiseq.engine.events.time import to_text
from oxiseq.grammar import QueryError
from oxiseq.grammar.languages import STANDING
from oxiseq.journal import CursorError, UnknownError
from oxiseq.live.answer_readers import follow
from oxiseq.live.answer_texts import answer_graph, answer_results, change_text
from oxiseq.live.api.matches import EVENT_STREAM
from oxiseq.live.api.problems import query_problem
from oxiseq.live.api.queries import NAME
from oxiseq.live.api.table import JSON, Answer, Call, Need, Parameter, Route, natural
from oxiseq.sparql.media import GRAPHS, RESULTS, content_type, wanted
from oxiseq.sparql.messages import Request, Response
from oxiseq.sparql.operations import query_of
from oxiseq.sparql.problems import Problem

_CHANGES: Final[dict[str, Literal["json", "live"]]] = {JSON: "json", EVENT_STREAM: "live"}


def answer(call: Call) -> Response:
    """GET /queries/{query}/answer."""
    found = call.service.standing.answer(call.parts["query"])
    accept = call.request.header("accept")
    kind: QueryResultsFormat | RdfFormat
    if found.form == "CONSTRUCT":
        kind = wanted(accept, GRAPHS)
        body = answer_graph(found, kind)
    else:
        kind = wanted(accept, RESULTS)
        body = answer_results(found, kind)
    told = ("oxiseq-last-id", str(found.number)), ("oxiseq-at", to_text(found.at))
    return Response(200, (("content-type", content_type(kind)), *told), body)


def changes(call: Call) -> Response:
    """GET /queries/{query}/changes."""
    after, name = _after(call), call.parts["query"]
    if wanted(call.request.header("accept"), _CHANGES) == "live":
        return _live(call, name, after)
    return _page(call, name, after)


def follows(request: Request) -> bool:
    """Whether a request wants a query's changes: EventSource accepts nothing but text/event-stream."""
    accepted = parse_accept_header(request.header("accept") or "", MIMEAccept)
    return bool(accepted) and accepted.best == EVENT_STREAM


def query(call: Call) -> Response:
    """GET or POST /query, by who accepts text/event-stream."""
    call.request.rights.demand("read", "kb")  # also by POST, whose own right is that of streams
    asked = query_of(call.request)
    if asked.default_graphs or asked.named_graphs or asked.union:
        raise Problem(501, "not supported", "a standing query names its graphs by FROM and FROM NAMED")
    call.check_parameters({"query", "union-default-graph", *(each.name for each in _AFTER if each.where == "query")})
    after = _after(call)
    try:
        name = call.service.standing.unnamed(asked.text)
    except QueryError as error:
        raise query_problem(error, asked.text, STANDING) from None
    return _live(call, name, after)


def _live(call: Call, name: str, after: int | None) -> Response:
    reader = follow(call.service.subscriptions, call.service.standing, name, after)
    return Response(200, (("content-type", EVENT_STREAM), ("cache-control", "no-store")), reader)


def _after(call: Call) -> int | None:
    last_seen = call.request.header("last-event-id")
    given = natural(last_seen, "Last-Event-ID") if last_seen else call.number("after")
    return given or None  # no answer has the id 0: it is where a client begins


def _page(call: Call, name: str, after: int | None) -> Response:
    record = call.service.queries.get(name).record
    if record.language != STANDING:
        raise UnknownError(f"{name!r} reads streams: it has matches, but no changes")
    given, most = call.number("limit"), call.service.settings.page
    limit = most if given is None else min(given, most)
    call.service.standing.catch_up(name)
    record = call.service.queries.get(name).record
    cursor = record.first - 1 if after is None else after
    if cursor >= record.next:
        raise CursorError(f"changes of {name!r}", cursor + 1, record.next)
    texts: list[str] = []
    rows = 0
    while rows < limit and (parts := call.service.journal.matches.read(name, cursor)):
        for part in parts:
            if rows < limit:
                texts.append(change_text(part, record.options["form"]))
                rows += len(part)
                cursor = part.last
    body = f'{{"changes": [{", ".join(texts)}], "last": {cursor}}}\n'
    headers = [("content-type", JSON), ("oxiseq-last-id", str(cursor))]
    if cursor + 1 < record.next:
        headers.append(("link", f'<{call.request.path}?after={cursor}>; rel="next"'))
    return Response(200, tuple(headers), body.encode())


_AFTER: Final = (
    Parameter("after", "Changes with greater ids only.", {"type": "integer", "minimum": 0}),
    Parameter(
        "Last-Event-ID",
        "Takes precedence over ?after=; clients of Server-Sent Events send it when they reconnect.",
        {"type": "integer", "minimum": 0},
        "header",
    ),
)
_FORMATS: Final = tuple(dict.fromkeys((*cast("dict[str, object]", RESULTS), *cast("dict[str, object]", GRAPHS))))
_TOLD: Final = (
    "As Server-Sent Events: without a cursor first the answer, as `snapshot` events (`rows`, of ASK `answer`; `part` "
    "counts from 0, `more`: another part follows; the last one has the id); then, after each update that changes it, "
    "`change` events with the rows `removed` and `added`, each as often as it was removed or added (for CONSTRUCT "
    "triples, for ASK `answer`). Ids rise by one per row and are never reused. `more`: the same change continues in "
    "the next event. `cursor-too-old`: the changes after the cursor are not kept, or the query has been replaced; a "
    "snapshot comes next. `end`, with a `reason`; and comments while nothing happens."
)

ROUTES: Final = (
    Route(
        "GET",
        "/queries/{query}/answer",
        answer,
        "answer",
        "The answer of a query over the store after all updates so far: SPARQL results, or for CONSTRUCT a graph.",
        Need("read", "query"),
        (NAME,),
        answers={
            200: Answer("The answer. The header Oxiseq-Last-Id is the id of the last change in it.", _FORMATS),
            404: Answer("No such query, or it reads streams.", ()),
        },
    ),
    Route(
        "GET",
        "/queries/{query}/changes",
        changes,
        "changes",
        f"The changes of the answer of a query over the store, in the order of updates. {_TOLD}",
        Need("read", "query"),
        (NAME, *_AFTER, Parameter("limit", "JSON: about how many rows at most.", {"type": "integer", "minimum": 0})),
        answers={
            200: Answer("Changes; for JSON the header Oxiseq-Last-Id says where to continue.", (JSON, EVENT_STREAM)),
            404: Answer("No such query, or it reads streams.", ()),
            410: Answer("JSON: the cursor is too old. Start again with the answer.", ()),
            503: Answer("Too many live readers; see Retry-After.", ()),
        },
    ),
    Route(
        "GET",
        "/query",
        query,
        "followQuery",
        "SPARQL, where the client accepts text/event-stream: the answer of a SELECT, ASK or CONSTRUCT, and then its "
        "changes; the same by POST. A client that reconnects within a minute continues where it stopped. (Else /query "
        f"is that of the SPARQL protocol.) {_TOLD}",
        Need("read", "kb"),
        (Parameter("query", "The text."), *_AFTER),
        answers={
            200: Answer("The changes.", (EVENT_STREAM, *_FORMATS)),
            400: Answer("Not accepted: message, line and column.", ()),
            503: Answer("Too many live readers; see Retry-After.", ()),
        },
    ),
)
