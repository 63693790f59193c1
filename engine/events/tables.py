"""Coded event tables: Arrow IPC and Parquet files that load without parsing RDF per event.

In the flow: batches → **table** → batches. `convert` writes them, `run` reads them.

The format, version 2. The file is self-contained and written in one pass: an Arrow IPC *file* (`.arrow`,
`.feather`) or a Parquet file. Schema metadata: `oxiseq.format` = `events`, `oxiseq.version` = `2`. One row
per event, in the order of the stream:

- `time`, timestamp[us, UTC]: microseconds since 1970.
- `terms`, list<string>: where it is not empty, the dictionary of this row and the following ones, until the
  next that is not empty: N-Triples texts of terms, numbered 1, 2, 3... Each 8192 rows or so bring their own, so
  that reading needs no memory of terms that have gone by.
- `blanks`, int32: the number of blank nodes of the event.
- `triples`, list<struct<subject, predicate, object>>, int32 codes: n > 0 is term n of the dictionary, n < 0 is
  blank node -n of the event, counted from 1.

Nothing is null. Reading looks each text of a dictionary up once and maps the codes with NumPy.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from oxiseq.engine import kinds
from oxiseq.engine.errors import EventError
from oxiseq.engine.events.batch import EventBatch, offsets
from oxiseq.engine.events.report import ReadReport
from oxiseq.engine.events.time import OUTSIDE, outside, to_text
from oxiseq.engine.events.write import replacing
from oxiseq.engine.extras import needed
from oxiseq.engine.terms.dictionary import TermDictionary
from oxiseq.engine.terms.places import numbered

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.parquet as pq
else:
    pa = needed("pyarrow")
    pq = needed("pyarrow.parquet")

TableFormat: TypeAlias = Literal["arrow", "parquet"]

VERSION: Final = 2
FORMAT_KEY: Final = b"oxiseq.format"
VERSION_KEY: Final = b"oxiseq.version"
BATCH_EVENTS: Final = 8192

_COLUMNS: Final = ("time", "terms", "blanks", "triples")


@cache
def table_schema() -> pa.Schema:
    """The columns and the metadata of an event table."""
    triple = pa.struct([pa.field(name, pa.int32(), nullable=False) for name in ("subject", "predicate", "object")])
    types = (
        pa.timestamp("us", tz="UTC"),
        pa.list_(pa.field("item", pa.string(), nullable=False)),
        pa.int32(),
        pa.list_(pa.field("item", triple, nullable=False)),
    )
    fields = [pa.field(name, of, nullable=False) for name, of in zip(_COLUMNS, types, strict=True)]
    return pa.schema(fields, metadata={FORMAT_KEY: b"events", VERSION_KEY: str(VERSION).encode()})


# --- writing --------------------------------------------------------------------------------------


def write_table(
    batches: Iterable[EventBatch], terms: TermDictionary, path: Path, *, format: TableFormat = "arrow"
) -> int:
    """Write the events to a table; returns how many. The file appears when all is written.

    Raises OSError and whatever reading the batches raises.
    """
    count = 0
    coder = _Coder(terms)
    with replacing(path) as part, _writer(part, format) as write:
        for batch in batches:
            for start in range(0, len(batch), BATCH_EVENTS):
                piece = batch.slice(start, start + BATCH_EVENTS)
                write(coder.encode(piece))
                count += len(piece)
    return count


@contextmanager
def _writer(path: Path, format: TableFormat) -> Iterator[Callable[[pa.RecordBatch], None]]:
    if format == "parquet":
        with pq.ParquetWriter(path, table_schema(), compression="zstd") as parquet:
            yield parquet.write_batch
    else:
        options = pa.ipc.IpcWriteOptions(compression="lz4")
        with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, table_schema(), options=options) as arrow:
            yield arrow.write_batch


class _Coder:
    """Ids of a dictionary → codes of one file."""

    def __init__(self, terms: TermDictionary) -> None:
        self._terms = terms

    def encode(self, batch: EventBatch) -> pa.RecordBatch:
        """One record batch of the file's next rows, with its own dictionary in the first of them."""
        ids = np.stack([batch.subject, batch.predicate, batch.object], axis=1).ravel()
        blank = self._terms.columns.kind[ids] == kinds.BLANK
        codes = np.zeros(len(ids), np.int32)
        used, codes[~blank] = numbered(ids[~blank], len(self._terms))
        event = np.repeat(np.arange(len(batch)), 3 * np.diff(batch.offset))
        codes[blank], blanks = _number_blanks(ids[blank], event[blank], len(batch))
        graphs_type = table_schema().field("triples").type
        columns = [pa.array(np.ascontiguousarray(codes[position::3])) for position in range(3)]
        triples = pa.StructArray.from_arrays(columns, fields=list(graphs_type.value_type))
        starts = batch.offset.astype(np.int32)
        graphs = pa.ListArray.from_arrays(starts, triples, type=graphs_type)
        times = pa.array(batch.time).cast(table_schema().field("time").type)
        return pa.record_batch([times, self._texts(used, len(batch)), pa.array(blanks), graphs], schema=table_schema())

    def _texts(self, ids: NDArray[np.int64], rows: int) -> pa.ListArray:
        data, ends = self._terms.texts(ids)
        strings = pa.StringArray.from_buffers(len(ids), pa.py_buffer(ends.astype(np.int32)), pa.py_buffer(data))
        starts = np.full(rows + 1, len(ids), np.int32)
        starts[0] = 0
        return pa.ListArray.from_arrays(starts, strings, type=table_schema().field("terms").type)


def _number_blanks(
    ids: NDArray[np.uint32], event: NDArray[np.int64], events: int
) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """Codes -1, -2... of the blank nodes of each event, by id; and how many each event has."""
    pairs, inverse = np.unique(event << 32 | ids.astype(np.int64), return_inverse=True)
    owner = pairs >> 32
    counts = np.bincount(owner, minlength=events)
    rank = np.arange(len(pairs)) - offsets(counts)[owner]
    return (-1 - rank[inverse]).astype(np.int32), counts.astype(np.int32)


# --- reading --------------------------------------------------------------------------------------


def read_table(
    path: Path, terms: TermDictionary, report: ReadReport | None = None, *, format: TableFormat = "arrow"
) -> Iterator[EventBatch]:
    """The events of a table in batches of at most 8192. `report` is kept up to date.

    Raises EventError for a file that is something else, of another version, or damaged, and OSError.
    """
    report = ReadReport(str(path)) if report is None else report
    report.bytes_total = path.stat().st_size
    decoder = _Decoder(terms, report.file)
    read = _parquet_batches if format == "parquet" else _arrow_batches
    try:
        for part, table in read(path):
            batch = decoder.decode(table)
            report.bytes_read = int(report.bytes_total * part)
            for start in range(0, len(batch), BATCH_EVENTS):
                piece = batch.slice(start, start + BATCH_EVENTS)
                report.events += len(piece)
                report.quads += piece.triples
                yield piece
    except pa.ArrowException as error:
        raise EventError(report.file, None, f"not a readable {format} file: {error}") from error
    report.bytes_read = report.bytes_total


def _arrow_batches(path: Path) -> Iterator[tuple[float, pa.RecordBatch]]:
    with pa.memory_map(str(path)) as source, pa.ipc.open_file(source) as file:
        check_schema(file.schema, str(path))
        for number in range(file.num_record_batches):
            yield (number + 1) / file.num_record_batches, file.get_batch(number)


def _parquet_batches(path: Path) -> Iterator[tuple[float, pa.RecordBatch]]:
    with pq.ParquetFile(path) as file:
        check_schema(file.schema_arrow, str(path))
        rows, done = max(1, file.metadata.num_rows), 0
        for batch in file.iter_batches(BATCH_EVENTS):
            done += batch.num_rows
            yield done / rows, batch


def check_schema(schema: pa.Schema, file: str) -> None:
    """Raise EventError unless it is the schema of this version's event tables."""
    metadata = schema.metadata or {}
    if metadata.get(FORMAT_KEY) != b"events":
        raise EventError(file, None, "a table, but not one of events (write one with: oxiseq convert)")
    version = metadata.get(VERSION_KEY, b"?").decode(errors="replace")
    if version != str(VERSION):
        raise EventError(file, None, f"an event table of version {version}; this program reads {VERSION}")
    if schema.names != list(_COLUMNS):
        raise EventError(file, None, f"an event table with wrong columns: {', '.join(schema.names)}")


class _Decoder:
    """Codes of one file → ids of a dictionary."""

    def __init__(self, terms: TermDictionary, file: str) -> None:
        self._terms = terms
        self._file = file
        self._ids = np.zeros(1, np.uint32)
        """By code; number 0 is not used."""

    def decode(self, table: pa.RecordBatch) -> EventBatch:
        """The events of the file's next rows."""
        codes_of = table.column("triples").flatten()
        nested = [table.column("terms").flatten(), codes_of, *codes_of.flatten()]
        if any(column.null_count for column in (*table.columns, *nested)):
            raise self._damaged("a value is missing")
        sizes = np.diff(_numpy(table.column("terms").offsets))
        starts = np.flatnonzero(sizes)
        cuts = np.unique(np.concatenate([[0], starts, [len(table)]])).tolist()
        return EventBatch.concat([self._decode_part(table.slice(a, b - a), bool(sizes[a])) for a, b in pairwise(cuts)])

    def _decode_part(self, table: pa.RecordBatch, new: bool) -> EventBatch:
        """Rows with one dictionary, which is `new` or the one of the rows before."""
        if new:
            self._read_dictionary(table.column("terms")[0].values)
        times = _numpy(table.column("time").cast(pa.int64())).copy()
        if len(wrong := outside(times)):
            raise EventError(self._file, None, f"{OUTSIDE}: {to_text(int(times[wrong[0]]))}")
        triples = table.column("triples")
        offset = _numpy(triples.offsets).astype(np.int64)
        offset -= offset[0]
        blanks = _numpy(table.column("blanks")).astype(np.int64)
        codes = [_numpy(column) for column in triples.flatten().flatten()]
        ids = self._map(codes, offset, blanks)
        self._terms.hold(*ids)
        return EventBatch(times, offset, *ids)

    def _read_dictionary(self, texts: pa.StringArray) -> None:
        _, ends, data = texts.buffers()
        places = np.frombuffer(ends, np.int32)[texts.offset : texts.offset + len(texts) + 1].astype(np.int64)
        bytes_ = np.frombuffer(data, np.uint8) if data is not None else np.zeros(0, np.uint8)
        try:
            ids = self._terms.intern_texts(bytes_, places)
        except ValueError as error:
            raise self._damaged(f"not a term: {error}") from error
        self._ids = np.concatenate([np.zeros(1, np.uint32), ids])
        self._terms.hold(self._ids)

    def _map(
        self, codes: list[NDArray[np.int32]], offset: NDArray[np.int64], blanks: NDArray[np.int64]
    ) -> list[NDArray[np.uint32]]:
        """The id columns: terms by the file's dictionary, blank nodes by their event's."""
        if len(blanks) and blanks.min() < 0:
            raise self._damaged("a negative number of blank nodes")
        fresh = self._terms.blanks(int(blanks.sum()))
        first = offsets(blanks)[:-1]
        event: NDArray[np.int64] | None = None
        result = []
        for column in codes:
            if len(column) and int(column.max()) >= len(self._ids):
                raise self._damaged("a code is beyond the dictionary")
            ids = self._ids[np.maximum(column, 0)]
            blank = np.flatnonzero(column < 0)
            if len(blank):
                event = np.repeat(np.arange(len(blanks)), np.diff(offset)) if event is None else event
                owner = event[blank]
                number = -1 - column[blank].astype(np.int64)
                if (number >= blanks[owner]).any():
                    raise self._damaged("a code is beyond the event's blank nodes")
                ids[blank] = fresh[first[owner] + number]
            if not ids.all():
                raise self._damaged("a code is 0")
            result.append(ids)
        self._check_kinds(result)
        return result

    def _check_kinds(self, ids: list[NDArray[np.uint32]]) -> None:
        kind = self._terms.columns.kind
        subject, predicate, _ = ids
        if not (kind[subject] <= kinds.BLANK).all() or not (kind[predicate] == kinds.IRI).all():
            raise self._damaged("a triple with a literal as subject, or a predicate that is not an IRI")

    def _damaged(self, reason: str) -> EventError:
        return EventError(self._file, None, f"damaged event table: {reason}")


def _numpy(column: pa.Array) -> NDArray[Any]:
    """A read-only view. Not `to_numpy`, which imports pandas (half a second) where it is installed."""
    return np.from_dlpack(column)
