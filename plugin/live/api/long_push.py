"""A long push: `POST /streams/{stream}/events`.

A long push: one client's numbered items, stored some at a time and acknowledged some at a time.

Its carrier (one request, a WebSocket, or a whole body at once) passes bytes in, lets the log store what comes
out, and sends the client the lines of `hello`, `acknowledgement` and `failure`. The client's position is stored with
its events in one transaction, so that it may send anything again: what is stored already is skipped.

`POST /streams/{stream}/events`: events over one long request, acknowledged while they come.

A server with a loop of its own (oxiseq.server.pushes) answers while it reads, and takes the same over a WebSocket;
others read the body first.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Callable, Iterator
from dataclasses import asdict
from typing import Any, Final, Literal

from oxiseq.engine.errors import OxiseqError
from oxiseq.grammar.records import dataclass
from oxiseq.journal import Appended, Session
from oxiseq.live.api.streams import contexts_of
from oxiseq.live.api.table import Call, as_problem, unsupported
from oxiseq.live.intake import Reason
from oxiseq.live.portions import Decoder, LineEvents, Portion, QuadEvents, QuadMessages
from oxiseq.live.service import LiveService
from oxiseq.live.streams import Push
from oxiseq.sparql.messages import Problem, Request, Response

# --- one client's items ----------------------------------------------------------------------------------

_REASONS: Final = 10


class LongPush:
    """The items of a session on their way into a stream. Not safe for threads."""

    def __init__(self, service: LiveService, stream: str, session: str, last: int, decoder: Decoder) -> None:
        self.decoder = decoder
        self._service, self._stream, self._session = service, stream, session
        self._submitted = self._last = last
        self._told: dict[str, Any] = {}

    def hello(self) -> bytes:
        """The first message to a client: the number of its last item that is stored."""
        return _line({"session": self._session, "last": self._last})

    def feed(self, data: bytes) -> list[Push]:
        """What is to be stored of these bytes, in this order."""
        return self._pushes(self.decoder.feed(data))

    def finish(self) -> list[Push]:
        """What is to be stored of the rest."""
        return self._pushes(self.decoder.finish())

    def _pushes(self, portions: list[Portion]) -> list[Push]:
        found = []
        for portion in portions:
            session = Session(self._session, self._submitted, portion.last)
            found.append(self._service.streams.begin_portion(self._stream, session, portion))
            self._submitted = portion.last
        return found

    def stored(self, push: Push, appended: Appended) -> None:
        """A push is durable; pushes are acknowledged in the order in which they came."""
        pushed = self._service.streams.end(push, appended)
        assert push.append.session is not None
        self._last = push.append.session.last
        told = self._told
        told["next"] = pushed.first + pushed.accepted
        told.setdefault("first", pushed.first)
        for name, count in (
            ("accepted", pushed.accepted),
            ("late", pushed.late or 0),
            ("ignored", pushed.ignored or 0),
            ("rejected", pushed.rejected),
            ("duplicates", push.duplicates),
        ):
            told[name] = told.get(name, 0) + count
        reasons: list[Reason] = told.setdefault("reasons", [])
        reasons += pushed.reasons[: _REASONS - len(reasons)]

    @property
    def unacknowledged(self) -> bool:
        """Whether something is stored and not acknowledged yet."""
        return bool(self._told)

    def acknowledgement(self) -> bytes:
        """All that has been stored since the last one: `seq` is the number of the last item, offsets first to next hold
        its events (and perhaps those of others between them)."""
        told, self._told = self._told, {}
        line: dict[str, Any] = {"seq": self._last}
        if told:
            line["offsets"] = {"first": told.pop("first"), "next": told.pop("next")}
            line |= told | {"reasons": [asdict(reason) for reason in told["reasons"]]}
        return _line(line)


def failure(problem: Problem) -> bytes:
    """Why nothing more is taken: the last line."""
    return b'{"error": %b}\n' % problem.as_json().strip()


def at_once(push: LongPush, body: bytes, service: LiveService) -> Iterator[bytes]:
    """The lines of a long push whose body has come whole."""
    yield push.hello()
    problem = push.decoder.fault
    try:
        for each in (*push.feed(body), *push.finish()):
            push.stored(each, service.journal.log.store(each.append))
        problem = push.decoder.fault
    except OxiseqError as error:
        problem = as_problem(error)
    if push.unacknowledged:
        yield push.acknowledgement()
    if problem is not None:
        yield failure(problem)


def _line(value: dict[str, Any]) -> bytes:
    text = json.dumps(value, ensure_ascii=False)
    return text.encode(errors="backslashreplace") + b"\n"  # half a character as JSON escapes it, too


# --- the request -----------------------------------------------------------------------------------------

LINES: Final = "application/x-ndjson"
FORMATS: Final = {LINES: "ndjson", "application/n-quads": "nquads", "text/x-nquads": "nquads"}
_LONGEST: Final = 200


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


def opening(
    stream: str, format: str, session: str | None, first: int | None, time: Literal["arrival"] | None
) -> Opening:
    """Raises Problem 400."""
    if session is None:
        session = secrets.token_hex(8)
    elif not (0 < len(session) <= _LONGEST and session.isascii() and session.isprintable()):
        raise Problem(400, "no name of a session", f"it has 1 to {_LONGEST} visible ASCII characters")
    if time is not None and format != "ndjson":
        raise Problem(400, "time is given twice", "events as N-Quads bring their own times")
    return Opening(stream, session, max(1, first or 1), format, time is not None)


def format_of(request: Request) -> str:
    """How the items in the body of a request are written. Raises Problem 415."""
    if request.media_type not in FORMATS:
        raise unsupported(request, tuple(FORMATS))
    return FORMATS[request.media_type or ""]


def last_of(service: LiveService, opened: Opening) -> Callable[[], int]:
    """Reads a session's position."""
    return lambda: service.journal.log.session(opened.stream, opened.session)


def push_events(call: Call, stream: str, **given: Any) -> Response:
    """POST /streams/{stream}/events, of a body that has come whole."""
    opened = opening(stream, format_of(call.request), **given)
    call.service.streams.admit()
    push = opened.push(call.service, last_of(call.service, opened)())
    return Response(200, (("content-type", LINES),), b"".join(at_once(push, call.request.body, call.service)))
