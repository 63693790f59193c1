"""Sub-queries and solution modifiers, in the order in which SPARQL applies them (SPARQL 1.1, 18.2.4 and 18.2.5).

In the flow: WHERE → groups and aggregates → HAVING → VALUES → what SELECT lists → ORDER BY → projection → DISTINCT
→ slice. Contexts are part of every key: each case has groups and ranks of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count

from pyoxigraph import Variable

from oxiseq.engine.flow.plan import Constant
from oxiseq.engine.flow.relations import Column, Relation, Relations
from oxiseq.engine.flow.rewriting import replaced
from oxiseq.engine.flow.sparql.aggregates import Aggregation, Grouped
from oxiseq.engine.flow.sparql.existence import Conditions, Patterns, grouped, of_slice, shown_as_is
from oxiseq.engine.flow.sparql.grounds import Contexts, Scope
from oxiseq.engine.flow.sparql.leaves import OWN
from oxiseq.grammar.algebra import Aggregate, Expression, SubSelect
from oxiseq.grammar.records import dataclass
from oxiseq.grammar.scope import mentioned_variables, sub_select_expressions, subexpressions, visible_variables

Listed = Variable | tuple[Expression, Variable]


@dataclass(frozen=True, slots=True)
class Ordered:
    """A relation and the columns that its rows are sorted by, with whether they descend."""

    relation: Relation
    order: tuple[tuple[Column, bool], ...]


class Selects:
    """What solution modifiers make of relations."""

    def __init__(self, relations: Relations, contexts: Contexts, conditions: Conditions, patterns: Patterns) -> None:
        self._relations = relations
        self._contexts = contexts
        self._conditions = conditions
        self._patterns = patterns
        self._aggregation = Aggregation(relations, contexts, conditions)
        self._numbers = count(1)

    def sub_select(self, query: SubSelect, scope: Scope) -> Relation:
        """A sub-query: only its columns are visible."""
        shown = shown_as_is(query)
        known = [self._contexts.some(each, each.variables & shown) for each in scope.cases]
        inside = Scope(scope.ground, tuple(each for each in known if each.contexts))
        whole = self._patterns.group(query.where, inside)
        if of_slice(query, inside.given & mentioned_variables(query.where)):
            for cases in inside.cases:
                if any(c not in whole.columns for c in cases.contexts.values()):
                    whole = self._relations.join(whole, cases.relation)
        return self.sliced(self.ordered(query, whole, listed(query), inside), query).relation

    # --- clause by clause ---------------------------------------------------------------------------

    def ordered(self, query: SubSelect, where: Relation, columns: Sequence[Listed | Column], scope: Scope) -> Ordered:
        """All but the slice: these columns behind the contexts, then what only sorts."""
        whole, known, having = Grouped(where, {}, query.having)
        if grouped(query):
            whole, known, having = self._aggregation.grouped(query, where, aggregates_of(query), scope)
        whole = self._conditions.filtered(whole, having, scope)
        if query.values is not None:
            whole = self._relations.join(whole, self._relations.values(query.values.variables, query.values.rows))
        for column in columns:
            if isinstance(column, tuple):
                whole = self._conditions.extended(whole, replaced(column[0], known), column[1], scope)
        order = list[tuple[Column, bool]]()
        for expression, descending in query.order_by:
            key = replaced(expression, known)
            if not isinstance(key, Variable):
                name = Variable(f"{OWN}order_{next(self._numbers)}")
                whole, key = self._conditions.extended(whole, key, name, scope), name
            order.append((key, descending))
        return self._projected(query, whole, [name_of(c) for c in columns], order)

    def _projected(
        self, query: SubSelect, whole: Relation, names: Sequence[Column], order: Sequence[tuple[Column, bool]]
    ) -> Ordered:
        shown = [*whole.context, *names]
        sorting = tuple((c, down) for c, down in order if c in whole.columns)
        extra = list(dict.fromkeys(c for c, _ in sorting if c not in names))
        found = self._relations.project(whole, [*shown, *extra])
        if query.distinct:
            found = self._relations.distinct(found)
            if extra:  # of equal rows the one that comes first
                found = self._relations.best(found, shown, sorting, 0, 1)
        return Ordered(found, sorting)

    def sliced(self, ordered: Ordered, query: SubSelect, *, sorts: bool = False) -> Ordered:
        """LIMIT and OFFSET; `sorts`: what only sorts stays."""
        found, start = ordered.relation, query.offset or 0
        if query.limit == 0:
            found = self._relations.source(Constant((), len(found.columns)), found.columns, found.certain)
        elif query.limit is not None or start:
            stop = None if query.limit is None else start + query.limit
            found = self._relations.best(found, found.context, ordered.order, start, stop)
        if not sorts:
            names = [name_of(c) for c in listed(query)]
            found = self._relations.project(found, [*found.context, *names])
        return Ordered(found, ordered.order)


def listed(query: SubSelect) -> tuple[Listed, ...]:
    """A query's columns."""
    if query.projection is not None:
        return query.projection
    inline = query.values.variables if query.values is not None else ()
    return tuple(dict.fromkeys([*visible_variables(query.where), *inline]))


def aggregates_of(query: SubSelect) -> tuple[Aggregate, ...]:
    """Its aggregates, each once."""
    every = (e for x in sub_select_expressions(query) for e in subexpressions(x))
    return tuple(dict.fromkeys(e for e in every if isinstance(e, Aggregate)))


def name_of(column: Listed | Column) -> Column:
    """A column's name."""
    return column[1] if isinstance(column, tuple) else column
