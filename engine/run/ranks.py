"""How many of some thresholds, each stricter than the one before, a value passes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray
from pyoxigraph import Variable

from oxiseq.engine.matching.conditions import ConditionFilter, condition
from oxiseq.engine.plan.families import Family
from oxiseq.engine.plan.query import QueryPlan
from oxiseq.engine.sequence.rows import RowBuffer
from oxiseq.engine.sequence.states import RANK
from oxiseq.engine.terms.dictionary import TermDictionary
from oxiseq.grammar.algebra import Expression

_UNKNOWN: Final = -1


class ValueRanks:
    """Looks each value up once, as long as ids mean the same: of `variable`, by `conditions` that grow stricter. A
    value that passes the first i of them has the rank `counts[i - 1]`."""

    def __init__(
        self, variable: Variable, conditions: Sequence[Expression], counts: Sequence[int], terms: TermDictionary
    ) -> None:
        self._variable, self._conditions, self._counts, self._terms = variable, conditions, counts, terms
        self._known = np.zeros(0, np.int32)
        self._filters: dict[int, ConditionFilter] = {}
        """By number of a condition, as far as they have been asked."""
        self._generation = terms.generation

    def of(self, ids: NDArray[np.integer]) -> NDArray[np.int32]:
        """The ranks of values with these ids."""
        if self._generation != self._terms.generation:
            self._known = np.zeros(0, np.int32)
            self._generation = self._terms.generation
        known, most = self._known, int(ids.max(initial=0)) + 1
        if most > len(known):
            longer = np.full(max(most, 2 * len(known)), _UNKNOWN, np.int32)
            longer[: len(known)] = known
            known = self._known = longer
        new = np.unique(ids[known[ids] == _UNKNOWN])
        if len(new):
            self._look_up(new.astype(np.uint32), 0, len(self._conditions))
        ranks: NDArray[np.int32] = known[ids]
        return ranks

    def _look_up(self, ids: NDArray[np.uint32], low: int, high: int) -> None:
        """Of values that meet the first `low` conditions and at most `high`: halve the open range."""
        if low == high or not len(ids):
            self._known[ids] = self._counts[low - 1] if low else 0
            return
        middle = (low + high) // 2
        if middle not in self._filters:  # to compile one takes longer than to ask it
            asked = condition(self._conditions[middle])
            self._filters[middle] = ConditionFilter((asked,), (self._variable,), self._terms)
        meets = self._filters[middle].keep(ids[:, None])
        self._look_up(ids[meets], middle + 1, high)
        self._look_up(ids[~meets], low, middle)


class Ranks:
    """How many queries of a family that counts matches take a row, from the value that their thresholds compare."""

    def __init__(self, plan: QueryPlan, family: Family, terms: TermDictionary) -> None:
        letters, columns = plan.runner.sequence.letters, plan.runner.sequence.columns
        self._ranked = [
            (number, columns[number].index(RANK), ValueRanks(each.variable, each.conditions, each.counts, terms))
            for each in family.ranked
            for number in [letters.index(each.letter)]
        ]

    def put(self, buffer: RowBuffer) -> None:
        """Where the rows have values, they have ranks from now on."""
        count = int(buffer.arrays.first[buffer.instants])
        letters, values = buffer.arrays.letter[:count], buffer.arrays.values
        for letter, column, ranks in self._ranked:
            rows = np.flatnonzero(letters == letter)
            if len(rows):
                values[rows, column] = ranks.of(values[rows, column])
