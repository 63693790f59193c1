"""Which queries may be in one automaton with others (engine/automaton): their events cost what these touch, whatever
the number of queries."""

from __future__ import annotations

from collections.abc import Hashable
from typing import NamedTuple

from oxiseq.engine.kernels.matches.records import NO_LIMIT, NOTHING
from oxiseq.engine.plan.query import QueryPlan


class RunKind(NamedTuple):
    """What queries have in common whose edges may be in one run: whether windows count instants, and matches are
    counted; whether instants are those of partitions, and what puts events into these."""

    by_number: bool
    counting: bool
    partitioned: bool
    members: tuple[Hashable, ...]

    @classmethod
    def of(cls, plan: QueryPlan) -> RunKind:
        """That of a query."""
        members: list[Hashable] = []
        if plan.clauses.partitioned and _are_plain(plan):
            found = plan.runner.members_in_kernel()
            members = [(stream, native.instance, known) for stream, _, _, native, known in found]
        by_number = plan.window is not None and plan.window.events
        return cls(by_number, plan.runner.sequence.counted, plan.clauses.partitioned, tuple(members))


def why_own_run(plan: QueryPlan) -> str | None:
    """Why a query has a run of its own; None: its edges may be among those of others."""
    runner, window, clauses = plan.runner, plan.window, plan.clauses
    events = window is not None and window.events
    if events and any(edge.waits for edge in runner.sequence.graph.edges):
        return "its windows count instants, and decide its matches when they close"
    if runner.composing is not None or clauses.notes:
        return "its groups are made of composed windows, or of weights"
    if runner.sequence.counted and events:
        return "its matches are counted by the numbers of instants"
    if plan.ranking is not None and (plan.ranking.page is not None or plan.ranking.window is not None):
        return "the best of a window are in the order of its own rows"
    if clauses.partitioned and events:
        return "its windows count the instants of partitions"
    if clauses.partitioned and not _are_plain(plan):
        return "instants are those of partitions, and not all of its rows are those of the match kernel"
    keeps = (clauses.limit, clauses.consumes, runner.limit) != (NO_LIMIT, NOTHING, None) or runner.sieved
    if clauses.partitioned and (keeps or runner.deferred or plan.summary is not None or plan.ranking is not None):
        return "it limits, ranks, groups, holds or consumes the matches of partitions"
    return None


def _are_plain(plan: QueryPlan) -> bool:
    requests = [(n, each) for n, each in enumerate(plan.runner.requests) if each is not None]
    kernel = {(n, gpm.request) for n, each in requests for gpm in each.kernel}
    wanted = [plan.runner.plain_gpm(letter) for letter in plan.letters]
    members = {(member.stream, member.request) for member in plan.runner.members}
    return all(gpm is not None and (gpm.stream, gpm.order) in kernel for gpm in wanted) and members <= kernel
