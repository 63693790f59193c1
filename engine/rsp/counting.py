"""How often each row is in the answer: for DISTINCT, ASK, and rows that show less than what tells mappings apart.

Where it stands: changes of rows → **counts** → rows that are new, gone, or all, in an order that the history fixes.
"""

from __future__ import annotations

from itertools import repeat

import numpy as np

from oxiseq.engine.rsp.changes import I64, Changes, Ids, keys_of, rows_of_keys
from oxiseq.engine.terms.saved import KnownTerms, SavedTerms, State
from oxiseq.grammar.rsp_algebra import Report


class Counted:
    """A bag of rows, or with `distinct` a set, and what is told of it."""

    def __init__(self, width: int, distinct: bool, report: Report) -> None:
        self._width, self._distinct, self._report = width, distinct, report
        self._counts: dict[bytes, int] = {}

    def __len__(self) -> int:
        return len(self._counts)

    def told(self, changes: Changes, instants: int) -> tuple[I64, Ids]:
        """Numbers of instants and rows to tell; `instants`: how many there are."""
        if self._report is Report.RSTREAM:
            return self._all(changes, instants)
        if not len(changes):
            return changes.at, changes.values
        keys, signs = keys_of(changes.values), changes.sign.tolist()
        rows: list[int] = []
        for _, low, high in changes.steps():
            rows += self._step(keys, signs, low, high)
        index = np.array(rows, np.int64)
        return changes.at[index], changes.values[index]

    def _step(self, keys: list[bytes], signs: list[int], low: int, high: int) -> list[int]:
        """Numbers of the rows to tell of one instant, each as often as it is told."""
        counts, before = self._counts, dict[bytes, tuple[int, int]]()
        for row in range(low, high):
            key = keys[row]
            count = counts.get(key, 0)
            if key not in before:
                before[key] = count, row
            count += signs[row]
            if count:
                counts[key] = count
            else:
                del counts[key]
        way = 1 if self._report is Report.ISTREAM else -1
        found: list[int] = []
        for key, (was, row) in before.items():
            now = counts.get(key, 0)
            more = (now > 0) - (was > 0) if self._distinct else now - was
            found += repeat(row, way * more)
        return found

    def _all(self, changes: Changes, instants: int) -> tuple[I64, Ids]:
        keys, signs = keys_of(changes.values), changes.sign.tolist()
        parts, sizes = [], []
        steps = {at: (low, high) for at, low, high in changes.steps()}
        shown = self._shown()
        for at in range(instants):
            if at in steps:
                self._step(keys, signs, *steps[at])
                shown = self._shown()
            parts.append(shown)
            sizes.append(len(shown))
        values = np.concatenate(parts) if parts else np.zeros((0, self._width), np.uint32)
        return np.repeat(np.arange(instants), sizes), values

    def _shown(self) -> Ids:
        rows = rows_of_keys([*self._counts], self._width) if self._width else np.zeros((len(self), 0), np.uint32)
        return rows if self._distinct else np.repeat(rows, np.array([*self._counts.values()], np.int64), axis=0)

    # --- what it holds ------------------------------------------------------------------------------

    def held_ids(self) -> Ids:
        """The terms of the rows."""
        return rows_of_keys([*self._counts], self._width) if self._width else np.zeros((0, 0), np.uint32)

    def save(self, terms: SavedTerms) -> State:
        """All rows, in the order in which they came."""
        return {"rows": terms.ids(self.held_ids()), "counts": np.array([*self._counts.values()], np.int64)}

    def restore(self, state: State, terms: KnownTerms) -> None:
        """Go on from a saved state."""
        counts = state["counts"].tolist()
        rows = terms.ids(state["rows"]) if self._width else np.zeros((len(counts), 0), np.uint32)
        self._counts = dict(zip(keys_of(rows), counts, strict=True))
