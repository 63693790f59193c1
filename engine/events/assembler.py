"""The running state of one input's reading, and Python's part in it.

In the flow: blocks of N-Quads → **assembler** → event batches. kernels/events/assembly.py says which quads make an
event; kernels/events/nquads.py reads. This class owns their arrays, grows them on demand, and does
the rest: unusual terms, times and lines, by pyoxigraph, and the faults.

Memory: the events that are not complete, one block, one batch, and the names of the last REMEMBERED events.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Final

import numpy as np
from numpy.typing import NDArray
from pyoxigraph import Literal, NamedNode, Quad, RdfFormat, serialize

from oxiseq.engine.errors import EventError, syntax_reason
from oxiseq.engine.events.batch import EventBatch
from oxiseq.engine.events.time import OUTSIDE, to_microseconds
from oxiseq.engine.kernels.events import assembly as k
from oxiseq.engine.kernels.events import nquads
from oxiseq.engine.kernels.memory.pointers import address_of, call
from oxiseq.engine.kernels.memory.scan import PADDING
from oxiseq.engine.kernels.terms.plain import SCRATCH_SPARE
from oxiseq.engine.rdf import parse
from oxiseq.engine.terms.dictionary import TermDictionary
from oxiseq.engine.terms.texts import parse_term
from oxiseq.grammar.records import dataclass

REMEMBERED: Final = 65_536
BATCH_EVENTS: Final = 8192

Fault = Callable[[int | None, str], None]
"""Called with the line (None: not known) and the reason; it raises, or returns: the line or event is left out."""

_FIRST_RECORDS: Final = 1024
_FIRST_CHUNKS: Final = 256
_FIRST_ARENA: Final = 1 << 16
_FIRST_ROWS: Final = 1 << 15
_TERMS: Final = 1024
"""New terms that room is made for at a time."""


@dataclass(frozen=True, slots=True)
class Block:
    """Lines of N-Quads in `text[:size]`; the last one ends with a line break, and PADDING bytes follow."""

    text: bytes | bytearray
    size: int
    start: int = 0

    @classmethod
    def of(cls, text: bytes) -> Block:
        """A copy of a text that ends with a line break, or is empty."""
        return cls(text + bytes(PADDING), len(text))


class EventAssembler:
    """Blocks of lines go in, batches of at most `batch_events` complete events come out, in order of completion.

    Batches are full but for the last ones, which `finish` gives.
    """

    def __init__(
        self,
        terms: TermDictionary,
        time_predicate: NamedNode,
        fault: Fault,
        batch_events: int = BATCH_EVENTS,
        *,
        rows: int = _FIRST_ROWS,
        remembered: int | None = None,
    ) -> None:
        """`rows` of triples that room is made for at first; `remembered`: names of events that are known as over
        (default: REMEMBERED). Both are smaller where the whole input is: making room takes longer than a few lines."""
        self._terms = terms
        self._time_predicate = time_predicate
        self._fault = fault
        self._state = np.zeros(k.STATE_WORDS, np.int64)
        self._address = address_of(self._state)
        self._block = Block.of(b"")
        self._reason = ""
        self.next_line = 1
        """The number of the line behind the block that was read last."""
        self._records = np.zeros((0, k.RECORD_WORDS), np.int64)
        self._slots = np.zeros(0, np.uint32)
        self._arena = np.zeros(0, np.uint8)
        self._chunks = np.zeros((1, k.CHUNK_WORDS), np.uint32)
        self._ring = np.zeros(REMEMBERED if remembered is None else remembered, np.int64)
        self._time = np.zeros(batch_events, np.int64)
        self._end = np.zeros(batch_events, np.int64)
        self._columns = np.zeros((3, rows), np.uint32)
        self._scratch = np.zeros(0, np.uint8)
        state = self._state
        state[k.TIME_TERM] = terms.constant(time_predicate)
        state[k.RING], state[k.RING_SIZE] = address_of(self._ring), len(self._ring)
        state[k.OUT_TIME], state[k.OUT_END] = address_of(self._time), address_of(self._end)
        state[k.MAX_EVENTS] = batch_events
        self._point_at_columns()
        self._make_records(_FIRST_RECORDS)
        self._make_arena(_FIRST_ARENA)
        self._make_chunks(_FIRST_CHUNKS)
        terms.register(self)

    @property
    def quads(self) -> int:
        """The quads read so far, those with faults included."""
        return int(self._state[k.QUADS])

    def held_ids(self) -> Iterable[NDArray[np.integer]]:
        """The ids of events that are not returned (among others: what a free chunk held last)."""
        labels = self._records[self._records[:, k.KIND] == k.LABEL_OF, k.VALUE]
        return [self._chunks.reshape(-1), labels, self._columns[:, : int(self._state[k.OUT_ROWS])]]

    # --- reading ----------------------------------------------------------------------------------

    def read(self, block: Block, line: int) -> Iterator[EventBatch]:
        """Read lines as they come from a file; `line` is the number of the first one."""
        return self._read(block, line, trusted=False)

    def complete(self) -> Iterator[EventBatch]:
        """The events that are complete by now, fewer than a batch of them: for who cannot wait for more."""
        if self._state[k.OUT_EVENTS]:
            yield self._take()

    @property
    def nbytes(self) -> int:
        """Bytes of room for events that are not complete, and for names."""
        return self._chunks.nbytes + self._arena.nbytes + self._records.nbytes

    def read_quads(self, quads: Iterable[Quad], line: int = 0) -> Iterator[EventBatch]:
        """Read quads; 0: their line is not known."""
        return self._read(Block.of(serialize(quads, format=RdfFormat.N_QUADS) or b""), line, trusted=True)

    def finish(self) -> Iterator[EventBatch]:
        """The input has ended: the last events, and faults for the remainder."""
        self._state[k.ENDING] = 1
        yield from self._read(Block.of(b""), 0, trusted=True)
        self._state[k.ENDING] = 0
        if self._state[k.OUT_EVENTS]:
            yield self._take()
        for record in self._left_over(k.WAITING):
            what = f"its time is not known; {self._time_predicate} expected"
            self._fault(None, f"event {self._name(record)} with {record[k.COUNT]} triples is left out: {what}")
        for record in self._left_over(k.TIME_ONLY):
            self._fault(None, f"there is a time for {self._name(record)}, but no graph of this name")

    def _read(self, block: Block, line: int, *, trusted: bool) -> Iterator[EventBatch]:
        state = self._state
        before, words = self._block, state[[k.DATA, k.POSITION, k.STOP, k.LINE, k.TRUSTED]]
        self._block, text = block, np.frombuffer(block.text, np.uint8)
        state[[k.DATA, k.POSITION, k.STOP, k.LINE, k.TRUSTED]] = (
            address_of(text),
            block.start,
            block.size,
            line,
            trusted,
        )
        self._make_scratch(block.size)
        while (status := call(nquads.read, self._address, self._terms)) != k.OK:
            if status == k.FULL:
                yield self._take()
            elif status == k.WHOLE_LINE:
                yield from self._whole_line()
            else:
                _ANSWERS[status](self)
        self.next_line = int(state[k.LINE])
        state[[k.DATA, k.POSITION, k.STOP, k.LINE, k.TRUSTED]] = words
        self._block = before

    def _take(self) -> EventBatch:
        """The complete events; they are forgotten here."""
        state = self._state
        events, rows = int(state[k.OUT_EVENTS]), int(state[k.OUT_ROWS])
        offset = np.zeros(events + 1, np.int64)
        offset[1:] = self._end[:events]
        subject, predicate, object_ = (column[:rows].copy() for column in self._columns)
        state[k.OUT_EVENTS] = state[k.OUT_ROWS] = 0
        return EventBatch(self._time[:events].copy(), offset, subject, predicate, object_)

    # --- answers to the reader --------------------------------------------------------------------

    def _whole_line(self) -> Iterator[EventBatch]:
        """A line for pyoxigraph."""
        if self._state[k.TRUSTED]:
            raise AssertionError(f"pyoxigraph's own line is not understood: {self._told()!r}")
        text, line = self._told(), int(self._state[k.AT_LINE])
        try:
            quads = list(parse(text + b"\n", RdfFormat.N_QUADS))
        except SyntaxError as error:
            self._fault(line, syntax_reason(error).replace("end of file", "end of line"))
        else:
            yield from self.read_quads(quads, line)

    def _intern(self) -> None:
        try:
            self._terms.intern_written(self._told())
        except ValueError as error:
            self._reason = str(error)
            self._state[k.ANSWER] = k.REFUSED

    def _read_time(self) -> None:
        term = parse_term(self._told().decode())
        try:
            if not isinstance(term, Literal):
                raise TypeError("not a literal")
            self._state[k.TIME] = to_microseconds(term)
            self._state[k.ANSWER] = k.GIVEN
        except (EventError, TypeError) as error:
            name = self._quad().subject
            what = "is not an xsd:dateTime or xsd:integer of microseconds"
            if isinstance(error, EventError) and error.reason.startswith(OUTSIDE):
                what = f"is {OUTSIDE}"
            self._state[k.ANSWER] = k.REFUSED
            self._tell(f"the time of event {name} {what}: {term}")

    def _comes_again(self) -> None:
        self._tell(f"graph {self._quad().graph_name} comes again after its event was complete")

    def _refused_term(self) -> None:
        self._tell(self._reason)

    def _default_triple(self) -> None:
        reason = f"a triple of the default graph that is not an event's time ({self._time_predicate})"
        self._tell(f"{reason}: {self._quad().triple}")

    def _second_time(self) -> None:
        quad = self._quad()
        self._tell(f"a second time for event {quad.subject}: {quad.object}")

    def _tell(self, reason: str) -> None:
        self._fault(int(self._state[k.AT_LINE]) or None, reason)

    def _told(self) -> bytes:
        """The bytes that the reader points at."""
        state = self._state
        start, end = int(state[k.START] - state[k.DATA]), int(state[k.END] - state[k.DATA])
        return bytes(self._block.text[start:end])

    def _quad(self) -> Quad:
        """The quad of the line that the reader points into."""
        start = int(self._state[k.START] - self._state[k.DATA])
        begin = self._block.text.rfind(b"\n", 0, start) + 1
        end = self._block.text.find(b"\n", start)
        text = bytes(self._block.text[max(begin, self._block.start) : end])
        quad: Quad = next(parse(text, RdfFormat.N_QUADS))
        return quad

    # --- room -------------------------------------------------------------------------------------

    def _make_room(self) -> None:
        state = self._state
        line = int(state[k.STOP] - state[k.POSITION])
        if state[k.FREE_RECORDS] < k.LINE_RECORDS:
            self._make_records(2 * len(self._records))
        if state[k.FREE_CHUNKS] < 1:
            self._make_chunks(2 * len(self._chunks))
        if state[k.ARENA_USED] + line > state[k.ARENA_SIZE]:
            self._make_arena(max(len(self._arena), 2 * (int(state[k.ARENA_LIVE]) + line) + PADDING))

    def _make_records(self, count: int) -> None:
        old = len(self._records)
        records = np.zeros((count, k.RECORD_WORDS), np.int64)
        records[:old] = self._records
        self._records = records
        first = max(old, 1)
        records[first:, k.NEXT] = np.arange(first + 1, count + 1)
        state = self._state
        records[-1, k.NEXT] = state[k.FREE_RECORD]
        state[k.FREE_RECORD] = first
        state[k.FREE_RECORDS] += count - first
        state[k.RECORDS] = address_of(records)
        self._slots = np.zeros(1 << (2 * count - 1).bit_length(), np.uint32)
        state[k.SLOTS], state[k.SLOT_MASK] = address_of(self._slots), len(self._slots) - 1
        if old:
            self._make_arena(len(self._arena))

    def _make_arena(self, size: int) -> None:
        """A new arena without gaps; the table of records is filled again."""
        arena = np.zeros(size, np.uint8)
        state = self._state
        state[k.NEW_ARENA], state[k.ARENA_SIZE] = address_of(arena), size - PADDING
        self._slots[:] = 0
        call(k.tidy, self._address, len(self._records))
        self._arena = arena

    def _make_chunks(self, count: int) -> None:
        old = len(self._chunks)
        chunks = np.zeros((count, k.CHUNK_WORDS), np.uint32)
        chunks[:old] = self._chunks
        self._chunks = chunks
        state = self._state
        chunks[old:, 0] = np.arange(old + 1, count + 1)
        chunks[-1, 0] = state[k.FREE_CHUNK]
        state[k.FREE_CHUNK] = old
        state[k.FREE_CHUNKS] += count - old
        state[k.CHUNKS] = address_of(chunks)

    def _make_rows(self) -> None:
        columns = np.zeros((3, 2 * self._columns.shape[1]), np.uint32)
        rows = int(self._state[k.OUT_ROWS])
        columns[:, :rows] = self._columns[:, :rows]
        self._columns = columns
        self._point_at_columns()

    def _point_at_columns(self) -> None:
        addresses = [address_of(column) for column in self._columns]
        self._state[[k.OUT_SUBJECT, k.OUT_PREDICATE, k.OUT_OBJECT]] = addresses
        self._state[k.MAX_ROWS] = self._columns.shape[1]

    def _make_terms(self) -> None:
        self._terms.reserve(_TERMS, int(self._state[k.STOP] - self._state[k.POSITION]) + SCRATCH_SPARE)

    def _make_scratch(self, size: int) -> None:
        if len(self._scratch) < size + SCRATCH_SPARE:
            self._scratch = np.zeros(2 * (size + SCRATCH_SPARE), np.uint8)
            self._state[k.SCRATCH] = address_of(self._scratch)

    # --- left over --------------------------------------------------------------------------------

    def _left_over(self, kind: int) -> NDArray[np.int64]:
        """The records of a kind, as they came."""
        records: NDArray[np.int64] = self._records[self._records[:, k.KIND] == kind]
        return records[np.argsort(records[:, k.ORDER])]

    def _name(self, record: NDArray[np.int64]) -> str:
        start = int(record[k.TEXT])
        return self._arena[start : start + int(record[k.LENGTH])].tobytes().decode()


_ANSWERS: Final[dict[int, Callable[[EventAssembler], None]]] = {
    k.UNUSUAL_TERM: EventAssembler._intern,
    k.NEED_TIME: EventAssembler._read_time,
    k.NEED_ROOM: EventAssembler._make_room,
    k.NEED_ROWS: EventAssembler._make_rows,
    k.NEED_TERMS: EventAssembler._make_terms,
    k.FAULT_AGAIN: EventAssembler._comes_again,
    k.FAULT_TERM: EventAssembler._refused_term,
    k.FAULT_DEFAULT: EventAssembler._default_triple,
    k.FAULT_SECOND: EventAssembler._second_time,
}
