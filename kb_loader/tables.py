"""Tables (CSV, TSV, Parquet, JSON Lines) as statements, through a SPARQL CONSTRUCT query over their columns.

As in tarql, each row binds a variable per column (what a variable's name cannot hold becomes "_"), an empty cell or
null binds nothing, and the query's WHERE may BIND more. CSV cells are plain strings; Parquet and JSON values have
their types. A template's statement with an unbound variable is left out, as SPARQL says.

pyoxigraph answers the query, a batch of rows at a time: the rows are a VALUES block put first into WHERE.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import IO, Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.json
import pyarrow.parquet
from pyoxigraph import Literal, NamedNode, Quad, QueryTriples, Triple
from pyoxigraph import Store as RdfStore

from oxiseq.engine.errors import KbError, syntax_reason
from oxiseq.kb_loader.quarantine import Fault, cut_off
from oxiseq.kb_loader.sources import BROKEN, Source
from oxiseq.kb_loader.statements import scoped

_ROWS = 5_000
"""Rows asked at a time."""
_TOKEN = re.compile(
    r"<[^<>\"{}|^`\\\s]*>"
    r"|\"\"\".*?\"\"\"|'''.*?'''"
    r"|\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])*'"
    r"|#[^\n]*|[{}]",
    re.DOTALL,
)
"""What may hold a brace that is none, or is one."""
_XSD = "http://www.w3.org/2001/XMLSchema#"


class Mapping:
    """A CONSTRUCT query, cut where the rows go: behind the "{" of its WHERE."""

    def __init__(self, text: str, name: str = "mapping") -> None:
        self.name = name
        depth, groups = 0, 0
        for token in _TOKEN.finditer(text):
            if token[0] == "{":
                depth += 1
                groups += depth == 1
                if groups == 2:
                    self._head, self._tail = text[: token.end()], text[token.end() :]
                    break
            elif token[0] == "}":
                depth -= 1
        else:
            raise KbError(f"{name}: CONSTRUCT {{ ... }} WHERE {{ ... }} expected")
        try:
            answer = RdfStore().query(text)
        except SyntaxError as error:
            raise KbError(f"{name}: {syntax_reason(error)}") from error
        if not isinstance(answer, QueryTriples):
            raise KbError(f"{name}: a CONSTRUCT query expected")

    @classmethod
    def of_file(cls, path: str | Path) -> Mapping:
        """Raises KbError."""
        try:
            return cls(Path(path).read_text(encoding="utf-8"), str(path))
        except (OSError, UnicodeDecodeError) as error:
            raise KbError(f"{path}: cannot be read: {error}") from error

    def triples(self, batch: pa.RecordBatch) -> Iterator[Triple]:
        """What the query makes of the rows."""
        names = [re.sub(r"\W", "_", name) for name in batch.schema.names]
        if len(set(names)) < len(names):
            raise KbError(f"two columns have one name as variables: {', '.join(sorted(names))}")
        head = " ".join("?" + name for name in names)
        columns = [[_cell(value) for value in column.to_pylist()] for column in batch.columns]
        rows = "\n".join(f"({' '.join(row)})" for row in zip(*columns, strict=True))
        query = f"{self._head} VALUES ({head}) {{\n{rows}\n}}{self._tail}"
        answer = RdfStore().query(query)
        assert isinstance(answer, QueryTriples)
        return answer


def table_statements(
    source: Source, content: IO[bytes], mapping: Mapping | None, tell: Callable[[Fault], None], *, skolemise: bool
) -> Iterator[Quad]:
    """A table's statements. Rows that do not fit and a file that cannot be read on go to `tell`. Raises KbError."""
    if mapping is None:
        raise KbError(f"{source.path}: a table needs a mapping (--mapping FILE with a CONSTRUCT query)")
    return scoped(_mapped(source, content, mapping, tell), source.scope, skolemise, numbered=True)


def _mapped(
    source: Source, content: IO[bytes], mapping: Mapping, tell: Callable[[Fault], None]
) -> Iterator[Quad]:
    try:
        for batch in table_batches(source, content, tell):
            for start in range(0, batch.num_rows, _ROWS):
                for triple in mapping.triples(batch.slice(start, _ROWS)):
                    yield Quad(triple.subject, triple.predicate, triple.object)
    except BROKEN as error:
        tell(cut_off(error))
    except SyntaxError as error:
        raise KbError(f"{mapping.name}: with the columns of {source.path}: {syntax_reason(error)}") from error


def table_batches(source: Source, content: IO[bytes], tell: Callable[[Fault], None]) -> Iterator[pa.RecordBatch]:
    """A table's rows. CSV rows that do not fit go to `tell`. Raises ArrowInvalid, OSError, EOFError."""
    if source.ending == ".parquet":
        opened = pa.BufferReader(content.read()) if source.packing else content
        yield from pa.parquet.ParquetFile(opened).iter_batches()
        return
    if source.ending in (".csv", ".tsv"):
        yield from _csv_batches(source, content, tell)
        return
    yield from pa.json.read_json(pa.BufferReader(content.read())).to_batches()


def _csv_batches(source: Source, content: IO[bytes], tell: Callable[[Fault], None]) -> Iterator[pa.RecordBatch]:
    delimiter = "\t" if source.ending == ".tsv" else ","
    first = content.readline()
    header = pa.csv.open_csv(
        pa.BufferReader(first), parse_options=pa.csv.ParseOptions(delimiter=delimiter)
    ).schema.names

    def left_out(row: Any) -> str:
        number = row.number + 1 if row.number is not None else None  # the header is row 1
        tell(Fault(number, number, f"{row.actual_columns} columns, {row.expected_columns} expected", row.text))
        return "skip"

    yield from pa.csv.open_csv(
        pa.PythonFile(content, mode="r"),
        read_options=pa.csv.ReadOptions(column_names=header, use_threads=False),
        parse_options=pa.csv.ParseOptions(
            delimiter=delimiter, invalid_row_handler=left_out, newlines_in_values=True
        ),
        convert_options=pa.csv.ConvertOptions(
            column_types=dict.fromkeys(header, pa.string()), strings_can_be_null=True, null_values=[""]
        ),
    )


def _cell(value: object) -> str:
    """A value in SPARQL. Lists and structs are their text."""
    if value is None:
        return "UNDEF"
    if isinstance(value, datetime):
        return str(Literal(value.isoformat(), datatype=NamedNode(_XSD + "dateTime")))
    if isinstance(value, date):
        return str(Literal(value.isoformat(), datatype=NamedNode(_XSD + "date")))
    if isinstance(value, Decimal):
        return str(Literal(f"{value:f}", datatype=NamedNode(_XSD + "decimal")))
    if isinstance(value, bool | int | float):
        return str(Literal(value))
    return str(Literal(str(value)))
