"""What is told at an instant: all answers, those that are new, those that are gone (RSTREAM, ISTREAM, DSTREAM).

Where it stands: the full rows of an instant → **those to tell**. Rows are bags; two rows are the same when all their
columns, and the times of their event mappings if they carry any, are.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from oxiseq.engine.terms.saved import KnownTerms, SavedTerms, State
from oxiseq.grammar.rsp_algebra import Report


@dataclass(frozen=True, slots=True, eq=False)
class FullRows:
    """The answer at one instant. values: u32[k, columns]; span: i64[k, 2], start and end of the event mapping, or
    i64[k, 0]."""

    values: NDArray[np.uint32]
    span: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.values)

    def take(self, index: NDArray[np.int64]) -> FullRows:
        """Some of them."""
        return FullRows(self.values[index], self.span[index])

    def keys(self) -> list[bytes]:
        """What tells rows apart."""
        keyed = np.concatenate([self.values.astype(np.int64), self.span], axis=1)
        return [row.tobytes() for row in keyed]

    @classmethod
    def none(cls, columns: int, timed: bool) -> FullRows:
        """No rows."""
        return cls(np.zeros((0, columns), np.uint32), np.zeros((0, 2 if timed else 0), np.int64))


class Reporter:
    """Remembers the answer of the instant before, if it has to."""

    def __init__(self, report: Report, columns: int, timed: bool) -> None:
        self._report = report
        self.before = FullRows.none(columns, timed)

    def told(self, now: FullRows) -> FullRows:
        """What of an instant's answer is told."""
        if self._report is Report.RSTREAM:
            return now
        before, self.before = self.before, now
        return _without(now, before) if self._report is Report.ISTREAM else _without(before, now)

    def save(self, terms: SavedTerms) -> State:
        """What it remembers."""
        return {"values": terms.ids(self.before.values), "span": self.before.span}

    def restore(self, state: State, terms: KnownTerms) -> None:
        """Go on from a saved state."""
        self.before = FullRows(terms.ids(state["values"]), state["span"].copy())


def _without(rows: FullRows, others: FullRows) -> FullRows:
    """The bag of rows less that of others, in the order of the rows."""
    if not len(rows) or not len(others):
        return rows
    left = Counter(others.keys())
    kept = []
    for i, key in enumerate(rows.keys()):
        if left[key] > 0:
            left[key] -= 1
        else:
            kept.append(i)
    return rows.take(np.array(kept, np.int64))
