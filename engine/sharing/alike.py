"""Which queries find the same matches, and how those become one finder (shared.py).

Queries are *alike* if they differ only in their output: columns, aggregates, HAVING, ORDER BY, DISTINCT, a LIMIT of
rows of groups. Their sequence, windows, clauses and patterns are the same; but where matches are only counted sliding
windows may differ in length, since counts are apart by starts (run/counted_part.py), and so may thresholds
(plan/thresholds.py): what is counted for the most lenient query is counted for each.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import replace

from oxiseq.engine.plan.families import Family
from oxiseq.engine.plan.query import QueryPlan, compile_query
from oxiseq.engine.plan.thresholds import chains, family_of, member_of, strictness, thresholds, without_thresholds
from oxiseq.engine.run.finder import of_all
from oxiseq.engine.run.query import QueryRun
from oxiseq.engine.run.teller import Teller
from oxiseq.engine.sequence.positions import START
from oxiseq.engine.sequence.states import PARTITION
from oxiseq.engine.sharing.equal import why_unequal
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


def why_not_narrowed(plan: QueryPlan) -> str | None:
    """Why a query cannot be counted with a longer window; None: it can. A sliding window only cuts: what `;`, `,` and
    negations between look at lies between a match's first event and its last, hence inside every window that holds the
    match (answers.md 5.2)."""
    if plan.window is None or not plan.window.sliding:
        return "its window does not slide"
    return _why_not_cut(plan)


def _why_not_cut(plan: QueryPlan) -> str | None:
    """Why the count of a query's matches cannot be a part of what is counted for others, too; None: it can."""
    sequence = plan.runner.sequence
    if not sequence.counted or plan.runner.folding is not None or plan.runner.composing is not None:
        return "its matches are not counted one by one"
    if any(state.negated for state in sequence.graph.states):
        return "a negation at an end of the sequence reads the whole window"
    return None


def why_no_family(plan: QueryPlan) -> str | None:
    """Why a query cannot be counted with one of more lenient thresholds; None: it can."""
    cut, graph = _why_not_cut(plan), plan.runner.sequence.graph
    if cut is not None:
        return cut
    if any(edge.guards for edge in graph.edges if edge.source == START):
        return "it begins with a negation"
    if any(edge.moves for edge in graph.edges):
        return "it negates a group of events"
    if not thresholds(plan):
        return "no FILTER of an event's own pattern compares its variable with a whole or decimal number"
    return None


def to_share(plan: QueryPlan) -> QueryPlan:
    """As which a query finds together with others of other windows or thresholds: where its windows are composed, as it
    is counted otherwise, if that can be for all at once. Alone, and among those of its window and its thresholds, it
    composes; what tells of all matches so far always does: rows of those are made one by one otherwise."""
    counted, composing = plan.runner.otherwise, plan.runner.composing
    if counted is None or (composing is not None and composing.report is not None):
        return plan
    return counted if why_no_family(counted) is None or why_not_narrowed(counted) is None else plan


def found_by(plan: QueryPlan, *, narrowed: bool) -> Hashable:
    """What is the same in the plans of queries that are alike and may share. narrowed: also those of longer or shorter
    windows, and other thresholds."""
    plan = to_share(plan) if narrowed else plan
    query, summary, window = plan.query, plan.summary, plan.window
    gpms: Hashable = query.gpms
    if narrowed and why_no_family(plan) is None:
        gpms = without_thresholds(plan)
    if narrowed and window is not None and why_not_narrowed(plan) is None:
        window = replace(window, size=0)
    return (
        plan.streams,
        query.streams,
        query.sequence,
        gpms,
        window,
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
        plan.runner.sequence.counted and summary is not None and summary.by_window,
    )


def told_by(plan: QueryPlan) -> Hashable:
    """The common part of the plans of alike queries with the same output."""
    query = plan.query
    return query.form, query.summary, query.limit, query.filters, query.window


def share(runs: Sequence[QueryRun], bounds: Mapping[QueryRun, Hashable], terms: TermDictionary) -> None:
    """Have queries that are alike share; each has a `lineage`. Equal ones only do if they continue from a snapshot, or
    have `bounds`, of their states."""
    alike: dict[Hashable, list[QueryRun]] = {}
    for run in runs:
        if why_alone(run.plan) is None:
            equal = (bounds.get(run), told_by(run.plan)) if run in bounds or run.lineage else None
            found = found_by(run.plan, narrowed=equal is None)
            alike.setdefault((id(run.clock), found, run.lineage, equal), []).append(run)
    for first, *others in alike.values():
        if not first.lineage and others:
            _make_families([first, *others], terms)
        for run in others if first.lineage else ():
            run.share(first.finder, first.teller)


def _make_families(runs: Sequence[QueryRun], terms: TermDictionary) -> None:
    """Have runs find together that may differ in their thresholds, if they have some."""
    plans = [to_share(run.plan) for run in runs]
    if any(why_no_family(plan) is not None for plan in plans):
        _make_one(runs, None, terms)
        return
    for chain in chains(plans):
        if len(chain) > 1:
            _make_one([runs[i] for i in chain], family_of([plans[i] for i in chain]), terms)


def _make_one(runs: Sequence[QueryRun], family: Family | None, terms: TermDictionary) -> None:
    """`family`: where they have one, in order of strictness."""
    if family is not None or len({(run.plan.runner.composing, run.plan.window) for run in runs}) > 1:
        for run in runs:
            run.compose_no_more()
    plan = _widest(runs).plan
    if family is not None or any(run.plan.runner.stored != plan.runner.stored for run in runs):
        wanted = frozenset(variable for run in runs for variable in run.plan.runner.answer.wanted)
        lenient = replace(plan.query, gpms=runs[0].plan.query.gpms)
        composing = plan.runner.composing is not None
        plan = compile_query(lenient, terms, wanted=wanted, family=family, composing=composing)
    finder, tellers = _widest(runs).finder.another(plan), dict[Hashable, Teller]()
    for run in runs:
        key = told_by(run.plan), None if family is None else member_of(run.plan, family)
        if key not in tellers:
            tellers[key] = Teller(of_all(finder, run.plan), terms)
        run.share(finder, tellers[key])


def narrow(runs: Sequence[QueryRun]) -> None:
    """Those that share a finder are these from now on: it keeps no more than twice as long as they look back. So it is
    copied a few times, however many leave. The last of a family are none."""
    if not runs:
        return
    finder, longest = runs[0].finder, _widest(runs).plan.window
    if finder.plan.runner.family is not None and len({strictness(run.plan) for run in runs}) == 1:
        finder.forget_due()
        alone = finder.of_member(_widest(runs).plan)
        for run in runs:
            run.share(alone, run.teller)
        return
    if longest is not None and finder.plan.window is not None and 2 * longest.size <= finder.plan.window.size:
        runs[0].come_home()
        finder.forget_due()
        shorter = finder.copy(longest)
        for run in runs:
            run.share(shorter, run.teller)


def _length(run: QueryRun) -> int:
    return 0 if run.plan.window is None else run.plan.window.size


def _widest(runs: Sequence[QueryRun]) -> QueryRun:
    return max(runs, key=_length)
