"""What a CEQL query emits for the complex events that end at one event: keys, aggregates, columns, HAVING.

In the flow: algebra → **plan of a row** → end_weights.py, or end_totals.py where each end is read as a set.
"""

from __future__ import annotations

from typing import Final

from pyoxigraph import Literal, Variable

from oxiseq.engine.cea.plan import CeaPlan
from oxiseq.engine.cea.ranking import measured_by
from oxiseq.engine.flow.rewriting import replaced
from oxiseq.engine.matches.events import OfEvents
from oxiseq.grammar.algebra import Aggregate, Call, Expression
from oxiseq.grammar.ceql_algebra import OF, Totals, aggregates, summed_attributes
from oxiseq.grammar.records import dataclass

_MOST_LEAST: Final = 1 << 61
"""The kernels count further than this."""


@dataclass(frozen=True, slots=True)
class EndPlan:
    """How the complex events that end at one event become a row (output/group_rows.py)."""

    keys: tuple[Variable, ...]
    key_columns: tuple[int, ...]
    """Of each key the number of the attribute."""
    aggregates: tuple[Aggregate, ...]
    measured: tuple[OfEvents | None, ...]
    """Of each aggregate what it runs over; None: complex events."""
    names: tuple[Variable, ...]
    columns: tuple[Expression, ...]
    having: tuple[Expression, ...]
    order_by: tuple[tuple[Expression, bool], ...] = ()


def end_plan(plan: CeaPlan, totals: Totals) -> EndPlan:
    """What a checked query emits for the complex events that end at one event."""
    attributes, found = summed_attributes(plan.query), aggregates(totals)
    known: dict[Expression, Expression] = {aggregate: aggregate for aggregate in found}
    known |= {Call(OF, (key,)): key for key in totals.by}
    columns = tuple(replaced(column.expression, known) for column in totals.columns)
    known |= {Variable(column.name): made for column, made in zip(totals.columns, columns, strict=True)}
    return EndPlan(
        totals.by,
        tuple(attributes.index(key) for key in totals.by),
        found,
        tuple(map(measured_by, found)),
        tuple(Variable(column.name) for column in totals.columns),
        columns,
        () if totals.having is None else (replaced(totals.having, known),),
    )


def least_of(having: Expression) -> int:
    """How many complex events there must be for HAVING to hold, as far as it says so."""
    match having:
        case Call("&&", parts):
            return max(map(least_of, parts))
        case Call(">" | ">=" as than, (Aggregate("COUNT", None), Literal() as bound)):
            return _above(than, bound)
        case Call("<" | "<=" as than, (Literal() as bound, Aggregate("COUNT", None))):
            return _above(than.replace("<", ">"), bound)
    return 0


def _above(than: str, bound: Literal) -> int:
    number = int(bound.value) if bound.datatype.value.endswith("#integer") else 0
    return min(number + (than == ">"), _MOST_LEAST)


def counts_only(having: Expression) -> bool:
    """Whether it holds just where there are `least_of` complex events."""
    match having:
        case Call("&&", parts):
            return all(map(counts_only, parts))
        case Call(">" | ">=" | "<" | "<="):
            return 0 < least_of(having) < _MOST_LEAST
    return False
