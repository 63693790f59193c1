"""Pieces of files into valid statements, as N-Quads lines in the store's form, and notes of what was not valid."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyoxigraph import NamedNode, Quad, RdfFormat, serialize

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


@dataclass(frozen=True, slots=True)
class Cleaning:
    """How to read; what goes to the workers. `stop`: at a first fault this file is made, and all tasks end."""

    tasks: Sequence[Sequence[Piece]]
    mapping: Mapping | None
    graph: str | None
    skolemise: bool
    stop: str | None

    def rows(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """For mapInArrow: batches of one column with numbers of tasks into rows of `CLEAN`."""
        for batch in batches:
            for number in batch.column(0).to_pylist():
                for piece in self.tasks[number]:
                    yield from self._piece(piece)

    def _piece(self, piece: Piece) -> Iterator[pa.RecordBatch]:
        source = replace(source_of(Path(piece.path)), partitions=piece.partitions)  # of the path as it was given
        faults: list[Fault] = []
        lines, read = 0, 0
        for quads, ends in self._quads(piece, source, faults.append):
            lines += ends
            read += len(quads)
            if quads:
                yield _lines(normalised(serialize(quads, format=RdfFormat.N_QUADS) or b""))
            if self.stop is not None and (faults or Path(self.stop).exists()):
                break
        if faults and self.stop is not None:
            Path(self.stop).touch()
        notes = [{"lines": lines, "read": read}, *map(_fault_note, faults)]
        for first in range(0, len(notes), _NOTES):
            yield _notes(piece, notes[first : first + _NOTES], first)

    def _quads(self, piece: Piece, source: Source, tell: Callable[[Fault], None]) -> Iterator[tuple[list[Quad], int]]:
        """The piece's statements in lists, each with the number of its lines (of line formats, for their numbers)."""
        graph = NamedNode(self.graph) if self.graph is not None else None
        if source.format in LINE_FORMATS:
            yield from self._line_quads(piece, source, graph, tell)
            return
        content, raw = source.open()
        with raw, content:
            if source.format is not None:
                found = statements(source, content, tell, skolemise=self.skolemise)
            else:
                found = table_statements(source, content, self.mapping, tell, skolemise=self.skolemise)
            quads = in_graph(found, graph)
            while held := list(islice(quads, _QUADS)):
                yield held, 0
        yield [], 0  # faults behind the last statement

    def _line_quads(
        self, piece: Piece, source: Source, graph: NamedNode | None, tell: Callable[[Fault], None]
    ) -> Iterator[tuple[list[Quad], int]]:
        assert source.format is not None
        line = 1
        for block in _blocks(piece, source, tell):
            quads = valid_lines(block, line, source.format, source.base, tell)
            if b"_:" in block:
                quads = list(scoped(iter(quads), source.scope, self.skolemise))
            ends = line_ends(block)
            yield list(in_graph(iter(quads), graph)) if graph is not None else quads, ends
            line += ends


def _blocks(piece: Piece, source: Source, tell: Callable[[Fault], None]) -> Iterator[bytes]:
    if piece.end is not None:
        yield from lines_of(piece)
        return
    content, raw = source.open()
    with raw, content:
        yield from until_cut_off(blocks(content), tell)


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
