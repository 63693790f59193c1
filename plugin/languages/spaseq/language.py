"""SPAseq: rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from pyoxigraph import Variable

from oxiseq.engine.extras import needed
from oxiseq.engine.kb import KnowledgeBase
from oxiseq.engine.plan.correlation import Correlation, correlation, with_key
from oxiseq.engine.plan.query import QueryPlan, compile_query
from oxiseq.engine.run.query import QueryRun
from oxiseq.engine.run.run import Run
from oxiseq.engine.run.sequence import run_of
from oxiseq.engine.terms.dictionary import TermDictionary
from oxiseq.engine.terms.texts import Term
from oxiseq.grammar.algebra import Construct, Query
from oxiseq.grammar.languages import Syntax, syntax_named
from oxiseq.languages.language import LOG, Language
from oxiseq.languages.tables import names_in
from oxiseq.matches.matches import Matches
from oxiseq.matches.shape import Shape
from oxiseq.options import Options
from oxiseq.sources.knowledge import Kb, knowledge_of
from oxiseq.warmup.first_run import prepare

if TYPE_CHECKING:
    from oxiseq.engine.matches.paging import Page
    from oxiseq.languages.explanation import Explanation
    from oxiseq.languages.reasons import read
    from oxiseq.languages.reasons.read import Bounds, History, Point, Span
    from oxiseq.languages.reasons.report import Evidence, WhyRequest
    from oxiseq.languages.sequences import explain
    from oxiseq.languages.spaseq import evidence, why
    from oxiseq.languages.spaseq.why import SequenceSubject
else:
    explain, read = needed("oxiseq.languages.sequences.explain"), needed("oxiseq.languages.reasons.read")
    evidence, why = needed("oxiseq.languages.spaseq.evidence"), needed("oxiseq.languages.spaseq.why")


# --- shape -------------------------------------------------------------------------------------------


def spaseq_shape(plan: QueryPlan, terms: TermDictionary) -> Shape:
    """Rows with the events of each GPM; a row of a group has no events. With a trailing negation matches are decided
    after their ends."""
    answer, graphs = plan.runner.answer, isinstance(plan.query.form, Construct)
    listed = plan.summary is None
    positive = {gpm for letter in plan.letters if letter.positive for gpm in letter.letter}
    streams = {gpm: plan.streams[each.stream] for gpm, each in plan.runner.gpms.items()}
    return Shape(
        terms,
        "ASK" if answer.ask else "CONSTRUCT" if graphs else "SELECT",
        tuple(column.variable.value for column in answer.columns),
        plan.streams,
        answer.into,
        dict(plan.query.prefixes),
        answer.template,
        lanes=tuple(gpm for gpm in plan.runner.gpms if gpm in positive) if listed else (),
        letters=tuple(tuple((gpm, streams[gpm]) for gpm in letter.letter) for letter in plan.letters),
        spans=listed,
        later=any(ending.guards for ending in plan.runner.automaton.endings),
        vocab=dict(plan.query.prefixes).get("", ""),
    )


# --- language ----------------------------------------------------------------------------------------


class Spaseq(Language[Query]):
    """Sequences of graph patterns (semantics.md 2)."""

    syntax: ClassVar[Syntax[Any]] = syntax_named("spaseq")
    in_one_task = True

    def prepare(self, tell: Callable[[str], object] = LOG.warning) -> None:
        prepare(tell)

    def compile(
        self, query: Query, terms: TermDictionary, kb: KnowledgeBase, options: Options
    ) -> tuple[QueryRun, Shape]:
        run = run_of(compile_query(query, terms), terms, kb, options.origin, options.lateness)
        return run, spaseq_shape(run.plan, terms)

    def names(self, query: Query, plan: QueryPlan) -> Mapping[str, str]:
        return {s.name: s.iri.value for s in query.streams}

    def origin(self, run: Run) -> int | None:
        return evidence.same_windows(run.plan.query.window, run.window_start) if isinstance(run, QueryRun) else None

    def evidence(
        self,
        query: Query,
        events: Mapping[str, tuple[int, ...]],
        row: Mapping[str, Term | None],
        history: History,
        kb: KnowledgeBase,
        bounds: Bounds,
    ) -> Evidence:
        return evidence.evidence_of(query, events, row, history, kb, bounds)

    def correlation(self, query: Query, plan: QueryPlan) -> Correlation:
        return correlation(plan)

    def with_key(self, query: Query, by: tuple[Variable, ...]) -> Query:
        return with_key(query, by)

    def explain(self, query: Query, kb: Kb, rules: Sequence[str] = ()) -> Explanation:
        return explain.explain(compile_query(query, TermDictionary()), None if kb is None else knowledge_of(kb))

    def subject(
        self, query: Query, streams: Mapping[str, Any], kb: Kb, options: Options, asked: WhyRequest
    ) -> SequenceSubject:
        history = read.read_history(query, streams, asked.reading, self.opener(query, options), names_in(query) or "")
        return why.SequenceSubject(query, history, knowledge_of(kb), asked.bounds)

    def reach(self, query: Query, at: int, options: Options) -> Span:
        return evidence.reach_of(query, at, options.origin)

    def every_match(self, query: Query) -> Query:
        return evidence.every_match(query)

    def matches_at(
        self, query: Query, streams: Mapping[str, Any], kb: Kb, options: Options, asked: WhyRequest, page: Page
    ) -> Matches:
        history = read.read_history(query, streams, asked.reading, self.opener(query, options), names_in(query) or "")
        return evidence.page_of(query, history, knowledge_of(kb), page, asked.bounds)

    def states(
        self, query: Query, streams: Mapping[str, Any], kb: Kb, options: Options, asked: WhyRequest, points: int
    ) -> tuple[Point, ...]:
        history = read.read_history(query, streams, asked.reading, self.opener(query, options), names_in(query) or "")
        run = run_of(compile_query(query, history.terms), history.terms, knowledge_of(kb), history.start)
        return read.states_of(run, history, asked.bounds, points)
