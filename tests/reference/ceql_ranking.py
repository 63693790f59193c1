"""ORDER BY, LIMIT with OFFSET, and SAMPLE in CEQL by definition (semantics.md 2.6b, 3): which answers the specification
allows, from a list of all complex events that end at one event.

A key is START, or an expression over aggregates, each over what its variable holds in the one complex event. Ties go
by positions: to the one that has the first position (of its interval's ends and of D) that the other lacks. Open is
what SAMPLE draws, but for how many, and which of two comes first that have the same keys and positions.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cmp_to_key

from pyoxigraph import Literal

from oxiseq.grammar.algebra import Aggregate, Call, Expression, Term
from oxiseq.grammar.ceql_algebra import CeqlQuery
from reference.aggregates import aggregate_of
from reference.ceql import ComplexEvent
from reference.ceql_totals import values_of
from reference.ranking import compared
from reference.tuples import TupleEvent
from reference.values import ExpressionError, Number, evaluate, number_literal, value_of

Told = tuple[int, int, frozenset[int]]
"""(start, end, D)."""
Keys = tuple[Term | None, ...]


def objection(
    query: CeqlQuery, known: Sequence[ComplexEvent], told: Sequence[Told], events: Sequence[TupleEvent]
) -> str | None:
    """Why `told`, in its order, cannot be what is told of `known`, which are all that end at one event."""
    keys = {(c.start, c.end, c.positions): keys_of(query, c, events) for c in known}
    if set(told) - keys.keys() or len(set(told)) < len(told):
        return "a complex event that there is not, or twice"
    everything = _sorted(query, [(keys[c], c) for c in keys])
    found = [(keys[c], c) for c in told]
    if query.sample is not None:
        if len(found) != min(len(everything), query.sample.count):
            return f"{len(found)} are told of {len(everything)}"
        best = _sorted(query, found) if query.order is not None else found
    elif query.limit is not None:
        best = everything[query.limit.offset : query.limit.offset + query.limit.count]
    else:
        best = everything
    return None if _classes(best) == _classes(found) else f"{_classes(found)} are told, not {_classes(best)}"


def keys_of(query: CeqlQuery, complex_event: ComplexEvent, events: Sequence[TupleEvent]) -> Keys:
    """What ORDER BY compares."""

    def answer(asked: object) -> Term:
        assert isinstance(asked, Aggregate)
        return aggregate_of(asked, sorted(values_of(query, asked, [complex_event], events), key=str))

    found: list[Term | None] = []
    for expression, _ in () if query.order is None else query.order.keys:
        try:
            found.append(evaluate(_with_start(expression, complex_event.start), {}, answer))
        except ExpressionError:
            found.append(None)
    return tuple(found)


def _with_start(expression: Expression, start: int) -> Expression:
    return number_literal(Number("integer", start)) if expression == Call("START", ()) else expression


def _sorted(query: CeqlQuery, found: Sequence[tuple[Keys, Told]]) -> list[tuple[Keys, Told]]:
    keys = () if query.order is None else query.order.keys

    def compare(a: tuple[Keys, Told], b: tuple[Keys, Told]) -> int:
        for place, (_, descending) in enumerate(keys):
            if way := compared(a[0][place], b[0][place]):
                return -way if descending else way
        mine, others = _positions(a[1]), _positions(b[1])
        differ = mine ^ others
        return 0 if not differ else -1 if min(differ) in mine else 1

    return sorted(found, key=cmp_to_key(compare))


def _positions(told: Told) -> frozenset[int]:
    start, end, positions = told
    return positions | {start, end}


def _classes(found: Sequence[tuple[Keys, Told]]) -> list[tuple[tuple[str, ...], tuple[int, ...]]]:
    """Equal where the specification does not say which comes first."""
    return [(tuple(map(_shown, keys)), tuple(sorted(_positions(told)))) for keys, told in found]


def _shown(term: Term | None) -> str:
    value = value_of(term) if isinstance(term, Literal) else None
    return str(value.value) if isinstance(value, Number) else str(term)
