"""Tables of tuple events: one row is one event, with a column for its time, one for its type, one per attribute.

In the flow: files, Arrow tables, pandas frames → **batches of rows** → marks of events (engine/cea). No RDF and no
term dictionary: CEQL's predicates are answered on the typed columns.

The time is a timestamp (one without a zone is UTC), a date, a text of these (ISO 8601) or an integer since 1970 UTC
(units.py), and never null. The type is text: a name of the query's vocabulary or an IRI; a null is an event of no type.
"""

from __future__ import annotations

import gzip
import mmap
import re
import sys
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from oxiseq.engine.errors import EventError
from oxiseq.engine.events.exported import Exported
from oxiseq.engine.events.report import ReadReport
from oxiseq.engine.events.tables import FORMAT_KEY
from oxiseq.engine.events.time import OUTSIDE, outside, to_microseconds
from oxiseq.engine.events.units import TimeUnit, all_as_microseconds, check_unit
from oxiseq.engine.extras import needed
from oxiseq.engine.kernels.events.arrow import MISSING, RISING, copy_times
from oxiseq.engine.kernels.memory.pointers import call
from oxiseq.engine.kinds import FIRST_TIME, LAST_TIME
from oxiseq.grammar.records import dataclass

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.csv as csv
    import pyarrow.parquet as pq
else:
    pa = needed("pyarrow")
    csv = needed("pyarrow.csv")
    pc = needed("pyarrow.compute")
    pq = needed("pyarrow.parquet")

BATCH_ROWS: Final = 1 << 16
"""Rows of a batch at most, so that memory does not grow with a table."""
TableLike: TypeAlias = Any
"""A pyarrow Table, RecordBatch or RecordBatchReader, a list of record batches, a pandas DataFrame, or whatever else has
`__arrow_c_stream__`, as tables of Polars and DuckDB."""
_ARROW: Final = (".arrow", ".feather", ".ipc")
_PARQUET: Final = (".parquet", ".pq")


@dataclass(frozen=True, slots=True)
class Naming:
    """Which columns hold the type and the time, and its unit."""

    type: str = "type"
    time: str | None = None
    """None: it is found, see `TIME_NAMES`."""
    unit: TimeUnit | None = None
    """Of integer times: None is microseconds, and what seems to be another unit is refused (units.py)."""
    typed: bool = True
    """Whether there has to be a type."""


USUAL_NAMES: Final = Naming()
TIME_NAMES: Final = ("time", "timestamp", "ts", "at")
"""What a column with the time is called, the first of these that there is; else it is the only one that holds times."""
_ZEROS: Final = re.compile(rb"[,\n\r\"][+-]?0[0-9]")
"""What may begin a number with zeros before it: `007` is a name."""
_NO_TIMES: Final = np.zeros(0, np.int64)


@dataclass(slots=True, eq=False)
class TupleRows:
    """n events as rows of a table. time: i64[n], microseconds since 1970 UTC, in order of arrival."""

    time: NDArray[np.int64]
    rows: pa.RecordBatch
    naming: Naming
    rising: bool = False
    """Whether it is known that no time is smaller than the one before."""
    _exported: Exported | None = None

    def __len__(self) -> int:
        return len(self.time)

    def take(self, index: NDArray[np.int64]) -> TupleRows:
        """The rows of these numbers."""
        if not len(index):
            return self.slice(0, 0)  # `pa.array` of a NumPy array imports pandas where it is installed
        try:
            rows = self.rows.take(pa.array(index))
        except pa.ArrowNotImplementedError:  # views of texts, among others
            runs = np.split(index, np.flatnonzero(np.diff(index) != 1) + 1)
            rows = pa.concat_batches([self.rows.slice(int(run[0]), len(run)) for run in runs])
        return TupleRows(self.time[index], rows, self.naming)

    def slice(self, start: int, stop: int) -> TupleRows:
        """The rows start, ..., stop - 1."""
        return TupleRows(self.time[start:stop], self.rows.slice(start, stop - start), self.naming)

    @classmethod
    def concat(cls, pieces: Collection[TupleRows]) -> TupleRows:
        """The rows of several, one at least, one after the other. A column that some of them lack is null there."""
        first = next(iter(pieces))
        if len(pieces) == 1:
            return first
        tables = [pa.Table.from_batches([piece.rows]) for piece in pieces]
        try:
            rows = pa.concat_batches(
                pa.concat_tables(tables, promote_options="default").unify_dictionaries().to_batches()
            )
        except (pa.ArrowException, TypeError) as error:
            reason = f"its rows are not in order of time, and its batches cannot be sorted together: {error}"
            raise EventError("the table", None, reason) from error
        return cls(np.concatenate([piece.time for piece in pieces]), rows, first.naming)

    @property
    def exported(self) -> Exported:
        """The rows for kernels; made once."""
        made = self._exported
        if made is None:
            made = self._exported = Exported(self.rows)
        return made

    def column(self, name: str) -> pa.Array | None:
        """A column, if there is one of this name."""
        place = self.rows.schema.get_field_index(name)
        return self.rows.column(place) if place >= 0 else None


def is_table(source: object) -> bool:
    """Whether it is a table and not (graph, time) pairs."""
    if _is_frame(source) or hasattr(source, "__arrow_c_stream__"):
        return True
    if sys.modules.get("pyarrow") is None:  # nobody can have made one
        return False
    if isinstance(source, pa.Table | pa.RecordBatch | pa.RecordBatchReader):
        return True
    return isinstance(source, list | tuple) and bool(source) and all(isinstance(b, pa.RecordBatch) for b in source)


def is_tuple_file(path: str | Path) -> bool:
    """Whether a file holds a table of tuple events: by its ending, and for Arrow and Parquet by its schema."""
    file = Path(path)
    ending = file.suffix.lower()
    try:
        if ending in _ARROW:
            with pa.memory_map(str(file)) as source, pa.ipc.open_file(source) as opened:
                return FORMAT_KEY not in (opened.schema.metadata or {})
        if ending in _PARQUET:
            return FORMAT_KEY not in (pq.read_schema(file).metadata or {})
    except (OSError, pa.ArrowException):
        return False  # whoever opens it as events says what is wrong
    return (file.stem if ending == ".gz" else file.name).lower().endswith(".csv")


def read_rows(source: TableLike, naming: Naming = USUAL_NAMES) -> Iterator[TupleRows]:
    """The rows of a table in batches. Raises EventError, some of it at once."""
    name = "the table"
    if isinstance(source, pa.RecordBatch):
        if source.num_rows <= BATCH_ROWS:  # most that are pushed one by one
            return iter(_read(source, _clock_of(source.schema, naming, name), naming.unit, name))
        source = [source]
    elif _is_frame(source):
        source = _from_pandas(source)
    elif not isinstance(source, pa.Table | pa.RecordBatchReader) and hasattr(source, "__arrow_c_stream__"):
        source = pa.table(source)
    if isinstance(source, pa.Table):
        _clock_of(source.schema, naming, name)
        source = source.to_batches()
    return _cut(iter(source), naming, name)


def open_rows(path: str | Path, naming: Naming = USUAL_NAMES, report: ReadReport | None = None) -> Iterator[TupleRows]:
    """The rows of a CSV, Arrow or Parquet file; a CSV file is read whole, since any row may decide a column's type.

    `report` is kept up to date. Raises EventError.
    """
    file = Path(path)
    report = ReadReport(str(path)) if report is None else report
    try:
        report.bytes_total = file.stat().st_size
        for part, batch in _read_file(file, naming.time):
            for rows in _cut(iter([batch]), naming, str(path)):
                report.events += len(rows)
                naming = _settled(naming)
                yield rows
            report.bytes_read = int(report.bytes_total * part)
    except FileNotFoundError as error:
        raise EventError(str(path), None, "there is no such file") from error
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        raise EventError(str(path), None, f"not a readable table: {error}") from error


def _read_file(file: Path, time: str | None) -> Iterator[tuple[float, pa.RecordBatch]]:
    """Record batches, each with the part of the file that has been read then."""
    ending = file.suffix.lower()
    if ending in _ARROW:
        with pa.memory_map(str(file)) as source, pa.ipc.open_file(source) as opened:
            for i in range(opened.num_record_batches):
                yield (i + 1) / opened.num_record_batches, opened.get_batch(i)
    elif ending in _PARQUET:
        with pq.ParquetFile(file) as parquet:
            texts = [f.name for f in parquet.schema_arrow if pa.types.is_string(f.type)]
        with pq.ParquetFile(file, read_dictionary=texts) as parquet:
            rows, done = max(1, parquet.metadata.num_rows), 0
            for batch in parquet.iter_batches(BATCH_ROWS):
                done += batch.num_rows
                yield done / rows, batch
    else:
        batches = _read_csv(file, time).to_batches()
        for i, batch in enumerate(batches):
            yield (i + 1) / len(batches), batch


def _read_csv(file: Path, time: str | None) -> pa.Table:
    """An empty field is a null, an empty text is in quotes; `NA` and the like are text, and so is a column with `007`,
    the one with the time excepted."""
    content = _content(file)
    table = _parsed(content, None)
    if _ZEROS.search(content) is None:
        return table
    time = _time_of(table.schema) if time is None else time
    kinds = (pa.types.is_integer, pa.types.is_floating)
    numbers = [f.name for f in table.schema if f.name != time and any(kind(f.type) for kind in kinds)]
    texts = _parsed(content, numbers) if numbers else None
    for name in numbers:
        assert texts is not None
        if pc.any(pc.match_substring_regex(texts[name], "^[+-]?0[0-9]")).as_py():
            table = table.set_column(table.schema.get_field_index(name), name, texts[name].dictionary_encode())
    return table


def _content(file: Path) -> bytes | mmap.mmap:
    """The unpacked bytes of a file."""
    if file.suffix.lower() == ".gz":
        return gzip.decompress(file.read_bytes())
    if not file.is_file() or not file.stat().st_size:
        return file.read_bytes()
    with file.open("rb") as opened:
        return mmap.mmap(opened.fileno(), 0, access=mmap.ACCESS_READ)


def _parsed(content: bytes | mmap.mmap, texts: list[str] | None) -> pa.Table:
    """`texts`: only these columns, as they are written; None: all, with the types that they seem to have."""
    options = csv.ConvertOptions(
        null_values=[""],
        strings_can_be_null=True,
        quoted_strings_can_be_null=False,
        auto_dict_encode=texts is None,
        auto_dict_max_cardinality=1 << 16,
        include_columns=texts or [],
        column_types=dict.fromkeys(texts or [], pa.string()),
    )
    parsing = csv.ParseOptions(newlines_in_values=True)
    return csv.read_csv(pa.BufferReader(pa.py_buffer(content)), convert_options=options, parse_options=parsing)


def _is_frame(source: object) -> bool:
    """Whether it is a pandas DataFrame, without importing pandas."""
    return type(source).__name__ == "DataFrame" and type(source).__module__.startswith("pandas")


def _from_pandas(frame: Any) -> pa.Table:
    try:
        return pa.Table.from_pandas(frame, preserve_index=False)
    except (pa.ArrowException, TypeError) as error:
        raise EventError("the table", None, f"a column of mixed types: {error}") from error


def find_time(names: Collection[str], holds_times: Callable[[str], bool]) -> str | None:
    """The column with the time among those of a table, if it can be found (see TIME_NAMES)."""
    if known := [name for name in TIME_NAMES if name in names]:
        return known[0]
    times = [name for name in names if holds_times(name)]
    return times[0] if len(times) == 1 else None


def _time_of(schema: pa.Schema) -> str | None:
    kinds = {field.name: field.type for field in schema}
    return find_time(schema.names, lambda name: pa.types.is_timestamp(kinds[name]) or pa.types.is_date(kinds[name]))


def _checked_naming(schema: pa.Schema, naming: Naming, name: str) -> Naming:
    """With the column of the time that there is. Raises EventError."""
    wanted = replace(naming, time=naming.time or _time_of(schema) or TIME_NAMES[0])
    for what, column in (("type", wanted.type), ("time", wanted.time)):
        if what == "type" and not wanted.typed and column not in schema.names:
            continue
        if schema.get_field_index(column) < 0:
            twice = schema.names.count(column) > 1
            reason = f"two columns are called {column!r}" if twice else f"no column {column!r} for the {what}"
            hint = f"say which is meant with --{what}-column ({what}_column= in Python)"
            raise EventError(name, None, f"{reason}; it has {', '.join(schema.names) or 'none'}: {hint}")
    return wanted


def _cut(batches: Iterable[pa.RecordBatch], naming: Naming, name: str) -> Iterator[TupleRows]:
    unit = naming.unit
    for batch in batches:
        clock = _clock_of(batch.schema, naming, name)
        count = batch.num_rows
        for low in range(0, count, BATCH_ROWS):
            part = batch if count <= BATCH_ROWS else batch.slice(low, BATCH_ROWS)
            yield from _read(part, clock, unit, name)
            unit = unit or "us"  # the first batch's integers were microseconds, if no unit is given


def _read(batch: pa.RecordBatch, clock: _Clock, unit: TimeUnit | None, name: str) -> tuple[TupleRows, ...]:
    """Those of a batch, if it has rows. Raises EventError."""
    count = batch.num_rows
    if not count:
        return ()
    rows = TupleRows(_NO_TIMES, batch, clock.naming)
    title = str(clock.naming.time)
    if clock.plain:
        times = np.empty(count, np.int64)
        order = call(copy_times, rows.exported, clock.place, times)
        if order != MISSING:
            rows.rising = order == RISING
            low, high = (times.item(0), times.item(-1)) if rows.rising else (int(times.min()), int(times.max()))
            rows.time = _from_integers(times, low, high, title, unit, name)
            return (rows,)
    rows.time = _times(batch.column(clock.place), title, unit, name)
    return (rows,)


@dataclass(frozen=True, slots=True)
class _Clock:
    """Where tables of a schema have the time. `asked`: the naming of which `naming` is made; `plain`: it is held as
    64-bit integers."""

    schema: pa.Schema
    asked: Naming
    naming: Naming
    place: int
    plain: bool


_last: list[_Clock] = []
"""That of the last table, since most are like the one before. It is replaced as a whole and never changed, so threads
that read tables of several schemas at once only make it anew for each other."""


def _clock_of(schema: pa.Schema, naming: Naming, name: str) -> _Clock:
    for known in _last:
        if known.schema.equals(schema) and (known.asked is naming or known.asked == naming):
            return known
    found = _checked_naming(schema, naming, name)
    place = schema.get_field_index(found.time)
    clock = _Clock(schema, naming, found, place, pa.types.is_int64(schema.field(place).type))
    _last[:] = [clock]
    return clock


def _settled(naming: Naming) -> Naming:
    """Behind the first batch: its integers were microseconds, if no unit is given."""
    return replace(naming, unit="us") if naming.unit is None else naming


def _times(column: pa.Array, title: str, unit: TimeUnit | None, name: str) -> NDArray[np.int64]:
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    if column.null_count:
        raise EventError(name, None, f"an event without a time: a null in the column {title!r}")
    kind = column.type
    if pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind):
        return _of_texts(column, title, name)
    if pa.types.is_timestamp(kind):
        column, unit = column.cast(pa.int64()), kind.unit
    elif pa.types.is_date(kind):
        try:
            column, unit = column.cast(pa.timestamp("us")).cast(pa.int64()), "us"
        except pa.ArrowInvalid as error:
            raise EventError(name, None, f"the column {title!r}: no time in 64 bits: {error}") from error
    elif pa.types.is_integer(kind):
        try:
            column = column if pa.types.is_int64(kind) else column.cast(pa.int64())
        except pa.ArrowInvalid as error:
            raise EventError(name, None, f"the column {title!r}: {error}") from error
    else:
        expected = "timestamps, texts as 2025-03-02T10:00:00Z or integer microseconds expected"
        raise EventError(name, None, f"the column {title!r} holds {kind}; {expected}")
    times = np.array(np.from_dlpack(column), np.int64)
    return _from_integers(times, int(times.min()), int(times.max()), title, unit, name)


def _of_texts(column: pa.Array, title: str, name: str) -> NDArray[np.int64]:
    """Texts in the forms of ISO 8601, all with a zone or all without. Raises EventError."""
    texts = column.cast(pa.string())
    for kind in (pa.timestamp("us", "UTC"), pa.timestamp("us")):
        try:
            return _checked(np.array(np.from_dlpack(texts.cast(kind).cast(pa.int64())), np.int64), title, name)
        except pa.ArrowInvalid:
            continue
    try:  # some have a zone and some have none, or digits below a microsecond
        return np.array([to_microseconds(text) for text in texts.to_pylist()], np.int64)
    except EventError as error:
        raise EventError(name, None, f"the column {title!r}: {error.reason}") from None


def _from_integers(
    times: NDArray[np.int64], low: int, high: int, title: str, unit: TimeUnit | None, name: str
) -> NDArray[np.int64]:
    """Of integers from `low` to `high`. Raises EventError."""
    try:
        if unit is None:
            check_unit(low, high, title)
        if (unit is None or unit == "us") and low >= FIRST_TIME and high <= LAST_TIME:
            return times
        times = all_as_microseconds(times, unit)
    except EventError as error:
        raise EventError(name, None, error.reason) from None
    return _checked(times, title, name)


def _checked(times: NDArray[np.int64], title: str, name: str) -> NDArray[np.int64]:
    if len(wrong := outside(times)):
        raise EventError(name, None, f"the column {title!r}: {OUTSIDE}: {times[wrong[0]]} microseconds")
    return times
