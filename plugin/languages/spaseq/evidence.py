"""Single matches of a SPAseq query: what one rests on (facts of the knowledge base, the triples that its patterns
matched); a page of those that end at one instant; where tumbling windows begin when a query is run again over other
events.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from oxiseq.engine.errors import OxiseqError
from oxiseq.engine.kb import KnowledgeBase
from oxiseq.engine.matches.paging import Page
from oxiseq.engine.plan.query import QueryPlan, compile_query
from oxiseq.engine.run.sequence import run_of
from oxiseq.engine.terms.dictionary import TermDictionary
from oxiseq.engine.terms.texts import Term
from oxiseq.grammar.algebra import Query, Select, Summary, Window
from oxiseq.grammar.places import overview, summarises
from oxiseq.languages.reasons.read import Bounds, History, Span, in_order, paged, reach
from oxiseq.languages.reasons.report import Evidence, Provenance
from oxiseq.languages.reasons.why import FoundRow, FoundRows
from oxiseq.languages.spaseq.language import spaseq_shape
from oxiseq.languages.spaseq.why import SequenceSubject, matched_triples, values_in_all
from oxiseq.matches.matches import Matches
from oxiseq.matches.rows import cell_key

# --- evidence ----------------------------------------------------------------------------------------


def evidence_of(
    query: Query,
    events: Mapping[str, tuple[int, ...]],
    row: Mapping[str, Term | None],
    history: History,
    kb: KnowledgeBase,
    bounds: Bounds,
) -> Evidence:
    """The query over the match's events alone gives all that the match binds. Where that does not find it (the query
    has been replaced, events are gone), there is only what its row binds."""
    if not events or not set(events) <= {gpm.name for gpm in query.gpms}:
        return Evidence()
    empty, _ = in_order([], 0)
    streams = {s.iri.value for s in query.streams}
    whole = History(history.terms, {**dict.fromkeys(streams, empty), **history.batches}, None, 0)
    key = tuple(sorted(events.items()))
    subject = SequenceSubject(query, whole, kb, bounds)
    try:
        candidates = subject.begun(query).all
    except OxiseqError:
        candidates = ()
    found = [each for each in candidates if each.found == key and _agree(each.values, row)]
    match = found[0] if found else FoundRow(key, row, (), key)
    (told,) = subject.provenances(FoundRows((match,)), 1)
    return Evidence(told.facts, _matched(query, match, told))


def _matched(query: Query, match: FoundRow, told: Provenance) -> dict[tuple[str, int], tuple[int, ...]]:
    gpms = {gpm.name: gpm for gpm in query.gpms}
    marked: dict[tuple[str, int], tuple[int, ...]] = {}
    for event in told.events:
        gpm = gpms[event.gpm]
        others = [other for name, other in gpms.items() if name != event.gpm]
        once = len(dict(match.found)[event.gpm]) == 1
        bound = match.values if once else values_in_all(gpm, others, match.values)
        marked[event.gpm, event.time] = matched_triples(gpm, event.graph, bound)
    return marked


def _agree(one: Mapping[str, Term | None], other: Mapping[str, Term | None]) -> bool:
    return all(cell_key(one[v]) == cell_key(term) for v, term in other.items() if v in one)


# --- paging ------------------------------------------------------------------------------------------


def every_match(query: Query) -> Query:
    """The query that has a row for each match, all of them: without groups, ORDER BY, LIMIT, SAMPLE, SUPPRESS and
    DISTINCT. What chooses among runs stays: SELECT NEXT, LAST, MAX and CONSUME BY."""
    columns = query.form.columns if isinstance(query.form, Select) and not summarises(overview(query)) else None
    form = Select(columns, False, query.selection)
    return replace(query, form=form, summary=Summary(), limit=None, sample=None, suppression=None)


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


# --- windows -----------------------------------------------------------------------------------------


_LONG_AGO: Final = -62_135_596_800_000_000
"""The year 1, in µs."""


def same_windows(window: Window | None, start: int | None) -> int | None:
    """A t of the same tumbling windows that is so long ago that no event is before it; None where that says nothing:
    windows slide or count events, or `start` (µs) is not known."""
    if start is None or window is None or window.sliding or window.events:
        return None
    return _LONG_AGO + (start - _LONG_AGO) % window.size
