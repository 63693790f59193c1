"""The log as a source of events."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from oxiseq.engine.events.batch import EventBatch
from oxiseq.engine.events.time import OUTSIDE, outside
from oxiseq.engine.terms.dictionary import TermDictionary
from oxiseq.grammar.records import dataclass
from oxiseq.journal.journal import LOG, Journal


@dataclass(frozen=True, slots=True)
class LogSource:
    """The events of a stream of a log, between two times (µs)."""

    journal: Journal
    stream: str
    begin: int | None = None
    end: int | None = None

    def __call__(self, terms: TermDictionary) -> Iterator[EventBatch]:
        """In the order in which they arrived."""
        for logged in self.journal.log.read(self.stream, terms, start=self.begin, stop=self.end):
            batch, wrong = logged.batch, outside(logged.batch.time)
            if len(wrong):  # an earlier version took any time: queries at work quarantine such an entry, too
                LOG.warning("%d events of <%s> are skipped: %s", len(wrong), self.stream, OUTSIDE)
                batch = batch.take(np.setdiff1d(np.arange(len(batch)), wrong))
            yield batch
