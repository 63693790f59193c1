"""Checks of ORDER BY where single complex events are returned (CEQL)."""

from __future__ import annotations

from collections.abc import Iterator

from oxiseq.grammar.algebra import Aggregate
from oxiseq.grammar.ceql_algebra import START, CeqlQuery, measured_variable, variables
from oxiseq.grammar.checking.ceql_totals import check_aggregates
from oxiseq.grammar.errors import Finding
from oxiseq.grammar.finding_tools import error
from oxiseq.grammar.scope import subexpressions


def check_order(query: CeqlQuery, text: str) -> Iterator[Finding]:
    """Each key uses one complex event, and only what distinguishes it from others."""
    if query.totals is not None or query.order is None:
        return
    known = variables(query.formula)
    shown = known if query.columns is None else tuple(c.name for c in query.columns)
    hint = f"order by START, or by an aggregate of a variable: SUM({shown[-1]}[price]), COUNT({shown[-1]})"
    for expression, _ in query.order.keys:
        if expression == START:
            continue
        asked = [part for part in subexpressions(expression) if isinstance(part, Aggregate)]
        if not asked:
            yield error("order", "a constant does not order anything", query.order.span, hint)
        for aggregate in asked:
            if aggregate.arg is None:
                message = "COUNT(*) counts all complex events that end at one event, but ORDER BY compares single ones"
                yield error("order", message, aggregate.span, hint)
        yield from check_aggregates(expression, known)
        for aggregate in asked:
            if (name := measured_variable(aggregate)) in known and name not in shown:
                message = f"SELECT does not show {name}, so the events that it holds do not distinguish complex events"
                yield error("order", message, aggregate.span, f"add {name} to SELECT")
