"""CEQL: complex events."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar

from oxiseq.engine.kb import KnowledgeBase
from oxiseq.engine.kernels.cea import advance, facts
from oxiseq.engine.matches.paging import Page
from oxiseq.engine.plan.correlation import Correlation
from oxiseq.engine.plan.joined import CeqlPlan, Lowered, choose_runner
from oxiseq.engine.plan.keyed_tuples import tuple_correlation
from oxiseq.engine.run.run import Run
from oxiseq.engine.run.sequence import run_of
from oxiseq.engine.terms.dictionary import TermDictionary
from oxiseq.grammar.ceql_algebra import CeqlQuery
from oxiseq.grammar.languages import Syntax, syntax_named
from oxiseq.languages.ceql.shape import ceql_shape
from oxiseq.languages.ceql.why import TupleSubject, joined_subject
from oxiseq.languages.driving import Opener
from oxiseq.languages.explanation import Explanation
from oxiseq.languages.language import LOG, Language
from oxiseq.languages.reasons.read import Span, paged, read_streams
from oxiseq.languages.reasons.report import WhyRequest
from oxiseq.languages.reasons.why import Subject
from oxiseq.languages.sequences.explain import explain
from oxiseq.languages.tables import rows_opener
from oxiseq.matches.matches import Matches
from oxiseq.matches.shape import Shape
from oxiseq.options import Options
from oxiseq.sources.knowledge import Kb, knowledge_of
from oxiseq.warmup.first_run import announce


class Ceql(Language[CeqlQuery]):
    """Complex event automata over tuples (semantics.md 3)."""

    syntax: ClassVar[Syntax[Any]] = syntax_named("ceql")

    def prepare(self, tell: Callable[[str], object] = LOG.warning) -> None:
        announce((advance.advance, facts.leaf_facts), tell)

    def compile(
        self, query: CeqlQuery, terms: TermDictionary, kb: KnowledgeBase, options: Options
    ) -> tuple[Run, Shape]:
        plan = choose_runner(query, terms, options.stream_names)
        return run_of(plan, terms, kb, options.origin, options.lateness), ceql_shape(plan, terms)

    def names(self, query: CeqlQuery, plan: CeqlPlan) -> Mapping[str, str]:
        return dict(zip((s.name for s in query.streams), plan.streams, strict=True))

    def opener(self, query: CeqlQuery, options: Options) -> Opener:
        return rows_opener(options)

    def correlation(self, query: CeqlQuery, plan: CeqlPlan) -> Correlation:
        return tuple_correlation(plan)

    def explain(self, query: CeqlQuery, kb: Kb, rules: Sequence[str] = ()) -> Explanation:
        return explain(choose_runner(query, TermDictionary()), None if kb is None else knowledge_of(kb))

    def reach(self, query: CeqlQuery, at: int, options: Options) -> Span:
        return Span(None, at + 1)  # a position tells how many events have come

    def every_match(self, query: CeqlQuery) -> CeqlQuery:
        return replace(query, totals=None, order=None, limit=None, sample=None)

    def matches_at(
        self, query: CeqlQuery, streams: Mapping[str, Any], kb: Kb, options: Options, asked: WhyRequest, page: Page
    ) -> Matches:
        names = self.names(query, choose_runner(query, TermDictionary(), options.stream_names))
        history = read_streams(
            names, streams, asked.reading, opener=self.opener(query, options), vocab=query.vocab or ""
        )
        plan = choose_runner(self.every_match(query), history.terms, options.stream_names, page)
        run = run_of(plan, history.terms, knowledge_of(kb), history.start, page=page)
        return paged(run, ceql_shape(plan, history.terms), plan.streams, history, asked.bounds)

    def subject(
        self, query: CeqlQuery, streams: Mapping[str, Any], kb: Kb, options: Options, asked: WhyRequest
    ) -> Subject:
        plan = choose_runner(query, TermDictionary(), options.stream_names)
        history = read_streams(
            self.names(query, plan), streams, asked.reading, opener=self.opener(query, options), vocab=query.vocab or ""
        )
        if isinstance(plan.runner, Lowered):
            return joined_subject(plan, history, kb, asked.bounds)
        return TupleSubject(plan, history, asked.bounds)
