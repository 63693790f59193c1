"""Matches as a runner's kernel writes them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from oxiseq.engine.kernels.matches.ordering import arrange
from oxiseq.grammar.records import dataclass

I64 = NDArray[np.int64]


@dataclass(slots=True, eq=False)
class Found:
    """Match i is `rows[ends[i]:ends[i + 1]]`, ascending: row ids << PLACE_BITS | place. `marks`: i64[n, 3], `out_marks`
    of the memory. `at`: i64[n] µs, when each is decided; None: with its last event."""

    rows: I64
    ends: I64
    marks: I64
    at: I64 | None = None

    def __len__(self) -> int:
        return len(self.ends) - 1

    def take(self, order: I64) -> Found:
        """Those matches, in that order."""
        low, count = self.ends[order], self.ends[order + 1] - self.ends[order]
        ends = np.concatenate([[0], np.cumsum(count)])
        places = np.arange(ends[-1]) + np.repeat(low - ends[:-1], count)
        return Found(self.rows[places], ends, self.marks[order], None if self.at is None else self.at[order])

    def arranged(self) -> Found:
        """The same in the order that their rows fix (kernels/matches/ordering.py), whatever else was found with
        them."""
        count = len(self)
        if count < 2:
            return self
        order = np.arange(count)
        return self.take(order) if arrange(self.rows, self.ends, order, np.empty(count, np.int64)) else self

    def only(self, shown: NDArray[np.bool_]) -> Found:
        """The same matches without some rows."""
        hidden = np.concatenate([[0], np.cumsum(~shown)])
        return Found(self.rows[shown], self.ends - hidden[self.ends], self.marks, self.at)

    @classmethod
    def of(cls, matches: Sequence[I64], at: I64 | None = None) -> Found:
        """These, without marks."""
        ends = np.cumsum([0, *map(len, matches)])
        rows = np.concatenate([np.zeros(0, np.int64), *matches])
        return cls(rows, ends, np.zeros((len(matches), 3), np.int64), at)

    @classmethod
    def joined(cls, parts: Sequence[Found]) -> Found:
        """One after the other."""
        if not parts:
            return _NOTHING
        if len(parts) == 1:
            return parts[0]
        before = np.cumsum([0, *(len(part.rows) for part in parts)])
        ends = [np.zeros(1, np.int64), *(part.ends[1:] + low for part, low in zip(parts, before, strict=False))]
        rows, marks = [part.rows for part in parts], [part.marks for part in parts]
        return cls(np.concatenate(rows), np.concatenate(ends), np.concatenate(marks))


_NOTHING = Found.of(())


def without_last(parts: Sequence[Found], count: int) -> list[Found]:
    """All matches but the last `count`, of parts that come one after the other."""
    left = list(parts)
    while count:
        part = left.pop()
        if len(part) > count:
            left.append(part.take(np.arange(len(part) - count)))
        count = max(0, count - len(part))
    return left
