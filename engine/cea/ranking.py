"""ORDER BY in CEQL: what complex events are compared by, and how the best are found without listing the others
(semantics.md 2.6b).

In the flow: algebra → **ranking** → (finals of an event) → picking.py. The best are found on the compact set where
each key is a sum over a complex event's events; other keys are computed for each complex event.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import NamedTuple, TypeAlias

from pyoxigraph import Variable

from oxiseq.engine.expressions.amounts import summands
from oxiseq.grammar.algebra import Aggregate, Call, Expression
from oxiseq.grammar.ceql.texts import render_predicate
from oxiseq.grammar.ceql_algebra import START, CeqlQuery, EndOrder, compared_aggregates, summed_attributes
from oxiseq.grammar.records import dataclass


class Measured(NamedTuple):
    """What an aggregate runs over: the number of a variable and of an attribute; None: of complex events, of events."""

    variable: int | None
    attribute: int | None


@dataclass(frozen=True, slots=True)
class EventAmount:
    """What an event that a variable holds adds to a key: `factor`, times its value if an attribute is measured."""

    measured: Measured
    factor: Fraction


SumKey: TypeAlias = tuple[EventAmount, ...] | None
"""A key as a sum over events; None: START."""


@dataclass(frozen=True, slots=True)
class EndRanking:
    """ORDER BY of a plan."""

    order: EndOrder
    aggregates: tuple[Aggregate, ...]
    measured: tuple[Measured, ...]
    """Of each aggregate."""
    sums: tuple[SumKey, ...]
    """Of each key; nothing if `listed`."""
    listed: str | None
    """Why every complex event is enumerated; None: the best are found on the compact set."""


def measured_by(aggregate: Aggregate, variables: Sequence[str], attributes: Sequence[Variable]) -> Measured:
    """By the numbers that variables and attributes have."""
    match aggregate.arg:
        case Call("[]", (Variable(value=variable), Variable() as attribute)):
            return Measured(variables.index(variable), attributes.index(attribute))
        case Variable(value=variable):
            return Measured(variables.index(variable), None)
    return Measured(None, None)


def ranking_of(query: CeqlQuery, order: EndOrder, variables: Sequence[str], ambiguous: bool) -> EndRanking:
    """The ranking of a checked query. `ambiguous`: the rest of a match may decide which variables hold an event."""
    attributes, found = summed_attributes(query), compared_aggregates(order)
    measured = {a: measured_by(a, variables, attributes) for a in found}
    sums: list[SumKey] = []
    listed = None
    for expression, _ in order.keys:
        if expression == START:
            sums.append(None)
            continue
        parts = list(summands(expression))
        listed = listed or next((_why(part) for part, _ in parts if not _is_sum(part)), None)
        sums.append(tuple(EventAmount(measured[p], f) for p, f in parts if isinstance(p, Aggregate)))
    if listed is None and ambiguous and found:
        listed = "several variables may hold an event"
    return EndRanking(order, found, tuple(measured.values()), () if listed else tuple(sums), listed)


def _is_sum(part: Expression) -> bool:
    return (
        isinstance(part, Aggregate)
        and part.name in ("SUM", "COUNT")
        and (part.name == "SUM" or isinstance(part.arg, Variable))
    )


def _why(part: Expression) -> str:
    return f"{render_predicate(part)} is no sum over the events of a complex event"
