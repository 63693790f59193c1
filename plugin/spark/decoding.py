"""Rows of a DataFrame → event batches.

A row is one of:

    events                 binary: events as `oxiseq.spark` packs them (its Data Source gives them), or N-Quads, text or
                           binary, in which each event is a named graph with its time in the default graph
    time, graph            one event: a timestamp or bigint microseconds, and its graph as N-Triples or Turtle
    any columns            with a mapping, which says what a row means

Rows of text are read many at a time, as one N-Quads text; only if something is wrong there, or unusual, each row is
read by itself.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from typing import Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from oxiseq.engine.errors import EventError
from oxiseq.engine.events.assembler import Block, EventAssembler
from oxiseq.engine.events.batch import EventBatch, offsets
from oxiseq.engine.events.encode import encode_events
from oxiseq.engine.events.quads import GENERATED_AT
from oxiseq.engine.events.report import OnError
from oxiseq.engine.terms.dictionary import TermDictionary
from oxiseq.journal import unpack_events
from oxiseq.mappings.declared import StreamMapping
from oxiseq.mappings.rows import BadRow
from oxiseq.sources.sources import batches_of

COLUMNS: Final = (("events",), ("time", "graph"))
"""What the rows of a stream may consist of."""
_LOG: Final = logging.getLogger("oxiseq")
_PACKED: Final = b"oE"
"""How packed events begin (journal/events.py), and no N-Quads."""
_MARK: Final = b"<urn:oxiseq:row:"
_TIME: Final = f" {GENERATED_AT} ".encode()
_INTEGER: Final = b'"^^<http://www.w3.org/2001/XMLSchema#integer> .\n'
_SEVERAL: Final = 256
"""Events at a time for which the tables of a reader pay."""


class _Refused(Exception):
    """Something is wrong in a text; who wants to know what reads it row by row."""


class Decoder:
    """Reads the rows of one stream."""

    def __init__(self, terms: TermDictionary, on_error: OnError = "stop", mapping: StreamMapping | None = None) -> None:
        self._terms = terms
        self._on_error = on_error
        self._mapping = mapping

    def decode(self, rows: pa.RecordBatch) -> EventBatch:
        """The events of the rows. Raises EventError for what is malformed, unless it is to be skipped."""
        batch = self._decoded(rows)
        self._terms.hold(*batch.ids)
        return batch

    def _decoded(self, rows: pa.RecordBatch) -> EventBatch:
        if self._mapping is not None:
            return self._of_rows(pa.Table.from_batches([rows]), self._mapping)
        for name in rows.schema.names:
            if rows.column(name).null_count:
                self._fault(None, f"an event whose {name} is null")
                rows = rows.filter(rows.column(name).is_valid())
        if "events" in rows.schema.names:
            return self._of_events(rows.column("events").to_pylist())
        time = rows.column("time")
        if not pa.types.is_integer(time.type):
            time = time.cast(pa.timestamp("us", tz=time.type.tz)).cast(pa.int64())
        graphs = [_bytes(graph) for graph in rows.column("graph").to_pylist()]
        return self._of_graphs(np.asarray(time.to_numpy(zero_copy_only=False), np.int64), graphs)

    def _of_rows(self, rows: pa.Table, mapping: StreamMapping) -> EventBatch:
        def bad(row: BadRow) -> None:
            self._fault(None, str(row))

        return EventBatch.concat([EventBatch.empty(), *batches_of(rows, self._terms, "skip", mapping=mapping, bad=bad)])

    # --- events ---------------------------------------------------------------------------------------

    def _of_events(self, given: Sequence[str | bytes]) -> EventBatch:
        values = [_bytes(value) for value in given]
        packed = [value for value in values if value.startswith(_PACKED)]
        texts = [value for value in values if not value.startswith(_PACKED)]
        return EventBatch.concat([unpack_events(packed, self._terms), self._of_texts(texts)])

    def _of_texts(self, texts: list[bytes]) -> EventBatch:
        if not texts:
            return EventBatch.empty()
        try:
            return self._read(b"".join([text if text.endswith(b"\n") else text + b"\n" for text in texts]), _refuse)
        except _Refused:
            return EventBatch.concat([self._read(text + b"\n", self._fault) for text in texts])

    def _read(self, text: bytes, fault: Callable[[int | None, str], None]) -> EventBatch:
        most = max(64, min(8192, len(text) // 16))  # a quad is longer than that
        reader = EventAssembler(self._terms, GENERATED_AT, fault, most, rows=4 * most, remembered=8 * most)
        batches = list(reader.read(Block.of(text), 1))
        batches += reader.finish()
        return EventBatch.concat(batches)

    def _fault(self, line: int | None, reason: str) -> None:
        if self._on_error == "stop":
            raise EventError(None, line, reason)
        _LOG.warning("left out: %s", EventError(None, line, reason))

    # --- time and graph -------------------------------------------------------------------------------

    def _of_graphs(self, times: NDArray[np.int64], graphs: list[bytes]) -> EventBatch:
        if len(graphs) >= _SEVERAL:
            try:
                return self._of_triples(times, graphs)
            except _Refused:
                pass
        return EventBatch.concat(list(self._one_by_one(times, graphs)))

    def _of_triples(self, times: NDArray[np.int64], graphs: list[bytes]) -> EventBatch:
        """Graphs that are N-Triples as most programs write them: a triple a line, " ." at its end."""
        parts, empty = [], []
        for number, graph in enumerate(graphs):
            text = graph if graph.endswith(b"\n") else graph + b"\n"
            if not text.strip():
                empty.append(number)
                continue
            name = b"%s%d>" % (_MARK, number)
            named = text.replace(b" .\n", b" " + name + b" .\n")
            if named.count(b"\n") * (len(name) + 1) != len(named) - len(text):
                raise _Refused
            parts += [named, name, _TIME, b'"%d' % times[number], _INTEGER]
        found = [self._read(b"".join(parts), _refuse)] if parts else []
        none = np.zeros(0, np.uint32)
        found.append(EventBatch(times[empty], offsets(np.zeros(len(empty), np.int64)), none, none, none))
        return EventBatch.concat(found)

    def _one_by_one(self, times: NDArray[np.int64], graphs: list[bytes]) -> Iterator[EventBatch]:
        for time, graph in zip(times.tolist(), graphs, strict=True):
            try:
                yield encode_events([(time, graph)], self._terms)
            except EventError as error:
                self._fault(error.line, error.reason)


def _refuse(line: int | None, reason: str) -> None:
    raise _Refused(line, reason)


def _bytes(value: str | bytes) -> bytes:
    return value.encode() if isinstance(value, str) else bytes(value)
