"""Which queries may be in one automaton with others (engine/automaton): their events cost what these touch, whatever
the number of queries."""

from __future__ import annotations

from typing import NamedTuple

from oxiseq.engine.plan.query import QueryPlan


class RunKind(NamedTuple):
    """What queries have in common whose edges may be in one run: whether windows count instants, and matches are
    counted."""

    by_number: bool
    counting: bool

    @classmethod
    def of(cls, plan: QueryPlan) -> RunKind:
        """That of a query."""
        return cls(plan.window is not None and plan.window.events, plan.runner.sequence.counted)


def why_own_run(plan: QueryPlan) -> str | None:
    """Why a query has a run of its own; None: its edges may be among those of others."""
    runner = plan.runner
    if plan.clauses.partitioned:
        return "it counts the instants of partitions, or chooses among the matches of one"
    if runner.deferred:
        return "its matches wait until all of their end are decided"
    if runner.composing is not None or plan.clauses.notes:
        return "its groups are made of composed windows, or of weights"
    if runner.sequence.counted and plan.window is not None and plan.window.events:
        return "its matches are counted by the numbers of instants"
    if plan.ranking is not None and (plan.ranking.page is not None or plan.ranking.window is not None):
        return "the best of a window are in the order of its own rows"
    if runner.family is not None:
        return "it finds the matches of a family"
    return None
