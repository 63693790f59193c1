"""Which queries find the same matches, and how those become one finder (shared.py).

Queries are *alike* if they differ only in what they tell: columns, aggregates, HAVING, ORDER BY, DISTINCT, a LIMIT of
rows of groups. Their sequence, windows, clauses and patterns are the same; but sliding windows may differ in length
where the longest finds all (narrowed.py).
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import replace

from oxiseq.engine.plan.query import QueryPlan, compile_query
from oxiseq.engine.run.equal import why_unequal
from oxiseq.engine.run.finder import of_all
from oxiseq.engine.run.narrowed import why_not_narrowed
from oxiseq.engine.run.query import QueryRun
from oxiseq.engine.run.teller import Teller
from oxiseq.engine.sequence.states import PARTITION
from oxiseq.engine.terms.dictionary import TermDictionary


def why_alone(plan: QueryPlan) -> str | None:
    """Why a query finds its matches by itself, whatever others there are; None: together with those that are alike."""
    unequal = why_unequal(plan)
    if unequal is not None:
        return unequal
    if plan.asked_again:
        return "a stateful filter asks its event's graph again"
    if plan.ranking is not None:
        return "ORDER BY or SAMPLE choose among its matches"
    if any(gpm.kb is not None or gpm.parts.in_place for gpm in plan.gpms.values()):
        return "it asks the knowledge base, each query at its own time"
    return None


def found_by(plan: QueryPlan, *, narrowed: bool) -> Hashable:
    """What is the same in the plans of queries that are alike and may share. narrowed: also those of longer or shorter
    windows."""
    query, summary, window = plan.query, plan.summary, plan.window
    if narrowed and window is not None and why_not_narrowed(plan) is None:
        window = replace(window, size=0)
    return (
        plan.streams, query.streams, query.sequence, query.gpms, window, query.partition, query.selection,
        query.consumption, plan.sequence.clauses, plan.sequence.keys, plan.sequence.counted, plan.deferred,
        plan.folding, PARTITION in plan.stored, plan.sequence.counted and summary is not None and summary.by_window,
    )  # fmt: skip


def told_by(plan: QueryPlan) -> Hashable:
    """What is the same in the plans of alike queries that tell the same."""
    query = plan.query
    return query.form, query.summary, query.limit, query.filters, query.window


def share(runs: Sequence[QueryRun], bounds: Mapping[QueryRun, Hashable], terms: TermDictionary) -> None:
    """Have queries that are alike share; each has a `lineage`. Equal ones only do if they go on from a snapshot, or
    have `bounds`, of their states."""
    alike: dict[Hashable, list[QueryRun]] = {}
    for run in runs:
        if why_alone(run.plan) is None:
            equal = (bounds.get(run), told_by(run.plan)) if run in bounds or run.lineage else None
            found = found_by(run.plan, narrowed=equal is None)
            alike.setdefault((id(run.clock), found, run.lineage, equal), []).append(run)
    for first, *others in alike.values():
        if not first.lineage and others:
            _make_one([first, *others], terms)
        for run in others if first.lineage else ():
            run.share(first.finder, first.teller)


def _make_one(runs: Sequence[QueryRun], terms: TermDictionary) -> None:
    plan = _widest(runs).plan
    if any(run.plan.stored != plan.stored for run in runs):
        wanted = frozenset(variable for run in runs for variable in run.plan.answer.wanted)
        plan = compile_query(plan.query, terms, wanted=wanted)
    finder, tellers = _widest(runs).finder.another(plan), dict[Hashable, Teller]()
    for run in runs:
        key = told_by(run.plan)
        if key not in tellers:
            tellers[key] = Teller(of_all(finder, run.plan), terms)
        run.share(finder, tellers[key])


def narrow(runs: Sequence[QueryRun]) -> None:
    """Those that share a finder are these from now on: it keeps no more than twice as long as they look back. So it is
    copied a few times, however many leave."""
    if not runs:
        return
    finder, longest = runs[0].finder, _widest(runs).plan.window
    if longest is not None and finder.plan.window is not None and 2 * longest.size <= finder.plan.window.size:
        finder.forget_due()
        shorter = finder.copy(longest)
        for run in runs:
            run.share(shorter, run.teller)


def _length(run: QueryRun) -> int:
    return 0 if run.plan.window is None else run.plan.window.size


def _widest(runs: Sequence[QueryRun]) -> QueryRun:
    return max(runs, key=_length)
