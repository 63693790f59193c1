"""Groups made of the compact set of an instant: in how many matches each event is, hence how often its values are.

In the flow: summary plan, where a run cannot carry what groups need → **folded or listed** → run. What can be
folded is known of each event by itself: keys that one event of a match has, and aggregates that add over events
(answers.md 1.6, tier D). Extents are those that matches never leave.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from pyoxigraph import Variable

from oxiseq.engine.matches.events import OfEvents
from oxiseq.engine.matches.measures import MOST_MEASURES, WEIGHED
from oxiseq.engine.plan.answer import Iterations
from oxiseq.engine.plan.ranking import owner_of
from oxiseq.engine.plan.summary import SummaryPlan
from oxiseq.grammar.algebra import Aggregate, Expression, MatchFunction, Query
from oxiseq.grammar.places import Overview
from oxiseq.grammar.records import dataclass


@dataclass(frozen=True, slots=True)
class Folding:
    """`keys`: a GPM that is once in each match, and the variable of its event; None: the time at which matches end.
    `measures`: None for COUNT(*)."""

    keys: tuple[tuple[str, Variable] | None, ...]
    measures: tuple[OfEvents | None, ...]
    weighed: bool = False
    """Whether weights of nodes say it all (output/weighing.py): they stand as long as all that is below them does."""

    @property
    def variables(self) -> frozenset[Variable]:
        """Those whose values rows must have."""
        named = [key[1] for key in self.keys if key is not None]
        return frozenset([*named, *(m.variable for m in self.measures if m is not None and m.variable is not None)])


def folding_of(summary: SummaryPlan, seen: Overview, iterations: Mapping[Aggregate, Iterations]) -> Folding | None:
    """How groups are made of the sets of matches that end at one instant; None where they cannot be."""
    window = seen.query.window
    if window is not None and window.sliding and not summary.instantly:
        return None
    try:
        keys = tuple(_key(e, seen) for e in summary.written[: len(summary.keys)])
        measures = tuple(
            None
            if m.column is None
            else _measure(m.aggregate, summary.written[m.column], seen, iterations, there=False)
            for m in summary.measures
        )
    except _NotOfEventsError:
        return None
    found = Folding(keys, measures)
    return replace(found, weighed=weighed(found, summary, seen.query))


def weighed(folding: Folding, summary: SummaryPlan, query: Query) -> bool:
    """Whether weights of nodes stand, and say all that groups need."""
    columns = (
        each is None or each.variable is None or (m.aggregate.name in WEIGHED and not m.aggregate.distinct)
        for m, each in zip(summary.measures, folding.measures, strict=True)
    )
    stand = query.selection is None and (query.window is None or not query.window.sliding)
    few = len(set(folding.measures) - {None}) <= MOST_MEASURES
    return stand and few and all(columns) and all(key is None for key in folding.keys)


def measure_of(
    outer: Aggregate, e: Expression, seen: Overview, iterations: Mapping[Aggregate, Iterations], *, there: bool
) -> OfEvents | None:
    """What an aggregate over e adds for each event; None where it needs more than that. `there`: nor may a match lack
    such an event that it needs."""
    try:
        return _measure(outer, e, seen, iterations, there=there)
    except _NotOfEventsError:
        return None


class _NotOfEventsError(Exception):
    """A key or a measure is not known of each event by itself."""


def _key(e: Expression, seen: Overview) -> tuple[str, Variable] | None:
    if e == MatchFunction("ENDTIME"):
        return None
    if isinstance(e, Variable) and (gpm := owner_of(e, seen, always_there=True)) is not None:
        return gpm, e
    raise _NotOfEventsError


def _measure(
    outer: Aggregate, e: Expression, seen: Overview, iterations: Mapping[Aggregate, Iterations], *, there: bool
) -> OfEvents:
    sums = outer.name == "SUM" and not outer.distinct
    match e:
        case Variable() if outer.name != "GROUP_CONCAT":  # which needs each of them
            if (gpm := owner_of(e, seen, always_there=there)) is not None:
                return OfEvents(gpm, e, single=True)
        case MatchFunction("COUNT", str() as gpm) if sums:
            return OfEvents(gpm, None)
        case Aggregate("SUM", Variable() as variable, False) if sums and e in iterations:
            if variable in iterations[e].variables:
                return OfEvents(iterations[e].gpm, variable)
    raise _NotOfEventsError
