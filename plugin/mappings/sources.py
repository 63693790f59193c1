"""Rows in whatever form Python has them → tables of the columns that a mapping reads.

dicts               a list or generator of them, some thousand at a time
a DataFrame         of pandas or Polars, an Arrow table or reader, anything with `__arrow_c_stream__` or `to_dict`
a file              CSV, TSV, JSON, JSON Lines, Parquet that is no coded event table; packed or not
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from oxiseq.engine.errors import EventError, KbError
from oxiseq.engine.events.tuples import is_tuple_file
from oxiseq.engine.extras import needed
from oxiseq.kb_loader.quarantine import Fault
from oxiseq.kb_loader.rows import Rows, table_rows
from oxiseq.kb_loader.sources import BROKEN, TABLE_ENDINGS, Source, find_sources
from oxiseq.mappings.rows import BadRow, Key, Table, columns_read, object_table

if TYPE_CHECKING:
    import pyarrow as pa
else:
    pa = needed("pyarrow")

OBJECTS: Final = (".json", ".jsonl", ".ndjson")
"""Endings of tables whose rows name their columns one by one; those of others have one head for all."""
_TOGETHER: Final = 4096


def row_tables(source: Any, key: Key) -> Iterator[Table] | None:
    """The rows of a source; None where it holds none, but (graph, time) pairs or a file of RDF. Raises EventError."""
    if isinstance(source, str | Path):
        found = _table_file(source)
        return None if found is None else _file_tables(found, key)
    if hasattr(source, "__arrow_c_stream__"):
        return _arrow_tables(pa.RecordBatchReader.from_stream(source), key)
    if hasattr(source, "to_dict") and hasattr(source, "columns"):  # pandas without Arrow's protocol
        return dict_tables(source.to_dict("records"), key)
    return None


def dict_tables(rows: Iterable[Any], key: Key) -> Iterator[Table]:
    """Rows that are objects, some thousand at a time."""
    remaining, before = iter(rows), 0
    while part := list(islice(remaining, _TOGETHER)):
        yield object_table(part, key, range(before + 1, before + len(part) + 1))
        before += len(part)


def is_table(path: str | Path) -> bool:
    """Whether a file is a table of rows, by its name; Parquet by what is in it. Raises EventError."""
    return _table_file(path) is not None


def _table_file(path: str | Path) -> Source | None:
    name = Path(path)
    endings = [suffix.lower() for suffix in name.suffixes[-2:]]
    if not any(ending in TABLE_ENDINGS for ending in endings) or not name.is_file():
        return None
    if endings[-1] == ".parquet" and not is_tuple_file(name):
        return None
    try:
        (source,) = find_sources([name], [])
    except (KbError, ValueError) as error:
        raise EventError(str(path), None, str(error)) from error
    return source


def _file_tables(source: Source, key: Key) -> Iterator[Table]:
    faults: list[Fault] = []
    content, raw = source.open()
    with raw, content:
        try:
            for rows in table_rows(source, content, faults.append):
                table = rows_table(rows, key, named=source.ending not in OBJECTS)
                table.bad += [BadRow(fault.reason, fault.line) for fault in faults]
                faults.clear()
                yield table
        except BROKEN as error:
            raise EventError(str(source.path), None, f"cannot be read on: {error}") from error
    if faults:
        yield Table({}, [], [BadRow(fault.reason, fault.line) for fault in faults])


def rows_table(rows: Rows, key: Key, *, numbered: bool = False, named: bool = False) -> Table:
    """Rows that a reader has read. `numbered`: places are their numbers from 0, not their lines; `named`: all columns
    that there are have a name here. Raises EventError for two columns that the mapping cannot distinguish."""
    read = columns_read(rows.names, key)
    at = {called: rows.names.index(name) for called, name in read.items()}
    columns = {called: [row[place] for row in rows.values] for called, place in at.items()}
    places = list(range(len(rows.lines))) if numbered else [line or 0 for line in rows.lines]
    return Table(columns, places, [], rows.names if named else None)


def _arrow_tables(reader: pa.RecordBatchReader, key: Key) -> Iterator[Table]:
    read = columns_read(reader.schema.names, key)
    nested = any(pa.types.is_struct(field.type) for field in reader.schema)
    before = 0
    for batch in reader:
        places = range(before + 1, before + batch.num_rows + 1)
        before += batch.num_rows
        if nested:
            yield object_table(batch.to_pylist(), key, places)
            continue
        columns = {called: _values(batch.column(name)) for called, name in read.items()}
        yield Table(columns, places, [], tuple(reader.schema.names))


def _values(column: Any) -> list[Any]:
    """pandas uses NaN for a missing value."""
    values: list[Any] = column.to_pylist()
    if pa.types.is_floating(column.type):
        return [None if v is None or v != v else v for v in values]
    return values
