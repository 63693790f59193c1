"""A long push: one client's numbered items, stored some at a time and acknowledged some at a time.

Its carrier (one request, a WebSocket, or a whole body at once) passes bytes in, lets the log store what comes
out, and sends the client the lines of `hello`, `acknowledgement` and `failure`. The client's position is stored with
its events in one transaction, so that it may send anything again: what is stored already is skipped.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict
from typing import Any, Final

from oxiseq.engine.errors import OxiseqError
from oxiseq.journal import Appended, Session
from oxiseq.live.api.problems import as_problem
from oxiseq.live.intake import Reason
from oxiseq.live.portions import Decoder, Portion
from oxiseq.live.service import LiveService
from oxiseq.live.streams import Push
from oxiseq.sparql.problems import Problem

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
