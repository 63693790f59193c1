"""Conditions and expressions with EXISTS in them.

In the flow: a relation and a condition → the rows for which it holds. An EXISTS is a semijoin. One whose pattern is
correlated with the row is evaluated in *cases*: the distinct values of the variables that it mentions
are a relation with a context column for each, the pattern's groups begin with it, and the row is found again by its
values. No pattern is evaluated row by row.

EXISTS gives its pattern the bindings of its row, at any depth; a part of a query that is evaluated by itself sees none.
A pattern is *correlated* with some variables if the two are not the same: where a condition, an OPTIONAL, a MINUS, a
BIND, a slice mentions one of them before the pattern itself surely binds it. A variable that has a value from outside
stays a variable: MINUS compares the variables that the texts of both its sides bind, as SPARQL 1.2 has it and as the
store does.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import count
from typing import Protocol

from pyoxigraph import Variable

from oxiseq.engine.expressions.values import FALSE, TRUE
from oxiseq.engine.flow.relations import Column, Context, Relation, Relations
from oxiseq.engine.flow.rewriting import replaced
from oxiseq.engine.flow.sparql.grounds import Cases, Contexts, Scope
from oxiseq.engine.flow.sparql.leaves import OWN
from oxiseq.grammar.algebra import (
    Aggregate,
    Bind,
    Call,
    Exists,
    Expression,
    Filter,
    GraphPattern,
    Group,
    Minus,
    OptionalPattern,
    PatternElement,
    SubSelect,
    Union,
    WindowPattern,
)
from oxiseq.grammar.scope import (
    certain_variables,
    conjuncts,
    exists_in,
    holds_exists,
    inner_groups,
    match_parts,
    mentioned_variables,
    plain_variables,
    sub_select_expressions,
    subexpressions,
    visible_variables,
)

Variables = frozenset[Variable]


def correlated(pattern: Group, outer: Variables) -> bool:
    """Whether the pattern is, with variables from outside."""
    mine = outer & mentioned_variables(pattern)
    return bool(mine) and any(
        _correlated(element, pattern.elements[:i], pattern, mine) for i, element in enumerate(pattern.elements)
    )


def condition_mentions(condition: Expression) -> Variables:
    """The variables that a condition names, in the patterns of its EXISTS, too."""
    inside = (mentioned_variables(e.pattern) for e in exists_in(condition))
    return plain_variables(condition).union(*inside)


def _correlated(element: PatternElement, before: Sequence[PatternElement], whole: Group, outer: Variables) -> bool:
    match element:
        case Filter(condition):
            return not condition_mentions(condition) & outer <= certain_variables(whole)
        case Bind(expression):
            return not condition_mentions(expression) & outer <= certain_variables(Group(tuple(before)))
        case OptionalPattern(inner) | Minus(inner):
            return not mentioned_variables(inner) & outer <= certain_variables(Group(tuple(before)))
        case Union(branches):
            return any(correlated(branch, outer) for branch in branches)
        case GraphPattern(_, inner) | WindowPattern(_, inner):
            return correlated(inner, outer)
        case Group():
            return correlated(element, outer)
        case SubSelect():
            return select_correlated(element, outer)
        case _:
            return False


def shown_as_is(query: SubSelect) -> Variables:
    """The variables of its WHERE that a sub-query shows."""
    if query.projection is None:
        return frozenset(visible_variables(query.where))
    made = {key[1] for key in query.group_by if isinstance(key, tuple)}
    return frozenset(c for c in query.projection if isinstance(c, Variable) and c not in made)


def select_correlated(query: SubSelect, outer: Variables) -> bool:
    """Whether a sub-query is: only variables that it shows have values from outside."""
    mine = outer & shown_as_is(query)
    return bool(mine) and (correlated(query.where, mine) or of_slice(query, mine))


def of_slice(query: SubSelect, mine: Variables) -> bool:
    """Whether its clauses are: they would count, or cut, rows of several cases."""
    if query.limit is not None or query.offset is not None:
        return True
    sure = certain_variables(query.where)
    if grouped(query):
        sure &= frozenset(key for key in query.group_by if isinstance(key, Variable))
    return any(not condition_mentions(e) & mine <= sure for e in sub_select_expressions(query)) or (
        grouped(query) and not mine <= sure
    )


def grouped(query: SubSelect) -> bool:
    """Whether a query has groups."""
    return bool(query.group_by or query.having) or any(
        isinstance(e, Aggregate) for x in sub_select_expressions(query) for e in subexpressions(x)
    )


def assigned(pattern: Group) -> Variables:
    """The variables that BIND and sub-queries' expressions make, at any depth but that of EXISTS."""
    return frozenset(_assigned(pattern.elements))


def _assigned(elements: Iterable[PatternElement]) -> Iterator[Variable]:
    for element in elements:
        match element:
            case Bind(_, variable):
                yield variable
            case Filter():
                pass
            case SubSelect(projection) if projection is not None:
                shown = shown_as_is(element)
                yield from (c[1] if isinstance(c, tuple) else c for c in projection if c not in shown)
                yield from shown & assigned(element.where)
            case Group(elements=inside):
                yield from _assigned(inside)
            case _:
                for inner in inner_groups(element):
                    yield from _assigned(inner.elements)


class Patterns(Protocol):
    """Who compiles patterns."""

    def group(self, group: Group, scope: Scope) -> Relation:
        """A group with all its conditions."""

    def opened(self, group: Group, scope: Scope) -> tuple[Relation, list[Expression]]:
        """A group, and those of its conditions that may read the joined row."""


class Conditions:
    """What conditions and expressions make of relations. All columns of a relation stay; contexts may come to it."""

    def __init__(self, relations: Relations, contexts: Contexts, patterns: Patterns) -> None:
        self._relations = relations
        self._contexts = contexts
        self._patterns = patterns
        self._numbers = count(1)

    def filtered(self, a: Relation, conditions: Sequence[Expression], scope: Scope) -> Relation:
        """The rows for which all conditions hold."""
        a = self._relations.filter(a, [c for c in conditions if not holds_exists(c)])
        for condition in conditions:
            if holds_exists(condition):
                a = self._kept(a, condition, scope)
        return a

    def extended(self, a: Relation, expression: Expression, name: Column, scope: Scope) -> Relation:
        """With the value of an expression as a column more; it comes in place of a value from outside."""
        if name in a.columns:
            a = self._relations.without_columns(a, [name])
        marked, said = self._marked(a, expression, scope)
        extra = [c for c in marked.columns if c not in a.columns and not isinstance(c, Context)]
        return self._relations.without_columns(self._relations.extend(marked, said, name), extra)

    def _kept(self, a: Relation, condition: Expression, scope: Scope) -> Relation:
        match condition:
            case Exists(pattern, negated):
                return self._split(a, pattern, scope)[negated]
            case Call("!", (Exists(pattern, negated),)):
                return self._split(a, pattern, scope)[not negated]
        marked, said = self._marked(a, condition, scope)
        extra = [c for c in marked.columns if c not in a.columns and not isinstance(c, Context)]
        return self._relations.without_columns(self._relations.filter(marked, [said]), extra)

    def _marked(self, a: Relation, expression: Expression, scope: Scope) -> tuple[Relation, Expression]:
        """With a column that is true or false for each EXISTS, and the expression over those."""
        known: dict[Expression, Expression] = {}
        for each in dict.fromkeys(exists_in(expression)):
            mark = Variable(f"{OWN}mark_{next(self._numbers)}")
            sides = zip(self._split(a, each.pattern, scope), (TRUE, FALSE), strict=True)
            a = self._relations.union([self._relations.extend(side, said, mark) for side, said in sides])
            known[each] = Call("!", (mark,)) if each.negated else mark
        return a, replaced(expression, known)

    # --- EXISTS -------------------------------------------------------------------------------------

    def _split(self, a: Relation, pattern: Group, scope: Scope) -> tuple[Relation, Relation]:
        """The rows for which a pattern has a solution, and the others."""
        bare = Group(tuple(e for e in pattern.elements if not isinstance(e, Filter)))
        known = certain_variables(bare)
        whole = [e.condition for e in pattern.elements if isinstance(e, Filter)]
        conditions = [c for each in whole for c in conjuncts(each)]
        in_time = self._relations.in_time  # conditions on times, and EXISTS, which finds what has ended, are on both
        outside = [
            c
            for c in conditions
            if not condition_mentions(c) & a.variables <= known or (in_time and (match_parts(c) or holds_exists(c)))
        ]
        if not in_time and (correlated(bare, a.variables) or any(map(holds_exists, outside))):
            return self._by_case(a, pattern, scope)
        with self._relations.apart(tested=True):
            b, left = self._patterns.opened(pattern, Scope(scope.ground))
            b = self.filtered(b, [c for c in left if c not in outside], Scope(scope.ground))
            a, b = self._contexts.aligned((a, b))
            both = [c for c in left if c in outside]
            return self._relations.split(a, b, both, lambda pairs: self.filtered(pairs, both, scope))

    def _by_case(self, a: Relation, pattern: Group, scope: Scope) -> tuple[Relation, Relation]:
        """The same, for a pattern that reads the row."""
        wanted = mentioned_variables(pattern) - assigned(pattern)
        given = [c for c in a.columns if isinstance(c, Variable) and c in wanted]
        contexts = {v: self._relations.context() for v in given}
        copied = self._relations.copied(a, contexts.items())
        values = self._relations.distinct(self._relations.project(copied, [*contexts.values(), *given]))
        cases = self._contexts.known(Cases(values, contexts))
        b = self._patterns.group(pattern, Scope(scope.ground, (cases,)))
        shared = [c for c in b.columns if isinstance(c, Context) or (c in a.columns and c not in contexts)]
        rows, found = self._contexts.aligned((copied, self._relations.project(b, shared)))
        met = self._relations.semijoin(rows, found)
        own = [c for c in rows.columns if c not in contexts.values()]
        yes, no = met, self._relations.without(rows, met)
        return self._relations.project(yes, own), self._relations.project(no, own)
