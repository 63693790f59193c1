"""Which queries may be in one automaton with others (engine/automaton): their events cost what these touch, whatever
the number of queries."""

from __future__ import annotations

from oxiseq.engine.plan.query import QueryPlan


def why_own_run(plan: QueryPlan) -> str | None:
    """Why a query has a run of its own; None: its edges may be among those of others."""
    runner = plan.runner
    if plan.query.partition is not None or (plan.window is not None and plan.window.events):
        return "its instants are those of partitions, or its windows count them"
    if plan.summary is not None and (runner.listed is None or plan.clauses.notes):
        return "its matches are counted"
    if plan.ranking is not None and (plan.ranking.page is not None or plan.ranking.window is not None):
        return "the best of a window are in the order of its own rows"
    if runner.family is not None:
        return "it finds the matches of a family"
    return None
