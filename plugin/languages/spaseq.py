"""SPAseq: rows."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, BinaryIO, ClassVar

from oxiseq.engine.kb import KnowledgeBase
from oxiseq.engine.output.batch import MatchBatch
from oxiseq.engine.plan.query import compile_query
from oxiseq.engine.run.query import QueryRun
from oxiseq.engine.run.runs import AnyRun
from oxiseq.engine.snapshot.saving import restore
from oxiseq.engine.terms.dictionary import TermDictionary
from oxiseq.explanation import Explanation
from oxiseq.first_run import prepare
from oxiseq.grammar.algebra import Query
from oxiseq.grammar.languages import Language
from oxiseq.journal import Heading, pack_matches
from oxiseq.knowledge import Kb, knowledge_of
from oxiseq.languages.front import LOG, Front, Options, Table, without_names
from oxiseq.reasons.read import read_history
from oxiseq.reasons.report import Why, WhyRequest
from oxiseq.reasons.why import why_of
from oxiseq.spaseq.explain import explain
from oxiseq.spaseq.formats import (
    ResultFormat,
    check_format,
    completes_in_order,
    is_numeric,
    result_text,
    sorted_batch,
    table_rows,
    write_results,
)
from oxiseq.spaseq.match import Shape
from oxiseq.spaseq.matches import Matches
from oxiseq.spaseq.replay import Replay


class SpaseqFront(Front[Query, MatchBatch]):
    """Sequences of graph patterns (semantics.md 2)."""

    language: ClassVar[Language] = "spaseq"
    media_type: ClassVar[str] = "application/spaseq-query"

    def prepare(self, tell: Callable[[str], object] = LOG.warning) -> None:
        prepare(tell)

    def compile(
        self, query: Query, terms: TermDictionary, kb: KnowledgeBase, options: Options
    ) -> tuple[QueryRun, Shape]:
        without_names(options, "a SPAseq query")
        run = QueryRun(compile_query(query, terms), terms, kb, options.start, options.lateness)
        return run, Shape(run.plan, terms)

    def resume(self, state: bytes, run: AnyRun, terms: TermDictionary, kb: KnowledgeBase) -> QueryRun:
        assert isinstance(run, QueryRun)
        return restore(state, run.plan, terms, kb)

    def replay(self, query: Query, kb: Kb, options: Options) -> Replay:
        without_names(options, "a SPAseq query")
        return Replay(query, kb, options.start, options.lateness)

    def explain(self, query: Query, kb: Kb, rules: Sequence[str] = ()) -> Explanation:
        return explain(compile_query(query, TermDictionary()), None if kb is None else knowledge_of(kb))

    def why(self, query: Query, streams: Mapping[str, Any], kb: Kb, options: Options, asked: WhyRequest) -> Why:
        without_names(options, "a SPAseq query")
        reading = asked.reading
        history = read_history(query, streams, reading.span, reading.start, reading.lateness, reading.on_error,
                               reading.time_predicate)  # fmt: skip
        return why_of(query, history, knowledge_of(kb), asked.provenance, asked.bounds)

    def check(self, shape: Shape, format: ResultFormat) -> None:
        check_format(shape, format)

    def ordered(self, shape: Shape, batches: Iterator[MatchBatch], *, ties: bool = False) -> Iterator[MatchBatch]:
        """As they come, where that is the order they come in."""
        if completes_in_order(shape) and not ties:
            return batches
        return iter([sorted_batch(shape, batches, ties=ties)])

    def gathered(self, shape: Shape, batches: Sequence[MatchBatch], events: int) -> Matches:
        return Matches(shape, sorted_batch(shape, batches), events)

    def table(self, shape: Shape, batches: Iterable[MatchBatch]) -> Table | None:
        if shape.plan.answer.ask:
            return None
        batch = sorted_batch(shape, batches)
        return Table(*table_rows(shape, batch), is_numeric(shape, batch))

    def write(
        self, shape: Shape, batches: Iterable[MatchBatch], format: ResultFormat, out: BinaryIO, *, stream: bool = False
    ) -> int:
        return write_results(shape, batches, format, out, stream=stream)

    def text(self, shape: Shape, batches: Iterable[MatchBatch], format: ResultFormat) -> Iterator[str]:
        return result_text(shape, batches, format)

    def heading(self, shape: Shape) -> Heading:
        return Heading.of(shape)

    def packed(self, shape: Shape, batches: Sequence[MatchBatch], heading: Heading, scope: str) -> bytes:
        return pack_matches(MatchBatch.concat(list(batches), len(heading.variables)), heading, shape.terms, scope)
