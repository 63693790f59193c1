"""Expressions over whole matches: FILTERs behind SEQ, SELECT expressions, keys of ORDER BY.

Match functions and aggregates over iterations become columns first (parts.py), so that a FILTER is one over columns
(expressions/column.py), and an expression is evaluated once for each set of values that it reads.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import chain
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray
from pyoxigraph import Variable

from oxiseq.engine.expressions.column import holding
from oxiseq.engine.expressions.exact import ExpressionError, evaluate, holds
from oxiseq.engine.expressions.functions import is_pure
from oxiseq.engine.flow.rewriting import replaced
from oxiseq.engine.output.parts import Ids, MatchRows, PartColumns, id_of
from oxiseq.engine.plan.query import QueryPlan
from oxiseq.engine.terms.dictionary import TermDictionary
from oxiseq.engine.terms.order import Key, order_key
from oxiseq.engine.terms.texts import Term
from oxiseq.grammar.algebra import Expression
from oxiseq.grammar.scope import expression_variables, match_parts

_FEW: Final = 3
"""So many matches are evaluated one by one: that is cheaper than columns."""


class ExpressionColumns:
    """Computes the expression columns of a query's answer."""

    def __init__(self, plan: QueryPlan, variables: tuple[Variable, ...], terms: TermDictionary) -> None:
        self._terms = terms
        self._index = {v: i for i, v in enumerate(variables)}
        columns, filters = plan.runner.written.columns, plan.runner.written.filters
        order = [] if plan.ranking is None else [expression for expression, _ in plan.ranking.order_by]
        computed = [(i, c.variable, c.expression) for i, c in enumerate(columns) if c.expression is not None]
        parts = [part for e in (*filters, *order, *(e for _, _, e in computed)) for part in match_parts(e)]
        stem = _stem(variables, computed, filters, order)
        self._parts = {Variable(f"{stem}{n}"): part for n, part in enumerate(dict.fromkeys(parts))}
        """Match functions and aggregates, as variables."""
        names: dict[Expression, Expression] = {part: name for name, part in self._parts.items()}
        self._columns = [(i, variable, _Prepared.of(replaced(e, names))) for i, variable, e in computed]
        self._filters = [_Prepared.of(replaced(e, names)) for e in filters]
        self._keys = {e: _Prepared.of(replaced(e, names)) for e in order}
        self._part_columns = PartColumns(plan, self._index, terms)
        self._of: MatchRows | None = None
        """The matches that `_made` is of."""
        self._made: dict[Variable, Ids] = {}

    def fill(self, matches: MatchRows, values: NDArray[np.uint32]) -> None:
        """Write the columns' term ids into `values` (u32[n, columns]); an error leaves the cell unbound. Later ones see
        what SELECT names before them."""
        named: dict[Variable, Ids] = {}
        for column, variable, prepared in self._columns:
            columns = self._read(prepared, matches)
            for name in prepared.variables:
                if name in named:
                    columns[name] = np.where(named[name] != 0, named[name], columns.get(name, np.uint32(0)))
            values[:, column] = named[variable] = self._values(prepared, columns, len(matches))

    def passing(self, matches: MatchRows) -> NDArray[np.int64]:
        """Numbers of the matches that pass the FILTERs behind SEQ."""
        count = len(matches)
        kept = np.ones(count, np.bool_)
        for prepared in self._filters:
            condition, columns = prepared.expression, self._read(prepared, matches)
            if prepared.pure and count > _FEW:
                kept &= holding([condition], columns, count, self._terms)
            else:
                kept &= np.array([holds(condition, self._terms_of(columns, m)) for m in range(count)], np.bool_)
        return np.flatnonzero(kept)

    def rank(self, expression: Expression, matches: MatchRows, m: int) -> Key:
        """The value by which ORDER BY compares match `m`; an error sorts as an unbound value does."""
        prepared = self._keys[expression]
        try:
            return order_key(evaluate(prepared.expression, self._terms_of(self._read(prepared, matches), m)))
        except ExpressionError:
            return order_key(None)

    def ranked(self, expression: Expression, matches: MatchRows) -> Ids:
        """u32[n]: the id of what ORDER BY compares of each match; 0: unbound, or an error."""
        prepared = self._keys[expression]
        return self._values(prepared, self._read(prepared, matches), len(matches))

    def forget(self) -> None:
        """The matches have been written: nothing of them is kept."""
        self._of, self._made = None, {}

    def _read(self, prepared: _Prepared, matches: MatchRows) -> dict[Variable, Ids]:
        """The columns of what an expression is made of, u32[n] ids by variable."""
        if self._of is not matches:
            self._of, self._made = matches, {}
        columns: dict[Variable, Ids] = {}
        for variable in prepared.variables:
            if (part := self._parts.get(variable)) is not None:
                if variable not in self._made:
                    self._made[variable] = self._part_columns.of(part, matches)
                columns[variable] = self._made[variable]
            elif (at := self._index.get(variable)) is not None:
                columns[variable] = matches.resolved[:, at]
        return columns

    def _values(self, prepared: _Prepared, columns: Mapping[Variable, Ids], count: int) -> Ids:
        """u32[count]: the ids of an expression's values, 0 for an error."""
        expression = prepared.expression
        if isinstance(expression, Variable):
            return columns.get(expression, np.zeros(count, np.uint32))
        if not prepared.pure or count <= _FEW:
            return np.array([self._value(expression, columns, m) for m in range(count)], np.uint32)
        table = np.zeros((count, len(columns)), np.uint32)
        for i, ids in enumerate(columns.values()):
            table[:, i] = ids
        _, first, which = np.unique(table, axis=0, return_index=True, return_inverse=True)
        values = [self._value(expression, columns, m) for m in first.tolist()]
        return np.array(values, np.uint32)[which.reshape(-1)]

    def _value(self, expression: Expression, columns: Mapping[Variable, Ids], m: int) -> int:
        terms = self._terms_of(columns, m)
        try:
            term = evaluate(expression, terms)
        except ExpressionError:
            return 0
        return id_of(term, {term: int(columns[variable][m]) for variable, term in terms.items()}, self._terms)

    def _terms_of(self, columns: Mapping[Variable, Ids], m: int) -> dict[Variable, Term]:
        """The values of match `m`; what is unbound, or an error, has none."""
        return {variable: self._terms.term(int(ids[m])) for variable, ids in columns.items() if ids[m]}


def _stem(
    variables: Iterable[Variable],
    computed: Iterable[tuple[int, Variable, Expression]],
    *others: Iterable[Expression],
) -> str:
    """How names begin that no variable of a query has."""
    used = {*variables, *(variable for _, variable, _ in computed)}
    for expression in chain((e for _, _, e in computed), *others):
        used |= expression_variables(expression)
    stem = "__part_"
    while any(variable.value.startswith(stem) for variable in used):
        stem = f"_{stem}"
    return stem


class _Prepared(NamedTuple):
    """An expression whose parts are variables, in a fixed order; `pure`: equal values of them give an equal value."""

    expression: Expression
    variables: tuple[Variable, ...]
    pure: bool

    @classmethod
    def of(cls, expression: Expression) -> _Prepared:
        """It with what is known of it."""
        return cls(expression, tuple(sorted(expression_variables(expression), key=str)), is_pure(expression))
