"""Live readers of matches: server-sent events from a cursor on."""

from __future__ import annotations

import json
import threading
import time
from collections import OrderedDict
from collections.abc import Iterator
from typing import Final

from oxiseq.grammar.languages import STANDING
from oxiseq.journal import CursorError, DamagedBatchError, Journal, UnknownError
from oxiseq.live.answers import OF_ANSWER, match_events
from oxiseq.live.metrics import Metrics
from oxiseq.live.settings import BusyError, LiveSettings
from oxiseq.live.topics import MOST, Topic, Topics

_PAGES: Final = 16
"""Pages of stored matches that are kept written out: readers that have fallen behind together read the same ones."""
HELLO: Final = b"retry: 1000\n: listening\n\n"
HEARTBEAT: Final = b": still here\n\n"
PAUSE: Final = 0.05
"""Seconds after which what is about to be stored is looked for again."""
_FEW: Final = 100
"""Matches that are written out in a moment."""


class Subscriptions:
    """Hands out subscriptions, as many at a time as the settings allow."""

    def __init__(self, journal: Journal, topics: Topics, settings: LiveSettings, metrics: Metrics) -> None:
        self.journal, self.settings = journal, settings
        self._topics, self._metrics = topics, metrics
        self._lock = threading.Lock()
        self.count = 0
        """Live ones now."""
        self._pages: OrderedDict[tuple[str, int], tuple[int, bytes]] = OrderedDict()

    def subscribe(self, name: str, after: int | None) -> Subscription:
        """The matches of a query with ids above `after` (None: those that are found from now on), as they come.

        Raises UnknownError, BusyError.
        """
        record = self.journal.queries.get(name)
        if record.language == STANDING:
            raise UnknownError(OF_ANSWER.format(name))
        topic = self._topics.open(name, record.next - 1)
        self.begin()
        return Subscription(self, name, topic, topic.last if after is None else after)

    def begin(self) -> None:
        """There is one more of them. Raises BusyError."""
        with self._lock:
            if self.count >= self.settings.subscribers:
                self._metrics.rejected_readers.inc()
                raise BusyError(
                    f"there are {self.count} subscribers, the limit (--subscribers of `oxiseq serve`): try again later",
                    5,
                    503,
                )
            self.count += 1

    def stored(self, name: str, cursor: int) -> tuple[int, bytes]:
        """The events of the stored matches behind `cursor`, about a page of them, and the last one's id; the cursor and
        nothing where none is stored. Raises CursorError, UnknownError, DamagedBatchError."""
        with self._lock:
            known = self._pages.get((name, cursor))
        if known is not None and self.journal.queries.get(name).first <= cursor + 1:  # they are still kept
            return known
        parts = [part for part in self.journal.matches.read(name, cursor, MOST) if len(part)]
        if not parts:
            return cursor, b""
        page = parts[-1].last, b"".join(event for part in parts for event in match_events(part))
        if page[0] == cursor + MOST:  # a whole one stays as it is, for an id is never given twice
            with self._lock:
                self._pages[name, cursor] = page
                while len(self._pages) > _PAGES:
                    self._pages.popitem(last=False)
        return page

    def closed(self, behind: int) -> None:
        """One of them has ended; it was so many matches behind."""
        with self._lock:
            self.count -= 1
        if behind >= self.settings.recent:
            self._metrics.disconnected.inc()


class Subscription:
    """One reader: where it is. Iterate it once, in a thread of its own; or, where one loop serves all readers, `step`
    again and again. Close it in any case."""

    def __init__(self, owner: Subscriptions, name: str, topic: Topic, cursor: int) -> None:
        self.name, self.topic, self.cursor = name, topic, cursor
        self.heartbeat = owner.settings.heartbeat
        """Seconds of silence after which a comment is to be sent."""
        self.ended = False
        """Whether nothing will come any more."""
        self.live = False
        """Whether it has got all that there was, so that its topic passes on the rest."""
        self._anew = False
        """Whether the reader must get all from the beginning."""
        self._begun: Iterator[bytes] | None = None
        self._owner = owner
        self._closed = threading.Lock()

    def __iter__(self) -> Iterator[bytes]:
        """Server-sent events without end, but for a comment where there are none."""
        yield HELLO
        while not self.ended:
            if data := self.step(self.heartbeat):
                yield data
            elif not self.live:
                time.sleep(PAUSE)
            elif not self.ended:
                yield HEARTBEAT

    @property
    def quick(self) -> bool:
        """Whether the next step takes a moment: all of it is in memory, and not much."""
        count = None if self._anew or self._begun is not None else self.topic.at_hand(self.cursor)
        return count is not None and count <= _FEW

    def step(self, timeout: float = 0) -> bytes:
        """The next events, waiting up to `timeout` seconds for one; empty when there are none yet. Raises
        JournalError."""
        if self._anew:
            self._anew, self._begun = False, self._beginning()
        if self._begun is not None:
            for data in self._begun:
                if data:
                    return data
            self._begun = None
            return b"" if self.ended else self.take(timeout)
        return self.take(timeout)

    def _beginning(self) -> Iterator[bytes]:
        """The first message to a reader that restarts."""
        yield b""

    def take(self, timeout: float) -> bytes:
        """Events that have come since the last call. Raises JournalError."""
        told = self.topic.after(self.cursor, timeout)
        self.live = told is not None
        if told is None:
            return self._stored()
        last, events = told
        if not events and self.topic.closed:
            self.ended = True
            return event("end", {"reason": self.topic.closed})
        self.cursor = last
        return events

    def _stored(self) -> bytes:
        """What memory no longer holds, from the journal; of what is deleted there too, that it is."""
        try:
            last, data = self._read_stored()
        except CursorError as error:
            return self._too_old(error)
        except UnknownError:
            self.ended = True
            return event("end", {"reason": "deleted"})
        except DamagedBatchError as error:
            self.cursor = error.next - 1
            lost = {"first": error.first, "next": error.next, "reason": str(error)}
            return event("damaged", lost, self.cursor)
        self.cursor = last
        return data  # none: it is stored in a moment

    @property
    def _is_closed(self) -> bool:
        return self._closed.locked()

    def _read_stored(self) -> tuple[int, bytes]:
        """What is stored behind the cursor, about a page; the id of its last. Raises JournalError."""
        return self._owner.stored(self.name, self.cursor)

    def _too_old(self, error: CursorError) -> bytes:
        """It continues with what is kept."""
        self.cursor = error.first - 1
        told = {"asked": error.asked, "first": error.first, "reason": str(error)}
        return event("cursor-too-old", told, self.cursor)

    def close(self) -> None:
        """It counts no longer. May be called twice."""
        self.ended = True
        if self._closed.acquire(blocking=False):
            self._owner.closed(self.topic.last - self.cursor)


def event(kind: str, data: dict[str, object], number: int | None = None) -> bytes:
    """A server-sent event."""
    head = "" if number is None else f"id: {number}\n"
    return f"{head}event: {kind}\ndata: {json.dumps(data)}\n\n".encode()
