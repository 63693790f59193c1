"""The rows of tables: CSV, TSV, Parquet and JSON Lines, with the line that each begins at.

    a frame       values as they are (see frames.py)
    CSV, TSV      the first row names the columns; cells are strings, empty ones None. The separator of CSV is what the
                  header has of comma, semicolon and tab, in this order
    Parquet       values as they are
    JSON          an object a line, or (.json) one array of objects

A column that is an object or struct is one column for each of its members: "a.b" for b in a. A folder `country=DE` on
the way to the file is a column `country` of strings, whatever the file's kind.
"""

from __future__ import annotations

import csv
import io
import json
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from typing import IO, TYPE_CHECKING, Any, TypeAlias, TypeVar

from oxiseq.engine.extras import needed
from oxiseq.grammar.records import dataclass
from oxiseq.kb_loader.quarantine import LONGEST, Fault
from oxiseq.kb_loader.sources import BROKEN, Partitions, Source

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.parquet as pq
else:
    pa = needed("pyarrow")
    pq = needed("pyarrow.parquet")

_ROWS = 5_000
"""Rows at a time."""
Tell: TypeAlias = Callable[[Fault], None]
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Rows:
    """Rows with the same columns. `lines`: where each begins in the file, counted from 1; None: not known."""

    names: tuple[str, ...]
    values: list[tuple[Any, ...]]
    lines: list[int | None]


def table_rows(source: Source, content: IO[bytes], tell: Tell) -> Iterator[Rows]:
    """A table's rows, with the columns that its folders' names give: where the file has a column of the same name, the
    folder's value counts, as in Spark. Of a frame `content` is not read. Rows that cannot be read go to `tell`. Raises
    one of `sources.BROKEN`."""
    found = _read(source, content, tell)
    return (_partitioned(rows, source.partitions) for rows in found) if source.partitions else found


def column_names(source: Source, content: IO[bytes]) -> Iterator[tuple[str, ...]]:
    """The names of a table's columns; of JSON those of some rows after the other. Raises one of `sources.BROKEN`."""
    given = tuple(name for name, _ in source.partitions)
    if source.frame is not None:
        yield (*_field_names(source.frame.schema()), *given)
    elif source.ending == ".parquet":
        opened = pa.BufferReader(content.read()) if source.packing else content
        yield (*_field_names(pq.ParquetFile(opened).schema_arrow), *given)
    elif source.ending in (".csv", ".tsv"):
        for header in _headers(source, content):
            yield (*header, *given)
    else:
        for rows in _together(_json(source, content, lambda fault: None)):
            yield (*rows.names, *given)


def _field_names(fields: Iterable[pa.Field], before: str = "") -> Iterator[str]:
    for field in fields:
        if pa.types.is_struct(field.type):
            yield from _field_names(field.type, f"{before}{field.name}.")
        else:
            yield before + field.name


def _headers(source: Source, content: IO[bytes]) -> Iterator[tuple[str, ...]]:
    """The header's names, if there is one."""
    given = iter(_Lines(content))
    try:
        first = next(given, None)
        if first is not None:
            header = next(_csv_reader(source, first, given))
            yield tuple(name for name in header if name)
    except csv.Error as error:
        raise ValueError(f"its first row: {error}") from error
    finally:
        given.close()  # type: ignore[attr-defined]  # a generator


def _csv_reader(source: Source, first: str, more: Iterator[str]) -> Any:
    csv.field_size_limit(sys.maxsize)  # of the process: Python has no other
    separator = "\t" if source.ending == ".tsv" else next((s for s in ",;\t" if s in first), ",")
    return csv.reader(_after(first, more), delimiter=separator, strict=True)


def _partitioned(rows: Rows, partitions: Partitions) -> Rows:
    given = dict(partitions)
    kept = [place for place, name in enumerate(rows.names) if name not in given]
    names = (*(rows.names[place] for place in kept), *given)
    cells = tuple(given.values())
    return Rows(names, [(*(row[place] for place in kept), *cells) for row in rows.values], rows.lines)


def _read(source: Source, content: IO[bytes], tell: Tell) -> Iterator[Rows]:
    if source.frame is not None:
        return _arrow(source.frame.batches())
    if source.ending == ".parquet":
        return _parquet(source, content)
    if source.ending in (".csv", ".tsv"):
        return _csv(source, content, tell)
    return _together(_json(source, content, tell))


def _parquet(source: Source, content: IO[bytes]) -> Iterator[Rows]:
    opened = pa.BufferReader(content.read()) if source.packing else content
    return _arrow(pq.ParquetFile(opened).iter_batches(_ROWS))


def _arrow(batches: Iterable[pa.RecordBatch]) -> Iterator[Rows]:
    for batch in (part.slice(first, _ROWS) for part in batches for first in range(0, part.num_rows, _ROWS)):
        if any(pa.types.is_struct(field.type) for field in batch.schema):
            yield from _together((None, row) for row in batch.to_pylist())
            continue
        columns = [column.to_pylist() for column in batch.columns]
        yield Rows(tuple(batch.schema.names), list(zip(*columns, strict=True)), [None] * batch.num_rows)


# --- CSV --------------------------------------------------------------------------------------------


class _Lines:
    """The lines of a text for a csv.reader, which reads on while a quote is open."""

    def __init__(self, content: IO[bytes]) -> None:
        # what is not UTF-8 becomes surrogates, which are found when a row is complete
        self._text = io.TextIOWrapper(content, encoding="utf-8", errors="surrogateescape", newline="")
        self.row: list[str] = []
        """Those of the present row."""
        self.read = 0

    def __iter__(self) -> Iterator[str]:
        try:
            for line in self._text:
                self.read += 1
                self.row.append(line)
                yield line
        finally:
            with suppress(ValueError):  # it is closed already
                self._text.detach()


def _csv(source: Source, content: IO[bytes], tell: Tell) -> Iterator[Rows]:
    lines = _Lines(content)
    given = iter(lines)
    try:
        first = next(given, None)
        if first is None:
            return
        reader = _csv_reader(source, first, given)
        header = next(reader)
        named = [place for place, name in enumerate(header) if name]  # spreadsheets write columns without a name
        names = tuple(header[place] for place in named)
        for held in _many(_valid(reader, lines, len(header), tell)):
            values = [tuple(row[place] or None for place in named) for _, row in held]
            yield Rows(names, values, [begin for begin, _ in held])
    except csv.Error as error:
        raise ValueError(f"its first row: {error}") from error
    finally:
        given.close()  # type: ignore[attr-defined]  # a generator


def _after(first: str, more: Iterator[str]) -> Iterator[str]:
    yield first
    yield from more


def _valid(reader: Any, lines: _Lines, width: int, tell: Tell) -> Iterator[tuple[int, list[str]]]:
    """(line, cells) of each row that fits."""
    while True:
        begin = lines.read + 1
        lines.row = []
        reason = None
        try:
            row = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            row, reason = [], str(error)
        text = "".join(lines.row)
        if reason is None and not row:
            continue  # an empty line
        if not text.isascii() and any("\udc80" <= c <= "\udcff" for c in text):
            reason = "not UTF-8"
        elif reason is None and len(row) != width:
            reason = f"{len(row)} columns, {width} expected"
        if reason is None:
            yield begin, row
            continue
        told = text.rstrip("\r\n")[:LONGEST].encode("utf-8", "surrogateescape").decode("utf-8", "replace")
        tell(Fault(begin, max(begin, lines.read), reason, told))


# --- JSON -------------------------------------------------------------------------------------------


def _json(source: Source, content: IO[bytes], tell: Tell) -> Iterator[tuple[int | None, dict[str, Any]]]:
    begun, number = False, 0
    while line := content.readline():
        number += 1
        if not begun and source.ending == ".json" and line.lstrip().startswith(b"["):
            for row in _array(line + content.read()):
                yield None, row
            return
        if not line.strip():
            continue
        begun = True
        try:
            yield number, _object(line)
        except (ValueError, RecursionError) as error:
            text = line[: 4 * LONGEST].decode("utf-8", "replace").rstrip("\r\n")[:LONGEST]
            tell(Fault(number, number, _reason(error), text))


def _reason(error: Exception) -> str:
    if isinstance(error, json.JSONDecodeError):
        return f"{error.msg} at character {error.pos + 1}"
    if isinstance(error, UnicodeError):
        return f"not Unicode: {error.reason}" if isinstance(error, UnicodeEncodeError) else "not UTF-8"
    return str(error)


def _array(text: bytes) -> list[dict[str, Any]]:
    rows = json.loads(text)
    for row in rows:
        if not isinstance(row, dict):
            raise ValueError("an array of objects expected")
    return list(rows)


def _object(line: bytes) -> dict[str, Any]:
    row = json.loads(line)
    if not isinstance(row, dict):
        raise ValueError("an object expected")
    if b"\\u" in line:
        json.dumps(row, ensure_ascii=False).encode()  # raises of half a character
    return row


def _together(rows: Iterable[tuple[int | None, dict[str, Any]]]) -> Iterator[Rows]:
    """Objects as rows with the same columns: all that some of them has."""
    for held in _many(rows):
        flat = [_flat(row) if any(isinstance(value, dict) for value in row.values()) else row for _, row in held]
        names = tuple(dict.fromkeys(name for row in flat for name in row))
        yield Rows(names, [tuple(map(row.get, names)) for row in flat], [number for number, _ in held])


def _flat(row: dict[str, Any], before: str = "") -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in row.items():
        found |= _flat(value, f"{before}{name}.") if isinstance(value, dict) else {before + name: value}
    return found


def _many(rows: Iterable[T]) -> Iterator[list[T]]:
    """Rows in lists. An error while reading comes after the rows before it."""
    given, held, broken = iter(rows), list[T](), None
    while True:
        try:
            held.append(next(given))
        except StopIteration:
            break
        except BROKEN as error:
            broken = error
            break
        if len(held) == _ROWS:
            yield held
            held = []
    if held:
        yield held
    if broken is not None:
        raise broken
