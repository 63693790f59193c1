"""Where Oxigraph, which the reference asks, is known to answer otherwise than SPARQL has it, and operators do.

1. A path of length zero from a term: SPARQL has it whether or not the term is a node of the graph.
2. MINUS deeper inside, or in EXISTS, whose sides surely share no variable: Oxigraph lets it see bindings from outside.
   Ours looks at the variables that the texts of both sides bind (SPARQL 1.2; also in continuous SPARQL).
3. Order: `:a < :a` is false for Oxigraph, `false < true` an error; for us the former is an error, the latter true. (At
   the top of a GPM the reference compares by itself.)
4. EXISTS of an inner group whose pattern names what only the group's neighbours bind: Oxigraph may let it see their
   values, by the order in which it joins.
5. How often `!(:p|^:q)` has a pair that is there in both directions: twice, once for Oxigraph. It is seen by COUNT.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pyoxigraph import Triple, Variable

from oxiseq.grammar.algebra import (
    Call,
    Filter,
    Gpm,
    Group,
    Minus,
    PathInverse,
    PathNegated,
    PathPattern,
    PatternElement,
    SubSelect,
)
from oxiseq.grammar.scope import (
    certain_variables,
    exists_in,
    inner_groups,
    mentioned_variables,
    subexpressions,
    visible_variables,
)

_ORDERS = frozenset(["<", ">", "<=", ">="])


def stands_apart(gpm: Gpm, event: Sequence[Triple]) -> bool:
    """Whether the two may differ on an event."""
    inside = [group for top in _inner(gpm.pattern) for group in _groups(top)]
    around = frozenset(visible_variables(gpm.pattern))
    every = [element for group in (gpm.pattern, *inside) for element in group.elements]
    return (
        any(_unknown_ends(e, event) for e in every)
        or any(_unlike_minus(group) or _orders(group) or _looks_outside(group, around) for group in inside)
        or (any(map(_both_ways, every)) and any(isinstance(e, SubSelect) for e in every))
    )


def _inner(group: Group) -> Iterator[Group]:
    for element in group.elements:
        if isinstance(element, Filter):
            yield from (exists.pattern for exists in exists_in(element.condition))
        elif isinstance(element, Group):
            yield element
        else:
            yield from inner_groups(element)


def _groups(group: Group) -> Iterator[Group]:
    yield group
    for inner in _inner(group):
        yield from _groups(inner)


def _unknown_ends(element: PatternElement, event: Sequence[Triple]) -> bool:
    if not isinstance(element, PathPattern):
        return False
    nodes = {term for triple in event for term in (triple.subject, triple.object)}
    return any(not isinstance(end, Variable) and end not in nodes for end in (element.subject, element.object))


def _unlike_minus(group: Group) -> bool:
    return any(
        isinstance(element, Minus)
        and not certain_variables(Group(group.elements[:i])) & certain_variables(element.pattern)
        for i, element in enumerate(group.elements)
    )


def _looks_outside(group: Group, around: frozenset[Variable]) -> bool:
    """around: the variables of the group and its neighbours."""
    conditions = [element.condition for element in group.elements if isinstance(element, Filter)]
    patterns = [exists.pattern for each in conditions for exists in exists_in(each)]
    beyond = around.difference(visible_variables(group))
    return any(beyond & mentioned_variables(pattern) for pattern in patterns)


def _orders(group: Group) -> bool:
    conditions = [element.condition for element in group.elements if isinstance(element, Filter)]
    return any(isinstance(e, Call) and e.name in _ORDERS for each in conditions for e in subexpressions(each))


def _both_ways(element: PatternElement) -> bool:
    path = element.path if isinstance(element, PathPattern) else None
    return isinstance(path, PathNegated) and any(isinstance(each, PathInverse) for each in path.paths)
