"""Live readers of matches: server-sent events from a cursor on."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from typing import Final

from oxiseq.journal import CursorError, Journal, UnknownError
from oxiseq.live.errors import BusyError
from oxiseq.live.metrics import Metrics
from oxiseq.live.sending import HEARTBEAT, Outlet, Sender
from oxiseq.live.settings import LiveSettings
from oxiseq.live.texts import match_events
from oxiseq.live.topics import Topic, Topics

HELLO: Final = b"retry: 1000\n: listening\n\n"


class Subscriptions:
    """Hands out subscriptions, as many at a time as the settings allow."""

    def __init__(
        self, journal: Journal, topics: Topics, settings: LiveSettings, metrics: Metrics, sender: Sender
    ) -> None:  # fmt: skip
        self.journal, self.settings, self.sender = journal, settings, sender
        self._topics, self._metrics = topics, metrics
        self._lock = threading.Lock()
        self.count = 0
        """Live ones now."""

    def subscribe(self, name: str, since: int | None) -> Subscription:
        """The matches of a query with ids above `since` (None: those that are found from now on), as they come.

        Raises UnknownError, BusyError.
        """
        record = self.journal.queries.get(name)
        topic = self._topics.open(name, record.next - 1)
        with self._lock:
            if self.count >= self.settings.subscribers:
                self._metrics.turned_away.inc()
                raise BusyError(f"there are {self.count} subscribers, which is the most: try again later", 5, 503)
            self.count += 1
        return Subscription(self, name, topic, topic.last if since is None else since)

    def closed(self, behind: int) -> None:
        """One of them has ended; it was so many matches behind."""
        with self._lock:
            self.count -= 1
        if behind >= self.settings.recent:
            self._metrics.cut_off.inc()


class Subscription:
    """One reader: where it is. Iterate it once; close it in any case.

    `outlet`: where the server lets others write; then the iteration only begins, and the sender goes on there.
    """

    def __init__(self, owner: Subscriptions, name: str, topic: Topic, cursor: int) -> None:
        self.name, self.topic, self.cursor = name, topic, cursor
        self.ended = False
        """Whether nothing will come any more."""
        self.outlet: Outlet | None = None
        self._live = False
        self._owner = owner
        self._closed = threading.Lock()

    def __iter__(self) -> Iterator[bytes]:
        """Server-sent events without end, but for a comment where there are none."""
        yield HELLO
        while not self.ended:
            if self._live and self.outlet is not None:
                self._owner.sender.send(self, self.outlet)
                return
            data = self.take(self._owner.settings.heartbeat if self.outlet is None else 0)
            if data:
                yield data
            elif self._live and self.outlet is None:
                yield HEARTBEAT

    def take(self, timeout: float) -> bytes:
        """The events that have come since the last call, waiting up to `timeout` seconds for one; empty when there are
        none yet. Raises JournalError."""
        told = self.topic.after(self.cursor, timeout)
        if told is None and self._live:
            self.ended = True
            return _event("cut-off", {"reason": "too slow: reconnect with the last id"})
        if told is None:
            return self._stored()
        self._live = True
        last, events = told
        if not events and self.topic.closed:
            self.ended = True
            return _event("end", {"reason": self.topic.closed})
        self.cursor = last
        return b"".join(events)

    def _stored(self) -> bytes:
        """What memory no longer holds, from the journal; of what is deleted there too, that it is."""
        try:
            parts = self._owner.journal.matches.read(self.name, self.cursor)
        except CursorError as error:
            self.cursor = error.first - 1
            told = {"asked": error.asked, "first": error.first, "reason": str(error)}
            return _event("cursor-too-old", told, self.cursor)
        except UnknownError:
            self.ended = True
            return _event("end", {"reason": "deleted"})
        found = [part for part in parts if len(part)]
        if found:
            self.cursor = found[-1].last
        if not parts:
            time.sleep(0.05)
        return b"".join(event for part in found for event in match_events(part))

    def close(self) -> None:
        """It counts no longer. May be called twice."""
        self.ended = True
        if self._closed.acquire(blocking=False):
            self._owner.closed(self.topic.last - self.cursor)


def _event(kind: str, data: dict[str, object], number: int | None = None) -> bytes:
    head = "" if number is None else f"id: {number}\n"
    return f"{head}event: {kind}\ndata: {json.dumps(data)}\n\n".encode()
