"""EP-SPARQL: rows with intervals."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

from oxiseq.engine.flow.epsparql.query import IntervalPlan, compile_intervals
from oxiseq.engine.kb import KnowledgeBase
from oxiseq.engine.kernels.flow import counting, joining
from oxiseq.engine.run.intervals import IntervalRun
from oxiseq.engine.terms.dictionary import TermDictionary
from oxiseq.grammar.ep_algebra import EpQuery
from oxiseq.grammar.languages import Syntax, syntax_named
from oxiseq.languages.driving import Opener
from oxiseq.languages.epsparql.explain import explain_intervals
from oxiseq.languages.epsparql.rules import open_spanned, read_rules
from oxiseq.languages.epsparql.shape import interval_shape
from oxiseq.languages.epsparql.why import IntervalSubject
from oxiseq.languages.explanation import Explanation
from oxiseq.languages.language import LOG, Language
from oxiseq.languages.reasons.read import read_streams
from oxiseq.languages.reasons.report import WhyRequest
from oxiseq.languages.tables import graphs_opener
from oxiseq.matches.shape import Shape
from oxiseq.options import Options
from oxiseq.sources.knowledge import Kb, knowledge_of
from oxiseq.warmup.first_run import announce

_UNNAMED = ("any stream",)


class EpSparql(Language[EpQuery]):
    """SPARQL over triples with intervals (semantics.md 5)."""

    syntax: ClassVar[Syntax[Any]] = syntax_named("epsparql")
    reads_any = True
    whole = "its rules and filters look at all triples"

    def prepare(self, tell: Callable[[str], object] = LOG.warning) -> None:
        announce((joining.look, counting.consolidate), tell)

    def compile(
        self, query: EpQuery, terms: TermDictionary, kb: KnowledgeBase, options: Options
    ) -> tuple[IntervalRun, Shape]:
        plan = compile_intervals(query, read_rules(options.rules), options.reads, options.consumption)
        return IntervalRun(plan, terms, kb, options.origin, options.lateness), interval_shape(plan, terms)

    def names(self, query: EpQuery, plan: IntervalPlan) -> Mapping[str, str]:
        named = {s.iri.value: s.name for q in (query, *plan.rules) for s in q.streams if s.name}
        return {named.get(iri, iri): iri for iri in plan.streams}

    def opener(self, query: EpQuery, options: Options) -> Opener:
        return graphs_opener(query, options, open_spanned)

    def explain(self, query: EpQuery, kb: Kb, rules: Sequence[str] = ()) -> Explanation:
        return explain_intervals(compile_intervals(query, read_rules(rules), _UNNAMED))

    def subject(
        self, query: EpQuery, streams: Mapping[str, Any], kb: Kb, options: Options, asked: WhyRequest
    ) -> IntervalSubject:
        rules = tuple(read_rules(options.rules))
        plan = compile_intervals(query, rules, options.reads, options.consumption)
        history = read_streams(self.names(query, plan), streams, asked.reading, opener=open_spanned)
        return IntervalSubject(plan.query, rules, history, knowledge_of(kb), asked.bounds)
