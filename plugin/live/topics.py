"""From the worker to subscribers: the last matches of each query, shared by all who listen.

A subscriber has a cursor and no queue: what it has not taken yet is its backlog, and that is bounded by what a topic
keeps: who falls further behind reads the journal until it has caught up. Each match is decoded and written out once,
however many listen.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Sequence
from itertools import takewhile
from typing import Final, TypeAlias

from oxiseq.grammar.records import dataclass
from oxiseq.journal import Found, StoredMatches, unpack_matches
from oxiseq.live.answers import match_events

Written: TypeAlias = Callable[[StoredMatches], Sequence[bytes]]
"""What is stored as server-sent events: one for each match, or one for all that belongs together."""
MOST: Final = 1000
"""Matches that a subscriber gets at a time, or a few more: so that none waits long while others are served."""


@dataclass(slots=True, eq=False)
class _Told:
    """Matches first, ..., last; `events`: the same as server-sent events, made on demand."""

    first: int
    last: int
    data: bytes
    written: Written
    events: Sequence[bytes] | None = None

    def after(self, cursor: int) -> Sequence[bytes]:
        if cursor >= self.first:  # it begins in the midst of them: hardly ever
            stored = unpack_matches(self.data, self.first)
            return self.written(stored.slice(cursor + 1 - self.first, len(stored)))
        if self.events is None:
            self.events = self.written(unpack_matches(self.data, self.first))
        return self.events


class Topic:
    """The matches of one query as they come. `last`: the id of the newest. Safe for many threads. `on_change` is called
    when there is something new."""

    def __init__(
        self, last: int, recent: int, on_change: Callable[[Topic], None], written: Written = match_events
    ) -> None:
        self.last = last
        self.written = written
        self.closed = ""
        """Why nothing will come any more."""
        self._recent = recent
        self._on_change = on_change
        self._told: deque[_Told] = deque()
        self._lately = (0, 0, 0, b"")
        """A cursor, the newest id when a reader asked for what was behind it, and the answer: others ask the same."""
        self._changed = threading.Condition()

    def publish(self, found: Found, count: int) -> bool:
        """Matches as they are found; False for those that were emitted before."""
        last = found.first + count - 1
        with self._changed:
            if last <= self.last:
                return False
            self._told.append(_Told(found.first, last, found.data, self.written))
            self.last = last
            while len(self._told) > 1 and self.last - self._told[1].first >= self._recent:
                self._told.popleft()
            self._changed.notify_all()
        self._on_change(self)
        return True

    def after(self, cursor: int, timeout: float) -> tuple[int, bytes] | None:
        """The events of the first matches behind `cursor`, waiting for one if there is none yet, and the last one's id;
        no events when none has come in time or the topic is closed; None when some of them are no longer kept here."""
        with self._changed:
            if timeout and self.last <= cursor and not self.closed:
                self._changed.wait(timeout)
            if self.last <= cursor:
                return cursor, b""
            newest = self.last
            if self._lately[:2] == (cursor, newest):
                return self._lately[2:]
            if not self._told or self._told[0].first > cursor + 1:
                return None
            behind = list(takewhile(lambda each: each.last > cursor, reversed(self._told)))  # few of many, as a rule
        told = [each for each in reversed(behind) if each.first <= cursor + MOST]
        events = b"".join([event for each in told for event in each.after(cursor)])
        self._lately = cursor, newest, told[-1].last, events
        return told[-1].last, events

    def at_hand(self, cursor: int) -> int | None:
        """How many matches `after` would have to write out at most; None when some of them are no longer kept here."""
        with self._changed:
            if self.last > cursor and (not self._told or self._told[0].first > cursor + 1):
                return None
            return self.last - cursor

    def close(self, reason: str) -> None:
        """Tell subscribers that nothing will come any more."""
        with self._changed:
            self.closed = reason
            self._changed.notify_all()
        self._on_change(self)


class Topics:
    """By the queries' names. `on_change` is called when there is something new in one of them."""

    def __init__(self, recent: int) -> None:
        self.on_change: Callable[[Topic], None] = lambda topic: None
        self._recent = recent
        self._topics: dict[str, Topic] = {}
        self._ended = ""
        self._lock = threading.Lock()

    def open(self, name: str, last: int, written: Written = match_events) -> Topic:
        """The topic of a query, made if there is none."""
        with self._lock:
            topic = self._topics.setdefault(name, Topic(last, self._recent, self._changed, written))
            topic.closed = self._ended
            return topic

    def _changed(self, topic: Topic) -> None:
        self.on_change(topic)

    def get(self, name: str) -> Topic | None:
        """The topic of a query."""
        with self._lock:
            return self._topics.get(name)

    def close(self, name: str, reason: str) -> None:
        """A query was deleted."""
        with self._lock:
            topic = self._topics.pop(name, None)
        if topic is not None:
            topic.close(reason)

    def close_all(self, reason: str) -> None:
        """The service ends."""
        with self._lock:
            topics, self._topics, self._ended = list(self._topics.values()), {}, reason
        for topic in topics:
            topic.close(reason)
