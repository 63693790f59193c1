"""Events from N-Quads and TriG files, plain or gzip.

Where it stands: file → **parsed quads** → assembler → event batches. assembler.py says which quads make an
event. pyoxigraph parses; N-Quads goes to it in blocks of whole lines, so that a malformed line costs that
line only (a block that does not parse is parsed again line by line) and every fault has its line. TriG is
one text: after a syntax error the rest cannot be read, and only syntax errors have a line.
"""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import IO, Final, Literal, TypeAlias, cast

from pyoxigraph import NamedNode, Quad, RdfFormat, parse

from oxiseq.engine.errors import syntax_reason
from oxiseq.engine.events.assembler import EventAssembler
from oxiseq.engine.events.batch import EventBatch
from oxiseq.engine.events.report import OnError, ReadReport
from oxiseq.engine.terms.dictionary import TermDictionary

QuadFormat: TypeAlias = Literal["nquads", "trig"]

GENERATED_AT: Final = NamedNode("http://www.w3.org/ns/prov#generatedAtTime")
BATCH_EVENTS: Final = 8192
BLOCK_BYTES: Final = 1 << 18
_BLOCK_QUADS: Final = 4096
_BOM: Final = b"\xef\xbb\xbf"
_DAMAGED: Final = (gzip.BadGzipFile, EOFError, zlib.error)


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
    source = _Source(path, report, on_error)
    try:
        assembler = EventAssembler(terms, time_predicate, source.fault)
        blocks = source.nquads() if format == "nquads" else source.trig()
        for quads in blocks:
            report.quads += len(quads)
            assembler.feed(quads)
            yield from _hand_out(assembler, report, batch_events, at_least=batch_events)
        source.at_end()
        assembler.finish()
        yield from _hand_out(assembler, report, batch_events, at_least=1)
    finally:
        source.close()


def _hand_out(
    assembler: EventAssembler, report: ReadReport, size: int, *, at_least: int
) -> Iterator[EventBatch]:
    while assembler.ready >= at_least:
        batch = assembler.take(size)
        report.events += len(batch)
        yield batch


class _Source:
    """An open file: lists of parsed quads out of it, and the line of each of them when it is asked for."""

    def __init__(self, path: Path, report: ReadReport, on_error: OnError) -> None:
        self._report = report
        self._on_error: OnError = on_error
        self._raw = path.open("rb")
        self._report.bytes_total = path.stat().st_size
        zipped = self._raw.peek(2)[:2] == b"\x1f\x8b"
        self._file = cast(IO[bytes], gzip.GzipFile(fileobj=self._raw) if zipped else self._raw)
        self._line = 1  # line of the first quad in `_block`
        self._block = b""

    def close(self) -> None:
        self._file.close()
        self._raw.close()

    def at_end(self) -> None:
        """Faults from now on have no line."""
        self._block, self._line = b"", 0
        self._report.bytes_read = self._report.bytes_total

    def fault(self, number: int | None, reason: str) -> None:
        """A fault of quad `number` of the list handed out last."""
        self._report.fault(None if number is None else self._line_of(number), reason, self._on_error)

    def _line_of(self, number: int) -> int | None:
        lines = (
            line
            for line, text in enumerate(self._block.split(b"\n"), self._line)
            if text.strip() and not text.lstrip().startswith(b"#")
        )
        return next(islice(lines, number, None), None)

    # --- N-Quads ----------------------------------------------------------------------------------

    def nquads(self) -> Iterator[list[Quad]]:
        line = 1
        for block in self._line_blocks():
            self._block, self._line = block, line
            try:
                quads = list(parse(block, RdfFormat.N_QUADS))
            except SyntaxError:
                yield from self._line_by_line(block, line)
            else:
                yield quads
            line += block.count(b"\n")

    def _line_by_line(self, block: bytes, first: int) -> Iterator[list[Quad]]:
        for line, text in enumerate(block.split(b"\n"), first):
            self._block, self._line = text, line
            try:
                quads = list(parse(text + b"\n", RdfFormat.N_QUADS))
            except SyntaxError as error:
                reason = syntax_reason(error).replace("end of file", "end of line")
                self._report.fault(line, reason, self._on_error)
            else:
                yield quads

    def _line_blocks(self) -> Iterator[bytes]:
        """Blocks of whole lines, about BLOCK_BYTES each."""
        rest = b""
        data = self._read().removeprefix(_BOM)
        while data:
            cut = data.rfind(b"\n") + 1
            if cut:
                yield rest + data[:cut]
                rest = data[cut:]
            else:
                rest += data
            data = self._read()
        if rest:
            yield rest

    def _read(self) -> bytes:
        try:
            data = self._file.read(BLOCK_BYTES)
        except _DAMAGED as error:
            self._report.fault(None, f"damaged gzip data, the rest cannot be read: {error}", self._on_error)
            data = b""
        self._report.bytes_read = self._raw.tell()
        return data

    # --- TriG -------------------------------------------------------------------------------------

    def trig(self) -> Iterator[list[Quad]]:
        quads = self._trig_quads()
        while block := list(islice(quads, _BLOCK_QUADS)):
            self._report.bytes_read = self._raw.tell()
            yield block

    def _trig_quads(self) -> Iterator[Quad]:
        parser = parse(self._file, RdfFormat.TRIG)
        while True:
            try:
                quad = next(parser, None)
            except SyntaxError as error:
                reason = f"{syntax_reason(error)}; the rest of the file cannot be read"
                self._report.fault(error.lineno, reason, self._on_error)
                return
            except _DAMAGED as error:
                reason = f"damaged gzip data, the rest cannot be read: {error}"
                self._report.fault(None, reason, self._on_error)
                return
            if quad is None:
                return
            yield quad
