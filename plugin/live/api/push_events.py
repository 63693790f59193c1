"""`POST /streams/{stream}/events`: events over one long request, acknowledged while they come.

A server with a loop of its own (oxiseq.server.pushers) answers while it reads, and takes the same over a WebSocket;
others read the body first.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable
from typing import Final

from oxiseq.grammar.records import dataclass
from oxiseq.live.api.long_push import LongPush, at_once
from oxiseq.live.api.streams import ON_ARRIVAL, STREAM, contexts_of
from oxiseq.live.api.table import Answer, Call, Need, Parameter, Route, natural, unsupported
from oxiseq.live.line_events import LineEvents
from oxiseq.live.portions import Decoder
from oxiseq.live.quad_events import QuadEvents, QuadMessages
from oxiseq.live.service import LiveService
from oxiseq.sparql.messages import Response
from oxiseq.sparql.operations import checked_iri
from oxiseq.sparql.problems import Problem

LINES: Final = "application/x-ndjson"
_FORMATS: Final = {LINES: "ndjson", "application/n-quads": "nquads", "text/x-nquads": "nquads"}
_LONGEST: Final = 200
_MOST: Final = 1 << 62


@dataclass(frozen=True, slots=True)
class Opening:
    """What a client says at the beginning: the stream, its session, the number of the first item that states none, the
    format, whether events without a time are stamped."""

    stream: str
    session: str
    first: int
    format: str
    stamped: bool

    def push(self, service: LiveService, last: int, *, messages: bool = False) -> LongPush:
        """The push of who is at item `last`; `messages`: over a WebSocket."""
        decoder: Decoder
        if self.format == "ndjson":
            decoder = LineEvents(
                last, self.first, stamped=self.stamped, contexts=contexts_of(service.streams.get(self.stream))
            )
        elif messages:
            decoder = QuadMessages(last, self.first)
        else:
            decoder = QuadEvents(last, self.first)
        return LongPush(service, self.stream, self.session, last, decoder)


def opening(call: Call, *, socket: bool = False) -> Opening:
    """Raises Problem 400, 415."""
    call.check_parameters({"session", "first", "time", *(("format", "limit") if socket else ())})
    session = call.one("session")
    if session is None:
        session = secrets.token_hex(8)
    elif not (0 < len(session) <= _LONGEST and session.isascii() and session.isprintable()):
        raise Problem(400, "no name of a session", f"it has 1 to {_LONGEST} visible ASCII characters")
    first = call.one("first")
    time = call.one("time")
    if time not in (None, ON_ARRIVAL):
        raise Problem(400, "time is given twice", f"events bring their own times, or ?time={ON_ARRIVAL}")
    format = _format(call, socket=socket)
    if time is not None and format != "ndjson":
        raise Problem(400, "time is given twice", "events as N-Quads bring their own times")
    number = 1 if first is None else max(1, natural(first, "first", _MOST - 1))
    return Opening(checked_iri(call.parts["stream"], "the stream"), session, number, format, time is not None)


def _format(call: Call, *, socket: bool) -> str:
    if socket:
        given = call.one("format") or "ndjson"
        if given not in _FORMATS.values():
            raise Problem(400, "unknown format", f"format={given[:40]}; known: ndjson, nquads")
        return given
    if call.request.media_type not in _FORMATS:
        raise unsupported(call.request, tuple(_FORMATS))
    return _FORMATS[call.request.media_type or ""]


def last_of(service: LiveService, opened: Opening) -> Callable[[], int]:
    """Reads a session's position."""
    return lambda: service.journal.log.session(opened.stream, opened.session)


def push_events(call: Call) -> Response:
    """POST /streams/{stream}/events, of a body that has come whole."""
    opened = opening(call)
    call.service.streams.admit()
    push = opened.push(call.service, last_of(call.service, opened)())
    return Response(200, (("content-type", LINES),), b"".join(at_once(push, call.request.body, call.service)))


ROUTES: Final = (
    Route(
        "POST",
        "/streams/{stream}/events",
        push_events,
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
            Parameter("first", "The number of the first item, if items have none.", {"type": "integer", "minimum": 1}),
            Parameter("time", "`arrival`: lines without a time are stamped by the server.", {"enum": [ON_ARRIVAL]}),
        ),
        tuple(_FORMATS),
        answers={
            200: Answer("Acknowledgements.", (LINES,)),
            429: Answer("Too many events wait; see Retry-After.", ()),
            503: Answer("Too many long pushes; see Retry-After.", ()),
        },
    ),
)
