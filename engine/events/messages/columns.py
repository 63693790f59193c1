"""Whole messages as N-Quads → their quads as columns of ids.

In the flow: blocks → **columns** → times.py. kernels/events/messages.py reads; this class makes room for a block
and does the rest: unusual terms and lines, by pyoxigraph, and the faults. One fault costs its message.
"""

from __future__ import annotations

import re
from typing import Final

import numpy as np
from numpy.typing import NDArray
from pyoxigraph import BlankNode, DefaultGraph, Quad, RdfFormat

from oxiseq.engine.errors import syntax_reason
from oxiseq.engine.events.assembler import Block
from oxiseq.engine.events.messages.announced import VERSION_LINE
from oxiseq.engine.kernels.events import messages as k
from oxiseq.engine.kernels.memory.pointers import address_of, call
from oxiseq.engine.kernels.terms.plain import SCRATCH_SPARE
from oxiseq.engine.rdf import parse
from oxiseq.engine.terms.dictionary import TermDictionary
from oxiseq.engine.terms.texts import Term
from oxiseq.grammar.records import dataclass

DELIMITER: Final = re.compile(rb"[ \t]*MESSAGE[ \t]*(?:#[^\n]*)?\r?")
_NEW_TERMS: Final = 1024
"""Terms that room is made for at a time."""
_QUAD_TERMS: Final = 4


@dataclass(frozen=True, slots=True, eq=False)
class MessageColumns:
    """m quads of n messages; message i has the quads `offset[i] : offset[i + 1]`.

    subject, predicate, object, graph: u32[m], ids of one dictionary, `graph` 0 for the default graph. line: i64[n], of
    the text, counted from 1: where a message begins. faults: message → (line, why it is left out).
    """

    offset: NDArray[np.int64]
    subject: NDArray[np.uint32]
    predicate: NDArray[np.uint32]
    object: NDArray[np.uint32]
    graph: NDArray[np.uint32]
    line: NDArray[np.int64]
    faults: dict[int, tuple[int, str]]

    def __len__(self) -> int:
        """The number of messages."""
        return len(self.line)


def read_columns(block: Block, terms: TermDictionary, line: int, format: RdfFormat | None) -> MessageColumns:
    """The messages of a block, which holds whole ones; what follows its last delimiter is one more, unless there
    is no quad.

    `line`: the number of its first line. `format`: N-Triples or N-Quads as it came; None: pyoxigraph has written it,
    and its lines belong to no message.
    """
    return _Columns(block, terms, line, format).read()


class _Columns:
    """The state of one block's reading."""

    def __init__(self, block: Block, terms: TermDictionary, line: int, format: RdfFormat | None) -> None:
        self._block, self._terms, self._format = block, terms, format
        self._line = line
        text = np.frombuffer(block.text, np.uint8)
        lines = block.text.count(b"\n", block.start, block.size)
        most = lines + 1
        labels = 1 << (2 * block.text.count(b"_:", block.start, block.size) + 2).bit_length()
        self._columns = np.zeros((4, most), np.uint32)
        self._places = np.zeros((2, most), np.int64)
        self._labels = np.zeros((labels, k.LABEL_WORDS), np.int64)
        self._scratch = np.zeros(block.size + SCRATCH_SPARE, np.uint8)
        self._kept: list[NDArray[np.uint8]] = [text]
        """What addresses point into."""
        self.faults: dict[int, tuple[int, str]] = {}
        state = self._state = np.zeros(k.STATE_WORDS, np.int64)
        state[[k.DATA, k.POSITION, k.STOP]] = address_of(text), block.start, block.size
        state[k.TRUSTED], state[k.GRAPHLESS] = format is None, format == RdfFormat.N_TRIPLES
        state[k.SCRATCH] = address_of(self._scratch)
        state[[k.LINE_OF, k.END_OF]] = [address_of(column) for column in self._places]
        state[[k.SUBJECT, k.PREDICATE, k.OBJECT, k.GRAPH]] = [address_of(column) for column in self._columns]
        state[k.LABELS], state[k.LABEL_MASK] = address_of(self._labels), labels - 1
        self._address = address_of(state)

    def read(self) -> MessageColumns:
        """All of it."""
        state = self._state
        while (status := call(k.read, self._address, self._terms)) != k.OK:
            if status == k.WHOLE_LINE:
                self._whole_line()
            elif status == k.UNUSUAL_TERM:
                self._intern()
            else:
                self._make_terms()
        ended, rows = int(state[k.MESSAGES]), int(state[k.ROWS])
        behind = int(self._places[1, ended - 1]) if ended else 0
        count = ended + (rows > behind or ended in self.faults)
        offset = np.zeros(count + 1, np.int64)
        offset[1 : ended + 1] = self._places[1, :ended]
        offset[ended + 1 :] = rows
        lines = np.full(count, self._line, np.int64)
        lines[1:] += self._places[0, : max(0, count - 1)]
        subject, predicate, object_, graph = (column[:rows].copy() for column in self._columns)
        return MessageColumns(offset, subject, predicate, object_, graph, lines, self.faults)

    # --- what the kernel leaves to Python -----------------------------------------------------------

    def _told(self) -> bytes:
        start, end = (self._state[[k.START, k.END]] - self._state[k.DATA]).tolist()
        return bytes(self._block.text[start:end])

    def _fault(self, line: int, reason: str) -> None:
        """Of the message that is being read; its first one counts."""
        self.faults.setdefault(int(self._state[k.MESSAGES]), (line, reason))

    def _intern(self) -> None:
        try:
            self._terms.intern_written(self._told())
        except ValueError as error:
            self._fault(self._line + int(self._state[k.LINE]), str(error))
            end = self._block.text.find(b"\n", int(self._state[k.POSITION]))
            self._state[k.POSITION] = end + 1
            self._state[k.LINE] += 1

    def _make_terms(self) -> None:
        self._terms.reserve(_NEW_TERMS, int(self._state[k.STOP] - self._state[k.POSITION]) + SCRATCH_SPARE)

    def _whole_line(self) -> None:
        text, line = self._told(), self._line + int(self._state[k.LINE]) - 1
        if DELIMITER.fullmatch(text):
            number = int(self._state[k.MESSAGES])
            self._places[:, number] = self._state[k.LINE], self._state[k.ROWS]
            self._state[k.MESSAGES] = number + 1
            return
        if VERSION_LINE.fullmatch(text):
            return
        assert self._format is not None, f"pyoxigraph's own line is not understood: {text!r}"
        try:
            quads = list(parse(text + b"\n", self._format))
            for quad in quads:
                self._append(quad)
        except SyntaxError as error:
            self._fault(line, syntax_reason(error).replace("end of file", "end of line"))
        except ValueError as error:
            self._fault(line, str(error))

    def _append(self, quad: Quad) -> None:
        """A quad of a line that pyoxigraph has read. Raises ValueError for a term that is not taken."""
        ids = [self._id(term) for term in (quad.subject, quad.predicate, quad.object)]
        graph = 0 if isinstance(quad.graph_name, DefaultGraph) else self._id(quad.graph_name)
        row = int(self._state[k.ROWS])
        if row == self._columns.shape[1]:  # a carriage return, too, ends a line of pyoxigraph's
            self._columns = np.concatenate([self._columns, np.zeros_like(self._columns)], axis=1)
            names = [k.SUBJECT, k.PREDICATE, k.OBJECT, k.GRAPH]
            self._state[names] = [address_of(column) for column in self._columns]
        self._columns[:, row] = *ids, graph
        self._state[k.ROWS] = row + 1

    def _id(self, term: Term) -> int:
        if not isinstance(term, BlankNode):
            return self._terms.intern(term)
        text = np.frombuffer(str(term).encode() + bytes(8), np.uint8)
        self._kept.append(text)
        while (known := call(k.label, self._address, self._terms, address_of(text), len(text) - 8)) < 0:
            self._terms.reserve(_QUAD_TERMS, 0)
        return int(known)
