"""Totals of a group → its row: SELECT's columns over keys and aggregates, unless HAVING drops it (semantics.md 2.6b).

In the flow: totals of a group → **row** → answers. Groups of matches of SPAseq, and what ends at one event of CEQL.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from pyoxigraph import BlankNode, Variable

from oxiseq.engine.events.time import to_literal
from oxiseq.engine.expressions.exact import ExpressionError, Leaf, evaluate, holds
from oxiseq.engine.expressions.totals import CountTotal, Total
from oxiseq.engine.terms.dictionary import TermDictionary
from oxiseq.engine.terms.texts import Term
from oxiseq.grammar.algebra import DETECTTIME, Aggregate, Expression
from oxiseq.grammar.scope import match_parts

Row = tuple[int, ...]


class RowPlan(Protocol):
    """How a group becomes a row; all expressions are over keys and aggregates."""

    @property
    def keys(self) -> tuple[Variable, ...]: ...

    @property
    def aggregates(self) -> tuple[Aggregate, ...]:
        """In the order of a group's totals."""

    @property
    def names(self) -> tuple[Variable, ...]:
        """Of the columns."""

    @property
    def columns(self) -> tuple[Expression, ...]: ...

    @property
    def having(self) -> tuple[Expression, ...]: ...


class GroupRows:
    """Makes the rows of one query's groups."""

    def __init__(self, plan: RowPlan, terms: TermDictionary) -> None:
        self._plan = plan
        self._terms = terms
        self._aggregates = plan.aggregates
        self.tell_when = any(DETECTTIME in match_parts(column) for column in plan.columns)
        """Whether rows say when they are decided."""

    def row(self, key: Row, totals: Sequence[Total], at: int = 0) -> Row | None:
        """The row of the group with these ids as keys, decided at `at` (µs); None if HAVING drops it."""
        plan = self._plan
        leaves: dict[Leaf, Term] = {name: self._terms.term(i) for name, i in zip(plan.keys, key, strict=True) if i}
        if self.tell_when:
            leaves[DETECTTIME] = to_literal(at)
        huge: dict[Leaf, Term] = {}
        for aggregate, total in zip(self._aggregates, totals, strict=True):
            try:
                leaves[aggregate] = total.term()
            except ExpressionError:
                if isinstance(total, CountTotal):
                    huge[aggregate] = total.at_most()
        if not all(holds(condition, {**leaves, **huge}) for condition in plan.having):
            return None
        row = []
        for name, expression in zip(plan.names, plan.columns, strict=True):
            if isinstance(expression, Variable) and expression in plan.keys:
                row.append(key[plan.keys.index(expression)])
                continue
            term = self._value(expression, leaves)
            i = 0 if term is None else self._number(term, key, totals)
            row.append(i)
            if i and name not in plan.keys:
                leaves[name] = self._terms.term(i)
        return tuple(row)

    def _value(self, expression: Expression, leaves: Mapping[Leaf, Term]) -> Term | None:
        if isinstance(expression, Aggregate):
            return leaves.get(expression)
        try:
            return evaluate(expression, leaves)
        except ExpressionError:
            return None

    def _number(self, term: Term, key: Row, totals: Sequence[Total]) -> int:
        """The id of a computed term; a blank node of the group keeps its own, one from BNODE() is new."""
        if not isinstance(term, BlankNode):
            return self._terms.computed(term, {})
        same = (i for i in (*key, *(i for total in totals for i in total.held)) if i and self._terms.term(i) == term)
        return next(same, None) or self._terms.blank()
