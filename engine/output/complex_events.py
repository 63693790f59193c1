"""Complex events as columns, with the positions and times of their events (CEQL)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from oxiseq.engine.events.batch import offsets
from oxiseq.grammar.records import dataclass

I64 = NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class ComplexEvents:
    """m complex events. `start`, `end`: i64[m], positions among all events of the query; `time`: i64[m], µs, the end's.

    The set D of number i is positions[ends[i] : ends[i + 1]], ascending. Beside each position are the event's time
    (i64, µs), its stream's number (i64, in the order of FROM) and the variables that hold it (u64[., words]).
    """

    start: I64
    end: I64
    time: I64
    ends: I64
    positions: I64
    held: NDArray[np.uint64]
    event_time: I64
    event_stream: I64

    def __len__(self) -> int:
        return len(self.start)

    @classmethod
    def empty(cls, words: int) -> ComplexEvents:
        """None; `words` of variables."""
        none = np.zeros(0, np.int64)
        return cls(none, none, none, np.zeros(1, np.int64), none, np.zeros((0, words), np.uint64), none, none)

    @classmethod
    def concat(cls, batches: Sequence[ComplexEvents], words: int) -> ComplexEvents:
        """One batch after the other."""
        if len(batches) == 1:
            return batches[0]
        if not batches:
            return cls.empty(words)
        return cls(
            np.concatenate([b.start for b in batches]),
            np.concatenate([b.end for b in batches]),
            np.concatenate([b.time for b in batches]),
            offsets(np.concatenate([np.diff(b.ends) for b in batches])),
            np.concatenate([b.positions for b in batches]),
            np.concatenate([b.held for b in batches]),
            np.concatenate([b.event_time for b in batches]),
            np.concatenate([b.event_stream for b in batches]),
        )

    def take(self, index: I64) -> ComplexEvents:
        """Those of these numbers, copied."""
        first = self.ends[index]
        sizes = self.ends[index + 1] - first
        ends = offsets(sizes)
        rows = np.repeat(first - ends[:-1], sizes) + np.arange(ends[-1])
        return ComplexEvents(
            self.start[index],
            self.end[index],
            self.time[index],
            ends,
            self.positions[rows],
            self.held[rows],
            self.event_time[rows],
            self.event_stream[rows],
        )

    def earlier(self, shift: int) -> ComplexEvents:
        """The same at positions that are less by `shift`."""
        if not shift:
            return self
        return replace(self, start=self.start - shift, end=self.end - shift, positions=self.positions - shift)

    def holding(self, variable: int) -> NDArray[np.bool_]:
        """b1[positions]: where the variable of this number holds the event."""
        found: NDArray[np.bool_] = self.held[:, variable >> 6] & np.uint64(1 << (variable & 63)) != 0
        return found


@dataclass(frozen=True, slots=True, eq=False)
class EventsOfQueries:
    """Complex events of several queries, and the `number` of the query of each, i64[m]."""

    events: ComplexEvents
    number: I64

    def __len__(self) -> int:
        return len(self.number)
