"""The newest events of a stream of an embedded store, kept in memory so that one can ask why a query matched."""

from __future__ import annotations

from collections import deque

import numpy as np
from pyoxigraph import Triple

from oxiseq.engine.events.batch import EventBatch
from oxiseq.engine.events.encode import decode_events
from oxiseq.engine.terms.dictionary import TermDictionary


class Kept:
    """At most `most` events, in order of arrival. The dictionary holds their terms."""

    def __init__(self, terms: TermDictionary, most: int) -> None:
        self.most = most
        self._terms = terms
        self._batches: deque[EventBatch] = deque()
        self._count = 0

    def add(self, batch: EventBatch) -> None:
        """Events that have come; older ones go for them."""
        if len(batch) > self.most:
            batch = batch.take(np.arange(len(batch) - self.most, len(batch)))
        self._terms.hold(*batch.ids)
        self._batches.append(batch)
        self._count += len(batch)
        self.trim(self.most)

    def trim(self, most: int) -> None:
        """Keep at most so many from now on."""
        self.most = most
        while self._count > most:
            first, over = self._batches.popleft(), self._count - most
            self._count -= len(first)
            if over < len(first):  # a copy, so that the rest is freed
                rest = first.take(np.arange(over, len(first)))
                self._terms.hold(*rest.ids)
                self._batches.appendleft(rest)
                self._count += len(rest)

    def events(self) -> list[tuple[int, tuple[Triple, ...]]]:
        """(time in µs, triples) of each."""
        return [event for batch in self._batches for event in decode_events(batch, self._terms)]

    def __len__(self) -> int:
        return self._count
