"""Which queries may be in one automaton with others (engine/automaton): their events cost what these touch, whatever
the number of queries."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import replace

from oxiseq.engine.matches.plan import NO_CLAUSES
from oxiseq.engine.plan.query import QueryPlan, plain_gpm


def why_own_run(plan: QueryPlan) -> str | None:
    """Why a query has a run of its own; None: its edges may be among those of others."""
    runner, window = plan.runner, plan.window
    if replace(plan.clauses, strategy=None, partitioned=False) != NO_CLAUSES or runner.limit is not None:
        return "clauses limit the matches of an instant, or consume events"
    if plan.summary is not None or plan.ranking is not None or runner.sieved or runner.deferred:
        return "its matches are counted, ranked or held"
    if runner.family is not None:
        return "it finds the matches of a family"
    if any(gpm.asks_again for gpm in runner.gpms.values()):
        return "it asks its event's graph again"
    if plan.clauses.partitioned and window is not None and window.events:
        return "its windows count the instants of partitions"
    if plan.clauses.partitioned and not _are_plain(plan):
        return "instants are those of partitions, and not all of its rows are those of the match kernel"
    return None


def _are_plain(plan: QueryPlan) -> bool:
    requests = [(n, each) for n, each in enumerate(plan.runner.requests) if each is not None]
    kernel = {(n, gpm.request) for n, each in requests for gpm in each.kernel}
    wanted = [plain_gpm(letter, plan) for letter in plan.letters]
    members = {(member.stream, member.request) for member in plan.runner.members}
    return all(gpm is not None and (gpm.stream, gpm.order) in kernel for gpm in wanted) and members <= kernel


def kind_of(plan: QueryPlan) -> Hashable:
    """The same in queries whose instants are the same, so that they may be in one automaton: whether windows count them
    and, for those of partitions, what puts events into these."""
    members = list[Hashable]()
    if plan.clauses.partitioned and _are_plain(plan):
        for stream, request, columns in plan.runner.members:
            requests = plan.runner.requests[stream]
            assert requests is not None
            pairs = zip(requests.kernel, requests.native, strict=True)
            native = next(native for kernel, native in pairs if kernel.request == request)
            members.append((stream, native.instance, tuple(native.columns[column] for column in columns)))
    return plan.window is not None and plan.window.events, tuple(members)
