"""Queries that differ in constants only: one plan for all, with a table of their constants (operators.md, 7.2).

In the flow: plans → **open plans** and their constants → one plan over a table (flow/sharing/lifting.py), whose rows
say for which query they hold. Two queries are alike if their open plans are equal.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from pyoxigraph import Variable

from oxiseq.engine.flow import plan as p
from oxiseq.engine.flow.epsparql.lowering import Answered, Lowered, finished
from oxiseq.engine.flow.epsparql.rows import INTERVAL, Timeless
from oxiseq.engine.flow.sharing.lifting import NotLiftedError, lifted, parameter
from oxiseq.engine.flow.sharing.opening import Constant, Filling, Opened, closed, opened, slot

_TABLE = "constants of queries"
_KEEPING = (p.Arrange, p.Triples, p.Filter, p.Extend, p.Pick, p.Lasting, p.TimeTerm, p.Union, p.Once)


def opened_query(answered: Answered) -> Opened:
    """Raises NotLiftedError where no other query can share its plan, whatever its constants."""
    if answered.uses is not None:
        raise NotLiftedError("its answers use triples up")
    found = opened(answered.lowered.plan)
    over_table(answered.lowered, found, range(len(found.constants)), ())  # whether it can be
    return found


def over_table(lowered: Lowered, whole: Opened, slots: Sequence[int], rows: Sequence[tuple[Constant, ...]]) -> Lowered:
    """The plan of several queries, each of whose answers has the number of its row. whole: one of them; slots: those
    whose constants are in the table; rows: numbers, and the constants of these slots."""
    known: dict[Variable, Filling] = {slot(i): term for i, term in enumerate(whole.constants)}
    known |= {slot(place): parameter(i) for i, place in enumerate(slots)}
    sheet, table = p.Sheet(), p.Given(_TABLE, INTERVAL + 1 + len(slots), tuple(range(INTERVAL)), once=True)
    forms, constants = closed(whole.forms, known), [row[1:] for row in rows]
    made = lifted(sheet, forms, lowered.plan.widths, whole.root, table, constants, INTERVAL)
    timeless = (*lowered.timeless, (_TABLE, Timeless(1 + len(slots), tuple(rows), table=True)))
    return finished(sheet, [made.root], replace(lowered, timeless=timeless, numbered=tuple(made.numbered.items())))


def triples(plan: p.FlowPlan) -> Iterator[tuple[p.Triples, bool]]:
    """Its triple patterns, and whether their triples make no rows by themselves: they are only kept, one row or none
    each, until something comes behind them in a SEQ."""
    kept = [True] * len(plan.forms)
    for place in reversed(range(len(plan.forms))):
        form = plan.forms[place]
        kept[place] &= place != plan.root
        passes_on = isinstance(form, _KEEPING) and kept[place]
        for child in p.inputs(form):
            pairs = isinstance(form, p.Look) and (form.order, form.what) == ("BEFORE", "PAIRS")
            before = pairs and child == p.inputs(form)[1]
            kept[child] &= passes_on or before
        if isinstance(form, p.Triples):
            yield form, kept[place]
