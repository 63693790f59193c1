"""A batch of events as columns.

In the flow: readers, `push` → **event batch** → graph-pattern matcher. One batch holds events of one
stream; whose stream it is, the caller knows. The times need not be in order: sorting is the clock's job.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from itertools import accumulate
from typing import Final

import numpy as np
from numpy.typing import NDArray

from oxiseq.engine.kernels.events.triples import keep_triples
from oxiseq.engine.kernels.memory.pointers import AS_I64, AS_U32, plain
from oxiseq.engine.terms.saved import KnownTerms, SavedTerms, State
from oxiseq.grammar.records import dataclass


@dataclass(slots=True, eq=False)  # frozen would make it three times as slow
class EventBatch:
    """n events with m triples in all; event i has the triples `offset[i] : offset[i + 1]`.

    time: i64[n], microseconds since 1970 UTC. offset: i64[n + 1], ascending from 0 to m.
    subject, predicate, object: u32[m], ids of one `TermDictionary`. All arrays are C-contiguous; a graph may
    still hold a triple twice. Not to be changed after it is made.
    """

    time: NDArray[np.int64]
    offset: NDArray[np.int64]
    subject: NDArray[np.uint32]
    predicate: NDArray[np.uint32]
    object: NDArray[np.uint32]

    def __len__(self) -> int:
        """The number of events."""
        return len(self.time)

    @property
    def triples(self) -> int:
        """The number of triples, m."""
        return len(self.subject)

    @property
    def ids(self) -> tuple[NDArray[np.uint32], NDArray[np.uint32], NDArray[np.uint32]]:
        """The three columns of term ids. Whoever keeps a batch between collections of the dictionary announces it to
        `hold` them; readers do."""
        return self.subject, self.predicate, self.object

    @property
    def bytes(self) -> int:
        """How large it is."""
        return 8 * (2 * len(self.time) + 1) + 12 * len(self.subject)

    def same(self, other: EventBatch) -> bool:
        """Whether both hold the same events in the same order."""
        return len(self) == len(other) and all(
            np.array_equal(getattr(self, name), getattr(other, name))
            for name in ("time", "offset", "subject", "predicate", "object")
        )

    def save(self, terms: SavedTerms) -> State:
        """As a saved state."""
        subject, predicate, object_ = (terms.ids(column) for column in self.ids)
        return {"time": self.time, "offset": self.offset, "subject": subject, "predicate": predicate, "object": object_}

    @classmethod
    def restored(cls, state: State, terms: KnownTerms) -> EventBatch:
        """The same events, copied, with the ids that their terms have now."""
        columns = (terms.ids(state[name]) for name in ("subject", "predicate", "object"))
        return cls(state["time"].copy(), state["offset"].copy(), *columns)

    @classmethod
    def empty(cls) -> EventBatch:
        """A batch without events; always the same."""
        return _EMPTY

    @classmethod
    def concat(cls, batches: Collection[EventBatch]) -> EventBatch:
        """The events of several batches, one after the other."""
        if len(batches) == 1:
            return next(iter(batches))
        if not batches:
            return cls.empty()
        before = list(accumulate([len(batch.subject) for batch in batches], initial=0))[:-1]
        offset = np.concatenate([_FIRST, *[batch.offset[1:] for batch in batches]])
        offset[1:] += np.repeat(before, [len(batch.time) for batch in batches])
        return cls(
            np.concatenate([batch.time for batch in batches]),
            offset,
            np.concatenate([batch.subject for batch in batches]),
            np.concatenate([batch.predicate for batch in batches]),
            np.concatenate([batch.object for batch in batches]),
        )

    def slice(self, start: int, stop: int) -> EventBatch:
        """The events start, ..., stop - 1 (views of this batch's arrays, apart from the offsets)."""
        start, stop, _ = slice(start, stop).indices(len(self))
        stop = max(start, stop)
        low, high = int(self.offset[start]), int(self.offset[stop])
        return EventBatch(
            self.time[start:stop],
            self.offset[start : stop + 1] - low,
            self.subject[low:high],
            self.predicate[low:high],
            self.object[low:high],
        )

    def without(self, events: Sequence[int]) -> EventBatch:
        """The same events, of which some have no triples."""
        if not events:
            return self
        sizes = np.diff(self.offset)
        kept = np.ones(len(self), np.bool_)
        kept[list(events)] = False
        triples = np.repeat(kept, sizes)
        columns = (column[triples] for column in (self.subject, self.predicate, self.object))
        return EventBatch(self.time, offsets(np.where(kept, sizes, 0)), *columns)

    def only(self, predicates: NDArray[np.uint32]) -> EventBatch:
        """The same events with those triples that have one of these predicates."""
        among = np.zeros(int(predicates.max(initial=0)) + 2, np.uint8)
        among[predicates] = 1
        s, p, o = (plain(column, AS_U32) for column in self.ids)
        sizes, kept = np.empty(len(self), np.int64), np.empty((3, self.triples), np.uint32)
        count = keep_triples(among, plain(self.offset, AS_I64), s, p, o, sizes, kept)
        return self if count == self.triples else EventBatch(self.time, offsets(sizes), *kept[:, :count].copy())

    def take(self, index: NDArray[np.integer]) -> EventBatch:
        """The events of these numbers (i64[k], any order, repetitions allowed), copied."""
        index = np.asarray(index, np.int64)
        first = self.offset[index]
        sizes = self.offset[index + 1] - first
        offset = offsets(sizes)
        rows = np.repeat(first - offset[:-1], sizes) + np.arange(offset[-1])
        columns = (column[rows] for column in (self.subject, self.predicate, self.object))
        return EventBatch(self.time[index], offset, *columns)


def offsets(sizes: NDArray[np.integer] | NDArray[np.bool_]) -> NDArray[np.int64]:
    """Sizes of n groups → i64[n + 1], where each group starts."""
    result = np.zeros(len(sizes) + 1, np.int64)
    result[1:] = sizes  # in place, since summing numbers of another type takes three times as long
    return np.cumsum(result, out=result)


_NO_IDS: Final = np.zeros(0, np.uint32)
_FIRST: Final = np.zeros(1, np.int64)
_EMPTY: Final = EventBatch(np.zeros(0, np.int64), _FIRST, _NO_IDS, _NO_IDS, _NO_IDS)
