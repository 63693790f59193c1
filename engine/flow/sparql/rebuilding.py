"""Patterns with other elements in them: passes pattern → pattern that come before all else."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import count
from typing import Final, TypeAlias

from pyoxigraph import BlankNode, NamedNode, Variable

from oxiseq.engine.flow.rewriting import replaced
from oxiseq.grammar.algebra import (
    Bind,
    Call,
    Expression,
    Filter,
    GraphPattern,
    Group,
    Minus,
    OptionalPattern,
    PathPattern,
    PatternElement,
    SubSelect,
    TermOrVariable,
    TriplePattern,
    Union,
    WindowPattern,
)
from oxiseq.grammar.scope import exists_in

NOWHERE: Final = NamedNode("urn:oxiseq:nowhere")
"""A graph that there is not."""
Regroup: TypeAlias = Callable[[Group], Group]


def rebuilt(element: PatternElement, group: Regroup) -> PatternElement:
    """With other groups directly inside it, those of its EXISTS included; a group itself is one."""
    match element:
        case Group():
            return group(element)
        case OptionalPattern(inner) | Minus(inner) | GraphPattern(_, inner) | WindowPattern(_, inner):
            return replace(element, pattern=group(inner))
        case Union(branches):
            return replace(element, branches=tuple(map(group, branches)))
        case Filter(condition):
            return replace(element, condition=regrouped(condition, group))
        case Bind(expression):
            return replace(element, expression=regrouped(expression, group))
        case SubSelect():
            return rebuilt_select(element, group)
        case _:
            return element


def rebuilt_select(query: SubSelect, group: Regroup) -> SubSelect:
    """A sub-query with other groups."""

    def of(e: Expression) -> Expression:
        return regrouped(e, group)

    listed = query.projection
    return replace(
        query,
        where=group(query.where),
        projection=None if listed is None else tuple((of(c[0]), c[1]) if isinstance(c, tuple) else c for c in listed),
        group_by=tuple((of(k[0]), k[1]) if isinstance(k, tuple) else of(k) for k in query.group_by),
        having=tuple(map(of, query.having)),
        order_by=tuple((of(e), descending) for e, descending in query.order_by),
    )


def regrouped(expression: Expression, group: Regroup) -> Expression:
    """An expression with other patterns in its EXISTS."""
    return replaced(expression, {e: replace(e, pattern=group(e.pattern)) for e in exists_in(expression)})


def apart(query: SubSelect) -> SubSelect:
    """Gives each group's blank nodes labels of their own: a label occurs in one group only."""
    numbers = count(1)

    def group(whole: Group) -> Group:
        number = next(numbers)

        def own(term: TermOrVariable) -> TermOrVariable:
            return BlankNode(f"{term.value}g{number}") if isinstance(term, BlankNode) else term

        def element(each: PatternElement) -> PatternElement:
            if isinstance(each, TriplePattern | PathPattern):
                return replace(each, subject=own(each.subject), object=own(each.object))
            return rebuilt(each, group)

        return replace(whole, elements=tuple(map(element, whole.elements)))

    return rebuilt_select(query, group)


def among_named(element: PatternElement, named: Sequence[NamedNode]) -> PatternElement:
    """GRAPH reaches those of FROM NAMED only."""

    def group(whole: Group) -> Group:
        return replace(whole, elements=tuple(map(one, whole.elements)))

    def one(each: PatternElement) -> PatternElement:
        made = rebuilt(each, group)
        if isinstance(made, GraphPattern):
            if isinstance(made.name, Variable):
                return Group((made, Filter(Call("IN", (made.name, *named)))))
            return made if made.name in named else replace(made, name=NOWHERE)
        return made

    return one(element) if named else element


def blank_variable(term: TermOrVariable) -> TermOrVariable:
    """A variable in place of a blank node."""
    return Variable(f"oxiseq_blank_{term.value}") if isinstance(term, BlankNode) else term


def named_blanks(group: Group) -> Group:
    """Blank nodes of its own triple patterns as variables: rows are full mappings then."""

    def element(each: PatternElement) -> PatternElement:
        if isinstance(each, TriplePattern | PathPattern):
            return replace(each, subject=blank_variable(each.subject), object=blank_variable(each.object))
        return each

    return replace(group, elements=tuple(map(element, group.elements)))
