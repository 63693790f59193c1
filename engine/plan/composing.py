"""Rows of groups made of composed windows (answers.md 1.7): of those that end at one instant, or of the window's so far
whenever some end, when it closes, or every so often. Where all rows of a match have one key in common, or none
is compared, what an instant does to the sets of prefixes is a linear map, whatever the window.

In the flow: summary plan → **composed, carried, folded or listed** → run.
"""

from __future__ import annotations

from collections.abc import Mapping

from pyoxigraph import Variable

from oxiseq.engine.expressions.functions import is_pure
from oxiseq.engine.matches.events import OfEvents
from oxiseq.engine.matches.measures import MOST_MEASURES, WEIGHED
from oxiseq.engine.plan.answer import Iterations
from oxiseq.engine.plan.folding import measure_of
from oxiseq.engine.plan.summary import SummaryPlan
from oxiseq.engine.sequence.composed import Key, key_of
from oxiseq.engine.sequence.states import PARTITION
from oxiseq.engine.sequence.tables import SequenceTables
from oxiseq.grammar.algebra import Aggregate, Every, Expression, MatchFunction, OnChange, When
from oxiseq.grammar.places import Overview
from oxiseq.grammar.records import dataclass


@dataclass(frozen=True, slots=True)
class Composing:
    """`by`: what all rows of a match have in common (sequence/composed.py). `keys`: of groups: which of the values of
    `by`, or of PARTITION BY; None: the time at which matches end. `measures`: None for COUNT(*). `aggregates`: their
    names. `report`: groups are of all matches of the window so far, and told of then; None: of those of one instant."""

    by: Key
    keys: tuple[int | None, ...]
    measures: tuple[OfEvents | None, ...]
    aggregates: tuple[str, ...]
    report: When | None = None

    @property
    def changes(self) -> bool:
        """Whether groups are told of when matches end, if their rows are new."""
        return isinstance(self.report, OnChange)

    @property
    def reports(self) -> bool:
        """Whether they are told of at other moments than those at which matches end."""
        return self.report is not None and not self.changes

    @property
    def grouped(self) -> bool:
        """Whether there may be other than one group at a time."""
        return any(key is not None for key in self.keys)

    @property
    def merges(self) -> bool:
        """Whether a group has matches of several values of `by`."""
        return bool(self.by) and all(key is None for key in self.keys)

    @property
    def distinct(self) -> tuple[OfEvents, ...]:
        """The measures, each once."""
        return tuple(dict.fromkeys(m for m in self.measures if m is not None))


def composing_of(
    summary: SummaryPlan,
    seen: Overview,
    iterations: Mapping[Aggregate, Iterations],
    sequence: SequenceTables,
    stored: tuple[Variable, ...],
) -> Composing | None:
    """How groups are made of composed windows; None where they cannot be. Of a plan whose matches need not be listed
    for another reason than what is measured (counting.py)."""
    report = None if summary.instantly else summary.report
    told = in_columns(summary) if report is None else _repeats(summary)
    if not told or not all(a.name in WEIGHED and not a.distinct for a in summary.aggregates):
        return None
    by = key_of(sequence, so_far=report is not None)
    if by is None or (seen.query.partition is not None and by != (PARTITION,)):
        return None  # of one pattern alone: rows would be told by the partition's instants
    values = seen.query.partition.by if by == (PARTITION,) and seen.query.partition is not None else by
    keys = [_key(e, values) for e in summary.written[: len(summary.keys)]]
    named = {key for key in keys if key is not None}
    if -1 in named or (named and named != set(range(len(values)))):
        return None
    measures = tuple(
        None if m.column is None else measure_of(m.aggregate, summary.written[m.column], seen, iterations, there=True)
        for m in summary.measures
    )
    for m, each in zip(summary.measures, measures, strict=True):
        if each is None and m.column is not None:
            return None
    found = Composing(by, tuple(keys), measures, tuple(a.name for a in summary.aggregates), report)
    needed = {m.variable for m in found.distinct if m.variable is not None}
    return found if len(found.distinct) <= MOST_MEASURES and needed <= set(stored) else None


def in_columns(plan: SummaryPlan) -> bool:
    """Whether each group is of one instant."""
    return plan.instantly and not isinstance(plan.report, Every)


def _repeats(plan: SummaryPlan) -> bool:
    """Whether rows of groups that have not changed are the same."""
    return all(map(is_pure, (*plan.columns, *plan.having, *(e for e, _ in plan.order_by))))


def _key(e: Expression, values: Key) -> int | None:
    """Which of the values an expression is; None: the end time; -1: none."""
    if e == MatchFunction("ENDTIME"):
        return None
    return values.index(e) if isinstance(e, Variable) and e in values else -1
