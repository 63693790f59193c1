"""Live readers of an answer: the answer as it is, then what changes of it, as server-sent events."""

from __future__ import annotations

from collections.abc import Iterator

from oxiseq.engine.errors import OxiseqError
from oxiseq.journal import CursorError
from oxiseq.live.answers import answer_events, change_events
from oxiseq.live.standing import StandingQueries
from oxiseq.live.subscriptions import Subscription, Subscriptions, event
from oxiseq.live.topics import Topic


class AnswerReader(Subscription):
    """See Subscription. A reader without a usable cursor begins with the answer."""

    def __init__(
        self, owner: Subscriptions, name: str, topic: Topic, after: int | None, standing: StandingQueries
    ) -> None:
        super().__init__(owner, name, topic, 0 if after is None else after)
        self._standing = standing
        self._anew = after is None
        self._refused = ""
        if after is not None and after > topic.last:
            self._too_old(CursorError(f"changes of {name!r}", after + 1, topic.last + 1))

    def _beginning(self) -> Iterator[bytes]:
        if self._refused:
            yield event("cursor-too-old", {"reason": self._refused})
            self._refused = ""
        try:
            answer = self._standing.answer(self.name)
        except OxiseqError as error:
            self.ended = True
            yield event("end", {"reason": str(error)})
            return
        yield from answer_events(answer)
        self.cursor = answer.number

    def _too_old(self, error: CursorError) -> bytes:
        self._anew = True
        self._refused = str(error)
        return b""

    def _read_stored(self) -> tuple[int, bytes]:
        parts = [part for part in self._owner.journal.matches.read(self.name, self.cursor) if len(part)]
        if not parts:
            return self.cursor, b""
        form = self._owner.journal.queries.get(self.name).options["form"]
        return parts[-1].last, b"".join(each for part in parts for each in change_events(part, form))

    def close(self) -> None:
        """As of any. May be called twice."""
        closed = self._is_closed
        super().close()
        if not closed:
            self._standing.closed(self.name)


def follow(owner: Subscriptions, standing: StandingQueries, name: str, after: int | None) -> AnswerReader:
    """The answer of a query, and its changes as they come; with `after` its changes above that id.

    Raises UnknownError, BusyError.
    """
    owner.begin()
    try:
        topic = standing.open(name)
    except BaseException:
        owner.closed(0)
        raise
    return AnswerReader(owner, name, topic, after, standing)
