"""Checks of CEQL's conditions on the knowledge base (grammar/ceql_graphs.py).

graph        a pattern that does not use a value given to it, or holds what EXISTS cannot evaluate with values, or
             reads the match or its iterations, which the knowledge base does not know
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from oxiseq.grammar.algebra import Aggregate, GraphPattern, MatchFunction, Minus, PatternElement, Prev, SubSelect
from oxiseq.grammar.ceql_algebra import CeqlQuery, holds_of
from oxiseq.grammar.ceql_graphs import GraphCondition, conditions_in
from oxiseq.grammar.checking.patterns import check_pattern, check_size
from oxiseq.grammar.errors import Finding
from oxiseq.grammar.finding_tools import close_name, error
from oxiseq.grammar.parts import parts
from oxiseq.grammar.scope import nested_elements, visible_variables

_REFUSED: Final[tuple[tuple[type[PatternElement], str, str], ...]] = (
    (GraphPattern, "GRAPH cannot be used inside GRAPH", "write a condition for each: y[GRAPH ... AND GRAPH ...]"),
    (Minus, "MINUS cannot be used in a condition", "write FILTER NOT EXISTS { ... }"),
    (SubSelect, "a sub-query cannot be used in a condition", "write its pattern"),
)


def check_graphs(query: CeqlQuery, text: str) -> Iterator[Finding]:
    """Each condition on the knowledge base."""
    for test in holds_of(query.formula):
        for condition in conditions_in(test.predicate):
            yield from _given(condition)
            yield from check_pattern(condition.pattern, text)
            yield from check_size(condition.pattern, condition.span)
            for element in nested_elements(condition.pattern):
                for kind, message, hint in _REFUSED:
                    if isinstance(element, kind):
                        yield error("graph", message, condition.span, hint)
            yield from _of_the_match(condition)


def _of_the_match(condition: GraphCondition) -> Iterator[Finding]:
    if any(isinstance(element, SubSelect) for element in nested_elements(condition.pattern)):
        return  # refused itself
    asked: list[Aggregate | MatchFunction] = [*parts(condition.pattern, Aggregate)]
    asked += parts(condition.pattern, MatchFunction)
    named = [*((call.name, call.span) for call in asked), *(("PREV", p.span) for p in parts(condition.pattern, Prev))]
    for name, span in named:
        hint = "conditions on the events come beside it: y[price > 100 AND GRAPH ...]"
        yield error("graph", f"{name} cannot be used inside GRAPH", span, hint)


def _given(condition: GraphCondition) -> Iterator[Finding]:
    names = [variable.value for variable, _ in condition.given]
    used = [v.value for v in visible_variables(condition.pattern)]
    for number, name in enumerate(names):
        if name in names[:number]:
            hint = "name one otherwise: x.company AS other"
            yield error("graph", f"two values are given as ?{name}", condition.span, hint)
        elif name not in used:
            hint = close_name(name, used, "the names in parentheses are those of variables in the pattern")
            yield error("graph", f"the pattern has no ?{name}", condition.span, hint)
