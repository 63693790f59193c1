"""Bodies of events → packed batches for the log, with what had to be left out.

Readings share one small dictionary of their own, or do without it: none waits for another (see SharedTerms), and the
engine's dictionary is not touched.

The usual small body, one event in N-Quads or a graph, straight to its blob.

Reading a file of any size takes tables and a dictionary; to set these up for five quads takes longer than to read
them. So what is plainly one event is packed here, with the same bytes as by the long way (tested); anything else,
every fault included, is left to it.
"""

from __future__ import annotations

import struct
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyoxigraph
from numpy.typing import NDArray
from pyoxigraph import BlankNode, DefaultGraph, Literal, NamedNode, Quad, RdfFormat, Triple

from oxiseq.engine.attended import check
from oxiseq.engine.errors import EventError, OxiseqError
from oxiseq.engine.events.assembler import BATCH_EVENTS, REMEMBERED, Block, EventAssembler, Fault
from oxiseq.engine.events.batch import EventBatch
from oxiseq.engine.events.contexts import NO_CONTEXTS, Contexts
from oxiseq.engine.events.encode import encode_events
from oxiseq.engine.events.messages.announced import HEAD, MessageFormat, announces, is_label
from oxiseq.engine.events.messages.reading import read_messages
from oxiseq.engine.events.open import EventFormat, open_events
from oxiseq.engine.events.quads import GENERATED_AT
from oxiseq.engine.events.report import ReadReport
from oxiseq.engine.events.time import to_microseconds
from oxiseq.engine.kernels.memory.scan import PADDING
from oxiseq.engine.rdf import parse
from oxiseq.engine.terms.dictionary import TermDictionary
from oxiseq.grammar.records import dataclass
from oxiseq.journal import pack_events
from oxiseq.journal.envelope import Summary, seal_with
from oxiseq.journal.events import KIND
from oxiseq.mappings.declared import StreamMapping
from oxiseq.mappings.events import mapped
from oxiseq.mappings.rows import read_table

# --- small -----------------------------------------------------------------------------------------------

LARGEST: Final = 4096
"""Bytes of a body beyond which the long way is taken."""
_MOST: Final = 40
"""Triples of an event, so that a code takes one byte."""
_DEFAULT: Final = DefaultGraph()
_PLAIN: Final = frozenset(f"http://www.w3.org/2001/XMLSchema#{name}" for name in ("string", "integer"))
"""Datatypes whose texts, when short and plain, go into the dictionary unchanged."""


def read_one(body: bytes) -> tuple[bytes, int] | None:
    """The blob of the one event of a body, and its time (µs); None where that is not plain."""
    try:
        quads = list(pyoxigraph.parse(body, RdfFormat.N_QUADS))
        dated = [quad for quad in quads if quad.graph_name == _DEFAULT]
        graph = [quad for quad in quads if quad.graph_name != _DEFAULT]
        if len(dated) != 1 or not _is_event(dated[0], graph):
            return None
        time = dated[0].object
        if not isinstance(time, Literal):
            return None
        at = to_microseconds(time)
        blob = pack_one([quad.triple for quad in graph], at)
        return None if blob is None else (blob, at)
    except (SyntaxError, EventError, ValueError):
        return None


def pack_one(graph: list[Triple], time: int) -> bytes | None:
    """The blob of an event of this time (µs); None where it is not small or not plain."""
    plain = (
        0 < len(graph) <= _MOST
        and len(set(graph)) == len(graph)
        and all(isinstance(triple.subject, NamedNode | BlankNode) and _is_plain(triple.object) for triple in graph)
    )
    return _packed_event(graph, time) if plain else None


def _is_event(dated: Quad, graph: list[Quad]) -> bool:
    """Whether the graph is the one that has the time."""
    name = dated.subject
    if dated.predicate != GENERATED_AT or not isinstance(name, NamedNode):
        return False
    return all(quad.graph_name == name for quad in graph)


def _is_plain(term: object) -> bool:
    if not isinstance(term, Literal):
        return isinstance(term, NamedNode | BlankNode)
    if term.language is not None or term.datatype.value not in _PLAIN:
        return False
    if term.datatype.value.endswith("integer"):
        digits = term.value.removeprefix("-")
        return digits.isascii() and digits.isdecimal() and len(digits) < 16 and (digits[0] != "0" or term.value == "0")
    return term.value.isascii() and term.value.isprintable() and '"' not in term.value and "\\" not in term.value


def _packed_event(graph: list[Triple], time: int) -> bytes:
    """As in journal/events.py: terms are numbered as they first appear, column by column."""
    numbers: dict[object, int] = {}
    texts: list[bytes] = []
    blanks = 0
    codes = []
    columns = ([t.subject for t in graph], [t.predicate for t in graph], [t.object for t in graph])
    for term in (term for column in columns for term in column):
        code = numbers.get(term)
        if code is None:
            if isinstance(term, BlankNode):
                blanks += 1
                code = -blanks
            else:
                texts.append(str(term).encode())
                code = len(texts)
            numbers[term] = code
        codes.append(code)
    text = b"".join(texts)
    body = b"".join(
        [
            struct.pack("<iiiiBqi", len(graph), len(texts), len(text), blanks, 1, time, len(graph)),
            struct.pack("<i", blanks) if blanks else b"",
            struct.pack(f"<{len(codes)}b", *codes),
            struct.pack(f"<{len(texts)}i", *map(len, texts)),
            text,
        ]
    )
    return seal_with(KIND, Summary(1, time, time), body)


# --- intake ----------------------------------------------------------------------------------------------

EVENTS: Final[Mapping[str, EventFormat]] = {
    "application/n-quads": "nquads",
    "text/x-nquads": "nquads",
    "application/trig": "trig",
    "application/x-jelly-rdf": "jelly",
    "application/vnd.apache.arrow.file": "arrow",
    "application/vnd.apache.parquet": "parquet",
}
"""Media types of batches of events."""
GRAPHS: Final[Mapping[str, RdfFormat]] = {
    "text/turtle": RdfFormat.TURTLE,
    "application/n-triples": RdfFormat.N_TRIPLES,
    "application/ld+json": RdfFormat.JSON_LD,
    "application/rdf+xml": RdfFormat.RDF_XML,
}
"""Media types of one event's graph, whose time is given beside it."""
MESSAGES: Final[Mapping[str, MessageFormat]] = {
    "application/n-quads": "messages-nquads",
    "text/x-nquads": "messages-nquads",
    "application/trig": "messages-trig",
    "application/n-triples": "messages-ntriples",
    "text/turtle": "messages-turtle",
    "application/x-ld+ndjson": "messages-ndjsonld",
}
"""Media types of logs of RDF messages, where the version says so, or the text."""
_BLOCK: Final = 1 << 18
_TOLD: Final = 1_000
"""Most rows for which the reason is listed; all are counted."""
_ENDINGS: Final = {"jelly": ".jelly", "arrow": ".arrow", "parquet": ".parquet"}
MOST: Final = 16 << 20
"""Bytes beyond which the dictionary of readings restarts: a term may be long."""
_REASONS: Final = 10


class RejectedError(OxiseqError):
    """A body of which nothing could be read; `reasons` are those of a Reading."""

    def __init__(self, message: str, rejected: int, reasons: tuple[Reason, ...]) -> None:
        super().__init__(message)
        self.rejected = rejected
        self.reasons = reasons


@dataclass(frozen=True, slots=True)
class Reason:
    """Why something was left out; `line` of the body (or the number of a row of JSON), counted from 1, and `column`,
    where they are known."""

    reason: str
    line: int | None = None
    column: str | None = None

    def as_data(self) -> dict[str, Any]:
        """As JSON values."""
        value: dict[str, Any] = {"reason": self.reason, "line": self.line}
        return value if self.column is None else {**value, "column": self.column}


@dataclass(frozen=True, slots=True, eq=False)
class Reading:
    """Events packed for the log. time: i64[n] µs, in order; `rejected`: lines and events left out, `lines`: how many of
    them are lines, `reasons`: the first ten."""

    blob: bytes
    time: NDArray[np.int64]
    rejected: int = 0
    reasons: tuple[Reason, ...] = ()
    lines: int = 0


def is_small(size: int) -> bool:
    """Whether a body of so many bytes is read in a moment, whatever it holds."""
    return size <= LARGEST


def read_batch(body: bytes, format: EventFormat) -> Reading:
    """The events of a body. Raises RejectedError when it holds something, but no event that can be read."""
    if format == "nquads" and len(body) <= LARGEST and (one := read_one(body)) is not None:
        return Reading(one[0], np.array([one[1]]))
    return read_with_tables(body, format)


def message_format(body: bytes, media_type: str, version: str) -> MessageFormat | None:
    """That of a body that is a log of RDF messages, by its Content-Type's version or its own text; else None."""
    format = MESSAGES.get(media_type)
    if format == "messages-ndjsonld" or format is None:
        return format
    return format if is_label(version) or announces(body[:HEAD]) else None


def read_log(body: bytes, format: MessageFormat, time: int | None, contexts: Contexts = NO_CONTEXTS) -> Reading:
    """The events of a log of RDF messages; `time` (µs) is that of messages that state none. Raises RejectedError."""
    return _packed(
        lambda terms, report: read_messages(BytesIO(body), terms, report, "skip", format, GENERATED_AT, time, contexts)
    )


def read_with_tables(body: bytes, format: EventFormat) -> Reading:
    """`read_batch` for a body of any size and kind."""
    return _packed(lambda terms, report: _batches(body, format, terms, report))


def _packed(read: Callable[[TermDictionary, ReadReport], Iterator[EventBatch]]) -> Reading:
    report = ReadReport("")
    with SHARED_TERMS.borrowed() as terms:
        try:
            batches = list(read(terms, report))
        except EventError as error:
            raise RejectedError(error.reason, 1, (Reason(error.reason, error.line),)) from error
        batch = EventBatch.concat(batches) if len(batches) != 1 else batches[0]
        reasons = tuple(Reason(error.reason, error.line) for error in report.errors)
        if not len(batch) and report.skipped:
            raise RejectedError("the body holds no event that can be read", report.skipped, reasons)
        return Reading(pack_events(batch, terms), batch.time, report.skipped, reasons, report.lines)


def read_graph(body: bytes, format: RdfFormat, time: int, contexts: Contexts = NO_CONTEXTS) -> Reading:
    """One event: a graph and its time (µs). Raises RejectedError."""
    try:
        quads = contexts.quads(body) if format == RdfFormat.JSON_LD else parse(body, format)
        triples = [quad.triple for quad in quads]
        if (blob := pack_one(triples, time)) is not None:
            return Reading(blob, np.array([time]))
        with SHARED_TERMS.borrowed() as terms:
            batch = encode_events([(time, triples)], terms)
            return Reading(pack_events(batch, terms), batch.time)
    except SyntaxError as error:
        raise RejectedError(str(error), 1, (Reason(str(error.msg or error), error.lineno),)) from error
    except (EventError, ValueError, RecursionError) as error:
        raise RejectedError(str(error), 1, (Reason(str(error)),)) from error


def read_rows(
    body: bytes, media_type: str, mapping: StreamMapping, time: int | None = None, now: float | None = None
) -> Reading:
    """The events of rows, by a stream's mapping; `media_type`: one of ROWS. `time` (µs): of rows of a mapping without a
    time; `now`: seconds since 1970, for SenML's relative times. Bad rows are left out, one by one. Raises RejectedError
    when there are rows, but none that is right."""
    try:
        with SHARED_TERMS.borrowed() as terms:
            parts = list(mapped(read_table(body, media_type, mapping.key, now), mapping, terms, time))
            batch = EventBatch.concat([part.batch for part in parts])
            bad = sorted((bad for part in parts for bad in part.bad), key=lambda each: each.place or 0)
            reasons = tuple(Reason(each.reason, each.place, each.column) for each in bad[:_TOLD])
            if bad and not len(batch):
                raise RejectedError("the body holds no row that can be taken", len(bad), reasons)
            return Reading(pack_events(batch, terms), batch.time, len(bad), reasons)
    except EventError as error:
        raise RejectedError(error.reason, 1, (Reason(error.reason, error.line),)) from error


def read_triples(
    events: list[tuple[int, list[Triple]]], rejected: int = 0, reasons: tuple[Reason, ...] = ()
) -> Reading:
    """Events that have been parsed, with their times (µs); those whose terms RDF does not allow are rejected, too."""
    if len(events) == 1 and (blob := pack_one(events[0][1], events[0][0])) is not None:
        return Reading(blob, np.array([events[0][0]]), rejected, reasons)
    with SHARED_TERMS.borrowed() as terms:
        batches = []
        try:
            batches.append(encode_events(events, terms))
        except EventError:
            for event in events:  # to find the one
                try:
                    batches.append(encode_events([event], terms))
                except EventError as error:
                    rejected += 1
                    reasons = (*reasons, Reason(error.reason))[:_REASONS]
        batch = EventBatch.concat(batches) if batches else EventBatch.empty()
        return Reading(pack_events(batch, terms), batch.time, rejected, reasons)


def quad_batches(body: bytes, terms: TermDictionary, fault: Fault) -> list[EventBatch]:
    """The events of a body of N-Quads; `fault` is notified of what is left out."""
    return list(_quad_batches(body, terms, fault)) if body else []


class SharedTerms:
    """One dictionary for readings, one of them at a time; beside it another gets its own, for itself.

    To set one up takes longer than to read a small body. One that has become larger than MOST is not kept.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._terms = TermDictionary()

    @property
    def nbytes(self) -> int:
        """Bytes that are kept."""
        return self._terms.nbytes

    @contextmanager
    def borrowed(self) -> Iterator[TermDictionary]:
        """A dictionary that nobody else uses meanwhile."""
        if not self._lock.acquire(blocking=False):
            yield TermDictionary()
            return
        try:
            yield self._terms
        finally:
            if self._terms.nbytes > MOST:
                self._terms = TermDictionary()
            self._lock.release()


SHARED_TERMS: Final = SharedTerms()


def _batches(body: bytes, format: EventFormat, terms: TermDictionary, report: ReadReport) -> Iterator[EventBatch]:
    if not body:
        return
    if format in _ENDINGS:
        with tempfile.TemporaryDirectory(prefix="oxiseq-") as folder:
            file = Path(folder, f"body{_ENDINGS[format]}")
            file.write_bytes(body)
            reader = open_events(file, terms, on_error="skip", format=format)
            yield from reader
        report.skipped, report.errors = reader.report.skipped, reader.report.errors
        return

    def fault(line: int | None, reason: str) -> None:
        report.lines += line is not None
        report.fault(line, reason, "skip")

    if format == "nquads":
        yield from _quad_batches(body, terms, fault)
        return
    assembler = _assembler(body, terms, fault)
    yield from _trig(body, assembler, report)
    yield from assembler.finish()


def _assembler(body: bytes, terms: TermDictionary, fault: Fault) -> EventAssembler:
    most = max(64, len(body) // 16)  # a quad is longer than that
    return EventAssembler(
        terms, GENERATED_AT, fault, min(BATCH_EVENTS, most), rows=min(1 << 15, most), remembered=min(REMEMBERED, most)
    )


def _quad_batches(body: bytes, terms: TermDictionary, fault: Fault) -> Iterator[EventBatch]:
    assembler = _assembler(body, terms, fault)
    for block in _blocks(body):
        check()
        yield from assembler.read(block, assembler.next_line)
    yield from assembler.finish()


def _blocks(body: bytes) -> Iterator[Block]:
    """Whole lines, a quarter of a megabyte or the one longer line at a time."""
    at = 3 if body.startswith(b"\xef\xbb\xbf") else 0
    while at < len(body):
        end = len(body)
        if end - at > _BLOCK:
            end = (body.rfind(b"\n", at, at + _BLOCK) + 1) or (body.find(b"\n", at + _BLOCK) + 1) or end
        part = body[at:end]
        size = len(part) if part.endswith(b"\n") else len(part) + 1
        yield Block(part + b"\n" * (size - len(part)) + bytes(PADDING), size)
        at = end


def _trig(body: bytes, assembler: EventAssembler, report: ReadReport) -> Iterator[EventBatch]:
    quads = []
    try:
        for quad in parse(body, RdfFormat.TRIG):
            quads.append(quad)
    except SyntaxError as error:
        report.fault(error.lineno, f"{error.msg or error}; the rest cannot be read", "skip")
    yield from assembler.read_quads(quads)
