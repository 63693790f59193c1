"""Continuous SPARQL and RSEP-QL: rows at instants."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, ClassVar

from pyoxigraph import NamedNode, Variable

from oxiseq.engine.kb import KnowledgeBase
from oxiseq.engine.kernels.flow import windowing
from oxiseq.engine.kernels.matching import match
from oxiseq.engine.plan.correlation import Correlation
from oxiseq.engine.plan.keyed_windows import window_correlation, with_key
from oxiseq.engine.rsp.plan import RspOptions, RspPlan, compile_rsp
from oxiseq.engine.run.rsp import RspRun
from oxiseq.engine.terms.dictionary import TermDictionary
from oxiseq.grammar.algebra import Span
from oxiseq.grammar.languages import Syntax, syntax_named
from oxiseq.grammar.rsp_algebra import Report, RspQuery
from oxiseq.languages.explanation import Explanation
from oxiseq.languages.language import LOG, Language
from oxiseq.languages.reasons.read import read_streams
from oxiseq.languages.reasons.report import WhyRequest
from oxiseq.languages.rsp.explain import explain_rsp
from oxiseq.languages.rsp.why import WindowSubject
from oxiseq.matches.shape import SPAN, Shape
from oxiseq.options import Options
from oxiseq.sources.knowledge import Kb, knowledge_of
from oxiseq.warmup.first_run import announce

# --- shape -------------------------------------------------------------------------------------------


def rsp_shape(plan: RspPlan, terms: TermDictionary) -> Shape:
    """Rows at instants; those that carry an event mapping have its span."""
    query = plan.query
    return Shape(
        terms,
        query.form,
        plan.columns,
        plan.streams,
        plan.feeds,
        dict(query.prefixes),
        query.template if query.form == "CONSTRUCT" else (),
        letters=SPAN if plan.timed else (),
        spans=plan.timed,
        ended=plan.report is Report.DSTREAM,
        vocab=dict(query.prefixes).get("", ""),
    )


# --- language ----------------------------------------------------------------------------------------


def _unsaid(options: Options) -> RspOptions:
    """What the text of a query leaves open."""
    return RspOptions(options.stream_operator, options.evaluation_times, options.consumption)


class RspQl(Language[RspQuery]):
    """SPARQL over windows (semantics.md 6)."""

    syntax: ClassVar[Syntax[Any]] = syntax_named("rspql")

    def prepare(self, tell: Callable[[str], object] = LOG.warning) -> None:
        announce((match.match_events, windowing.advance), tell)

    def compile(
        self, query: RspQuery, terms: TermDictionary, kb: KnowledgeBase, options: Options
    ) -> tuple[RspRun, Shape]:
        plan = compile_rsp(query, terms, _unsaid(options))
        return RspRun(plan, terms, kb, options.origin, options.lateness), rsp_shape(plan, terms)

    def correlation(self, query: RspQuery, plan: RspPlan) -> Correlation:
        return window_correlation(plan)

    def with_key(self, query: RspQuery, by: tuple[Variable, ...]) -> RspQuery:
        return with_key(query, by)

    def graphs(self, query: RspQuery) -> Iterable[tuple[NamedNode, Span]]:
        named = ((name, query.span) for name in (*query.default_graphs, *query.named_graphs))
        return [*super().graphs(query), *named]

    def explain(self, query: RspQuery, kb: Kb, rules: Sequence[str] = ()) -> Explanation:
        return explain_rsp(compile_rsp(query, TermDictionary()))

    def subject(
        self, query: RspQuery, streams: Mapping[str, Any], kb: Kb, options: Options, asked: WhyRequest
    ) -> WindowSubject:
        history = read_streams({iri: iri for iri in query.streams}, streams, asked.reading)
        return WindowSubject(query, history, knowledge_of(kb), _unsaid(options), asked.bounds)


class Spectra(RspQl):
    """The same under the name of its evaluation."""

    syntax: ClassVar[Syntax[Any]] = syntax_named("spectra")


class RsepQl(RspQl):
    """Windows and event patterns (semantics.md 4)."""

    syntax: ClassVar[Syntax[Any]] = syntax_named("rsepql")
