"""A query whose checkpoint does not fit or is damaged: its state is rebuilt from the log.

The query is fed again, in silence, what it has seen up to the checkpoint: what it finds there is stored already. Then
it continues from the checkpoint's place. Where the log still has all that it has seen, and nothing else decided, its
state is the earlier one and so are its matches' ids. Else it continues with what there is, its state says so, and what
it finds behind the checkpoint gets new ids: a match may come twice or be missing, but none is taken for another.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import Final

from oxiseq.grammar.records import dataclass
from oxiseq.journal import Checkpoint, Journal, Quarantined, QueryRecord
from oxiseq.live.engine import Engine
from oxiseq.live.live_query import LiveQuery
from oxiseq.live.reading import UnworkableError, read_entries

LOG = logging.getLogger("oxiseq.live")
_PAGE: Final = 1 << 18


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
