"""Conditions and computed columns on rows with intervals.

What reads columns that there are is for the stack machine (matching/conditions.py); a bound on a hull's length is
compared as an array; all else is asked of the exact evaluator, once per distinct row of what it reads.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray
from pyoxigraph import BlankNode, Literal, NamedNode, Variable

from oxiseq.engine.events.time import to_duration_literal, to_literal
from oxiseq.engine.expressions.exact import ExpressionError, evaluate, holds
from oxiseq.engine.expressions.functions import IMPURE
from oxiseq.engine.intervals.rows import Column, Rows
from oxiseq.engine.intervals.times import DURATION, NUMBER, compare, has_time, length_of, prepared
from oxiseq.engine.kernels.intervals.joining import EMPTY_END
from oxiseq.engine.matching.conditions import ConditionFilter, condition
from oxiseq.engine.terms.dictionary import TermDictionary
from oxiseq.engine.terms.texts import Term
from oxiseq.grammar.algebra import Aggregate, Call, Expression, MatchFunction, Prev
from oxiseq.grammar.scope import expression_variables, subexpressions

_INTEGER = NamedNode("http://www.w3.org/2001/XMLSchema#integer")
_Leaves: TypeAlias = dict[Variable | Prev | MatchFunction | Aggregate, Term]


class RowConditions:
    """Conditions on rows of these columns."""

    def __init__(self, conditions: Iterable[Expression], columns: Sequence[Column], terms: TermDictionary) -> None:
        plain, self._lengths, self._timed = [], list[tuple[str, int]](), list[_Asked]()
        for each in conditions:
            length = length_of(each)
            if length is not None:
                self._lengths.append(length.whole)
            elif has_time(each) or not expression_variables(each) <= frozenset(columns):
                self._timed.append(_Asked(each, columns, terms))
            else:
                plain.append(condition(each))
        named: Sequence[Variable] = columns  # type: ignore[assignment]  # hidden ones are never asked for
        self._plain = ConditionFilter(plain, named, terms) if plain else None

    def keep(self, rows: Rows) -> NDArray[np.bool_]:
        """bool[n]: which rows satisfy all."""
        keep = np.ones(len(rows), np.bool_)
        if self._lengths:
            timed = rows.end != EMPTY_END
            lengths = np.where(timed, rows.end, 0) - np.where(timed, rows.start, 0)
            keep &= timed
            for op, size in self._lengths:
                keep &= compare(op, lengths, size)
        if self._plain is not None and keep.any():
            at = np.flatnonzero(keep)
            keep[at] = self._plain.keep(np.ascontiguousarray(rows.values[at]))
        for asked in self._timed:
            at = np.flatnonzero(keep)
            keep[at] = asked.outcomes(rows.take(at))
        return keep

    def passing(self, rows: Rows) -> Rows:
        """Those that satisfy all."""
        if not len(rows):
            return rows
        keep = self.keep(rows)
        return rows if keep.all() else rows.take(keep)


class _Asked:
    """An expression that the exact evaluator is asked, once per distinct row of what it reads."""

    def __init__(self, expression: Expression, columns: Sequence[Column], terms: TermDictionary) -> None:
        self._expression = prepared(expression)
        self._variables = sorted(expression_variables(expression) & frozenset(columns), key=lambda v: v.value)
        self._places = [columns.index(v) for v in self._variables]
        functions = {e for e in subexpressions(self._expression) if isinstance(e, MatchFunction)}
        self._functions = sorted(functions, key=lambda f: (f.name, f.gpm or ""))
        self._pure = not {e.name for e in subexpressions(expression) if isinstance(e, Call)} & IMPURE
        self._terms = terms

    def outcomes(self, rows: Rows) -> NDArray[np.bool_]:
        """Whether the condition holds for each row."""
        return self._map(rows, lambda leaves: holds(self._expression, leaves)).astype(np.bool_)

    def values(self, rows: Rows) -> NDArray[np.uint32]:
        """The id of the value for each row, 0 for an error."""
        found = self._map(rows, self._value).astype(np.uint32)
        self._terms.hold(found)
        return found

    def _value(self, leaves: _Leaves) -> int:
        try:
            term = evaluate(self._expression, leaves)
        except ExpressionError:
            return 0
        if not isinstance(term, BlankNode):
            return self._terms.intern(term)
        return self._blanks.get(term.value) or self._terms.blank()

    def _map(self, rows: Rows, ask: Callable[[_Leaves], int]) -> NDArray[np.int64]:
        times = [rows.start, rows.end] if self._functions else []
        asked = np.stack([*(rows.values[:, p].astype(np.int64) for p in self._places), *times], axis=1) if (
            self._places or times
        ) else np.zeros((len(rows), 0), np.int64)  # fmt: skip
        if not self._pure:
            return np.array([ask(self._leaves(row)) for row in asked.tolist()], np.int64)
        if not asked.shape[1]:
            return np.full(len(rows), ask(self._leaves([])), np.int64)
        distinct, inverse = np.unique(asked, axis=0, return_inverse=True)
        answers: NDArray[np.int64] = np.array([ask(self._leaves(row)) for row in distinct.tolist()], np.int64)
        return answers[inverse.reshape(-1)]

    def _leaves(self, row: list[int]) -> _Leaves:
        self._blanks: dict[str, int] = {}
        leaves: _Leaves = {}
        for variable, known in zip(self._variables, row, strict=False):
            if known:
                leaves[variable] = term = self._terms.term(known)
                if isinstance(term, BlankNode):
                    self._blanks[term.value] = known
        if self._functions and row[-1] != EMPTY_END:
            for function in self._functions:
                leaves[function] = time_term(function, row[-2], row[-1])
        return leaves


def time_term(function: MatchFunction, start: int, end: int) -> Literal:
    """The value of a function of time for an interval."""
    size = end - start if function.name == DURATION else start if function.name == "getSTARTTIME" else end
    if function.gpm == NUMBER:
        return Literal(str(size), datatype=_INTEGER)
    return to_duration_literal(size) if function.name == DURATION else to_literal(size)


class RowExpression:
    """A computed column on rows of these columns."""

    def __init__(self, expression: Expression, columns: Sequence[Column], terms: TermDictionary) -> None:
        self._asked = _Asked(expression, columns, terms)

    def values(self, rows: Rows) -> NDArray[np.uint32]:
        """u32[n]: the id of each row's value, 0 for an error."""
        return self._asked.values(rows) if len(rows) else np.zeros(0, np.uint32)
