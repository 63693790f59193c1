"""SELECT expressions: match functions, aggregates over iterations, and the expressions around them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from pyoxigraph import BlankNode, Literal, NamedNode, Variable

from oxiseq.engine.events.time import to_duration_literal, to_literal
from oxiseq.engine.expressions.aggregate import aggregate
from oxiseq.engine.expressions.exact import ExpressionError, evaluate, holds
from oxiseq.engine.plan.query import QueryPlan
from oxiseq.engine.terms.dictionary import TermDictionary
from oxiseq.engine.terms.order import Key, order_key
from oxiseq.engine.terms.texts import Term
from oxiseq.grammar.algebra import Aggregate, Expression, MatchFunction, Prev
from oxiseq.grammar.scope import expression_variables, match_parts

_INTEGER = NamedNode("http://www.w3.org/2001/XMLSchema#integer")


@dataclass(frozen=True, slots=True)
class MatchRows:
    """Resolved values of matches (u32[n, v]) and their rows: values u32[f, v], ends i64[n + 1], letter i32[f],
    time i64[f]."""

    resolved: NDArray[np.uint32]
    values: NDArray[np.uint32]
    ends: NDArray[np.int64]
    letter: NDArray[np.int32]
    time: NDArray[np.int64]


class ExpressionColumns:
    """Computes the expression columns of a query's answer."""

    def __init__(self, plan: QueryPlan, variables: tuple[Variable, ...], terms: TermDictionary) -> None:
        self._plan = plan
        self._terms = terms
        self._index = {v: i for i, v in enumerate(variables)}
        columns = plan.runner.written.columns
        self._columns = [(i, c.expression) for i, c in enumerate(columns) if c.expression is not None]
        self._computed = {columns[i].variable: i for i, _ in self._columns}
        self._letters = [plan.letter for plan in plan.letters]
        self._nothing = np.zeros(len(columns), np.uint32)
        """Of a row: FILTER and ORDER BY do not see what SELECT names."""
        self._blanks: dict[str, int] = {}
        """The blank nodes that the match at work binds, by their labels."""

    def fill(self, matches: MatchRows, values: NDArray[np.uint32]) -> None:
        """Write the columns' term ids into `values` (u32[n, columns]); an error leaves the cell unbound."""
        if not self._columns:
            return
        for m in range(len(matches.resolved)):
            for column, expression in self._columns:
                values[m, column] = self._value(expression, matches, m, values[m])

    def passing(self, matches: MatchRows) -> NDArray[np.int64]:
        """Numbers of the matches that pass the FILTERs behind SEQ."""
        kept = [
            m
            for m in range(len(matches.resolved))
            if all(holds(f, self._leaves(f, matches, m, self._nothing)) for f in self._plan.runner.written.filters)
        ]
        return np.array(kept, np.int64)

    def rank(self, expression: Expression, matches: MatchRows, m: int) -> Key:
        """The value by which ORDER BY compares match `m`; an error sorts as an unbound value does."""
        try:
            return order_key(evaluate(expression, self._leaves(expression, matches, m, self._nothing)))
        except ExpressionError:
            return order_key(None)

    def ranked(self, expression: Expression, matches: MatchRows, m: int) -> int:
        """The id of what ORDER BY compares of match `m`; 0: unbound, or an error."""
        return self._value(expression, matches, m, self._nothing)

    def _value(self, expression: Expression, matches: MatchRows, m: int, row: NDArray[np.uint32]) -> int:
        leaves = self._leaves(expression, matches, m, row)
        try:
            term = evaluate(expression, leaves)
        except ExpressionError:
            return 0
        return self._number(term)

    def _leaves(
        self, expression: Expression, matches: MatchRows, m: int, row: NDArray[np.uint32]
    ) -> dict[Variable | Prev | MatchFunction | Aggregate, Term]:
        """The values of what an expression is made of; what is unbound, or an error, has none."""
        self._blanks.clear()
        leaves: dict[Variable | Prev | MatchFunction | Aggregate, Term] = {}
        for variable in expression_variables(expression):
            term = self._named(variable, row) or self._term(matches.resolved[m], variable)
            if term is not None:
                leaves[variable] = term
        for part in match_parts(expression):
            try:
                found = (
                    self._aggregate(part, matches, m)
                    if isinstance(part, Aggregate)
                    else self._function(part, matches, m)
                )
            except ExpressionError:
                continue
            if found is not None:
                leaves[part] = found
        return leaves

    def _number(self, term: Term) -> int:
        """The id of a computed term; a blank node of the match keeps its own, one from BNODE() is new."""
        if not isinstance(term, BlankNode):
            return self._terms.intern(term)
        return self._blanks.get(term.value) or self._terms.blank()

    def _named(self, variable: Variable, row: NDArray[np.uint32]) -> Term | None:
        """The value of an earlier expression column, by its AS name."""
        at = self._computed.get(variable)
        return self._bound(int(row[at])) if at is not None and row[at] else None

    def _term(self, row: NDArray[np.uint32], variable: Variable) -> Term | None:
        at = self._index.get(variable)
        return self._bound(int(row[at])) if at is not None and row[at] else None

    def _bound(self, term_id: int) -> Term:
        term = self._terms.term(term_id)
        if isinstance(term, BlankNode):
            self._blanks[term.value] = term_id
        return term

    def _rows_of(self, name: str, matches: MatchRows, m: int) -> Iterator[int]:
        for i in range(int(matches.ends[m]), int(matches.ends[m + 1])):
            if name in self._letters[int(matches.letter[i])]:
                yield i

    def _function(self, part: MatchFunction, matches: MatchRows, m: int) -> Term | None:
        first = int(matches.time[matches.ends[m]])
        last = int(matches.time[matches.ends[m + 1] - 1])
        match part.name:
            case "STARTTIME":
                return to_literal(first)
            case "ENDTIME":
                return to_literal(last)
            case "DURATION":
                return to_duration_literal(last - first)
        assert part.gpm is not None
        rows = list(self._rows_of(part.gpm, matches, m))
        if part.name == "COUNT":
            return Literal(str(len(rows)), datatype=_INTEGER)
        return to_literal(int(matches.time[rows[-1]])) if rows else None

    def _aggregate(self, part: Aggregate, matches: MatchRows, m: int) -> Term | None:
        iterations = self._plan.runner.written.iterations[part]
        mappings = []
        for i in self._rows_of(iterations.gpm, matches, m):
            mapping = {}
            for variable in expression_variables(part):
                row = matches.values[i] if variable in iterations.variables else matches.resolved[m]
                term = self._term(row, variable)
                if term is not None:
                    mapping[variable] = term
            mappings.append(mapping)
        return aggregate(part, mappings)
