"""Pieces of files into valid statements, as N-Quads lines in the store's form, and notes of what was not valid."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import islice
from pathlib import Path
from typing import IO, Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyoxigraph import NamedNode, Quad, RdfFormat, serialize

from oxiseq.grammar.records import dataclass
from oxiseq.kb_loader.lines import blocks, line_ends, until_cut_off, valid_lines
from oxiseq.kb_loader.literals import normalised
from oxiseq.kb_loader.quarantine import Fault
from oxiseq.kb_loader.sources import LINE_FORMATS, Source, source_of
from oxiseq.kb_loader.spark.pieces import Piece, lines_of
from oxiseq.kb_loader.statements import in_graph, scoped, statements
from oxiseq.kb_loader.tables import Mapping, table_statements

CLEAN = "line string, source int, start long, number int, note string"
"""A row is a line; or a note about a piece, which has the piece's source and start. Note 0 is {"lines", "read"},
further ones are its faults, in their order."""
_QUADS = 20_000
"""Quads made lines at once."""
_NOTES = 10_000
"""Notes in a batch: what an Arrow column of texts holds has a limit of 2 GB."""


Tell: TypeAlias = Callable[[Fault], None]
Found: TypeAlias = Iterator[tuple[list[Quad], int]]
"""A piece's statements in lists, each with the number of its lines (of line formats, for their numbers)."""


@dataclass(frozen=True, slots=True)
class Cleaner:
    """How to read; what goes to the workers. `stop`: at a first fault this file is made, and all tasks end."""

    mapping: Mapping | None
    graph: str | None
    skolemise: bool
    stop: str | None

    def rows(
        self,
        piece: Piece,
        found: Callable[[Tell], Found],
        texts: Callable[[list[Fault]], Iterator[str | None]] | None = None,
    ) -> Iterator[pa.RecordBatch]:
        """What is `found` of a piece as rows of `CLEAN`; `texts` of its faults, which the driver cannot look up."""
        faults: list[Fault] = []
        lines, read = 0, 0
        for quads, ends in found(faults.append):
            lines += ends
            read += len(quads)
            if quads:
                yield _lines(normalised(serialize(quads, format=RdfFormat.N_QUADS) or b""))
            if self.stop is not None and (faults or Path(self.stop).exists()):
                break
        if faults and self.stop is not None:
            Path(self.stop).touch()
        if texts is not None and faults:
            faults.sort(key=lambda fault: fault.line or 0)
            faults = [replace(fault, text=text) for fault, text in zip(faults, texts(faults), strict=True)]
        notes = [{"lines": lines, "read": read}, *map(_fault_note, faults)]
        for first in range(0, len(notes), _NOTES):
            yield _notes(piece, notes[first : first + _NOTES], first)

    def file(self, source: Source, tell: Tell, opened: Callable[[], IO[bytes]] | None = None) -> Found:
        """The statements of a source read as a whole; `opened`: see `Source.open`."""
        content, raw = source.open(opened)
        with raw, content:
            if source.format in LINE_FORMATS:
                yield from self.lines(source, until_cut_off(blocks(content), tell), tell)
                return
            if source.format is not None:
                found = statements(source, content, tell, skolemise=self.skolemise)
            else:
                found = table_statements(source, content, self.mapping, tell, skolemise=self.skolemise)
            quads = in_graph(found, self._graph())
            while held := list(islice(quads, _QUADS)):
                yield held, 0
        yield [], 0  # faults behind the last statement

    def lines(self, source: Source, blocks: Iterable[bytes], tell: Tell) -> Found:
        """The statements of blocks of whole lines."""
        assert source.format is not None
        graph = self._graph()
        line = 1
        for block in blocks:
            quads = valid_lines(block, line, source.format, source.base, tell)
            if b"_:" in block:
                quads = list(scoped(iter(quads), source.scope, self.skolemise))
            ends = line_ends(block)
            yield list(in_graph(iter(quads), graph)) if graph is not None else quads, ends
            line += ends

    def _graph(self) -> NamedNode | None:
        return NamedNode(self.graph) if self.graph is not None else None


@dataclass(frozen=True, slots=True)
class Cleaning:
    """Files of this machine, or of a file system that all workers see at the same path."""

    tasks: Sequence[Sequence[Piece]]
    cleaner: Cleaner

    def rows(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """For mapInArrow: batches of one column with numbers of tasks into rows of `CLEAN`."""
        for batch in batches:
            for number in batch.column(0).to_pylist():
                for piece in self.tasks[number]:
                    yield from self.cleaner.rows(piece, partial(self._found, piece))

    def _found(self, piece: Piece, tell: Tell) -> Found:
        source = replace(source_of(Path(piece.path)), partitions=piece.partitions)  # of the path as it was given
        if piece.end is None:
            return self.cleaner.file(source, tell)
        return self.cleaner.lines(source, lines_of(piece), tell)


def _lines(text: bytes) -> pa.RecordBatch:
    """N-Quads text as rows, without line ends and Python objects."""
    ends = np.flatnonzero(np.frombuffer(text, np.uint8) == ord("\n"))
    offsets = np.zeros(len(ends) + 1, np.int32)
    offsets[1:] = ends + 1
    whole = pa.Array.from_buffers(pa.binary(), len(ends), [None, pa.py_buffer(offsets), pa.py_buffer(text)])
    lines = pc.binary_slice(whole, 0, -1).cast(pa.string())
    none = [pa.nulls(len(lines), kind) for kind in (pa.int32(), pa.int64(), pa.int32(), pa.string())]
    return pa.RecordBatch.from_arrays([lines, *none], names=_NAMES)


def _notes(piece: Piece, notes: list[dict[str, Any]], first: int) -> pa.RecordBatch:
    count = len(notes)
    return pa.RecordBatch.from_arrays(
        [
            pa.nulls(count, pa.string()),
            pa.array([piece.source] * count, pa.int32()),
            pa.array([piece.start] * count, pa.int64()),
            pa.array(range(first, first + count), pa.int32()),
            pa.array([json.dumps(note) for note in notes], pa.string()),
        ],
        names=_NAMES,
    )


def _fault_note(fault: Fault) -> dict[str, Any]:
    return {"line": fault.line, "last": fault.last, "reason": fault.reason, "text": fault.text}


_NAMES = ["line", "source", "start", "number", "note"]
