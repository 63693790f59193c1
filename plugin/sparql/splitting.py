"""Which queries may be sent in parts: a SERVICE block's solutions some at a time, the answers put together.

    a query without its blocks' solutions ─▶ algebra ─▶ why not, and where; or nothing

A query may be where Q(T₁ ⊎ T₂) = Q(T₁) ⊎ Q(T₂) for the block's solutions T. So it is through joins, GRAPH, FILTER,
BIND, a sub-SELECT without modifiers, and on the left of OPTIONAL and MINUS; not where solutions of several parts are
compared or counted.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from oxiseq.grammar import QueryError, parse
from oxiseq.grammar.algebra import (
    Aggregate,
    Call,
    GraphPattern,
    Group,
    Minus,
    OptionalPattern,
    Span,
    SubSelect,
    Union,
    Values,
)
from oxiseq.grammar.parts import parts
from oxiseq.grammar.records import dataclass
from oxiseq.sparql.problems import Place
from oxiseq.sparql.services import Block, with_values

_MARK: Final = "oxiseq_block_"
"""The prefix of the variables that replace blocks."""
_WITHIN: Final = ((OptionalPattern, "OPTIONAL"), (Minus, "MINUS"), (Union, "UNION"))
"""Patterns that a block may not be in."""


@dataclass(frozen=True, slots=True)
class Obstacle:
    """Why a query is sent as a whole only; where that is in the text, if it is known."""

    reason: str
    place: Place | None = None


def obstacle(text: str, found: Sequence[Block]) -> Obstacle | None:
    """Why a query may not be sent in parts of these blocks' solutions; None where it may."""
    marks = [f"VALUES ?{_MARK}{number} {{}}" for number in range(len(found))]
    try:
        query = parse(with_values(text, found, marks), "rspql")
    except QueryError as error:
        return Obstacle(f"it cannot be analysed: {error.message}", Place(error.line, error.column))
    if query.form == "CONSTRUCT":
        return _at("CONSTRUCT makes one graph of all", query.span)
    for call in parts(query, Call):
        if call.name == "NOW":
            return _at("NOW() would have another value in each part", call.span)
    body = query.body
    if body.projection is None and query.form == "SELECT":
        return _at("SELECT * has no fixed order of columns: name them", query.span)
    return next(_in_select(body), None)


def _in_select(select: SubSelect) -> Iterator[Obstacle]:
    """What is between a block and the answer of a SELECT."""
    if not _has_block(select):
        return
    for given, clause in (
        (select.distinct, "DISTINCT"),
        (select.group_by, "GROUP BY"),
        (select.having, "HAVING"),
        (select.order_by, "ORDER BY"),
        (select.limit is not None, "LIMIT"),
        (select.offset is not None, "OFFSET"),
    ):
        if given:
            yield _at(f"{clause} is of all solutions together", select.span)
    for aggregate in parts(select.projection, Aggregate):
        yield _at(f"{aggregate.name} is of all solutions together", aggregate.span)
    yield from _in_group(select.where)
    if _has_block(select.projection):
        yield _at("the SERVICE block is in EXISTS", select.span)


def _in_group(group: Group) -> Iterator[Obstacle]:
    for element in group.elements:
        if isinstance(element, Values) or not _has_block(element):
            continue
        if isinstance(element, SubSelect):
            yield from _in_select(element)
        elif isinstance(element, Group):
            yield from _in_group(element)
        elif isinstance(element, GraphPattern):
            yield from _in_group(element.pattern)
        else:
            within = next((name for kind, name in _WITHIN if isinstance(element, kind)), "EXISTS")
            yield _at(f"the SERVICE block is in {within}", element.span)


def _has_block(value: object) -> bool:
    return any(v.value.startswith(_MARK) for values in parts(value, Values) for v in values.variables)


def _at(reason: str, span: Span) -> Obstacle:
    return Obstacle(reason, Place(span.line, span.column))
