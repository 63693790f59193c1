"""Facts on events by their positions, for output: time, stream, the values of aggregates."""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from oxiseq.engine.kernels.memory.growing import longer
from oxiseq.engine.terms.saved import KnownTerms, SavedTerms, State

I64 = NDArray[np.int64]
_FIRST: Final = 16
"""Events that there is room for to begin with."""


class PositionLog:
    """Time, stream and values of the events by position, from some position on. `attributes`: how many values each
    has; `streams`: how many there are; of one its number is not written."""

    def __init__(self, attributes: int, streams: int) -> None:
        self._attributes, self._several = attributes, streams > 1
        self.newest = 0
        """The time of the last one that came; 0 if none has."""
        self.begin(0)

    def begin(self, first: int) -> None:
        """Nothing before this position is needed, and nothing has come since."""
        self._first = first
        self._count = self._gone = 0
        self._time = np.zeros(_FIRST, np.int64)
        self._stream = np.zeros(_FIRST, np.int64)
        self._values = np.zeros((_FIRST, self._attributes), np.int64)

    @property
    def held(self) -> int:
        """How many are kept."""
        return self._count - self._gone

    @property
    def bytes(self) -> int:
        """With room for more."""
        return self._time.nbytes + self._stream.nbytes + self._values.nbytes

    @property
    def ids(self) -> I64:
        """All values, which are ids of terms."""
        return self._values[self._gone : self._count]

    def save(self, terms: SavedTerms) -> State:
        """The events that are kept."""
        part = slice(self._gone, self._count)
        return {
            "first": self._first + self._gone,
            "time": self._time[part],
            "stream": self._stream[part],
            "values": terms.ids(self.ids),
            "newest": self.newest,
        }

    def restore(self, state: State, terms: KnownTerms) -> None:
        """Continue from a saved state."""
        self._first = int(state["first"])
        self._count = self._gone = 0
        self.add(state["time"], state["stream"], terms.ids(state["values"]).astype(np.int64))
        self.newest = int(state["newest"])

    def add(self, time: I64, stream: I64, values: I64) -> None:
        """The events at the next positions."""
        count = self._count + len(time)
        if count > len(self._time):
            self._widen(count)
        part = slice(self._count, count)
        self._time[part] = time
        if self._several:
            self._stream[part] = stream
        if self._attributes:
            self._values[part] = values
        self._count = count
        self.newest = time.item(-1) if len(time) else self.newest

    def room(self, count: int) -> tuple[I64, int]:
        """Where the times of as many events of a single stream at the next positions come: the array, and their place
        there. The caller writes them; no value is kept of them."""
        low = self._count
        if low + count > len(self._time):
            self._widen(low + count)
        self._count = low + count
        return self._time, low

    def _widen(self, count: int) -> None:
        room = max(count, 2 * len(self._time))
        self._time, self._stream = longer(self._time, room), longer(self._stream, room)
        self._values = longer(self._values, room)

    def at(self, positions: I64) -> tuple[I64, I64]:
        """Times and streams."""
        return self._time[positions - self._first], self._stream[positions - self._first]

    def times(self, positions: I64) -> I64:
        """Of the events at these positions."""
        found: I64 = self._time[positions - self._first]
        return found

    def values(self, positions: I64) -> I64:
        """i64[n, attributes]: of the events at these positions."""
        found: I64 = self._values[positions - self._first]
        return found

    def forget(self, before: int) -> None:
        """Nothing before this position is needed; it is freed once it is most of the content."""
        if before - self._first == self._gone:
            return
        gone = self._gone = min(max(before - self._first, 0), self._count)
        if 2 * gone > self._count:
            kept = self._count - gone
            for array in (self._time, self._stream, self._values):
                array[:kept] = array[gone : self._count].copy()
            self._first, self._count, self._gone = self._first + gone, kept, 0
