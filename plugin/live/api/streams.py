"""`/streams`, `/bridges`, `/kb`: where events and knowledge come from."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from functools import lru_cache, partial
from typing import Annotated, Any, ClassVar, Final, Literal
from urllib.parse import quote

import msgspec
from msgspec import Meta
from werkzeug.http import parse_etags

from oxiseq.bridges.bridge import FORMER_KEY
from oxiseq.engine.errors import OxiseqError
from oxiseq.engine.events.contexts import NO_CONTEXTS, Contexts
from oxiseq.engine.events.messages.announced import MessageFormat
from oxiseq.engine.events.quads import QuadFormat
from oxiseq.engine.events.time import to_microseconds, to_text
from oxiseq.grammar.records import dataclass
from oxiseq.journal import Appended, Appends, Retention, StreamRecord
from oxiseq.live import ldes
from oxiseq.live.api.table import ON_ARRIVAL, Call, json_response, listed, unsupported
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
from oxiseq.live.remote import RemoteKnowledge
from oxiseq.live.streams import Pushed
from oxiseq.mappings.declared import StreamMapping
from oxiseq.mappings.plan import MappingError
from oxiseq.mappings.rows import ROWS
from oxiseq.options.kinds import DURATION, data_duration, duration_text
from oxiseq.sparql.messages import Problem, Response, checked_iri, wanted, with_messages

# --- streams ---------------------------------------------------------------------------------------------

RDF: Final[Mapping[str, QuadFormat | MessageFormat]] = {
    "application/n-quads": "nquads",
    "application/trig": "trig",
    "application/x-ld+ndjson": "messages-ndjsonld",
    **{
        with_messages(name): MESSAGES[name]
        for name in ("application/n-quads", "application/trig", "application/n-triples", "text/turtle")
    },
}
_TYPES: Final = {format: name for name, format in RDF.items()}
BODIES: Final = (*EVENTS, *GRAPHS, "application/x-ld+ndjson", *ROWS)
MAPPING: Final = {
    "description": "What rows of JSON, JSON Lines, CSV and SenML mean: an object of the shorthand (subject, type, "
    "predicates, prefixes, time, unit, zone), {construct, time, unit, zone}, {ready}, a CONSTRUCT "
    "query, or the name of a ready mapping; and contexts, IRI to the context that JSON-LD may name by it; "
    "null: rows are not taken.",
    "type": ["object", "string", "null"],
}


class StreamRetention(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """For how long events are kept, and how many."""

    time: Annotated[Any, Meta(extra_json_schema=DURATION.schema | {"type": ["string", "null"]})] = msgspec.field(
        name="for", default=None
    )
    count: Annotated[int, Meta(ge=0, lt=10**12)] | None = None


class StreamSettings(msgspec.Struct, forbid_unknown_fields=True, frozen=True, kw_only=True):
    """What can be set of a stream."""

    EXAMPLE: ClassVar[str] = '{"retention": {"for": "1h", "count": 1000}, "mapping": null}'
    retention: StreamRetention | None = None
    mapping: Annotated[Any, Meta(extra_json_schema=MAPPING)] = msgspec.UNSET


class NewStream(StreamSettings, frozen=True, kw_only=True):
    """A stream by its name."""

    iri: Annotated[str, Meta(extra_json_schema={"format": "iri"})]


def create(call: Call, body: NewStream) -> Response:
    """POST /streams."""
    iri = checked_iri(body.iri, "iri")
    call.request.rights.demand("register", "stream", iri)
    record = call.service.streams.create(iri, *settings(body))
    return json_response(stream_value(call, record), 201, (("location", f"/streams/{quote(iri, safe='')}"),))


def all_streams(call: Call, limit: int | None, after: str | None) -> Response:
    """GET /streams."""
    may = call.request.rights.may
    seen = [record for record in call.service.streams.all() if may("read", "stream", record.iri)]
    value = partial(stream_value, call)
    return listed(call.request.path, "streams", seen, lambda record: record.iri, value, limit, after)


def get(call: Call, stream: str) -> Response:
    """GET /streams/{stream}."""
    return json_response(stream_value(call, call.service.streams.get(stream)))


def put(call: Call, stream: str, body: StreamSettings | None) -> Response:
    """PUT /streams/{stream}."""
    given = (None, None) if body is None else settings(body)
    if given != (None, None):
        call.request.rights.demand("register", "stream", stream)
    return json_response(stream_value(call, call.service.streams.create(stream, *given)))


def patch(call: Call, stream: str, body: StreamSettings) -> Response:
    """PATCH /streams/{stream}."""
    given = settings(body)
    call.service.streams.get(stream)
    return json_response(stream_value(call, call.service.streams.create(stream, *given)))


def delete(call: Call, stream: str) -> Response:
    """DELETE /streams/{stream}."""
    call.service.streams.delete(stream)
    return Response(204)


@dataclass(frozen=True, slots=True, eq=False)
class Pushing:
    """A push that has been read: `append` is to be stored, then `answer` says what became of it."""

    append: Appends
    answer: Callable[[Appended], Response]


def push(call: Call, **given: Any) -> Response:
    """POST /streams/{stream}."""
    pushing = begin_push(call, **given)
    return pushing.answer(call.service.journal.log.store(pushing.append))


def begin_push(
    call: Call, stream: str, time: int | Literal["arrival"] | None, watermark: int | None, idempotency_key: str | None
) -> Pushing:
    """`push` without waiting for the disk. Raises Problem, OxiseqError."""
    iri, body = stream, call.request.body
    if idempotency_key is not None and not 0 < len(idempotency_key) <= 200:
        raise Problem(400, "the batch id is too long", "1 to 200 characters")
    on_arrival, at = (True, 0) if isinstance(time, str) else (False, time)
    if on_arrival and watermark is not None:
        raise Problem(400, "watermark is given twice", "an event stamped on arrival completes its instant itself")
    if not body and watermark is not None:
        call.service.streams.check_watermark(watermark)
        return Pushing(Appends(iri, advance=to_microseconds(watermark)), lambda _: json_response({"advanced": True}))
    streams = call.service.streams
    former = call.request.header(FORMER_KEY)
    push = streams.begin(
        iri,
        lambda: _reading(call, iri, at, stamped=on_arrival),
        body,
        idempotency_key,
        watermark,
        on_arrival=on_arrival,
        former_id=former,
    )
    return Pushing(push.append, lambda appended: json_response(pushed_value(streams.end(push, appended))))


def events(call: Call, stream: str, offset: int | None, limit: int | None, **_: str | None) -> Response:
    """GET /streams/{stream}/events."""
    format = wanted(call.request.header("accept"), RDF)
    most = call.service.settings.page
    body, following = call.service.streams.text(stream, offset, min(limit or most, most), format)
    return Response(200, (("content-type", _TYPES[format]), ("oxiseq-next-offset", str(following))), body)


def published(call: Call, stream: str, page: int | None, **since: int | None) -> Response:
    """GET /streams/{stream}/ldes."""
    streams = call.service.streams
    record = streams.get(stream)
    found = ldes.root(record) if page is None else ldes.page(streams, record, page, since["from"])
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


def settings(given: StreamSettings) -> tuple[Retention | None, str | None]:
    """How long events are kept, and the mapping as JSON text (None: as before, empty: none from now on). Raises Problem
    400."""
    kept, keep = given.retention, None
    if kept is not None:
        keep = Retention(None if kept.time is None else duration_of(kept.time, "retention.for"), kept.count)
    if given.mapping is msgspec.UNSET:
        return keep, None
    if given.mapping is None:
        return keep, ""
    try:
        return keep, json.dumps(StreamMapping(given.mapping).as_data(), ensure_ascii=False)
    except MappingError as error:
        raise Problem(400, "malformed mapping", str(error)) from None


@lru_cache(256)
def mapping_of(text: str) -> StreamMapping:
    """A mapping that was stored, compiled."""
    return StreamMapping(json.loads(text))


def contexts_of(record: StreamRecord) -> Contexts:
    """Those that JSON-LD for a stream may name."""
    return mapping_of(record.mapping).contexts if record.mapping else NO_CONTEXTS


def _reading(call: Call, iri: str, time: int | None, *, stamped: bool) -> Reading:
    media_type, body, streams = call.request.media_type or "", call.request.body, call.service.streams
    if (log := message_format(body, media_type, call.request.version)) is not None:
        contexts = contexts_of(streams.get(iri)) if log == "messages-ndjsonld" else NO_CONTEXTS
        return _log(read_log(body, log, time, contexts), stamped=stamped)
    if media_type in EVENTS:
        if time is not None:
            raise Problem(400, "time is given twice", f"events of {media_type} bring their own times")
        return read_batch(body, EVENTS[media_type])
    if media_type in GRAPHS:
        if time is None:
            raise Problem(400, "no time", f"a graph as {media_type} is one event: ?time= says when")
        contexts = contexts_of(streams.get(iri)) if media_type == "application/ld+json" else NO_CONTEXTS
        return read_graph(body, GRAPHS[media_type], time, contexts)
    if media_type in ROWS:
        stored = streams.get(iri).mapping
        return _log(_rows(body, media_type, stored, time), stamped=stamped)
    raise unsupported(call.request, BODIES)


def _rows(body: bytes, media_type: str, stored: str | None, time: int | None) -> Reading:
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
    return read_rows(body, media_type, mapping, time)


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


def duration_of(given: object, name: str) -> int:
    """A duration as µs. Raises Problem 400."""
    try:
        return data_duration(given, name)
    except OxiseqError as error:
        raise Problem(400, f"{name} is no duration", str(error)) from None


# --- bridges ---------------------------------------------------------------------------------------------


def all_bridges(call: Call) -> Response:
    """GET /bridges."""
    may, found = call.request.rights.may, call.service.bridges
    told = [] if found is None else found.values()
    return json_response({"bridges": [each for each in told if may("read", "stream", each["into"])]})


# --- the knowledge base elsewhere ------------------------------------------------------------------------


def get_kb(call: Call) -> Response:
    """GET /kb."""
    return json_response(_value(_remote(call)))


def refresh(call: Call) -> Response:
    """POST /kb/refresh."""
    knowledge = _remote(call)
    call.service.refresh()
    return json_response(_value(knowledge))


def _remote(call: Call) -> RemoteKnowledge:
    knowledge = call.service.store
    if not isinstance(knowledge, RemoteKnowledge):
        raise Problem(404, "the knowledge base is here", "with --upstream it is elsewhere, and its answers are kept")
    return knowledge


def _value(knowledge: RemoteKnowledge) -> dict[str, Any]:
    told = knowledge.told
    return {
        "answers": told.answers,
        "asked": to_text(told.asked) if told.asked else None,
        "changes": told.changes,
        "failures": told.failures,
        "error": told.error or None,
    }
