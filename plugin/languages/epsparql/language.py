"""EP-SPARQL: rows with intervals."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

from pyoxigraph import NamedNode

from oxiseq.engine.errors import ArgumentTypeError, QueryError
from oxiseq.engine.events.report import OnError
from oxiseq.engine.flow.epsparql.facts import spanned, start_triple
from oxiseq.engine.flow.epsparql.query import IntervalPlan, compile_intervals
from oxiseq.engine.kb import KnowledgeBase
from oxiseq.engine.kernels.flow import counting, joining
from oxiseq.engine.run.intervals import IntervalRun
from oxiseq.engine.terms.dictionary import TermDictionary
from oxiseq.grammar import load
from oxiseq.grammar.algebra import Construct
from oxiseq.grammar.ep_algebra import EpQuery
from oxiseq.grammar.languages import Syntax, syntax_named
from oxiseq.languages.driving import Opener, Told
from oxiseq.languages.epsparql.explain import explain_intervals
from oxiseq.languages.epsparql.why import IntervalSubject
from oxiseq.languages.explanation import Explanation
from oxiseq.languages.language import LOG, Language
from oxiseq.languages.reasons.read import read_streams
from oxiseq.languages.reasons.report import WhyRequest
from oxiseq.languages.tables import graphs_opener
from oxiseq.matches.shape import Shape
from oxiseq.options import Options
from oxiseq.sources.knowledge import Kb, knowledge_of
from oxiseq.sources.sources import batches_of, given_batches, in_time_order, is_stream
from oxiseq.sources.warned import LateBatch
from oxiseq.warmup.first_run import announce

# --- shape -------------------------------------------------------------------------------------------


def interval_shape(plan: IntervalPlan, terms: TermDictionary) -> Shape:
    """Rows with the interval of all that they are made of (semantics.md 5)."""
    return Shape(
        terms,
        "ASK" if plan.ask else "CONSTRUCT" if isinstance(plan.query.form, Construct) else "SELECT",
        tuple(v.value for v in plan.variables),
        plan.streams,
        plan.feeds,
        dict(plan.query.prefixes),
        plan.template,
        stamp=start_triple,
        vocab=dict(plan.query.prefixes).get("", ""),
    )


# --- rules -------------------------------------------------------------------------------------------


def open_spanned(
    events: Any, terms: TermDictionary, on_error: OnError, time_predicate: NamedNode, told: Told
) -> Iterator[LateBatch]:
    """As others, but that events may have a start."""
    if not isinstance(events, Iterable) or isinstance(events, str | Path):
        return given_batches(events, terms, on_error, time_predicate, told)
    batches = batches_of(spanned(events), terms)
    if is_stream(events):
        return batches
    return in_time_order(batches, lambda: batches_of(spanned(events), TermDictionary()), terms)


def read_rules(texts: Sequence[str]) -> list[EpQuery]:
    """Rules, checked. Raises QueryError, with a note of which rule it is; OxiseqError where they are no texts."""
    if isinstance(texts, str):
        raise ArgumentTypeError("rules are a list of texts")
    rules = []
    for number, text in enumerate(texts, 1):
        if not isinstance(text, str):
            raise ArgumentTypeError(f"rule {number} is no text: {text!r}")
        try:
            rules.append(load(text, "epsparql"))
        except QueryError as error:
            error.add_note(f"in rule {number}")
            raise
    return rules


# --- language ----------------------------------------------------------------------------------------


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
