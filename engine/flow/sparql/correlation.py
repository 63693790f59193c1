"""Whether a pattern finds more for given bindings than those of its own rows that agree with them.

EXISTS gives its pattern the bindings of its row, at any depth; a part of a query that is evaluated
by itself sees none. A pattern is *correlated* with some variables if the two are not the same: where a condition, an
OPTIONAL, a MINUS, a BIND, a slice mentions one of them before the pattern itself surely binds it. Then it is evaluated
case by case. A variable that has a value from outside stays a variable: MINUS compares the variables that the texts of
both its sides bind, as SPARQL 1.2 has it and as the store does.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from pyoxigraph import Variable

from oxiseq.grammar.algebra import (
    Aggregate,
    Bind,
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
    exists_in,
    inner_groups,
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
