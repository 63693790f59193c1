"""A page of the matches of a SPAseq query that end at one instant."""

from __future__ import annotations

from dataclasses import replace

from oxiseq.engine.kb import KnowledgeBase
from oxiseq.engine.matches.paging import Page
from oxiseq.engine.plan.query import QueryPlan, compile_query
from oxiseq.engine.run.sequence import run_of
from oxiseq.engine.terms.dictionary import TermDictionary
from oxiseq.grammar.algebra import Query, Select, Summary
from oxiseq.grammar.levels import summarises
from oxiseq.grammar.places import overview
from oxiseq.languages.reasons.bounds import Bounds
from oxiseq.languages.reasons.paging import paged, reach
from oxiseq.languages.reasons.read import History, Span
from oxiseq.languages.spaseq.shape import spaseq_shape
from oxiseq.matches.matches import Matches


def every_match(query: Query) -> Query:
    """The query that has a row for each match, all of them: without groups, ORDER BY, LIMIT, SAMPLE and DISTINCT. What
    chooses among runs stays: SELECT NEXT, LAST, MAX and CONSUME BY."""
    columns = query.form.columns if isinstance(query.form, Select) and not summarises(overview(query)) else None
    form = Select(columns, False, query.selection)
    return replace(query, form=form, summary=Summary(), limit=None, sample=None)


def reach_of(query: Query, at: int, start: int | None) -> Span:
    """Which events decide what ends at `at` (µs); `start`: the t of tumbling windows."""
    plan = compile_query(every_match(query), TermDictionary())
    window, size = plan.window, None
    if window is not None and not window.events and query.consumption is None:
        size = window.size
    return reach(at, size, start, _waits(plan), sliding=window is not None and window.sliding)


def _waits(plan: QueryPlan) -> int | None:
    """For how long (µs) after its end a match may be undecided; None: until the streams end, also where windows of
    events close between bounds that pass: the order of matches follows from the instants that come then."""
    if not any(edge.waits for edge in plan.runner.sequence.graph.edges):
        return 0
    if plan.window is not None and plan.window.events:
        return None
    timed = [] if plan.window is None else [plan.window.size]
    bound = plan.runner.sequence.graph.longest_wait
    return min([*timed, *([] if bound is None else [bound])], default=None)


def page_of(query: Query, history: History, kb: KnowledgeBase, page: Page, bounds: Bounds) -> Matches:
    """The page, with the knowledge base of now. Raises LimitError, KbError, and whatever `bounds.check` raises."""
    plan = compile_query(every_match(query), history.terms, page=page)
    run, shape = run_of(plan, history.terms, kb, history.start), spaseq_shape(plan, history.terms)
    return paged(run, shape, plan.streams, history, bounds)
