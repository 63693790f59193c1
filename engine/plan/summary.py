"""The parts of an answer over matches: keys and measures of each match, and rows of groups (semantics.md 2.6b).

In the flow: algebra → **the values written for each match** and **their groups** → (matches) → rows of groups.
"""

from __future__ import annotations

from collections.abc import Iterator

from pyoxigraph import Variable

from oxiseq.engine.flow.rewriting import replaced
from oxiseq.engine.plan.answer import Answer, AnswerColumn
from oxiseq.grammar.algebra import (
    Aggregate,
    Expression,
    OnChange,
    OnClose,
    Query,
    Select,
    Suppression,
    When,
    Window,
)
from oxiseq.grammar.places import (
    Overview,
    ends_with_its_instant,
    keys_of,
    over_matches,
    shown_expressions,
    summarises,
    suppression_keys,
)
from oxiseq.grammar.records import dataclass


@dataclass(frozen=True, slots=True)
class Measure:
    """An aggregate over matches. `column` of the values written for each match holds its argument; None: COUNT(*)."""

    aggregate: Aggregate
    column: int | None


@dataclass(frozen=True, slots=True)
class SummaryPlan:
    """How groups become rows. The first columns written of each match are its `keys`."""

    keys: tuple[Variable, ...]
    written: tuple[Expression, ...]
    """The values written for each match: the keys' expressions, then the measures' arguments."""
    measures: tuple[Measure, ...]
    columns: tuple[Expression, ...]
    """Of a row: expressions over keys, measures and columns before."""
    names: tuple[Variable, ...]
    """Of the columns."""
    having: tuple[Expression, ...]
    order_by: tuple[tuple[Expression, bool], ...]
    limit: int | None
    offset: int
    distinct: bool
    suppressed_by: tuple[Variable, ...]
    """The keys that SUPPRESS tells rows apart by, if the query has one."""
    suppression: Suppression | None
    report: When
    instantly: bool
    """A group is reported when its instant is complete: its keys hold the end time."""
    window: Window | None

    @property
    def aggregates(self) -> tuple[Aggregate, ...]:
        """In the order of measures."""
        return tuple(measure.aggregate for measure in self.measures)

    @property
    def by_window(self) -> bool:
        """Whether all matches of one window may be counted together."""
        return isinstance(self.report, OnClose) and not self.instantly

    @property
    def grouped(self) -> bool:
        """Whether there may be other than one group."""
        return bool(self.keys)


def summary_of(seen: Overview, answer: Answer) -> SummaryPlan | None:
    """The plan of a checked query whose answer is `answer`; None if it has a row per match."""
    if not summarises(seen):
        return None
    query, summary = seen.query, seen.query.summary
    keys = keys_of(summary)
    known = keys.expressions
    written: list[Expression] = [expression for expression, _ in keys.pairs]
    measures: list[Measure] = []
    for aggregate in dict.fromkeys(_measures(seen)):
        column = None
        if aggregate.arg is not None:
            if aggregate.arg not in written[len(keys.pairs) :]:
                written.append(aggregate.arg)
            column = written.index(aggregate.arg, len(keys.pairs))
        measures.append(Measure(aggregate, column))

    # what an aggregate runs over is of a match, not of a group
    inside: dict[Expression, Expression] = {m.aggregate: m.aggregate for m in measures}
    rewrite: dict[Expression, Expression] = {**known, **inside}
    return SummaryPlan(
        tuple(name for _, name in keys.pairs),
        tuple(written),
        tuple(measures),
        tuple(replaced(c.variable if c.expression is None else c.expression, rewrite) for c in answer.columns),
        tuple(c.variable for c in answer.columns),
        tuple(replaced(e, rewrite) for e in summary.having),
        tuple((replaced(e, rewrite), descending) for e, descending in summary.order_by),
        query.limit.count if query.limit is not None else None,
        query.limit.offset if query.limit is not None else 0,
        isinstance(query.form, Select) and query.form.distinct,
        suppression_keys(query, grouped=True),
        query.suppression,
        summary.report or _usual(query),
        ends_with_its_instant(summary),
        query.window,
    )


def written_answer(summary: SummaryPlan, answer: Answer) -> Answer:
    """The values written for each match, as an answer."""
    columns = tuple(
        AnswerColumn(e, None) if isinstance(e, Variable) else AnswerColumn(Variable(f"__written{i}"), e)
        for i, e in enumerate(summary.written)
    )
    return Answer(columns, answer.wanted, False, (), False, None, answer.iterations, answer.filters)


def _measures(seen: Overview) -> Iterator[Aggregate]:
    summary = seen.query.summary
    for e in (*shown_expressions(seen), *summary.having, *(e for e, _ in summary.order_by)):
        yield from over_matches(seen, e)


def _usual(query: Query) -> When:
    window = query.window
    return OnClose() if window is not None and not window.sliding else OnChange()
