"""`/streams`: create, list, push, read, delete."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any, Final
from urllib.parse import quote

from werkzeug.http import parse_etags

from oxiseq.bridges.intake import FORMER_KEY
from oxiseq.engine.errors import OxiseqError
from oxiseq.engine.events.contexts import NO_CONTEXTS, Contexts
from oxiseq.engine.events.messages.announced import MessageFormat
from oxiseq.engine.events.quads import QuadFormat
from oxiseq.engine.events.time import to_microseconds, to_text
from oxiseq.grammar.records import dataclass
from oxiseq.journal import Appended, Appends, Retention, StreamRecord
from oxiseq.live import ldes
from oxiseq.live.api.table import JSON, PAGED, Answer, Call, Need, Parameter, Route, json_response, listed, unsupported
from oxiseq.live.intake import (
    EVENTS,
    GRAPHS,
    MESSAGES,
    Reading,
    message_format,
    read_batch,
    read_graph,
    read_log,
    read_rows,
)
from oxiseq.live.streams import Pushed
from oxiseq.mappings.declared import StreamMapping
from oxiseq.mappings.errors import MappingError
from oxiseq.mappings.rows import ROWS
from oxiseq.options.durations import data_duration, duration_text
from oxiseq.options.kinds import TIME
from oxiseq.sparql.media import wanted, with_messages
from oxiseq.sparql.messages import Response
from oxiseq.sparql.operations import checked_iri
from oxiseq.sparql.problems import Problem

_RDF: Final[Mapping[str, QuadFormat | MessageFormat]] = {
    "application/n-quads": "nquads",
    "application/trig": "trig",
    "application/x-ld+ndjson": "messages-ndjsonld",
    **{
        with_messages(name): MESSAGES[name]
        for name in ("application/n-quads", "application/trig", "application/n-triples", "text/turtle")
    },
}
_TYPES: Final = {format: name for name, format in _RDF.items()}
_BODIES: Final = (*EVENTS, *GRAPHS, "application/x-ld+ndjson", *ROWS)
ON_ARRIVAL: Final = "arrival"
"""As ?time=: the server stamps the event."""
STREAM: Final = Parameter("stream", "The stream's IRI, percent-encoded.", where="path", example="http://example.org/s")


def create(call: Call) -> Response:
    """POST /streams."""
    given = call.json()
    iri = given.get("iri")
    if not isinstance(iri, str):
        raise Problem(400, "no iri", "the member iri names the stream")
    call.request.rights.demand("register", "stream", checked_iri(iri, "iri"))
    record = call.service.streams.create(iri, *settings({k: v for k, v in given.items() if k != "iri"}))
    return json_response(stream_value(call, record), 201, (("location", f"/streams/{quote(iri, safe='')}"),))


def all_streams(call: Call) -> Response:
    """GET /streams."""
    may = call.request.rights.may
    seen = [record for record in call.service.streams.all() if may("read", "stream", record.iri)]
    return listed(call, "streams", seen, lambda record: record.iri, lambda record: stream_value(call, record))


def get(call: Call) -> Response:
    """GET /streams/{stream}."""
    return json_response(stream_value(call, call.service.streams.get(_iri(call))))


def put(call: Call) -> Response:
    """PUT /streams/{stream}."""
    iri, given = _iri(call), settings(call.json()) if call.request.body else (None, None)
    if given != (None, None):
        call.request.rights.demand("register", "stream", iri)
    return json_response(stream_value(call, call.service.streams.create(iri, *given)))


def patch(call: Call) -> Response:
    """PATCH /streams/{stream}."""
    iri, given = _iri(call), settings(call.json())
    call.service.streams.get(iri)
    return json_response(stream_value(call, call.service.streams.create(iri, *given)))


def delete(call: Call) -> Response:
    """DELETE /streams/{stream}."""
    call.service.streams.delete(_iri(call))
    return Response(204)


@dataclass(frozen=True, slots=True, eq=False)
class Pushing:
    """A push that has been read: `append` is to be stored, then `answer` says what became of it."""

    append: Appends
    answer: Callable[[Appended], Response]


def push(call: Call) -> Response:
    """POST /streams/{stream}."""
    pushing = begin_push(call)
    return pushing.answer(call.service.journal.log.store(pushing.append))


def begin_push(call: Call) -> Pushing:
    """`push` without waiting for the disk. Raises Problem, OxiseqError."""
    iri, body = _iri(call), call.request.body
    batch_id = call.request.header("idempotency-key")
    if batch_id is not None and not 0 < len(batch_id) <= 200:
        raise Problem(400, "the batch id is too long", "1 to 200 characters")
    on_arrival = call.one("time") == ON_ARRIVAL
    watermark, time = _time(call, "watermark"), 0 if on_arrival else _time(call, "time")
    if on_arrival and watermark is not None:
        raise Problem(400, "watermark is given twice", "an event stamped on arrival completes its instant itself")
    if not body and watermark is not None:
        call.service.streams.check_watermark(watermark)
        return Pushing(Appends(iri, advance=to_microseconds(watermark)), lambda _: json_response({"advanced": True}))
    streams = call.service.streams
    former = call.request.header(FORMER_KEY)
    push = streams.begin(
        iri, lambda: _reading(call, time), body, batch_id, watermark, on_arrival=on_arrival, former_id=former
    )
    return Pushing(push.append, lambda appended: json_response(pushed_value(streams.end(push, appended))))


def events(call: Call) -> Response:
    """GET /streams/{stream}/events."""
    format = wanted(call.request.header("accept"), _RDF)
    most = call.service.settings.page
    limit = min(call.number("limit") or most, most)
    body, following = call.service.streams.text(_iri(call), call.number("offset"), limit, format)
    return Response(200, (("content-type", _TYPES[format]), ("oxiseq-next-offset", str(following))), body)


def published(call: Call) -> Response:
    """GET /streams/{stream}/ldes."""
    number, since, streams = call.number("page"), call.number("from"), call.service.streams
    record = streams.get(_iri(call))
    found = ldes.root(record) if number is None else ldes.page(streams, record, number, since)
    if found is None:
        raise Problem(404, "no such page", f"the last page of <{record.iri}> is {record.next // ldes.PAGE}")
    body = found.text.encode()
    etag = hashlib.blake2b(body, digest_size=12).hexdigest()
    kept = "max-age=31536000, immutable" if found.complete else "no-cache"
    headers = (("content-type", "application/trig"), ("etag", f'W/"{etag}"'), ("cache-control", kept))
    if parse_etags(call.request.header("if-none-match")).contains_weak(etag):
        return Response(304, headers)
    return Response(200, headers, body)


def stream_value(call: Call, record: StreamRecord) -> dict[str, Any]:
    """A stream as JSON values."""
    kept = None if record.keep.time is None else duration_text(record.keep.time)
    value = {
        "iri": record.iri,
        "first": record.first,
        "next": record.next,
        "retention": {"for": kept, "count": record.keep.count},
        **({"mapping": json.loads(record.mapping)} if record.mapping else {}),
    }
    stood = call.service.resumed.get(record.iri)
    if stood is not None and stood.next <= record.next:  # else it has been deleted and rebuilt
        value["restored"] = {"next": stood.next, "last": None if stood.last is None else to_text(stood.last)}
    return value


def pushed_value(pushed: Pushed) -> dict[str, Any]:
    """What became of a batch."""
    return {
        "offsets": {"first": pushed.first, "next": pushed.first + pushed.accepted},
        "accepted": pushed.accepted,
        "late": pushed.late,
        "ignored": pushed.ignored,
        "rejected": pushed.rejected,
        "duplicates": pushed.duplicates,
        "reasons": [reason.as_data() for reason in pushed.reasons],
        **({} if pushed.time is None else {"time": to_text(pushed.time)}),
    }


def retention(given: object) -> Retention | None:
    """`{"for": "1h", "count": ...}`. Raises Problem 400."""
    if given is None:
        return None
    if not isinstance(given, dict) or set(given) - {"for", "count"}:
        raise Problem(
            400, "malformed retention", 'an object as {"for": "1h", "count": 1000} is expected; both may be null'
        )
    count = given.get("count")
    if count is not None and not (isinstance(count, int) and not isinstance(count, bool) and 0 <= count < 1e12):
        raise Problem(400, "malformed retention", "count is a whole number from 0 on, or null")
    return Retention(None if given.get("for") is None else duration_of(given["for"], "retention.for"), count)


def settings(given: Mapping[str, Any]) -> tuple[Retention | None, str | None]:
    """How long events are kept, and the mapping as JSON text (None: as before, empty: none from now on). Raises Problem
    400."""
    if set(given) - {"retention", "mapping"}:
        raise Problem(400, "unknown members", "retention and mapping can be set")
    keep = retention(given.get("retention"))
    if "mapping" not in given:
        return keep, None
    if given["mapping"] is None:
        return keep, ""
    try:
        return keep, json.dumps(StreamMapping(given["mapping"]).as_data(), ensure_ascii=False)
    except MappingError as error:
        raise Problem(400, "malformed mapping", str(error)) from None


@lru_cache(256)
def mapping_of(text: str) -> StreamMapping:
    """A mapping that was stored, compiled."""
    return StreamMapping(json.loads(text))


def contexts_of(record: StreamRecord) -> Contexts:
    """Those that JSON-LD for a stream may name."""
    return mapping_of(record.mapping).contexts if record.mapping else NO_CONTEXTS


def _contexts(call: Call) -> Contexts:
    return contexts_of(call.service.streams.get(_iri(call)))


def _iri(call: Call) -> str:
    return checked_iri(call.parts["stream"], "the stream")


def _reading(call: Call, time: int | None) -> Reading:
    media_type, body = call.request.media_type or "", call.request.body
    if (log := message_format(body, media_type, call.request.version)) is not None:
        contexts = _contexts(call) if log == "messages-ndjsonld" else NO_CONTEXTS
        return _log(read_log(body, log, time, contexts), stamped=call.one("time") == ON_ARRIVAL)
    if media_type in EVENTS:
        if time is not None:
            raise Problem(400, "time is given twice", f"events of {media_type} bring their own times")
        return read_batch(body, EVENTS[media_type])
    if media_type in GRAPHS:
        if time is None:
            raise Problem(400, "no time", f"a graph as {media_type} is one event: ?time= says when")
        contexts = _contexts(call) if media_type == "application/ld+json" else NO_CONTEXTS
        return read_graph(body, GRAPHS[media_type], time, contexts)
    if media_type in ROWS:
        return _rows(call, media_type, time)
    raise unsupported(call.request, _BODIES)


def _rows(call: Call, media_type: str, time: int | None) -> Reading:
    stored = call.service.streams.get(_iri(call)).mapping
    mapping = mapping_of(stored) if stored else None
    if mapping is None or not mapping.takes_rows:
        raise Problem(
            415,
            "the stream has no mapping",
            f"rows as {media_type} are taken when it says what they mean: "
            'PUT {"mapping": {"subject": "http://ex/{id}", "predicates": {...}, "time": "ts"}}',
        )
    if mapping.time and time is not None:
        raise Problem(400, "time is given twice", "the stream's mapping names the columns of the time")
    if not mapping.time and time is None:
        raise Problem(400, "no time", "the stream's mapping names none: add ?time=, a time or arrival")
    return _log(read_rows(call.request.body, media_type, mapping, time), stamped=call.one("time") == ON_ARRIVAL)


def _log(reading: Reading, *, stamped: bool) -> Reading:
    """Raises Problem 400 where several events would be stamped as one."""
    if stamped and len(reading.time) != 1:
        raise Problem(
            400,
            "one event is stamped at a time",
            f"time={ON_ARRIVAL} is for a log of one message, not of "
            f"{len(reading.time)}: push them one by one, or give them times",
        )
    return reading


def _time(call: Call, name: str) -> int | None:
    """A time parameter in µs. Raises Problem 400."""
    given = call.one(name)
    return None if given is None else time_of(given, name)


def time_of(given: str | int, name: str) -> int:
    """A time as µs. Raises Problem 400."""
    try:
        return TIME.data(given, name)
    except OxiseqError as error:
        raise Problem(400, f"{name} is no time", str(error)) from None


def duration_of(given: object, name: str) -> int:
    """A duration as µs. Raises Problem 400."""
    try:
        return data_duration(given, name)
    except OxiseqError as error:
        raise Problem(400, f"{name} is no duration", str(error)) from None


ROUTES: Final = (
    Route(
        "GET",
        "/streams",
        all_streams,
        "listStreams",
        "All streams.",
        Need("read", "stream", "list"),
        PAGED,
        answers={200: Answer("The streams.", schema="Streams")},
    ),
    Route(
        "POST",
        "/streams",
        create,
        "createStream",
        "Create a stream, or set how long it keeps its events and what rows mean.",
        Need("register", "stream", "body"),
        bodies=(JSON,),
        body_schema="NewStream",
        answers={201: Answer("The stream.", schema="Stream")},
    ),
    Route(
        "GET",
        "/streams/{stream}",
        get,
        "getStream",
        "One stream.",
        Need("read", "stream"),
        (STREAM,),
        answers={200: Answer("The stream.", schema="Stream")},
    ),
    Route(
        "PUT",
        "/streams/{stream}",
        put,
        "putStream",
        "Create a stream, or set how long it keeps its events and what rows mean.",
        Need("register", "stream", instead="push"),
        (STREAM,),
        bodies=(JSON,),
        body_schema="StreamSettings",
        answers={200: Answer("The stream.", schema="Stream")},
    ),
    Route(
        "PATCH",
        "/streams/{stream}",
        patch,
        "patchStream",
        "Set how long a stream keeps its events, and what rows mean.",
        Need("register", "stream"),
        (STREAM,),
        bodies=(JSON,),
        body_schema="StreamSettings",
        answers={200: Answer("The stream.", schema="Stream")},
    ),
    Route(
        "DELETE",
        "/streams/{stream}",
        delete,
        "deleteStream",
        "Delete a stream that no query reads, and its events.",
        Need("register", "stream"),
        (STREAM,),
        answers={204: Answer("Done.", ()), 409: Answer("A query reads it.", ())},
    ),
    Route(
        "POST",
        "/streams/{stream}",
        push,
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
                example="2024-05-01T10:00:00Z",
            ),
            Parameter("watermark", "Also, or without a body only: no event before this time will come."),
            Parameter(
                "Idempotency-Key",
                "The batch's id: pushing the same batch again stores nothing and returns the same offsets.",
                where="header",
            ),
        ),
        _BODIES,
        answers={
            200: Answer("The result.", schema="Pushed"),
            400: Answer("Nothing can be taken: malformed, or further ahead of the clock than --max-ahead.", ()),
            409: Answer("The batch id was used with another body.", ()),
            429: Answer("Too many events wait; see Retry-After.", ()),
            507: Answer("No room on the disk.", ()),
        },
    ),
    Route(
        "GET",
        "/streams/{stream}/events",
        events,
        "readEvents",
        "The events that are kept, as RDF.",
        Need("read", "stream"),
        (
            STREAM,
            Parameter("offset", "The first offset.", {"type": "integer", "minimum": 0}),
            Parameter("limit", "How many offsets at most.", {"type": "integer", "minimum": 0}),
            *(Parameter(name, "Of a WebSocket: see pushEvents.") for name in ("session", "first", "time", "format")),
        ),
        answers={
            200: Answer("Events; the header Oxiseq-Next-Offset says where to continue.", tuple(_RDF)),
            410: Answer("The offset is deleted.", ()),
            500: Answer("The batch at the offset is damaged: members first and next give its offsets.", ()),
        },
    ),
    Route(
        "GET",
        "/streams/{stream}/ldes",
        published,
        "readLdes",
        f"The stream as a Linked Data Event Stream: the root, which links to the first page, or a page of {ldes.PAGE} "
        "events, which links to the next.",
        Need("read", "stream"),
        (
            STREAM,
            Parameter("page", "Which page. Default: the root.", {"type": "integer", "minimum": 0}),
            Parameter("from", "From which offset of a long page on.", {"type": "integer", "minimum": 0}),
        ),
        answers={
            200: Answer("The events are members: named graphs, with their times.", ("application/trig",)),
            304: Answer("It has not changed: If-None-Match names its ETag.", ()),
            404: Answer("No such page, or no such stream.", ()),
            500: Answer("A batch of the page is damaged: members first and next give its offsets.", ()),
        },
    ),
)
