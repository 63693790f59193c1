"""What queries answer: matches, answers over the store and their changes, one run over what is kept."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final, Literal

from pyoxigraph import QueryResultsFormat, RdfFormat
from werkzeug.datastructures import MIMEAccept
from werkzeug.http import parse_accept_header

from oxiseq.engine.errors import OxiseqError
from oxiseq.engine.events.time import to_text
from oxiseq.grammar import QueryError, load
from oxiseq.grammar.languages import STANDING, AnyQuery, media_types
from oxiseq.journal import CursorError, DamagedBatchError, LogSource, StoredMatches, UnknownError
from oxiseq.journal.lines import match_lines
from oxiseq.languages.registry import language_for
from oxiseq.live.answer_readers import follow
from oxiseq.live.answers import OF_ANSWER, answer_graph, answer_results, change_text, results
from oxiseq.live.api.table import JSON, Call, as_problem, check_known, in_address, query_problem
from oxiseq.live.service import LiveService
from oxiseq.matches.text import text_of
from oxiseq.matches.write import blocks_of
from oxiseq.options import QUERY, Options, options_for, said_as_data
from oxiseq.rights import Rights
from oxiseq.sparql.evaluation import Sink
from oxiseq.sparql.messages import GRAPHS, RESULTS, Problem, Request, Response, content_type, query_of, wanted

# --- matches ---------------------------------------------------------------------------------------------

EVENT_STREAM: Final = "text/event-stream"
LINES: Final = "application/x-ndjson"
_OFFERS: Final[Mapping[str, QueryResultsFormat | Literal["live", "lines"]]] = {
    **RESULTS,
    EVENT_STREAM: "live",
    LINES: "lines",
}


def matches(call: Call, query: str, after: int | None, limit: int | None, last_event_id: int | None) -> Response:
    """GET /queries/{query}/matches."""
    format = wanted(call.request.header("accept"), _OFFERS)
    if last_event_id is not None:
        after = last_event_id  # a client that comes back knows better than its address
    if format == "live":
        subscription = call.service.subscriptions.subscribe(query, after)
        return Response(200, (("content-type", EVENT_STREAM), ("cache-control", "no-store")), subscription)
    return _matches_page(call, query, format, after, limit)


def _matches_page(
    call: Call, name: str, format: QueryResultsFormat | Literal["lines"], after: int | None, given: int | None
) -> Response:
    most = call.service.settings.page
    status = call.service.queries.get(name)
    if status.record.language == STANDING:
        raise UnknownError(OF_ANSWER.format(name))
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


# --- answers over the store ------------------------------------------------------------------------------

_CHANGES: Final[dict[str, Literal["json", "live"]]] = {JSON: "json", EVENT_STREAM: "live"}


def answer(call: Call, query: str) -> Response:
    """GET /queries/{query}/answer."""
    found = call.service.standing.answer(query)
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


def changes(call: Call, query: str, after: int | None, last_event_id: int | None, limit: int | None) -> Response:
    """GET /queries/{query}/changes."""
    given = after if last_event_id is None else last_event_id
    if wanted(call.request.header("accept"), _CHANGES) == "live":
        return _live(call, query, given)
    return _changes_page(call, query, given or None, limit)


def follows(request: Request) -> bool:
    """Whether a request wants a query's changes: EventSource accepts nothing but text/event-stream."""
    accepted = parse_accept_header(request.header("accept") or "", MIMEAccept)
    return bool(accepted) and accepted.best == EVENT_STREAM


def followed(call: Call, after: int | None, last_event_id: int | None, **_: str | None) -> Response:
    """GET or POST /query, by who accepts text/event-stream."""
    asked = query_of(call.request)
    if asked.default_graphs or asked.named_graphs or asked.union:
        raise Problem(501, "not supported", "a standing query names its graphs by FROM and FROM NAMED")
    check_known(call.request, {"query", "union-default-graph", "after"})
    try:
        name = call.service.standing.unnamed(asked.text)
    except QueryError as error:
        raise query_problem(error, asked.text, STANDING) from None
    return _live(call, name, after if last_event_id is None else last_event_id)


def _live(call: Call, name: str, after: int | None) -> Response:
    # no answer has the id 0: it is where a client begins
    reader = follow(call.service.subscriptions, call.service.standing, name, after or None)
    return Response(200, (("content-type", EVENT_STREAM), ("cache-control", "no-store")), reader)


def _changes_page(call: Call, name: str, after: int | None, given: int | None) -> Response:
    record = call.service.queries.get(name).record
    if record.language != STANDING:
        raise UnknownError(f"{name!r} reads streams: it has matches, but no changes")
    most = call.service.settings.page
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


# --- once ------------------------------------------------------------------------------------------------

Text = Literal["json", "csv", "tsv"]
ONCE_FORMATS: Final[Mapping[str, Text]] = {
    "application/sparql-results+json": "json",
    "application/json": "json",
    "text/csv": "csv",
    "text/tab-separated-values": "tsv",
}
_MEDIA_TYPES: Final[Mapping[str, str]] = {
    "json": "application/sparql-results+json",
    "csv": "text/csv; charset=utf-8",
    "tsv": "text/tab-separated-values; charset=utf-8",
}


def once(call: Call) -> Response:
    """POST /query."""
    language, text = media_types()[call.request.media_type or ""], call.request.text()
    format, rights = wanted(call.request.header("accept"), ONCE_FORMATS), call.request.rights
    check_known(call.request, {each.name for each in options_for(doors=(QUERY,))})
    try:
        query = load(text, language)
        options = said_as_data(
            language,
            in_address(call.request, (QUERY,)),
            reads=[each.iri for each in call.service.streams.all() if rights.may("read", "stream", each.iri)],
        )
    except QueryError as error:
        raise query_problem(error, text, language) from None
    except OxiseqError as error:
        raise as_problem(error) from None

    def work(sink: Sink) -> None:
        sink.begin(_MEDIA_TYPES[format])
        try:
            for piece in _pieces(call.service, query, format, options, rights, sink):
                sink.write(piece.encode())
        except QueryError as error:
            raise query_problem(error, text, language) from None
        except OxiseqError as error:
            raise as_problem(error) from None

    return call.evaluations.answer(work, call.request.gone)


def _pieces(
    service: LiveService, query: AnyQuery, format: Text, options: Options, rights: Rights, sink: Sink
) -> Iterator[str]:
    spoken = language_for(query)
    spoken.prepare()
    driver = spoken.driver(query, service.kb_of_now if spoken.asks_kb else None, options)
    rights.demand_reading(driver.streams.values(), kb=bool(driver.run.kb_texts))
    known = options.reads
    read = [iri for iri in dict.fromkeys(driver.streams.values()) if iri in known]
    if not read:
        raise Problem(404, "no such stream", f"none of {', '.join(driver.streams.values())} is here")
    for iri in read:
        driver.attach(iri, LogSource(service.journal, iri))
    return text_of(driver.shape, blocks_of(driver.shape, driver.batches(sink.check), format), format)
