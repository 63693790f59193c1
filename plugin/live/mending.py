"""Which entry of the log a query is to skip, when it cannot work through one.

An event may wait for its instant, so that the error comes with a later entry, which is not to blame. So the entries
since the checkpoint are halved again and again: without which of the last ones does the entry at fault pass? Where it
is none of these, and a query without any state cannot take the entry either, that one is skipped. Where the query
without state takes it, the fault is in the state: the query restarts there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from typing import Final

from oxiseq.engine.errors import OxiseqError
from oxiseq.grammar.records import dataclass
from oxiseq.journal import Entry, Journal
from oxiseq.live.engine import Engine
from oxiseq.live.live_query import LiveQuery
from oxiseq.live.reading import UnworkableError, read_entries

_PAGE: Final = 1 << 18


@dataclass(frozen=True, slots=True)
class Mender:
    """`fresh`: compiles the query at fault, with what it skips and without any state."""

    journal: Journal
    engine: Engine
    lock: AbstractContextManager[object]
    fresh: Callable[[], LiveQuery]

    def blamed(self, entry: Entry, state: bytes, position: int) -> Entry | None:
        """The entry without which `entry` passes, from a checkpoint's state and position on; None: it is the state that
        is at fault. What is found on the way is discarded. Raises JournalError, KbError."""
        waiting = [each.position for each in self._between(position, entry)]
        if not waiting or not self._passes(entry, state, position, waiting[0]):
            return None if self._passes(entry, b"", entry.position - 1, entry.position) else entry
        low, high = 0, len(waiting)  # without all from `low` on it passes, without those from `high` on it does not
        while high - low > 1:
            middle = (low + high) // 2
            if self._passes(entry, state, position, waiting[middle]):
                low = middle
            else:
                high = middle
        return next(each for each in self._between(waiting[low] - 1, entry) if each.position == waiting[low])

    def _passes(self, last: Entry, state: bytes, position: int, without: int) -> bool:
        """Whether a query in this state takes the entries behind `position`, and then the last one, without those from
        `without` on."""
        query = self.fresh()
        with self.lock:
            if state:
                self.engine.restore(query, state)
            with self.engine.alone(query):
                try:
                    for entry in self._between(position, last):
                        if entry.position >= without:
                            break
                        self._feed(query, entry)
                    self._feed(query, last)
                except OxiseqError:
                    return False
        return True

    def _feed(self, query: LiveQuery, entry: Entry) -> None:
        read = read_entries([entry], self.engine.unpack)
        if entry.position not in read.unreadable:
            self.engine.feed(query, entry, read.events)
        query.batches = []
        if query not in self.engine.queries:
            raise UnworkableError(query.name, entry, query.error)

    def _between(self, position: int, last: Entry) -> Iterator[Entry]:
        """The entries that the query sees behind `position` and before the last one."""
        query = self.fresh()
        while entries := self.journal.log.follow(position, _PAGE):
            for entry in entries:
                if entry.position >= last.position:
                    return
                if entry.stream in query.shape.reads and entry.position not in query.passed_over:
                    yield entry
            position = entries[-1].position
