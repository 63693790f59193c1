"""CEQL: complex events."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, BinaryIO, ClassVar

from oxiseq.ceql.event import ComplexShape
from oxiseq.ceql.explain import explain_ceql
from oxiseq.ceql.formats import check_complex_format, complex_rows, complex_text, is_number, write_complex
from oxiseq.ceql.matches import ComplexMatches, by_positions
from oxiseq.ceql.packing import heading_of, pack_complex
from oxiseq.ceql.replay import CeqlReplay
from oxiseq.engine.cea.plan import compile_ceql
from oxiseq.engine.kb import KnowledgeBase
from oxiseq.engine.kernels.cea import advance, facts
from oxiseq.engine.output.complex_events import ComplexEvents
from oxiseq.engine.run.runs import AnyRun
from oxiseq.engine.run.tuples import TupleRun
from oxiseq.engine.snapshot.saving import restore
from oxiseq.engine.terms.dictionary import TermDictionary
from oxiseq.explanation import Explanation
from oxiseq.first_run import announce
from oxiseq.grammar.ceql_algebra import CeqlQuery
from oxiseq.grammar.languages import Language
from oxiseq.journal import Heading
from oxiseq.knowledge import Kb
from oxiseq.languages.front import LOG, Front, Options, Table
from oxiseq.reasons.ceql.events import opener
from oxiseq.reasons.ceql.why import why_ceql
from oxiseq.reasons.read import read_streams
from oxiseq.reasons.report import Why, WhyRequest
from oxiseq.spaseq.formats import ResultFormat


class CeqlFront(Front[CeqlQuery, ComplexEvents]):
    """Complex event automata over tuples (semantics.md 3)."""

    language: ClassVar[Language] = "ceql"
    media_type: ClassVar[str] = "application/ceql-query"
    json_media_type: ClassVar[str] = "application/json"
    asks_kb: ClassVar[bool] = False

    def prepare(self, tell: Callable[[str], object] = LOG.warning) -> None:
        announce((advance.advance, facts.leaf_facts), tell)

    def compile(
        self, query: CeqlQuery, terms: TermDictionary, kb: KnowledgeBase, options: Options
    ) -> tuple[TupleRun, ComplexShape]:
        run = TupleRun(compile_ceql(query, options.stream_names), terms, options.start, options.lateness)
        return run, ComplexShape(run.plan, terms)

    def resume(self, state: bytes, run: AnyRun, terms: TermDictionary, kb: KnowledgeBase) -> TupleRun:
        assert isinstance(run, TupleRun)
        return restore(state, run.plan, terms)

    def replay(self, query: CeqlQuery, kb: Kb, options: Options) -> CeqlReplay:
        return CeqlReplay(query, options.start, options.lateness, options.stream_names, options.naming)

    def explain(self, query: CeqlQuery, kb: Kb, rules: Sequence[str] = ()) -> Explanation:
        return explain_ceql(compile_ceql(query))

    def why(self, query: CeqlQuery, streams: Mapping[str, Any], kb: Kb, options: Options, asked: WhyRequest) -> Why:
        plan = compile_ceql(query, options.stream_names)
        names = dict(zip((s.name for s in query.streams), plan.streams, strict=True))
        vocab = query.vocab or ""
        history = read_streams(names, streams, asked.reading, opener=opener(options.naming, vocab))
        return why_ceql(plan, history, asked.provenance, asked.bounds)

    def check(self, shape: ComplexShape, format: ResultFormat) -> None:
        check_complex_format(format)

    def ordered(
        self, shape: ComplexShape, batches: Iterator[ComplexEvents], *, ties: bool = False
    ) -> Iterator[ComplexEvents]:
        if not ties:
            return batches
        batch = ComplexEvents.concat(list(batches), shape.words)
        return iter([batch.take(by_positions(batch))])

    def gathered(self, shape: ComplexShape, batches: Sequence[ComplexEvents], events: int) -> ComplexMatches:
        return ComplexMatches(shape, ComplexEvents.concat(batches, shape.words), events)

    def table(self, shape: ComplexShape, batches: Iterable[ComplexEvents]) -> Table:
        header, rows = complex_rows(shape, ComplexEvents.concat(list(batches), shape.words))
        return Table(header, rows, is_number(header))

    def write(
        self, shape: ComplexShape, batches: Iterable[ComplexEvents], format: ResultFormat, out: BinaryIO, *,
        stream: bool = False,
    ) -> int:  # fmt: skip
        return write_complex(shape, batches, format, out, stream=stream)

    def text(self, shape: ComplexShape, batches: Iterable[ComplexEvents], format: ResultFormat) -> Iterator[str]:
        return complex_text(shape, batches, format)

    def heading(self, shape: ComplexShape) -> Heading:
        return heading_of(shape)

    def packed(self, shape: ComplexShape, batches: Sequence[ComplexEvents], heading: Heading, scope: str) -> bytes:
        return pack_complex(ComplexEvents.concat(list(batches), shape.words), shape)
