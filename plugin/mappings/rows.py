"""Bodies and tables → columns, and what is wrong with single rows.

    a JSON object, an array of them    a row each; numbered from 1
    JSON Lines                         an object a line; a bad line is left out alone
    CSV                                the first row names the columns; an empty cell is none
    SenML                              a record a row, its base values resolved (RFC 8428, 4.6)
    dicts, a DataFrame, Arrow          as they are

Only columns that the mapping reads are kept, however many a row has. A member that is an object is a column for each of
its members: "a.b" for b in a.

Rows in whatever form Python has them → tables of the columns that a mapping reads.

dicts               a list or generator of them, some thousand at a time
a DataFrame         of pandas or Polars, an Arrow table or reader, anything with `__arrow_c_stream__` or `to_dict`
a file              CSV, TSV, JSON, JSON Lines, Parquet that is no coded event table; packed or not
"""

from __future__ import annotations

import csv
import io
import json
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from itertools import islice
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from oxiseq.engine.errors import EventError, KbError
from oxiseq.engine.events.tuples import is_tuple_file
from oxiseq.engine.extras import needed
from oxiseq.grammar.byte_order import unmarked
from oxiseq.grammar.records import dataclass
from oxiseq.kb_loader.quarantine import Fault
from oxiseq.kb_loader.rows import Rows, table_rows
from oxiseq.kb_loader.sources import BROKEN, TABLE_ENDINGS, Source, find_sources

if TYPE_CHECKING:
    import pyarrow as pa
else:
    pa = needed("pyarrow")


# --- rows ------------------------------------------------------------------------------------------------

LONGEST_NAME: Final = 1_000
MOST_COLUMNS: Final = 10_000
"""Of a CSV table."""
_SHOWN: Final = 200
Key = Callable[[str], str | None]
"""What a mapping calls a column; None: it does not read it."""


@dataclass(frozen=True, slots=True)
class BadRow:
    """A row that is left out: its line (JSON Lines, CSV) or number (from 1), the column where it is one, and why."""

    reason: str
    place: int | None = None
    column: str | None = None

    def __str__(self) -> str:
        return self.reason if self.column is None else f"{self.column}: {self.reason}"


@dataclass(slots=True)
class Table:
    """n rows: `columns` by what the mapping calls them; `places`: line or number of each; `names`: all that they have,
    where a table says so before its rows."""

    columns: dict[str, list[Any]]
    places: Sequence[int]
    bad: list[BadRow] = field(default_factory=list)
    names: tuple[str, ...] | None = None

    def __len__(self) -> int:
        return len(self.places)

    def column(self, key: str) -> list[Any]:
        """Its values; of one that is not there None."""
        found = self.columns.get(key)
        return [None] * len(self.places) if found is None else found

    def slice(self, start: int, stop: int) -> Table:
        """Some of the rows, without the bad ones."""
        return Table({k: v[start:stop] for k, v in self.columns.items()}, self.places[start:stop], [], self.names)


JSON: Final = "application/json"
ROWS: Final = {
    JSON: "JSON",
    "application/x-ndjson": "JSON Lines",
    "application/jsonl": "JSON Lines",
    "application/x-jsonlines": "JSON Lines",
    "text/csv": "CSV",
    "text/tab-separated-values": "TSV",
    "application/senml+json": "SenML",
}
"""Media types of rows, and what they are."""


def read_table(body: bytes, media_type: str, key: Key, now: float | None = None) -> Table:
    """The rows of a body of one of ROWS. `now`: seconds since 1970, for SenML's relative times (default: the clock's).
    Raises EventError for a body without any readable row."""
    kind = ROWS[media_type]
    if not unmarked(body).strip():
        return Table({}, [])
    if kind == "JSON":
        return json_table(body, key)
    if kind == "JSON Lines":
        return lines_table(body, key)
    if kind == "SenML":
        return senml_table(body, key, time.time() if now is None else now)
    return csv_table(body, key, "\t" if kind == "TSV" else None)


def json_table(body: bytes, key: Key) -> Table:
    """The rows of a JSON object or array. Raises EventError if the text is not JSON."""
    return object_table(_array(_text(body)), key)


def _text(body: bytes) -> str:
    try:
        return unmarked(body).decode()
    except UnicodeDecodeError as error:
        raise EventError(None, None, f"not UTF-8, at byte {error.start}") from None


def _array(text: str) -> list[Any]:
    given = _parsed(text)
    return given if isinstance(given, list) else [given]


class _Doubled(dict[str, Any]):
    """An object that has a member twice."""


def _paired(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    return found if len(found) == len(pairs) else _Doubled(found)


def _no_number(text: str) -> Any:
    raise ValueError(f"{text} is no JSON")


_DECODER: Final = json.JSONDecoder(object_pairs_hook=_paired, parse_constant=_no_number)


def _parsed(text: str) -> Any:
    """Raises EventError."""
    try:
        return _DECODER.decode(text)
    except json.JSONDecodeError as error:
        line = f"line {error.lineno}, " if error.lineno > 1 else ""
        raise EventError(None, None, f"no JSON: {error.msg} at {line}character {error.colno}") from None
    except RecursionError:
        raise EventError(None, None, "no JSON that can be read: it is nested too deeply") from None
    except ValueError as error:
        raise EventError(None, None, f"no JSON that can be read: {error}") from None


def lines_table(body: bytes, key: Key) -> Table:
    """Of JSON Lines."""
    rows, places, bad = list[Any](), list[int](), list[BadRow]()
    for number, line in enumerate(unmarked(body).split(b"\n"), 1):
        if not line or line.isspace():
            continue
        try:
            rows.append(_parsed(_text(line)))
            places.append(number)
        except EventError as error:
            bad.append(BadRow(error.reason, number))
    found = object_table(rows, key, places)
    found.bad = sorted([*bad, *found.bad], key=lambda each: each.place or 0)
    return found


def object_table(rows: Sequence[Any], key: Key, places: Sequence[int] | None = None) -> Table:
    """The rows of JSON objects; anything else is a bad row."""
    numbers = range(1, len(rows) + 1) if places is None else places
    good, kept, bad = list[Mapping[str, Any]](), list[int](), list[BadRow]()
    for row, number in zip(rows, numbers, strict=True):
        try:
            good.append(_flat(row))
            kept.append(number)
        except (EventError, RecursionError) as error:
            reason = "it is nested too deeply" if isinstance(error, RecursionError) else str(error)
            bad.append(BadRow(reason, number))
    names: dict[str, Any] = {}
    for row in good:
        names.update(row)
    read = columns_read(names, key)
    columns = {called: [row.get(name) for row in good] for called, name in read.items()}
    return _without(Table(columns, kept, bad), _unfit(columns))


def _unfit(columns: Mapping[str, Sequence[Any]]) -> dict[int, BadRow]:
    """Rows with a value that no literal can hold, by number."""
    found: dict[int, BadRow] = {}
    for name, values in columns.items():
        for row, value in enumerate(values):
            if type(value) is str:
                if not value.isascii() and _is_half(value):
                    found.setdefault(row, BadRow("half a character (a lone surrogate)", row, name))
            elif type(value) is float and not isfinite(value):
                found.setdefault(row, BadRow("a number beyond a double's", row, name))
    return found


def _is_half(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return True
    return False


def _without(table: Table, unfit: Mapping[int, BadRow]) -> Table:
    """The table without these rows, which are bad ones of it."""
    if not unfit:
        return table
    kept = [row for row in range(len(table)) if row not in unfit]
    columns = {called: [values[row] for row in kept] for called, values in table.columns.items()}
    bad = [replace(each, place=table.places[row]) for row, each in unfit.items()]
    return Table(columns, [table.places[row] for row in kept], [*table.bad, *bad], table.names)


def columns_read(names: Iterable[str], key: Key) -> dict[str, str]:
    """The columns that the mapping reads, by what it calls them. Raises EventError for two that are the same to
    it."""
    found: dict[str, str] = {}
    for name in names:
        if (called := key(name)) is not None and found.setdefault(called, name) != name:
            raise EventError(
                None,
                None,
                f"the columns {found[called]!r} and {name!r} are the same variable ?{called} for the mapping",
            )
    return found


_SIMPLE: Final = frozenset({str, int, bool, float, type(None)})


def _flat(row: Any) -> Mapping[str, Any]:
    """Raises EventError."""
    if type(row) is dict and _SIMPLE.issuperset(map(type, row.values())):
        return row
    if not isinstance(row, Mapping):
        raise EventError(None, None, f"an object is expected, not {json.dumps(row, default=str)[:60]}")
    return dict(_members(row, ""))


def _members(row: Mapping[Any, Any], before: str) -> Iterator[tuple[str, Any]]:
    if type(row) is _Doubled:
        raise EventError(None, None, "a member is named twice")
    for name, value in row.items():
        if not isinstance(name, str):
            raise EventError(None, None, f"a column's name is a text, not {name!r}"[:_SHOWN])
        if len(before) + len(name) > LONGEST_NAME:
            raise EventError(None, None, f"a column's name has more than {LONGEST_NAME} characters")
        if isinstance(value, Mapping):
            yield from _members(value, f"{before}{name}.")
        else:
            yield before + name, _list_text(value, name) if isinstance(value, list) else value


def _list_text(value: list[Any], name: str) -> str:
    """A list as its JSON text."""
    if _has_double(value):
        raise EventError(None, None, f"{name}: a member is named twice")
    return json.dumps(value, ensure_ascii=False, default=str)


def _has_double(value: Any) -> bool:
    if isinstance(value, dict):
        return type(value) is _Doubled or any(map(_has_double, value.values()))
    return isinstance(value, list) and any(map(_has_double, value))


# --- CSV ------------------------------------------------------------------------------------------


def csv_table(body: bytes, key: Key, separator: str | None = None) -> Table:
    """Raises EventError for a header that cannot be read."""
    text = unmarked(body).decode("utf-8", "surrogateescape")
    broken = not text.isascii() and any("\udc80" <= c <= "\udcff" for c in text)
    head = text[: text.find("\n") + 1 or len(text)]
    chosen = separator or next((s for s in ",;\t" if s in head), ",")
    if max((line.count(chosen) for line in io.StringIO(text)), default=0) > MOST_COLUMNS:
        raise EventError(None, None, f"a line has more than {MOST_COLUMNS:,} columns")
    csv.field_size_limit(sys.maxsize)  # of the process: Python has no other
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=chosen, strict=True)
    try:
        header = next(reader, [])
    except csv.Error as error:
        raise EventError(None, 1, f"its first row: {error}") from error
    if twice := [name for name, count in Counter(header).items() if name and count > 1]:
        raise EventError(None, 1, f"its first row: the column {min(twice)!r} is named twice")
    read = columns_read((name for name in header if name), key)
    at = {called: header.index(name) for called, name in read.items()}
    columns: dict[str, list[Any]] = {called: [] for called in at}
    places, bad = list[int](), list[BadRow]()
    for line, row in _csv_rows(reader, bad):
        if len(row) != len(header):
            bad.append(BadRow(f"{len(row)} columns, {len(header)} expected", line))
        elif broken and any("\udc80" <= c <= "\udcff" for cell in row for c in cell):
            bad.append(BadRow("not UTF-8", line))
        else:
            places.append(line)
            for called, place in at.items():
                columns[called].append(row[place] or None)
    return Table(columns, places, bad, tuple(name for name in header if name))


def _csv_rows(reader: Any, bad: list[BadRow]) -> Iterator[tuple[int, list[str]]]:
    """(its first line, a row)."""
    while True:
        line = reader.line_num + 1
        try:
            row = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            bad.append(BadRow(str(error), line))
            continue
        if row:
            yield line, row


# --- SenML ----------------------------------------------------------------------------------------

_BASE: Final = {"bn": str, "bu": str, "bt": float, "bv": float, "bs": float, "bver": int}
_OWN: Final = ("n", "u", "v", "vs", "vb", "vd", "s", "t", "ut")


def senml_table(body: bytes, key: Key, now: float) -> Table:
    """Records, resolved: `n` with the base name before it, `t` in seconds since 1970 (`now`: that of a relative one),
    `u`, `v` (numbers), `vs`, `vb`, `vd`, `s`; `value` is the one of v, vs, vb and vd that there is.
    Raises EventError."""
    given = _parsed(_text(body))
    if not isinstance(given, list):
        raise EventError(None, None, "a SenML pack is an array of records")
    rows, places, bad = list[Any](), list[int](), list[BadRow]()
    base: dict[str, Any] = {}
    for number, record in enumerate(given, 1):
        try:
            rows.append(_resolved(record, base, now))
            places.append(number)
        except EventError as error:
            bad.append(BadRow(error.reason, number))
    found = object_table([row for row in rows if row], key, [p for p, row in zip(places, rows, strict=True) if row])
    found.bad = sorted([*bad, *found.bad], key=lambda each: each.place or 0)
    return found


def _resolved(record: Any, base: dict[str, Any], now: float) -> dict[str, Any]:
    if not isinstance(record, dict):
        raise EventError(None, None, "a SenML record is an object")
    if type(record) is _Doubled:
        raise EventError(None, None, "a member is named twice")
    if unknown := [name for name in record if name.endswith("_")]:
        raise EventError(None, None, f"{unknown[0][:60]!r}: a field that must be understood, and is not")
    for name, kind in _BASE.items():
        if name in record:
            value = record[name]
            if not (isinstance(value, str) if kind is str else _is_number(value)):
                raise EventError(None, None, f"{name}: a {'text' if kind is str else 'number'} is expected")
            base[name] = value
    for name in ("n", "u", "vs", "vd"):
        if name in record and not isinstance(record[name], str):
            raise EventError(None, None, f"{name}: a text is expected")
    for name in ("v", "s", "t", "ut"):
        if name in record and not _is_number(record[name]):
            raise EventError(None, None, f"{name}: a number is expected")
    own = {name: record[name] for name in _OWN if name in record}
    if not own:
        return {}  # base values alone
    values = [name for name in ("v", "vs", "vb", "vd") if name in own]
    if len(values) > 1 or not (values or "s" in own):
        raise EventError(None, None, "a record has one of v, vs, vb and vd, or a sum s")
    own["n"] = base.get("bn", "") + own.get("n", "")
    if not own["n"]:
        raise EventError(None, None, "a record has a name, n or bn")
    for name, of in (("u", "bu"),):
        if name not in own and of in base:
            own[name] = base[of]
    for name, of in (("v", "bv"), ("s", "bs")):
        if of in base and name in own:
            own[name] += base[of]
    moment = base.get("bt", 0) + own.get("t", 0)
    own["t"] = moment if moment >= 2**28 else now + moment
    return {**own, "value": own[values[0]] if values else own["s"]}


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < 1e300


# --- sources ---------------------------------------------------------------------------------------------

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
