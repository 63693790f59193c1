"""BNODE(label): one blank node for equal labels within a solution (SPARQL 1.1, 17.4.2.9).

An algebra in which it stands more than once says so itself: a later BNODE(b) becomes
IF(COALESCE(SAMETERM(a, b), false), ?x, BNODE(b)) behind a column or a BIND that is (BNODE(a) AS ?x). Where the first
of two that may be equal is within another expression, nothing names its node, and the query is refused.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from functools import partial
from typing import Any, TypeVar

from pyoxigraph import Literal, Variable

from oxiseq.engine.expressions.values import FALSE
from oxiseq.grammar.algebra import Bind, Call, Construct, Expression, Group, Projection, Select, SubSelect
from oxiseq.grammar.errors import QueryError
from oxiseq.grammar.parts import changed, parts

T = TypeVar("T")


def with_shared_blank_nodes(algebra: T) -> T:
    """The same query; equal labels of one SELECT, or of the BINDs of one group, give one node in each solution. Raises
    QueryError where the first of them has no name."""
    if sum(map(_labelled, parts(algebra, Call))) < 2:
        return algebra
    return changed(algebra, partial(_sharing, getattr(algebra, "text", "")))


def _labelled(expression: object) -> bool:
    return isinstance(expression, Call) and expression.name == "BNODE" and bool(expression.args)


def _sharing(text: str, part: Any) -> Any:
    match part:
        case SubSelect(projection=[*_] as columns):
            return replace(part, projection=_shared(text, columns))
        case Group(elements):
            return replace(part, elements=_shared(text, elements))
        case Select(columns=[*_] as columns) | Construct(columns=[*_] as columns):
            return replace(part, columns=_shared(text, columns))
    return part


def _shared(text: str, columns: Iterable[Any]) -> tuple[Any, ...]:
    """Columns, or elements of a group, in the order in which later ones see earlier ones."""
    made: list[tuple[Expression, Variable]] = []
    nameless: list[Call] = []
    shared = []
    for column in columns:
        match column:
            case Bind(expression, variable) | Projection(variable=variable, expression=expression) if expression:
                column = replace(column, expression=_reusing(expression, made))
            case (expression, variable):
                column = _reusing(expression, made), variable
            case _:
                shared.append(column)
                continue
        shared.append(column)
        for call in filter(_labelled, parts(expression, Call)):
            if not any(call.args == (label,) for label, _ in made):
                _check(text, call, nameless)
            if call is not expression:
                nameless.append(call)
        if isinstance(expression, Call) and _labelled(expression):
            made.append((expression.args[0], variable))
    return tuple(shared)


def _check(text: str, call: Call, nameless: Iterable[Call]) -> None:
    """Raise QueryError if its label may be that of an earlier one whose node has no name."""
    for earlier in nameless:
        labels = earlier.args[0], call.args[0]
        if labels[0] == labels[1] or not all(isinstance(each, Literal) for each in labels):
            raise QueryError(
                "BNODE with this label may stand twice in one solution, the first time within another expression",
                call.span,
                text,
                hint="write BIND(BNODE(...) AS ?node) before both, and ?node in their places",
                code="bnode",
            )


def _reusing(expression: Expression, made: list[tuple[Expression, Variable]]) -> Expression:
    def reusing(part: Any) -> Any:
        if not _labelled(part):
            return part
        found: Expression = part
        for label, variable in reversed(made):
            same = Call("COALESCE", (Call("SAMETERM", (label, part.args[0])), FALSE))
            found = Call("IF", (same, variable, found))
        return found

    return changed(expression, reusing)
