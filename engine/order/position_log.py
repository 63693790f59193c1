"""Facts on events by their positions, for output: time, stream, the values of aggregates."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import numpy as np
from numpy.typing import NDArray

from oxiseq.engine.arrays.declared import Arrays, array
from oxiseq.engine.terms.saved import KnownTerms, SavedTerms, State, Stateful, unsaved, value

I64 = NDArray[np.int64]
_FIRST: Final = 16
"""Events that there is room for to begin with."""


class Log(Arrays):
    """By place what is kept of an event."""


array(Log, "time", np.int64, rows="events")
array(Log, "stream", np.int64, rows="events")
array(Log, "values", np.int64, 2, rows="events", columns="attributes")


class PositionLog(Stateful):
    """Time, stream and values of the events by position, from some position on. `attributes`: how many values each
    has; `streams`: how many there are; of one its number is not written."""

    made_of = value("newest"), unsaved("_log")

    def __init__(self, attributes: int, streams: int) -> None:
        self._attributes, self._several = attributes, streams > 1
        self.newest = 0
        """The time of the last one that came; 0 if none has."""
        self.begin(0)

    def begin(self, first: int) -> None:
        """Nothing before this position is needed, and nothing has come since."""
        self._first = first
        self._count = self._gone = 0
        self._log = Log.allocate(events=_FIRST, attributes=self._attributes)

    def fits(self, other: PositionLog, shift: int) -> bool:
        """Whether what both keep is the same, where the other's positions are more by `shift` here."""
        first = max(self._first + self._gone, other._first + other._gone + shift)
        both = np.arange(first, min(self._first + self._count, other._first + other._count + shift))
        return all(map(np.array_equal, self.at(both), other.at(both - shift)))

    def take_over(self, other: PositionLog, shift: int) -> None:
        """Keep what another keeps, too, which `fits` and reaches as far."""
        first, theirs = self._first + self._gone, other._first + other._gone + shift
        if theirs >= first:
            return
        log, count = self._log, self._count - self._gone
        older = np.arange(theirs, min(first, other._first + other._count + shift)) - shift
        time, stream = other.at(older)
        own = slice(self._gone, self._count)
        kept = log.time[own].copy(), log.stream[own].copy(), log.values[own].copy()
        newest = self.newest
        self.begin(theirs)
        self.add(time, stream, other.values(older))
        self.add(*kept)
        self.newest = newest
        assert self._count == count + len(older)

    @property
    def oldest(self) -> int:
        """The first position of those that are kept."""
        return self._first + self._gone

    @property
    def held(self) -> int:
        """How many are kept."""
        return self._count - self._gone

    @property
    def ids(self) -> I64:
        """All values, which are ids of terms."""
        return self._log.values[self._gone : self._count]

    def held_ids(self) -> Iterable[I64]:
        return (self.ids,)

    def save(self, terms: SavedTerms, since: int = 0, shift: int = 0) -> State:
        """The events that are kept, from the position `since` on, where positions are less by `shift`."""
        low = min(max(since + shift - self._first, self._gone), self._count)
        part = slice(low, self._count)
        return {
            **super().save(terms),
            "first": self._first + low - shift,
            "time": self._log.time[part],
            "stream": self._log.stream[part],
            "values": terms.ids(self._log.values[part]),
        }

    def restore(self, state: State, terms: KnownTerms) -> None:
        """Continue from a saved state."""
        self._first = int(state["first"])
        self._count = self._gone = 0
        self.add(state["time"], state["stream"], terms.ids(state["values"]).astype(np.int64))
        super().restore(state, terms)

    def add(self, time: I64, stream: I64, values: I64) -> None:
        """The events at the next positions."""
        count = self._count + len(time)
        self._make_room(count)
        part = slice(self._count, count)
        self._log.time[part] = time
        if self._several:
            self._log.stream[part] = stream
        if self._attributes:
            self._log.values[part] = values
        self._count = count
        self.newest = time.item(-1) if len(time) else self.newest

    def room(self, count: int) -> tuple[I64, int]:
        """Where the times of as many events of a single stream at the next positions come: the array, and their place
        there. The caller writes them; no value is kept of them."""
        low = self._count
        self._make_room(low + count)
        self._count = low + count
        return self._log.time, low

    def _make_room(self, count: int) -> None:
        if count > len(self._log.time):
            self._log = self._log.grow("events", max(count, 2 * len(self._log.time)))

    def at(self, positions: I64) -> tuple[I64, I64]:
        """Times and streams."""
        return self._log.time[positions - self._first], self._log.stream[positions - self._first]

    def times(self, positions: I64) -> I64:
        """Of the events at these positions."""
        found: I64 = self._log.time[positions - self._first]
        return found

    def values(self, positions: I64) -> I64:
        """i64[n, attributes]: of the events at these positions."""
        found: I64 = self._log.values[positions - self._first]
        return found

    def forget(self, before: int) -> None:
        """Nothing before this position is needed; it is freed once it is most of the content."""
        if before - self._first == self._gone:
            return
        gone = self._gone = min(max(before - self._first, 0), self._count)
        if 2 * gone > self._count:
            kept = self._count - gone
            for kind in self._log:
                kind[:kept] = kind[gone : self._count].copy()
            self._first, self._count, self._gone = self._first + gone, kept, 0
