"""How many queries of a family take a row, from the value that their thresholds compare (plan/families.py)."""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from oxiseq.engine.expressions.column import holding
from oxiseq.engine.plan.families import Family, Ranked
from oxiseq.engine.plan.query import QueryPlan
from oxiseq.engine.sequence.rows import RowBuffer
from oxiseq.engine.sequence.states import RANK
from oxiseq.engine.terms.dictionary import TermDictionary

_UNKNOWN: Final = -1


class Ranks:
    """Looks each value up once, as long as ids mean the same."""

    def __init__(self, plan: QueryPlan, family: Family, terms: TermDictionary) -> None:
        letters, columns = plan.runner.sequence.letters, plan.runner.sequence.columns
        self._ranked = [(each, letters.index(each.letter)) for each in family.ranked]
        self._columns = [columns[number].index(RANK) for _, number in self._ranked]
        self._known = [np.zeros(0, np.int32) for _ in self._ranked]
        self._terms = terms
        self._generation = terms.generation

    def put(self, buffer: RowBuffer) -> None:
        """Where the rows have values, they have ranks from now on."""
        if self._generation != self._terms.generation:
            self._known = [np.zeros(0, np.int32) for _ in self._ranked]
            self._generation = self._terms.generation
        count = int(buffer.arrays.first[buffer.instants])
        letters, values = buffer.arrays.letter[:count], buffer.arrays.values
        for place, (ranked, letter) in enumerate(self._ranked):
            rows = np.flatnonzero(letters == letter)
            if len(rows):
                values[rows, self._columns[place]] = self._of(place, ranked, values[rows, self._columns[place]])

    def _of(self, place: int, ranked: Ranked, ids: NDArray[np.int64]) -> NDArray[np.int32]:
        known = self._known[place]
        most = int(ids.max()) + 1
        if most > len(known):
            longer = np.full(max(most, 2 * len(known)), _UNKNOWN, np.int32)
            longer[: len(known)] = known
            known = self._known[place] = longer
        new = np.unique(ids[known[ids] == _UNKNOWN])
        if len(new):
            self._look_up(ranked, new.astype(np.uint32), known, 0, len(ranked.conditions))
        return known[ids]

    def _look_up(self, ranked: Ranked, ids: NDArray[np.uint32], known: NDArray[np.int32], low: int, high: int) -> None:
        """Of values that meet the first `low` conditions and at most `high`: halve the open range."""
        if low == high or not len(ids):
            known[ids] = ranked.counts[low - 1] if low else 0
            return
        middle = (low + high) // 2
        meets = holding((ranked.conditions[middle],), {ranked.variable: ids}, len(ids), self._terms)
        self._look_up(ranked, ids[meets], known, middle + 1, high)
        self._look_up(ranked, ids[~meets], known, low, middle)
