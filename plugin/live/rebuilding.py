"""A query whose checkpoint does not fit or is damaged: its state is rebuilt from the log.

The query is fed again, in silence, what it has seen up to the checkpoint: what it finds there is stored already. Then
it continues from the checkpoint's place. Where the log still has all that it has seen, and nothing else decided, its
state is the earlier one and so are its matches' ids. Else it continues with what there is, its state says so, and what
it finds behind the checkpoint gets new ids: a match may come twice or be missing, but none is taken for another.

Which entry of the log a query is to skip, when it cannot work through one.

An event may wait for its instant, so that the error comes with a later entry, which is not to blame. So the entries
since the checkpoint are halved again and again: without which of the last ones does the entry at fault pass? Where it
is none of these, and a query without any state cannot take the entry either, that one is skipped. Where the query
without state takes it, the fault is in the state: the query restarts there.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import Final

from oxiseq.engine.errors import OxiseqError
from oxiseq.grammar.records import dataclass
from oxiseq.journal import Checkpoint, Entry, Journal, Quarantined, QueryRecord
from oxiseq.live.engine import Engine
from oxiseq.live.live_query import LiveQuery
from oxiseq.live.reading import UnworkableError, read_entries

# --- mending ---------------------------------------------------------------------------------------------

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


# --- rebuilding ------------------------------------------------------------------------------------------

LOG = logging.getLogger("oxiseq.live")


@dataclass(frozen=True, slots=True)
class Rebuilder:
    """`compiled`: a query without any state, with what it skips."""

    journal: Journal
    engine: Engine
    lock: AbstractContextManager[object]
    compiled: Callable[[QueryRecord], LiveQuery]

    def rebuilt(self, record: QueryRecord, damaged: Checkpoint, reason: str) -> tuple[LiveQuery, Checkpoint]:
        """The query in its state of a checkpoint that cannot be used, and a new checkpoint, which is stored. Raises
        JournalError, KbError, OxiseqError."""
        extra = {"query": record.name}
        LOG.warning(
            "query %s: its checkpoint cannot be used, it is rebuilt from the log: %s", record.name, reason, extra=extra
        )
        begin = self.journal.log.before(record.created) if record.begun is None else record.begun
        query = self._replayed(record, begin, damaged.position)
        whole = is_whole(self.journal, record, query)
        last = damaged.matches.get(record.name, 0) if whole else record.next - 1
        with self.lock:
            state = self.engine.saved(query)
        made = replace(damaged, state=state, matches={record.name: last})
        self.journal.checkpoints.commit(made)
        how = f"its checkpoint could not be used ({reason}): its state was rebuilt from the log"
        if not whole:
            how += ", which lacks some of the events that it had seen: a match may be missing or come twice"
        LOG.warning("query %s: %s", record.name, how, extra=extra)
        self.journal.queries.set_rebuilt(record.name, how)
        return query, made

    def _replayed(self, record: QueryRecord, begin: int, end: int) -> LiveQuery:
        """The query after the entries behind `begin`, up to `end`."""
        while True:
            query = self.compiled(record)
            try:
                with self.lock, self.engine.alone(query):
                    self._feed(query, begin, end)
                return query
            except UnworkableError as error:
                entry = error.entry
                self.journal.quarantine.add(
                    [Quarantined(record.name, entry.position, entry.stream, entry.first, entry.count, error.reason)]
                )

    def _feed(self, query: LiveQuery, at: int, end: int) -> None:
        while at < end and (entries := self.journal.log.follow(at, _PAGE)):
            for entry in entries:
                at = entry.position
                if at <= end and entry.stream in query.shape.reads and at not in query.passed_over:
                    read = read_entries([entry], self.engine.unpack)
                    if at not in read.unreadable:
                        self.engine.feed(query, entry, read.events)
            query.batches = []
            self.engine.terms.collect_if_due()


def is_whole(journal: Journal, record: QueryRecord, query: LiveQuery) -> bool:
    """Whether the log still has all that a query has seen, and nothing else decided what it found."""
    return (
        record.begun is not None
        and journal.log.reaches(query.shape.reads, record.begun)
        and not query.run.reads_kb
        and query.watch.budget.policy != "drop"
    )
