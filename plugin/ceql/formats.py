"""Complex events as text and files: a table for people, JSON, CSV, TSV, Arrow, Parquet.

CSV and TSV have the columns time, start, end, positions and one per variable; positions stand in a cell with blanks
between them. JSON is a list of objects whose `events` are, by variable, objects with position, stream and time.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, BinaryIO, Final, TypeAlias

from oxiseq.ceql.columns import complex_table
from oxiseq.ceql.event import ComplexEvent, ComplexShape
from oxiseq.engine.errors import OxiseqError
from oxiseq.engine.events.time import to_text
from oxiseq.engine.output.complex_events import ComplexEvents
from oxiseq.spaseq.formats import BINARY, ResultFormat, flush_lines, write_arrow

Batches: TypeAlias = Iterable[ComplexEvents]
HEAD: Final = ("time", "start", "end", "positions")


def check_complex_format(format: ResultFormat) -> None:
    """Raise OxiseqError if complex events cannot be written so."""
    if format == "nquads":
        raise OxiseqError("nquads needs triples, and a CEQL query answers complex events: use json, csv, tsv or arrow")


def write_complex(
    shape: ComplexShape, batches: Batches, format: ResultFormat, out: BinaryIO, *, stream: bool = False
) -> int:
    """Write complex events in the order given; returns how many. `stream`: Arrow as an IPC stream, not a file."""
    check_complex_format(format)
    if format in BINARY:
        batch = ComplexEvents.concat(list(batches), shape.words)
        write_arrow(complex_table(batch, shape), format, out, stream=stream)
        return len(batch)
    count = 0

    def counted() -> Iterator[ComplexEvents]:
        nonlocal count
        for batch in batches:
            count += len(batch)
            yield batch

    for text in complex_text(shape, counted(), format):
        out.write(text.encode())
    return count


def complex_text(shape: ComplexShape, batches: Batches, format: ResultFormat) -> Iterator[str]:
    """The complex events as pieces of text; `format` is one of the text formats."""
    return _WRITERS[format](shape, batches)


def complex_rows(shape: ComplexShape, batch: ComplexEvents) -> tuple[list[str], list[list[str]]]:
    """Header and rows of texts."""
    return [*HEAD, *shape.variables], list(_rows(shape, batch))


def listed(positions: Sequence[int]) -> str:
    """Positions in a cell."""
    return " ".join(map(str, positions))


def _rows(shape: ComplexShape, batch: ComplexEvents) -> Iterator[list[str]]:
    for match in _matches(shape, batch):
        held = match.held
        cells = [to_text(match.time), str(match.start), str(match.end), listed(match.positions)]
        yield [*cells, *(listed(held.get(v, ())) for v in shape.variables)]


def _matches(shape: ComplexShape, batch: ComplexEvents) -> Iterator[ComplexEvent]:
    return (shape.match(batch, i) for i in range(len(batch)))


def _csv(shape: ComplexShape, batches: Batches) -> Iterator[str]:
    return _separated(shape, batches, ",", "\r\n")


def _tsv(shape: ComplexShape, batches: Batches) -> Iterator[str]:
    return _separated(shape, batches, "\t", "\n")


def _separated(shape: ComplexShape, batches: Batches, between: str, end: str) -> Iterator[str]:
    yield _lines([[*HEAD, *shape.variables]], between, end)
    for batch in batches:
        yield _lines(_rows(shape, batch), between, end)


def _lines(rows: Iterable[Sequence[str]], between: str, end: str) -> str:
    text = io.StringIO()
    csv.writer(text, delimiter=between, lineterminator=end).writerows(rows)
    return text.getvalue()


def _json(shape: ComplexShape, batches: Batches) -> Iterator[str]:
    before = "[\n"
    for batch in batches:
        for match in _matches(shape, batch):
            yield before + json.dumps(_object(match), ensure_ascii=False)
            before = ",\n"
    yield "[]\n" if before == "[\n" else "\n]\n"


def _object(match: ComplexEvent) -> dict[str, Any]:
    held, events = match.held, match.events
    return {
        "time": to_text(match.time),
        "start": match.start,
        "end": match.end,
        "positions": list(match.positions),
        "events": {
            v: [
                {"position": position, "stream": stream, "time": to_text(time)}
                for position, (stream, time) in zip(held[v], events[v], strict=True)
            ]
            for v in held
        },
    }


def _table(shape: ComplexShape, batches: Batches) -> Iterator[str]:
    header, rows = complex_rows(shape, ComplexEvents.concat(list(batches), shape.words))
    yield from flush_lines(header, rows, is_number(header))


def is_number(header: Sequence[str]) -> list[bool]:
    """Which columns are set flush right: start and end."""
    return [name in HEAD[1:3] and i < len(HEAD) for i, name in enumerate(header)]


_WRITERS: Final[dict[str, Callable[[ComplexShape, Batches], Iterator[str]]]] = {
    "table": _table,
    "json": _json,
    "csv": _csv,
    "tsv": _tsv,
}
