"""ORDER BY and SAMPLE in CEQL: what complex events are compared by (semantics.md 2.6b).

In the flow: algebra → **ranking** → (finals of an event) → output/picking.py. The best are found on the compact set
where each key is a sum over a complex event's events; other keys are computed for each complex event (ordering.py).
"""

from __future__ import annotations

from dataclasses import replace

from pyoxigraph import Variable

from oxiseq.engine.expressions.amounts import summands
from oxiseq.engine.matches.events import OfEvents
from oxiseq.engine.matches.ranking import Amount, Ranking, RankKey, TimeOf
from oxiseq.grammar.algebra import Aggregate, Call, Expression
from oxiseq.grammar.ceql.texts import render_ceql, render_predicate
from oxiseq.grammar.ceql_algebra import START, CeqlQuery, compared_aggregates


def measured_by(aggregate: Aggregate) -> OfEvents | None:
    """What an aggregate runs over; None: complex events."""
    match aggregate.arg:
        case Call("[]", (Variable(value=variable), Variable() as attribute)):
            return OfEvents(variable, attribute)
        case Variable(value=variable):
            return OfEvents(variable, None)
    return None


def ranking_of(query: CeqlQuery, ambiguous: bool) -> Ranking | None:
    """The ranking of a checked query; None if it has none. `ambiguous`: the rest of a match may decide which variables
    hold an event."""
    if query.order is None and query.sample is None:
        return None
    limit, order_by = query.limit, () if query.order is None else query.order.keys
    keys, listed = [], None
    for expression, descending in order_by:
        if expression == START:
            keys.append(RankKey((TimeOf(None),), descending))
            continue
        parts = list(summands(expression))
        listed = listed or next((_why(part) for part, _ in parts if not _is_sum(part)), None)
        measured = [(measured_by(part), factor) for part, factor in parts if isinstance(part, Aggregate)]
        keys.append(RankKey(tuple(Amount(of.gpm, of.variable, f) for of, f in measured if of is not None), descending))
    if listed is None and ambiguous and query.order is not None and compared_aggregates(query.order):
        listed = "several variables may hold an event"
    made = Ranking(
        order_by,
        0 if limit is None else limit.offset,
        None if limit is None else limit.count,
        query.sample,
        "" if query.sample is None else f"{query.sample.seed} {render_ceql(query)}",
        tuple(keys),
        None,
    )
    return made if listed is None else replace(made, keys=(), listed=listed)


def _is_sum(part: Expression) -> bool:
    return (
        isinstance(part, Aggregate)
        and part.name in ("SUM", "COUNT")
        and (part.name == "SUM" or isinstance(part.arg, Variable))
    )


def _why(part: Expression) -> str:
    return f"{render_predicate(part)} is no sum over the events of a complex event"
