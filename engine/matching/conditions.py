"""A GPM's own filters, and rows that the machine left undecided.

In the flow: kernel rows with a flag → **exact answers** → rows. Every top-level conjunct is a `Condition`.
A conjunct over one variable whose functions the machine lacks has a memo table: one outcome per term id,
filled by one store query for all terms of a batch that are not in it yet (matching.md, section 5).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from pyoxigraph import Literal, Variable

from oxiseq.engine import kinds
from oxiseq.engine.expressions.exact import ExpressionError, evaluate, truth
from oxiseq.engine.expressions.functions import is_pure
from oxiseq.engine.expressions.program import compile_program, is_native
from oxiseq.engine.expressions.values import read
from oxiseq.engine.kernels.expressions.machine import TRUE, UNDECIDED, truth_column
from oxiseq.engine.matching.asking import KNOWN_TRUE, NOT_KNOWN, Asked
from oxiseq.engine.terms.dictionary import TermDictionary
from oxiseq.engine.terms.value import literal_value
from oxiseq.grammar.algebra import Call, Expression
from oxiseq.grammar.records import dataclass
from oxiseq.grammar.scope import expression_variables, subexpressions


@dataclass(frozen=True, slots=True)
class Condition:
    """One conjunct: its variables in a fixed order; whether it depends on them alone (no RAND, NOW...)."""

    expression: Expression
    variables: tuple[Variable, ...]
    pure: bool

    @property
    def wants_memo(self) -> bool:
        """Whether a table per term id pays: one variable, and something that the machine cannot do."""
        return self.pure and len(self.variables) == 1 and not _machine_decides(self.expression)


def condition(expression: Expression) -> Condition:
    """A conjunct of a FILTER, without EXISTS."""
    variables = tuple(sorted(expression_variables(expression), key=lambda v: v.value))
    return Condition(expression, variables, is_pure(expression))


def _machine_decides(expression: Expression) -> bool:
    return is_native(expression) and not any(
        isinstance(e, Call) and e.name in ("<", ">", "<=", ">=") and any(_orders_text(a) for a in e.args)
        for e in subexpressions(expression)
    )


def _orders_text(operand: Expression) -> bool:
    return isinstance(operand, Literal) and literal_value(operand).kind in (kinds.STRING, kinds.OTHER)


class ConditionMemo:
    """Outcomes by term id, a table per condition: u8[tables, terms], 0 where it is not known yet."""

    def __init__(self, conditions: Sequence[Condition], terms: TermDictionary) -> None:
        self._conditions = [Asked(c.expression, c.variables) for c in conditions]
        self._terms = terms
        self.table = np.zeros((max(len(conditions), 1), 1), np.uint8)
        self._generation = terms.generation

    def reserve(self) -> NDArray[np.uint8]:
        """The tables, long enough for every term id; empty again when ids have been freed."""
        if self._generation != self._terms.generation:
            self.table[:] = NOT_KNOWN
            self._generation = self._terms.generation
        needed = len(self._terms.columns.kind) if self._conditions else 1
        if self.table.shape[1] < needed:
            grown = np.zeros((self.table.shape[0], needed), np.uint8)
            grown[:, : self.table.shape[1]] = self.table
            self.table = grown
        return self.table

    def outcomes(self, table: int, ids: NDArray[np.integer]) -> NDArray[np.uint8]:
        """Condition `table` on many term ids (above 0); queries the store for unknown outcomes."""
        self.learn(table, ids)
        outcomes: NDArray[np.uint8] = self.table[table][ids]
        return outcomes

    def learn(self, table: int, ids: NDArray[np.integer]) -> bool:
        """Have condition `table` known on term ids (above 0); whether some outcome was not."""
        self.reserve()
        row = self.table[table]
        missing = np.unique(ids[row[ids] == NOT_KNOWN])
        if len(missing):
            row[missing] = self._conditions[table].outcomes(missing[:, None], self._terms)
        return len(missing) > 0


class ConditionFilter:
    """Conditions on rows that are at hand as a whole (not in the kernel): the machine first, then `passes`."""

    def __init__(self, conditions: Sequence[Condition], columns: Sequence[Variable], terms: TermDictionary) -> None:
        slots = {v: i for i, v in enumerate(columns)}
        self._conditions = [(c, compile_program(c.expression, slots, terms).code) for c in conditions]
        self._slots = slots
        self._terms = terms

    @property
    def programs(self) -> list[NDArray[np.int32]]:
        """The machine's, of each condition."""
        return [code for _, code in self._conditions]

    def keep(self, values: NDArray[np.uint32]) -> NDArray[np.bool_]:
        """bool[k]: which rows of ids u32[k, columns] satisfy all conditions."""
        keep = np.ones(len(values), np.bool_)
        columns = self._terms.columns
        for condition, code in self._conditions:
            rows = np.flatnonzero(keep)
            ids = np.ascontiguousarray(values[rows], np.int64)
            outcomes = truth_column(code, 0, len(code), ids, *columns)
            asked = rows[outcomes == UNDECIDED]
            keep[rows] = outcomes == TRUE
            if len(asked):
                picked = [values[asked, self._slots[v]] for v in condition.variables]
                keep[asked] = passes(condition, picked, self._terms)
        return keep


def passes(condition: Condition, columns: Sequence[NDArray[np.integer]], terms: TermDictionary) -> NDArray[np.bool_]:
    """Whether each row satisfies the condition; `columns` are the ids of its variables (0 unbound).

    Asked once per distinct row, unless the condition is impure.
    """
    if not columns:
        return np.full(1, _holds(condition, (), terms))
    ids = np.stack(columns, axis=1)
    if not condition.pure:
        return np.array([_holds(condition, row, terms) for row in ids], np.bool_)
    first, inverse = _distinct(ids)
    holds: NDArray[np.bool_] = _asked(condition).outcomes(ids[first], terms) == KNOWN_TRUE
    return holds[inverse]


@lru_cache(1024)
def _asked(condition: Condition) -> Asked:
    return Asked(condition.expression, condition.variables)


def _distinct(ids: NDArray[np.integer]) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """The numbers of one row each of those that are alike, and of each row the place of its like among them. NumPy
    does it several times slower for rows than for numbers."""
    keys = ids[:, 0].astype(np.uint64)
    for column in ids.T[1:]:
        if len(keys) and keys.max() >> np.uint64(32):  # two ids fit, then the pairs are numbered
            keys = np.unique(keys, return_inverse=True)[1].astype(np.uint64)
        keys = keys << np.uint64(32) | column.astype(np.uint64)
    _, first, inverse = np.unique(keys, return_index=True, return_inverse=True)
    return first, inverse


def _holds(condition: Condition, ids: Sequence[int] | NDArray[np.integer], terms: TermDictionary) -> bool:
    mapping = {v: terms.term(int(i)) for v, i in zip(condition.variables, ids, strict=True) if i != 0}
    try:
        return truth(read(evaluate(condition.expression, mapping)))
    except ExpressionError:
        return False
