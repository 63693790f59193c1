"""EP-SPARQL: rows with intervals."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, BinaryIO, ClassVar

from oxiseq.engine.flow.epsparql.query import compile_intervals
from oxiseq.engine.kb import KnowledgeBase
from oxiseq.engine.kernels.flow import looking, merging
from oxiseq.engine.output.batch import MatchBatch
from oxiseq.engine.run.intervals import IntervalRun
from oxiseq.engine.run.runs import AnyRun
from oxiseq.engine.snapshot.saving import restore
from oxiseq.engine.terms.dictionary import TermDictionary
from oxiseq.epsparql.answer import IntervalShape
from oxiseq.epsparql.answers import IntervalMatches
from oxiseq.epsparql.explain import explain_intervals
from oxiseq.epsparql.explanation import IntervalExplanation
from oxiseq.epsparql.formats import interval_rows, interval_text, write_intervals
from oxiseq.epsparql.replay import IntervalReplay, read_rules
from oxiseq.explanation import Explanation
from oxiseq.first_run import announce
from oxiseq.grammar.ep_algebra import EpQuery
from oxiseq.grammar.languages import Language
from oxiseq.journal import Heading, pack_matches
from oxiseq.knowledge import Kb, knowledge_of
from oxiseq.languages.front import LOG, Front, Options, Table, without_names
from oxiseq.reasons.intervals.asking import Source, opener
from oxiseq.reasons.intervals.why import why_intervals
from oxiseq.reasons.read import read_streams
from oxiseq.reasons.report import Why, WhyRequest
from oxiseq.spaseq.formats import ResultFormat, check_format

_UNNAMED = ("any stream",)


class EpFront(Front[EpQuery, MatchBatch]):
    """SPARQL over triples with intervals (semantics.md 5)."""

    language: ClassVar[Language] = "epsparql"
    media_type: ClassVar[str] = "application/epsparql-query"
    takes_consumption: ClassVar[bool] = True
    keeps_times: ClassVar[bool] = True

    def prepare(self, tell: Callable[[str], object] = LOG.warning) -> None:
        announce((looking.look, merging.consolidate), tell)

    def compile(
        self, query: EpQuery, terms: TermDictionary, kb: KnowledgeBase, options: Options
    ) -> tuple[IntervalRun, IntervalShape]:
        without_names(options, "an EP-SPARQL query")
        plan = compile_intervals(query, read_rules(options.rules), options.reads, options.said.consume)
        return IntervalRun(plan, terms, kb, options.start, options.lateness), IntervalShape(plan, terms)

    def resume(self, state: bytes, run: AnyRun, terms: TermDictionary, kb: KnowledgeBase) -> IntervalRun:
        assert isinstance(run, IntervalRun)
        return restore(state, run.plan, terms, kb)

    def replay(self, query: EpQuery, kb: Kb, options: Options) -> IntervalReplay:
        without_names(options, "an EP-SPARQL query")
        return IntervalReplay(
            query, kb, options.rules, options.reads, options.start, options.lateness, options.said.consume,
            options.clock,
        )

    def explain(self, query: EpQuery, kb: Kb, rules: Sequence[str] = ()) -> Explanation:
        return IntervalExplanation(explain_intervals(compile_intervals(query, read_rules(rules), _UNNAMED)))

    def why(self, query: EpQuery, streams: Mapping[str, Any], kb: Kb, options: Options, asked: WhyRequest) -> Why:
        without_names(options, "an EP-SPARQL query")
        rules = tuple(read_rules(options.rules))
        plan = compile_intervals(query, rules, options.reads, options.said.consume)
        named = {s.iri.value: s.name for q in (query, *rules) for s in q.streams if s.name}
        names = {named.get(iri, iri): iri for iri in plan.streams}
        history = read_streams(names, streams, asked.reading, opener=opener)
        return why_intervals(Source(plan.query, rules, history, knowledge_of(kb), asked.bounds), asked.provenance)

    def check(self, shape: IntervalShape, format: ResultFormat) -> None:
        check_format(shape, format)

    def ordered(
        self, shape: IntervalShape, batches: Iterator[MatchBatch], *, ties: bool = False
    ) -> Iterator[MatchBatch]:
        return batches

    def gathered(self, shape: IntervalShape, batches: Sequence[MatchBatch], events: int) -> IntervalMatches:
        return IntervalMatches(shape, MatchBatch.concat(list(batches), len(shape.variables)), events)

    def table(self, shape: IntervalShape, batches: Iterable[MatchBatch]) -> Table | None:
        if shape.asks:
            return None
        return Table(*interval_rows(shape, MatchBatch.concat(list(batches), len(shape.variables))))

    def write(
        self, shape: IntervalShape, batches: Iterable[MatchBatch], format: ResultFormat, out: BinaryIO, *,
        stream: bool = False,
    ) -> int:  # fmt: skip
        return write_intervals(shape, batches, format, out, stream=stream)

    def text(self, shape: IntervalShape, batches: Iterable[MatchBatch], format: ResultFormat) -> Iterator[str]:
        return interval_text(shape, batches, format)

    def heading(self, shape: IntervalShape) -> Heading:
        """The interval's two times, as the events START and END of no stream in particular."""
        return Heading(shape.variables, ((("START", ""),), (("END", ""),)))

    def packed(self, shape: IntervalShape, batches: Sequence[MatchBatch], heading: Heading, scope: str) -> bytes:
        return pack_matches(MatchBatch.concat(list(batches), len(heading.variables)), heading, shape.terms, scope)
