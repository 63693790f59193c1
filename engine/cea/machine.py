"""Leaves on the stack machine; the exact evaluator decides the rest."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
from numpy.typing import NDArray
from pyoxigraph import Variable

from oxiseq.engine.cea.facts import FactPlan
from oxiseq.engine.expressions.exact import holds
from oxiseq.engine.expressions.program import compile_program
from oxiseq.engine.kernels.cea import facts as kernels
from oxiseq.engine.kernels.terms.columns import TermColumns
from oxiseq.engine.terms.dictionary import TermDictionary
from oxiseq.engine.terms.texts import Term
from oxiseq.grammar.scope import expression_variables


class LeafMachine:
    """Some leaves of a plan, compiled. `slots`: the attributes' columns in a row of ids; column 0 holds 0."""

    def __init__(
        self, facts: FactPlan, leaves: tuple[int, ...], slots: Mapping[Variable, int], terms: TermDictionary
    ) -> None:
        self._facts = facts
        self._slots = slots
        self._first, self._leaf_of = facts.of_leaves(leaves)
        code = [
            compile_program(leaf, slots, terms).code if i in leaves else np.zeros(0, np.int32)
            for i, leaf in enumerate(facts.leaves)
        ]
        self._code = np.concatenate([*code, np.zeros(1, np.int32)])
        self._starts = np.cumsum([0, *map(len, code)]).astype(np.int64)

    def mark(
        self,
        values: NDArray[np.int64],
        type_of: NDArray[np.int64],
        columns: TermColumns,
        term: Callable[[int], Term],
        facts: NDArray[np.uint64],
    ) -> None:
        """Set the leaves' facts. values: i64[n, slots] of ids of `columns`; `term`: the term of an id."""
        if not len(self._leaf_of):
            return
        undecided = np.zeros_like(facts)
        program = self._first, self._leaf_of, self._code, self._starts
        worth = columns.kind, columns.number, columns.exact, columns.quality
        left = kernels.leaf_facts(values, type_of, *program, *worth, facts, undecided)
        if not left:
            return
        for leaf in np.unique(self._leaf_of).tolist():
            word, bit = leaf >> 6, np.uint64(1 << (leaf & 63))
            rows = np.flatnonzero(undecided[:, word] & bit)
            if len(rows):
                facts[rows[self._decide(leaf, values[rows], term)], word] |= bit

    def _decide(self, leaf: int, values: NDArray[np.int64], term: Callable[[int], Term]) -> NDArray[np.bool_]:
        expression = self._facts.leaves[leaf]
        asked = [(v, self._slots[v]) for v in expression_variables(expression)]
        distinct, inverse = np.unique(values[:, [slot for _, slot in asked]], axis=0, return_inverse=True)
        decided = [
            holds(expression, {v: term(i) for (v, _), i in zip(asked, row, strict=True) if i})
            for row in distinct.tolist()
        ]
        return np.array(decided, np.bool_)[inverse.reshape(-1)]
