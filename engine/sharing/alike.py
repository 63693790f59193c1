"""Which queries find the same matches, and how those become one finder (shared.py).

Queries are *alike* if they differ only in their output: columns, aggregates, HAVING, ORDER BY, DISTINCT, SUPPRESS, a
LIMIT of rows of groups. Their sequence, windows, clauses and patterns are the same.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence

from oxiseq.engine.plan.query import QueryPlan, compile_query
from oxiseq.engine.run.finder import of_all
from oxiseq.engine.run.query import QueryRun
from oxiseq.engine.run.teller import Teller
from oxiseq.engine.sequence.states import PARTITION
from oxiseq.engine.sharing.member import why_unequal
from oxiseq.engine.terms.dictionary import TermDictionary


def why_alone(plan: QueryPlan) -> str | None:
    """Why a query finds its matches by itself, whatever others there are; None: together with those that are alike."""
    unequal = why_unequal(plan)
    if unequal is not None:
        return unequal
    if plan.runner.asked_again:
        return "a stateful filter asks its event's graph again"
    if plan.ranking is not None:
        return "ORDER BY or SAMPLE choose among its matches"
    if any(gpm.kb is not None or gpm.parts.in_place for gpm in plan.runner.gpms.values()):
        return "it asks the knowledge base, each query at its own time"
    return None


def found_by(plan: QueryPlan) -> Hashable:
    """What is the same in the plans of queries that are alike and may share."""
    query = plan.query
    return (
        plan.streams,
        query.streams,
        query.sequence,
        query.until,
        query.gpms,
        plan.window,
        query.partition,
        query.selection,
        query.consumption,
        plan.clauses,
        plan.runner.sequence.keys,
        plan.runner.sequence.counted,
        plan.runner.deferred,
        plan.runner.folding,
        plan.runner.composing,
        query.filters if plan.runner.sieved else (),
        PARTITION in plan.runner.stored,
    )


def told_by(plan: QueryPlan) -> Hashable:
    """The common part of the plans of alike queries with the same output."""
    query = plan.query
    return query.form, query.summary, query.limit, query.filters, query.suppression


def share(runs: Sequence[QueryRun], bounds: Mapping[QueryRun, Hashable], terms: TermDictionary) -> None:
    """Have queries that are alike share; each has a `lineage`. Equal ones only do if they continue from a snapshot, or
    have `bounds`, of their states."""
    alike: dict[Hashable, list[QueryRun]] = {}
    for run in runs:
        if why_alone(run.plan) is None:
            equal = (bounds.get(run), told_by(run.plan)) if run in bounds or run.lineage else None
            alike.setdefault((id(run.clock), found_by(run.plan), run.lineage, equal), []).append(run)
    for first, *others in alike.values():
        if others and not first.lineage:
            _make_one([first, *others], terms)
        for run in others if first.lineage else ():
            run.share(first.finder, first.teller)


def _make_one(runs: Sequence[QueryRun], terms: TermDictionary) -> None:
    plan = runs[0].plan
    if any(run.plan.runner.stored != plan.runner.stored for run in runs):
        wanted = frozenset(variable for run in runs for variable in run.plan.runner.answer.wanted)
        plan = compile_query(plan.query, terms, wanted=wanted, composing=plan.runner.composing is not None)
    finder, tellers = runs[0].finder.another(plan), dict[Hashable, Teller]()
    for run in runs:
        key = told_by(run.plan)
        if key not in tellers:
            tellers[key] = Teller(of_all(finder, run.plan), terms)
        run.share(finder, tellers[key])
