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
from oxiseq.live.settings import LiveSettings
from oxiseq.live.texts import match_events
from oxiseq.live.topics import Topic, Topics

HEARTBEAT: Final = b": still here\n\n"
HELLO: Final = b"retry: 1000\n: listening\n\n"


class Subscriptions:
    """Hands out subscriptions, as many at a time as the settings allow."""

    def __init__(self, journal: Journal, topics: Topics, settings: LiveSettings, metrics: Metrics) -> None:
        self._journal, self._topics, self._settings, self._metrics = journal, topics, settings, metrics
        self._lock = threading.Lock()
        self.count = 0
        """Live ones now."""

    def subscribe(self, name: str, since: int | None) -> Subscription:
        """The matches of a query with ids above `since` (None: those that are found from now on), as they come.

        Raises UnknownError, BusyError.
        """
        record = self._journal.queries.get(name)
        topic = self._topics.open(name, record.next - 1)
        with self._lock:
            if self.count >= self._settings.subscribers:
                self._metrics.turned_away.inc()
                raise BusyError(f"there are {self.count} subscribers, which is the most: try again later", 5, 503)
            self.count += 1
        return Subscription(self, name, topic, topic.last if since is None else since)

    def ended(self, behind: int) -> None:
        """One of them has ended; it was so many matches behind."""
        with self._lock:
            self.count -= 1
        if behind >= self._settings.recent:
            self._metrics.cut_off.inc()

    def events(self, subscription: Subscription) -> Iterator[bytes]:
        """Server-sent events without end, but for a comment where there are none."""
        yield HELLO
        live = False
        while not subscription.closed:
            told = subscription.topic.after(subscription.cursor, self._settings.heartbeat)
            if told is None and live:
                yield _event("cut-off", {"reason": "too slow: reconnect with the last id"})
                return
            if told is None:
                yield from self._stored(subscription)
                continue
            live = True
            last, events = told
            if events:
                yield b"".join(events)
                subscription.cursor = last
            elif subscription.topic.closed:
                yield _event("end", {"reason": subscription.topic.closed})
                return
            else:
                yield HEARTBEAT

    def _stored(self, subscription: Subscription) -> Iterator[bytes]:
        """What memory no longer holds, from the journal; of what is deleted there too, that it is."""
        try:
            parts = self._journal.matches.read(subscription.name, subscription.cursor)
        except CursorError as error:
            subscription.cursor = error.first - 1
            told = {"asked": error.asked, "first": error.first, "reason": str(error)}
            yield _event("cursor-too-old", told, subscription.cursor)
            return
        except UnknownError:
            subscription.topic.close("deleted")
            return
        for part in parts:
            if len(part):
                yield b"".join(match_events(part))
                subscription.cursor = part.last
        if not parts:
            time.sleep(0.05)


class Subscription:
    """One reader: where it is. Iterate it once; close it in any case."""

    def __init__(self, owner: Subscriptions, name: str, topic: Topic, cursor: int) -> None:
        self.name, self.topic, self.cursor = name, topic, cursor
        self.closed = False
        self._owner = owner
        self._ended = threading.Lock()

    def __iter__(self) -> Iterator[bytes]:
        return self._owner.events(self)

    def close(self) -> None:
        """It counts no longer. May be called twice."""
        self.closed = True
        if self._ended.acquire(blocking=False):
            self._owner.ended(self.topic.last - self.cursor)


def _event(kind: str, data: dict[str, object], number: int | None = None) -> bytes:
    head = "" if number is None else f"id: {number}\n"
    return f"{head}event: {kind}\ndata: {json.dumps(data)}\n\n".encode()
