"""Loading in one process: each source's valid statements into the store by Oxigraph's bulk load.

Line formats go in blocks, a few at a time in threads: a block without faults and blank nodes is parsed and loaded by
Oxigraph alone, which leaves Python's lock. Where a few lines are not like that, all others are (usual.py).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import field, replace
from functools import partial
from io import BytesIO
from pathlib import Path
from typing import IO

from pyoxigraph import Quad, RdfFormat
from pyoxigraph import Store as RdfStore

from oxiseq.engine.rdf import load
from oxiseq.grammar.records import dataclass
from oxiseq.kb_loader.job import Job
from oxiseq.kb_loader.lines import BIG_BLOCK, blocks, line_ends, load_clean, until_cut_off, valid_lines
from oxiseq.kb_loader.quarantine import Fault
from oxiseq.kb_loader.rdfs import reason
from oxiseq.kb_loader.report import LoadReport, Progress
from oxiseq.kb_loader.sources import LINE_FORMATS, Source
from oxiseq.kb_loader.statements import in_graph, scoped, statements
from oxiseq.kb_loader.tables import table_statements
from oxiseq.kb_loader.threads import in_threads
from oxiseq.kb_loader.usual import parted
from oxiseq.kb_loader.void import describe

_OFTEN = 20_000
"""Statements between two calls of `watch`."""
_SINGLES = 50_000
"""Statements of lines that are not usual, gathered from blocks and loaded together: each bulk load makes a file."""


def load_plain(job: Job, store: RdfStore, report: LoadReport, *, reasons: bool) -> None:
    """Do the job in this process, into a store that may hold something already. reasons: whether what follows by RDFS
    is inferred anew. Raises KbError at the first fault if the quarantine is strict."""
    work = PlainLoad(job)
    total = sum(source.size for source in job.sources)
    before = len(store)
    with report.timed("loading"):
        work.into(store)
    report.read, report.stored, report.without = work.read, len(store) - before, work.without
    if reasons:
        job.watch(Progress("reasoning", total, total, work.read))
        with report.timed("reasoning"):
            report.inferred = reason(store)
    job.watch(Progress("counting", total, total, work.read))
    with report.timed("counting"):
        report.statistics = describe(store, report.inferred or None)
    store.flush()


class PlainLoad:
    """Files to statements in the store; `read` counts the valid ones, `without` are the files that had none. Once
    `enough` says so nothing more is read, and what has been read is loaded; `whole`: all has been read."""

    def __init__(self, job: Job, enough: Callable[[], bool] = lambda: False) -> None:
        self.read = 0
        self.without: list[Path | str] = []
        self.whole = True
        self._enough = enough
        self._job = job
        self._total = sum(source.size for source in job.sources)
        self._before = 0
        """Bytes of the sources already read."""

    def into(self, store: RdfStore) -> None:
        """Load all. Raises KbError at the first fault if the quarantine is strict."""
        for source in self._job.sources:
            faults: list[Fault] = []
            before = self.read

            def tell(fault: Fault, source: Source = source, faults: list[Fault] = faults) -> None:
                self._job.quarantine.judge(source, fault)
                faults.append(fault)

            content, raw = source.open()
            with raw, content:
                if source.format in LINE_FORMATS:
                    self._load_lines(store, source, content, raw, tell)
                else:
                    quads = in_graph(self._statements(source, content, tell), self._job.graph)
                    store.bulk_extend(self._counted(quads, raw))
            self._job.quarantine.write(source, faults)
            if not self.whole:
                return
            self.without += [source.name or source.path] * (self.read == before)
            self._before += source.size
            self._job.watch(Progress("loading", self._before, self._total, self.read))
            if source is not self._job.sources[-1] and self._ends():
                return

    def _load_lines(
        self, store: RdfStore, source: Source, content: IO[bytes], raw: IO[bytes], tell: Callable[[Fault], None]
    ) -> None:
        cut: list[Fault] = []
        way = _Way()
        singles: list[Quad] = []

        def work() -> Iterator[Callable[[], _Block]]:
            line = 1
            for text in until_cut_off(blocks(content, BIG_BLOCK), cut.append):
                yield partial(_load_block, store, self._job, source, text, line, way)
                line += line_ends(text)
                if self._ends():
                    return

        for block in in_threads(work()):
            for fault in block.faults:
                tell(fault)
            singles += block.singles
            if len(singles) >= _SINGLES:
                store.bulk_extend(singles)
                singles.clear()
            self.read += block.statements
            self._watch(raw)
        if singles:
            store.bulk_extend(singles)
        for fault in cut:
            tell(fault)

    def _statements(self, source: Source, content: IO[bytes], tell: Callable[[Fault], None]) -> Iterator[Quad]:
        skolemise = self._job.skolemise
        if source.format is not None:
            return statements(source, content, tell, skolemise=skolemise)
        return table_statements(source, content, self._job.mapping, tell, skolemise=skolemise)

    def _counted(self, quads: Iterator[Quad], raw: IO[bytes]) -> Iterator[Quad]:
        for quad in quads:
            self.read += 1
            if self.read % _OFTEN == 0:
                self._watch(raw)
            yield quad
            if self.read % _OFTEN == 0 and self._ends():
                return

    def _ends(self) -> bool:
        """Whether nothing more is to be read."""
        self.whole = self.whole and not self._enough()
        return not self.whole

    def _watch(self, raw: IO[bytes]) -> None:
        self._job.watch(Progress("loading", self._before + raw.tell(), self._total, self.read))


@dataclass(slots=True)
class _Way:
    """How a source's blocks are read; its threads share it."""

    parts: bool = False
    """A block was not taken as a whole: the next ones are parted before they are tried."""


@dataclass(slots=True)
class _Block:
    """What a block held; `singles`: those of its statements that are still to be loaded."""

    statements: int = 0
    faults: list[Fault] = field(default_factory=list)
    singles: list[Quad] = field(default_factory=list)


def _load_block(store: RdfStore, job: Job, source: Source, text: bytes, line: int, way: _Way) -> _Block:
    format = source.format
    assert format is not None
    if job.graph is None:
        if not way.parts and (clean := load_clean(store, text, format)) is not None:
            return _Block(clean)
        way.parts = True
        if (done := _load_parted(store, job, source, text, line)) is not None:
            return done
    done = _Block()
    for part in blocks(BytesIO(text)):
        valid = valid_lines(part, line, format, source.base, done.faults.append)
        store.bulk_extend(in_graph(scoped(iter(valid), source.scope, job.skolemise), job.graph))
        done.statements += len(valid)
        line += line_ends(part)
    return done


def _load_parted(store: RdfStore, job: Job, source: Source, text: bytes, line: int) -> _Block | None:
    """Load a block's usual lines together, and read the others. None if it has too many others, or a usual line that
    Oxigraph refuses; then nothing is loaded."""
    assert source.format is not None
    parts = parted(text, graphs=source.format == RdfFormat.N_QUADS)
    if parts is None:
        return None
    try:
        load(store.bulk_load, parts.usual, source.format)  # a "_:" in it is within an IRI or a string
    except SyntaxError:
        return None
    done = _Block(parts.lines)

    def tell(fault: Fault) -> None:
        assert fault.line is not None
        at = line + parts.numbers[fault.line]
        done.faults.append(replace(fault, line=at, last=at))

    valid = valid_lines(parts.others, 0, source.format, source.base, tell)
    done.singles += scoped(iter(valid), source.scope, job.skolemise)
    done.statements += len(valid)
    return done
