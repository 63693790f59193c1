"""The operations of the server: one table, of which routes, OpenAPI and the client are made.

    OPERATIONS ─▶ routes.py: which function answers a request; its right, its parameters, its body are checked before
               ─▶ openapi.py: /openapi.json, and the page's reference
               ─▶ `oxiseq.served.wire`: how a client asks; the command line's remote verbs

A new operation is an entry here and its function.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, Final, Literal

from msgspec import Meta

from oxiseq.grammar.languages import media_types
from oxiseq.live import ldes
from oxiseq.live.api import answers, checking, long_push, past, queries, streams
from oxiseq.live.api.table import JSON, PAGED, Answer, Call, EventTime, Natural, Need, Operation, Parameter, StreamIri
from oxiseq.live.metrics import MEDIA_TYPE
from oxiseq.live.settings import DOORS
from oxiseq.options import OPTIONS, Door
from oxiseq.options.kinds import TIME
from oxiseq.sparql.messages import GRAPHS, RESULTS, Response

Positive = Annotated[int, Meta(ge=1)]
QUERY: Final = Parameter("query", "The query's name.", where="path", example="rises")
SINK: Final = Parameter("sink", "The sink's id.", where="path", example="chat")
STREAM: Final = Parameter(
    "stream", "The stream's IRI, percent-encoded.", StreamIri(), "path", example="http://example.org/s"
)
LAST_SEEN: Final = Parameter(
    "Last-Event-ID",
    "Takes precedence over ?after=; clients of Server-Sent Events send it when they reconnect.",
    Natural,
    "header",
)
_AFTER: Final = (Parameter("after", "Changes with greater ids only.", Natural), LAST_SEEN)
_RANGE: Final = tuple(Parameter(name, OPTIONS[name].help, OPTIONS[name].kind) for name in ("since", "until"))
_LATE: Final = {503: Answer("The time limit is reached.", ())}
ANSWER_FORMATS: Final = tuple(dict.fromkeys((*RESULTS, *GRAPHS)))
_TOLD: Final = (
    "As Server-Sent Events: without a cursor first the answer, as `snapshot` events (`rows`, of ASK `answer`; `part` "
    "counts from 0, `more`: another part follows; the last one has the id); then, after each update that changes it, "
    "`change` events with the rows `removed` and `added`, each as often as it was removed or added (for CONSTRUCT "
    "triples, for ASK `answer`). Ids rise by one per row and are never reused. `more`: the same change continues in "
    "the next event. `cursor-too-old`: the changes after the cursor are not kept, or the query has been replaced; a "
    "snapshot comes next. `end`, with a `reason`; and comments while nothing happens."
)


def _metrics(call: Call) -> Response:
    return Response(200, (("content-type", MEDIA_TYPE),), call.service.metrics.text())


def _openapi(call: Call) -> Response:
    raise AssertionError("LiveRoutes answers it: it needs no service")


OPERATIONS: Final[tuple[Operation, ...]] = (
    # --- streams ---
    Operation(
        "GET",
        "/streams",
        streams.all_streams,
        "listStreams",
        "All streams.",
        Need("read", "stream", "list"),
        PAGED,
        answers={200: Answer("The streams.", schema="Streams")},
    ),
    Operation(
        "POST",
        "/streams",
        streams.create,
        "createStream",
        "Create a stream, or set how long it keeps its events and what rows mean.",
        Need("register", "stream", "body"),
        bodies=(JSON,),
        body=streams.NewStream,
        answers={201: Answer("The stream.", schema="Stream")},
    ),
    Operation(
        "GET",
        "/streams/{stream}",
        streams.get,
        "getStream",
        "One stream.",
        Need("read", "stream"),
        (STREAM,),
        answers={200: Answer("The stream.", schema="Stream")},
    ),
    Operation(
        "PUT",
        "/streams/{stream}",
        streams.put,
        "putStream",
        "Create a stream, or set how long it keeps its events and what rows mean.",
        Need("register", "stream", instead="push"),
        (STREAM,),
        bodies=(JSON,),
        body=streams.StreamSettings,
        answers={200: Answer("The stream.", schema="Stream")},
    ),
    Operation(
        "PATCH",
        "/streams/{stream}",
        streams.patch,
        "patchStream",
        "Set how long a stream keeps its events, and what rows mean.",
        Need("register", "stream"),
        (STREAM,),
        bodies=(JSON,),
        body=streams.StreamSettings,
        answers={200: Answer("The stream.", schema="Stream")},
    ),
    Operation(
        "DELETE",
        "/streams/{stream}",
        streams.delete,
        "deleteStream",
        "Delete a stream that no query reads, and its events.",
        Need("register", "stream"),
        (STREAM,),
        answers={204: Answer("Done.", ()), 409: Answer("A query reads it.", ())},
    ),
    Operation(
        "POST",
        "/streams/{stream}",
        streams.push,
        "push",
        "Push events, in order of arrival: a batch in which each event is a named graph with its time "
        "(prov:generatedAtTime) in the default graph, an event table, a log of RDF messages (version=1.2-messages in "
        "the Content-Type, or announced in the text), or one graph with ?time=. Rows (JSON, JSON Lines, CSV, SenML) "
        "become events by the stream's mapping; bad rows are skipped one by one. The server answers when the events "
        "are durable.",
        Need("push", "stream"),
        (
            STREAM,
            Parameter(
                "time",
                "The time of the one event, or of messages that state none, xsd:dateTime or integer microseconds; "
                "`arrival`: the server stamps it when it stores it, later than all earlier events, and its instant is "
                "complete at once.",
                EventTime(),
                example="2024-05-01T10:00:00Z",
            ),
            Parameter("watermark", "Also, or without a body only: no event before this time will come.", TIME),
            Parameter(
                "Idempotency-Key",
                "The batch's id: pushing the same batch again stores nothing and returns the same offsets.",
                where="header",
            ),
        ),
        streams.BODIES,
        answers={
            200: Answer("The result.", schema="Pushed"),
            400: Answer("Nothing can be taken: malformed, or further ahead of the clock than --max-ahead.", ()),
            409: Answer("The batch id was used with another body.", ()),
            429: Answer("Too many events wait; see Retry-After.", ()),
            507: Answer("No room on the disk.", ()),
        },
    ),
    Operation(
        "GET",
        "/streams/{stream}/events",
        streams.events,
        "readEvents",
        "The events that are kept, as RDF.",
        Need("read", "stream"),
        (
            STREAM,
            Parameter("offset", "The first offset.", Natural),
            Parameter("limit", "How many offsets at most.", Natural),
            *(Parameter(name, "Of a WebSocket: see pushEvents.") for name in ("session", "first", "time", "format")),
        ),
        answers={
            200: Answer("Events; the header Oxiseq-Next-Offset says where to continue.", tuple(streams.RDF)),
            410: Answer("The offset is deleted.", ()),
            500: Answer("The batch at the offset is damaged: members first and next give its offsets.", ()),
        },
    ),
    Operation(
        "GET",
        "/streams/{stream}/ldes",
        streams.published,
        "readLdes",
        f"The stream as a Linked Data Event Stream: the root, which links to the first page, or a page of {ldes.PAGE} "
        "events, which links to the next.",
        Need("read", "stream"),
        (
            STREAM,
            Parameter("page", "Which page. Default: the root.", Natural),
            Parameter("from", "From which offset of a long page on.", Natural),
        ),
        answers={
            200: Answer("The events are members: named graphs, with their times.", ("application/trig",)),
            304: Answer("It has not changed: If-None-Match names its ETag.", ()),
            404: Answer("No such page, or no such stream.", ()),
            500: Answer("A batch of the page is damaged: members first and next give its offsets.", ()),
        },
    ),
    # --- long_push ---
    Operation(
        "POST",
        "/streams/{stream}/events",
        long_push.push_events,
        "pushEvents",
        "Push events over one long request, which is answered while it is sent: lines of JSON, or N-Quads. The first "
        "line of the answer says which of the session's items are stored (`last`); each further one that all up to "
        "`seq` are, and under which offsets; a last one with `error` says why no more is accepted. The same over a "
        "WebSocket: `GET` with `Upgrade: websocket` and `?format=ndjson` or `nquads`, a message of whole items each.",
        Need("push", "stream"),
        (
            STREAM,
            Parameter(
                "session",
                "The client's name for its numbered items, to continue after a broken connection; without one the "
                "server assigns one.",
            ),
            Parameter("first", "The number of the first item, if items have none.", Natural),
            Parameter("time", "`arrival`: lines without a time are stamped by the server.", Literal["arrival"]),
        ),
        tuple(long_push.FORMATS),
        answers={
            200: Answer("Acknowledgements.", (answers.LINES,)),
            429: Answer("Too many events wait; see Retry-After.", ()),
            503: Answer("Too many long pushes; see Retry-After.", ()),
        },
    ),
    # --- queries ---
    Operation(
        "GET",
        "/queries",
        queries.all_queries,
        "listQueries",
        "All continuous queries.",
        Need("read", "query", "list"),
        PAGED,
        answers={200: Answer("The queries.", schema="Queries")},
    ),
    Operation(
        "POST",
        "/queries",
        queries.register,
        "registerQuery",
        "Register a continuous query: it sees the events that are pushed from now on. Missing streams are created. "
        "Or, as application/sparql-query, a SELECT, ASK or CONSTRUCT over the store: its answer is updated from now "
        "on, see /queries/{query}/changes.",
        Need("register", "query", "body"),
        (Parameter("name", "With a text as body: its name. Default: a random one."),),
        (*queries.taken(), JSON),
        queries.NewQuery,
        {
            201: Answer("The query.", schema="Query"),
            400: Answer("Not accepted: message, line and column as by `oxiseq check`.", ()),
            409: Answer("The name is taken.", ()),
        },
        DOORS,
    ),
    Operation(
        "GET",
        "/queries/{query}",
        queries.get,
        "getQuery",
        "One query and its state.",
        Need("read", "query"),
        (QUERY,),
        answers={200: Answer("The query.", schema="Query")},
    ),
    Operation(
        "PUT",
        "/queries/{query}",
        queries.replace,
        "replaceQuery",
        "Register a query under this name; it replaces the old one, and ids of matches continue. The same text over "
        "the store changes nothing; with another text readers of its changes start again.",
        Need("register", "query"),
        (QUERY,),
        (*queries.taken(), JSON),
        queries.NewQuery,
        {200: Answer("The query.", schema="Query")},
        DOORS,
    ),
    Operation(
        "PATCH",
        "/queries/{query}",
        queries.change,
        "changeQuery",
        "Pause or resume: a resumed query sees the events that came in the meantime.",
        Need("register", "query"),
        (QUERY,),
        (JSON,),
        queries.QueryState,
        {200: Answer("The query.", schema="Query")},
    ),
    Operation(
        "GET",
        "/queries/{query}/explanation",
        queries.explanation,
        "explainQuery",
        "What the query is compiled to, as `oxiseq explain` prints it. `waiting`: of each edge of a SPAseq query's "
        "automaton, how many groups of partial matches wait there now (some may have expired); null where it does not "
        "run. `picture`: an SVG. `sends`: with --upstream, the queries that are sent to the endpoint at each "
        "refresh; else null.",
        Need("read", "query"),
        (QUERY,),
        answers={200: Answer("The explanation.", schema="Explained")},
    ),
    Operation(
        "GET",
        "/queries/{query}/late-events",
        queries.late_events,
        "listLateEvents",
        "The newest events that came behind the watermark of their stream, so that no match has them: at most 1,000, "
        "since the server began. `last`: the number of the last one, for ?after=.",
        Need("read", "query"),
        (QUERY, Parameter("after", "Only those behind this number.", Natural)),
        answers={200: Answer("The events, their graphs as N-Triples.", schema="LateEvents")},
    ),
    Operation(
        "DELETE",
        "/queries/{query}",
        queries.delete,
        "deleteQuery",
        "Delete a query and its matches.",
        Need("register", "query"),
        (QUERY,),
        answers={204: Answer("Done.", ())},
    ),
    # --- answers ---
    Operation(
        "GET",
        "/queries/{query}/matches",
        answers.matches,
        "matches",
        "The matches of a query, in the order in which they were found, under ids that increase by one. As SPARQL "
        "results; as lines of JSON, one object each, as the data of live ones are; or as Server-Sent Events, live: "
        "`match` events whose ids are the matches' own, `cursor-too-old` when the matches after the cursor are "
        "deleted (it continues with those that are kept), `damaged` where some cannot be read (it continues after "
        "them), `end`, and comments while nothing happens. A slow reader is served from the journal; only one that "
        "reads nothing for long is disconnected.",
        Need("read", "query"),
        (
            QUERY,
            Parameter(
                "after",
                "Matches with greater ids only. Default: all that are kept; live: those found from now on.",
                Natural,
            ),
            Parameter("limit", "How many at most.", Natural),
            LAST_SEEN,
        ),
        answers={
            200: Answer(
                "Matches. The header Oxiseq-Last-Id says where to continue.",
                (
                    "application/sparql-results+json",
                    "application/sparql-results+xml",
                    "text/csv",
                    "text/tab-separated-values",
                    answers.LINES,
                    answers.EVENT_STREAM,
                ),
            ),
            410: Answer("The cursor is too old: the matches after it are deleted.", ()),
            500: Answer("Matches after the cursor are damaged: members first and next give their ids.", ()),
            503: Answer("Too many live readers; see Retry-After.", ()),
        },
    ),
    # --- answers ---
    Operation(
        "GET",
        "/queries/{query}/answer",
        answers.answer,
        "answer",
        "The answer of a query over the store after all updates so far: SPARQL results, or for CONSTRUCT a graph.",
        Need("read", "query"),
        (QUERY,),
        answers={
            200: Answer("The answer. The header Oxiseq-Last-Id is the id of the last change in it.", ANSWER_FORMATS),
            404: Answer("No such query, or it reads streams.", ()),
        },
    ),
    Operation(
        "GET",
        "/queries/{query}/changes",
        answers.changes,
        "changes",
        f"The changes of the answer of a query over the store, in the order of updates. {_TOLD}",
        Need("read", "query"),
        (QUERY, *_AFTER, Parameter("limit", "JSON: about how many rows at most.", Natural)),
        answers={
            200: Answer(
                "Changes; for JSON the header Oxiseq-Last-Id says where to continue.", (JSON, answers.EVENT_STREAM)
            ),
            404: Answer("No such query, or it reads streams.", ()),
            410: Answer("JSON: the cursor is too old. Start again with the answer.", ()),
            503: Answer("Too many live readers; see Retry-After.", ()),
        },
    ),
    Operation(
        "GET",
        "/query",
        answers.followed,
        "followQuery",
        "SPARQL, where the client accepts text/event-stream: the answer of a SELECT, ASK or CONSTRUCT, and then its "
        "changes; the same by POST. A client that reconnects within a minute continues where it stopped. (Else /query "
        f"is that of the SPARQL protocol.) {_TOLD}",
        Need("read", "kb"),
        (Parameter("query", "The text."), *_AFTER),
        answers={
            200: Answer("The changes.", (answers.EVENT_STREAM, *ANSWER_FORMATS)),
            400: Answer("Not accepted: message, line and column.", ()),
            503: Answer("Too many live readers; see Retry-After.", ()),
        },
    ),
    # --- queries ---
    Operation(
        "GET",
        "/queries/{query}/sinks",
        queries.all_sinks,
        "listSinks",
        "Where matches of the query are delivered.",
        Need("read", "query"),
        (QUERY,),
        answers={200: Answer("Them, without secrets.", schema="Sinks")},
    ),
    Operation(
        "GET",
        "/queries/{query}/sinks/{sink}",
        queries.get_sink,
        "getSink",
        "One sink: its settings without secrets, how many matches are delivered and how many wait, since when it fails "
        "and why, and when it tries again.",
        Need("read", "query"),
        (QUERY, SINK),
        answers={200: Answer("The sink.", schema="Sink")},
    ),
    Operation(
        "PUT",
        "/queries/{query}/sinks/{sink}",
        queries.put_sink,
        "putSink",
        "Deliver matches of the query from now on, or after the match `after`: each at least once, under an "
        "idempotency key, and tried again until the receiver confirms. An existing sink with this id continues at its "
        "position with these settings. The server's operator decides which hosts and files are allowed. Needs the "
        "right to read the query as well.",
        Need("register", "query"),
        (QUERY, SINK),
        (JSON,),
        queries.NewSink,
        {
            200: Answer("The sink.", schema="Sink"),
            403: Answer("There are too many.", ()),
            409: Answer("Another sink writes to this file, or the sink is declared in the server's settings.", ()),
        },
    ),
    Operation(
        "DELETE",
        "/queries/{query}/sinks/{sink}",
        queries.delete_sink,
        "deleteSink",
        "Stop delivering: a delivery that has begun may still arrive.",
        Need("register", "query"),
        (QUERY, SINK),
        answers={204: Answer("Done.", ()), 409: Answer("The sink is declared in the server's settings.", ())},
    ),
    # --- streams ---
    Operation(
        "GET",
        "/bridges",
        streams.all_bridges,
        "listBridges",
        "The bridges in the server's settings into streams that may be read: how much they have pushed, since when "
        "they fail, and why.",
        Need("read", "stream", "list"),
        answers={200: Answer("The bridges.", schema="Bridges")},
    ),
    # --- past ---
    Operation(
        "GET",
        "/queries/{query}/why",
        past.why,
        "why",
        "Why a query matched or did not, over the events that its streams keep, with the current knowledge base: as "
        "`oxiseq why --json` prints it, times in microseconds, terms as N-Triples; `looked` is the range that was "
        "examined. As PROV-O in TriG: what the matches were derived from. Of a query over the store: over what the "
        "knowledge base holds now; it takes no `since` and `until`.",
        Need("read", "query"),
        (
            QUERY,
            *_RANGE,
            Parameter("limit", OPTIONS["limit"].help, Annotated[int, Meta(ge=0, le=past.MATCHES)]),
        ),
        answers={
            200: Answer("The report.", tuple(past.WHY), "Why"),
            403: Answer("Too many events: choose a shorter time.", ()),
            **_LATE,
        },
    ),
    Operation(
        "POST",
        "/queries/{query}/compare",
        past.compare,
        "compare",
        "The matches that a draft, the body, gains and loses against a registered query over the events that are kept; "
        "nothing is changed. Rows are compared by their time and by the variables that both answer.",
        Need("read", "query"),
        (QUERY, *_RANGE),
        tuple(media_types()),
        answers={
            200: Answer("The difference.", schema="Comparison"),
            403: Answer("Too many events: choose a shorter time.", ()),
            **_LATE,
        },
    ),
    Operation(
        "GET",
        "/queries/{query}/states",
        past.states,
        "pastStates",
        "How many groups of partial matches waited at each edge of a SPAseq query's automaton, at up to `points` "
        "instants of the events that its streams keep, with the current knowledge base: `at` in microseconds, "
        "`waiting` in the order of the explanation's edges, `matches` found until then.",
        Need("read", "query"),
        (
            QUERY,
            *_RANGE,
            Parameter(
                "points",
                f"How many instants at most, equally far apart in events. Default: {past.USUAL_POINTS}.",
                Annotated[int, Meta(ge=1, le=past.POINTS)],
            ),
        ),
        answers={
            200: Answer("The states.", schema="PastStates"),
            403: Answer("Too many events: choose a shorter time.", ()),
            **_LATE,
        },
    ),
    Operation(
        "GET",
        "/queries/{query}/matches-at",
        past.matches_at,
        "matchesAt",
        "A page of the matches of a SPAseq or CEQL query that end at one instant, of the events that its streams keep, "
        "with the current knowledge base: `limit` matches from the one at `offset` on, in the order in which they are "
        "found, and how many there are in all (`total`, a text: it may be beyond 2^53). The matches before are not "
        "listed. Every match of the instant counts, whatever GROUP BY, HAVING, ORDER BY, LIMIT, SAMPLE and DISTINCT "
        "say.",
        Need("read", "query"),
        (
            QUERY,
            Parameter("at", "When they end, as `since`.", TIME),
            Parameter(
                "offset",
                "The number of the first one, from 0 on.",
                Annotated[str, Meta(pattern="^[0-9]+$", max_length=past.DIGITS)],
            ),
            Parameter("limit", "How many at most.", Annotated[int, Meta(ge=0, le=past.PAGE)]),
            Parameter(
                "since",
                "Only events from this time on. Default: those of the query's window, without one all that are kept.",
                TIME,
            ),
        ),
        answers={
            200: Answer("It.", schema="MatchesAt"),
            403: Answer("Too many events: choose a later `since`.", ()),
            **_LATE,
        },
    ),
    Operation(
        "GET",
        "/queries/{query}/matches/{match}/provenance",
        past.provenance,
        "provenance",
        "What a match was derived from: its events' triples, as far as the streams keep them, and for SPAseq the "
        "facts of the knowledge base that it used; also as PROV-O in TriG.",
        Need("read", "query"),
        (QUERY, Parameter("match", "The match's id.", Positive, "path", 1)),
        answers={
            200: Answer("The events and facts.", tuple(past.MADE_OF), "MadeOf"),
            404: Answer("No such match.", ()),
            410: Answer("It is deleted.", ()),
            **_LATE,
        },
    ),
    # --- answers ---
    Operation(
        "POST",
        "/query",
        answers.once,
        "queryOnce",
        "Run a query over streams (SPAseq, CEQL, EP-SPARQL) once over the events that are kept (SPARQL queries are "
        "sent here too, with their own media types; see GET for those that are followed).",
        Need("read", "stream", "body"),
        bodies=tuple(media_types()),
        answers={
            200: Answer("Its matches.", tuple(answers.ONCE_FORMATS)),
            503: Answer("The time limit is reached.", ()),
        },
        options=(Door.QUERY,),
    ),
    # --- streams ---
    Operation(
        "GET",
        "/kb",
        streams.get_kb,
        "getKb",
        "With --upstream: for how many patterns answers are kept, when they were requested, and whether that "
        "succeeded.",
        Need("read", "kb"),
        answers={200: Answer("Its state.", schema="Kb"), 404: Answer("The knowledge base is a store here.", ())},
    ),
    Operation(
        "POST",
        "/kb/refresh",
        streams.refresh,
        "refreshKb",
        "With --upstream: ask all patterns of all queries again. New answers hold for events from now on.",
        Need("update", "kb"),
        answers={
            200: Answer("Done.", schema="Kb"),
            404: Answer("The knowledge base is a store here.", ()),
            502: Answer("The endpoint fails; all old answers stay.", ()),
            504: Answer("The endpoint takes too long; all old answers stay.", ()),
        },
    ),
    # --- checking ---
    Operation(
        "POST",
        "/check",
        checking.check,
        "check",
        "Errors and lints of a query or an update, as `oxiseq check --json` prints them, columns and lines counted "
        "from 1. Nothing is run; for SPARQL only the first error is reported.",
        Need(None),
        bodies=(*media_types(), *checking.SPARQL),
        answers={200: Answer("The findings.", schema="Findings")},
    ),
    # --- checking ---
    Operation(
        "POST",
        "/mappings/suggest",
        checking.suggest_mapping,
        "suggestMapping",
        "A first mapping for rows: each column a predicate, with the type that all of its texts have; as `oxiseq "
        "mapping suggest` prints it. Nothing is stored.",
        Need(None),
        bodies=(JSON,),
        body=checking.Rows,
        answers={200: Answer("The mapping."), 400: Answer("No rows.", ())},
    ),
    Operation(
        "POST",
        "/mappings/try",
        checking.try_mapping,
        "tryMapping",
        f"The first {checking.EVENTS} events that a mapping makes of the first {checking.ROWS_TRIED} of the given "
        "rows, the rows that it leaves out, the columns that it reads and that are missing, and those that it does "
        "not read; as `oxiseq mapping try` shows them. Nothing is stored.",
        Need(None),
        bodies=(JSON,),
        body=checking.MappingAndRows,
        answers={
            200: Answer("The events that it makes.", schema="TriedMapping"),
            400: Answer("Not a mapping, or no rows.", ()),
        },
    ),
    Operation(
        "GET",
        "/metrics",
        _metrics,
        "metrics",
        "Counters and distributions for Prometheus.",
        Need("read", "server"),
        answers={200: Answer("The metrics.", ("text/plain",))},
    ),
    Operation(
        "GET",
        "/openapi.json",
        _openapi,
        "openapi",
        "This document.",
        Need(None),
        answers={200: Answer("The document.")},
    ),
)
NAMED: Final = {each.name: each for each in OPERATIONS}
SOCKET: Final = replace(
    NAMED["pushEvents"],
    parameters=(
        *NAMED["pushEvents"].parameters,
        Parameter("format", "How items are written.", Literal["ndjson", "nquads"]),
        Parameter("limit", "Of the GET that it is without a WebSocket."),
    ),
)
"""`pushEvents` over a WebSocket, of which OpenAPI has no notion."""
