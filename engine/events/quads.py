"""Events from N-Quads and TriG files, plain or gzip.

In the flow: file → **blocks of lines** → assembler → event batches. N-Quads is read byte by byte
(kernels/events/nquads.py): a malformed line costs that line only, and every fault has its line. TriG is parsed by
pyoxigraph, written by it as N-Quads and read like it; only syntax errors have a line. Where faults are skipped a
malformed statement costs that statement only (engine/turtle).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import chain, islice
from pathlib import Path
from typing import IO, Final, Literal, TypeAlias, cast

from pyoxigraph import NamedNode, Quad, RdfFormat

from oxiseq.engine.errors import syntax_reason
from oxiseq.engine.events.assembler import BATCH_EVENTS, Block, EventAssembler
from oxiseq.engine.events.batch import EventBatch
from oxiseq.engine.events.bytes import DAMAGED, ByteSource
from oxiseq.engine.events.report import OnError, ReadReport
from oxiseq.engine.kernels.memory.scan import PADDING
from oxiseq.engine.rdf import parse
from oxiseq.engine.terms.dictionary import TermDictionary
from oxiseq.engine.turtle import valid_statements
from oxiseq.grammar.byte_order import MARK

QuadFormat: TypeAlias = Literal["nquads", "trig"]

GENERATED_AT: Final = NamedNode("http://www.w3.org/ns/prov#generatedAtTime")
BLOCK_BYTES: Final = 1 << 18
_BLOCK_QUADS: Final = 4096


def read_quads(
    path: Path,
    terms: TermDictionary,
    report: ReadReport,
    *,
    format: QuadFormat = "nquads",
    time_predicate: NamedNode = GENERATED_AT,
    on_error: OnError = "stop",
    batch_events: int = BATCH_EVENTS,
) -> Iterator[EventBatch]:
    """The events of a file in batches of at most `batch_events`.

    Gzip is recognised by its first bytes. `report` is kept up to date. Raises EventError (with
    `on_error="stop"`) and OSError.
    """

    read = _read_nquads if format == "nquads" else _read_trig
    return run_assembler(
        read, path, terms, report, time_predicate=time_predicate, on_error=on_error, batch_events=batch_events
    )


def run_assembler(
    read: Callable[[ByteSource, EventAssembler, ReadReport, OnError], Iterator[EventBatch]],
    path: Path,
    terms: TermDictionary,
    report: ReadReport,
    *,
    time_predicate: NamedNode,
    on_error: OnError,
    batch_events: int,
) -> Iterator[EventBatch]:
    """The events that `read` makes of a file with an assembler; `report` is kept up to date."""

    def fault(line: int | None, reason: str) -> None:
        report.fault(line, reason, on_error)

    def batches() -> Iterator[EventBatch]:
        with ByteSource(path) as source:
            report.bytes_total = source.size
            yield from read(source, assembler, report, on_error)
        report.bytes_read = report.bytes_total
        yield from assembler.finish()

    assembler = EventAssembler(terms, time_predicate, fault, batch_events)
    for batch in batches():
        report.quads = assembler.quads
        report.events += len(batch)
        yield batch
    report.quads = assembler.quads


def _damaged(report: ReadReport, error: Exception, on_error: OnError) -> None:
    report.fault(None, f"damaged gzip data, the rest cannot be read: {error}", on_error)


# --- N-Quads ----------------------------------------------------------------------------------------


def _read_nquads(
    source: ByteSource, assembler: EventAssembler, report: ReadReport, on_error: OnError
) -> Iterator[EventBatch]:
    for block in _line_blocks(source, report, on_error):
        yield from assembler.read(block, assembler.next_line)


def _line_blocks(source: ByteSource, report: ReadReport, on_error: OnError) -> Iterator[Block]:
    """Blocks of whole lines; a block is good until the next one is asked for."""
    text, filled, start = bytearray(BLOCK_BYTES + PADDING), 0, None
    while True:
        if len(text) - PADDING - filled < 1:
            text = text + bytearray(len(text))  # a line that is longer than a block
        try:
            count = source.readinto(memoryview(text)[filled : len(text) - PADDING])
        except DAMAGED as error:
            _damaged(report, error, on_error)
            count = 0
        report.bytes_read = source.position
        if count == 0:
            break
        cut = text.rfind(b"\n", filled, filled + count) + 1
        filled += count
        if cut:
            start = _after_mark(text) if start is None else 0
            yield Block(text, cut, start)
            text[: filled - cut] = text[cut:filled]
            filled -= cut
    if filled:
        text[filled] = ord("\n")
        yield Block(text, filled + 1, _after_mark(text) if start is None else 0)


def _after_mark(text: bytearray) -> int:
    return len(MARK) if text.startswith(MARK) else 0


# --- TriG -------------------------------------------------------------------------------------------


def _read_trig(
    source: ByteSource, assembler: EventAssembler, report: ReadReport, on_error: OnError
) -> Iterator[EventBatch]:
    content = cast(IO[bytes], source)
    read = _strictly(content) if on_error == "stop" else _leniently(content, report)
    going_on = True
    while going_on:
        quads: list[Quad] = []
        try:
            quads.extend(islice(read, _BLOCK_QUADS))  # keeps what came before an error
            going_on = len(quads) == _BLOCK_QUADS
        except SyntaxError as error:
            report.fault(error.lineno, syntax_reason(error), "stop")  # who skips faults gets none of these
        except DAMAGED as error:
            _damaged(report, error, on_error)
            going_on = False
        report.bytes_read = source.position
        yield from assembler.read_quads(quads)


def _strictly(content: IO[bytes]) -> Iterator[Quad]:
    return parse(content, RdfFormat.TRIG)


def _leniently(content: IO[bytes], report: ReadReport) -> Iterator[Quad]:
    lists = valid_statements(content, RdfFormat.TRIG, None, lambda flaw: report.fault(flaw.line, flaw.reason, "skip"))
    return chain.from_iterable(lists)
