"""Matches as files: the text formats, Arrow, Parquet.

Text is written while the query runs; Arrow and Parquet need all matches first, because types depend on them.
"""

from __future__ import annotations

import gzip
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Final, Literal, TypeAlias, cast

import numpy as np
from numpy.typing import NDArray

from oxiseq.engine import kinds
from oxiseq.engine.errors import ArgumentValueError
from oxiseq.engine.events.messages.announced import RDF_FORMATS
from oxiseq.engine.events.write import replacing
from oxiseq.engine.extras import needed
from oxiseq.engine.terms.dictionary import TermDictionary
from oxiseq.matches.shape import Block, Shape
from oxiseq.matches.text import Blocks, TextFormat, text_of

if TYPE_CHECKING:
    import pyarrow as pa
else:
    pa = needed("pyarrow")
if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.parquet as pq
else:
    pa = needed("pyarrow")
    pq = needed("pyarrow.parquet")


# --- arrow -----------------------------------------------------------------------------------------------


def arrow_table(block: Block) -> pa.Table:
    """`at`, `start` and `end` (timestamps) where matches have them, a column per variable, positions where there are
    some, and a list of event times for each name that holds events."""
    rows, shape = block.rows, block.shape
    moment = pa.timestamp("us", tz="UTC")
    columns: dict[str, pa.Array] = {"at": pa.array(rows.at, moment)}
    start, end, none = block.spans()
    if shape.spans:
        columns["start"] = pa.array(start, moment, mask=none)
    if shape.spans or shape.later:
        columns["end"] = pa.array(end, moment)
    for name, i in shape.index.items():
        columns[_free(name, columns)] = _terms(np.ascontiguousarray(rows.values[:, i]), shape.terms)
    held = {lane: _held(block, lane) for lane in shape.lanes}
    if block.positions is not None:
        first, last, of = block.positions
        whole = pa.ListArray.from_arrays(pa.array(rows.ends.astype(np.int32)), pa.array(of))
        columns |= {"first": pa.array(first), "last": pa.array(last), "positions": whole}
        for lane, (mine, ends) in held.items():
            columns[_free(lane, columns)] = pa.ListArray.from_arrays(ends, pa.array(of[mine]))
    for lane, (mine, ends) in held.items():
        times = pa.array(rows.event_time[mine], moment)
        columns[_free(f"events_{lane}", columns)] = pa.ListArray.from_arrays(ends, times)
    return pa.table(columns)


def _free(name: str, taken: dict[str, pa.Array]) -> str:
    """`name`, with a line below it if it is taken."""
    while name in taken:
        name += "_"
    return name


def _terms(ids: NDArray[np.uint32], terms: TermDictionary) -> pa.Array:
    """Numbers where all terms are of one numeric kind, else text."""
    columns = terms.columns
    bound = ids != 0
    found = set(np.flatnonzero(np.bincount(columns.kind[ids], minlength=1)).tolist()) - {kinds.NONE}
    if found == {kinds.INTEGER} and bool((columns.quality[ids[bound]] & kinds.EXACT_INTEGER).all()):
        return pa.array(columns.exact[ids], pa.int64(), mask=~bound)
    if found and found <= {kinds.DOUBLE, kinds.FLOAT, kinds.DECIMAL}:
        return pa.array(columns.number[ids], pa.float64(), mask=~bound)
    data, ends = terms.plain_texts(ids)
    large = ends[-1] > np.iinfo(np.int32).max
    places = ends if large else ends.astype(np.int32)
    valid = None if bound.all() else pa.array(bound).buffers()[1]  # a bit each, as Arrow has them
    buffers = [valid, pa.py_buffer(places), pa.py_buffer(data)]
    return pa.Array.from_buffers(pa.large_string() if large else pa.string(), len(ids), buffers)


def _held(block: Block, lane: str) -> tuple[NDArray[np.int64], pa.Array]:
    """The numbers of the events that a name holds, and where those of each match end among them."""
    mine = np.flatnonzero(block.holding(lane))
    return mine, pa.array(np.searchsorted(mine, block.rows.ends).astype(np.int32))


# --- write -----------------------------------------------------------------------------------------------

ResultFormat: TypeAlias = TextFormat | Literal["arrow", "parquet"]
ENDINGS: Final[dict[str, ResultFormat]] = {
    ".txt": "table",
    ".json": "json",
    ".srj": "json",
    ".csv": "csv",
    ".tsv": "tsv",
    ".arrow": "arrow",
    ".feather": "arrow",
    ".ipc": "arrow",
    ".parquet": "parquet",
    ".pq": "parquet",
    ".nq": "nquads",
    ".nquads": "nquads",
    ".nt": "messages-ntriples",
    ".ttl": "messages-turtle",
    ".ndjsonld": "messages-ndjsonld",
}
FORMATS: Final = tuple(dict.fromkeys([*ENDINGS.values(), *RDF_FORMATS]))
BINARY: Final = frozenset(["arrow", "parquet"])
"""Formats that are not for a terminal."""
_WHOLE: Final = BINARY | {"table"}
"""Formats that need all matches first."""


def result_format(path: str | Path) -> ResultFormat:
    """The format that a file's ending names; a final `.gz` is ignored. Raises OxiseqError."""
    name = Path(path)
    ending = (name.with_suffix("") if name.suffix.lower() == ".gz" else name).suffix.lower()
    if ending not in ENDINGS:
        raise ArgumentValueError(
            f"{path}: the ending {ending or '(none)'} does not name a format; known: {', '.join(ENDINGS)}"
        )
    return ENDINGS[ending]


def check_format(shape: Shape, format: str) -> ResultFormat:
    """The format. Raises OxiseqError if the query's matches cannot be written in it, or if it does not exist."""
    if format not in FORMATS:
        raise ArgumentValueError(f"format={format!r} is not known; known: {', '.join(FORMATS)}")
    if (format == "nquads" or format in RDF_FORMATS) and shape.form != "CONSTRUCT":
        others = "other matches are no triples: use json, csv, tsv or arrow"
        raise ArgumentValueError(f"{format} needs a CONSTRUCT query, {others}")
    return format


def blocks_of(shape: Shape, batches: Iterable[Any], format: ResultFormat, *, ties: bool = False) -> Iterator[Block]:
    """Batches of a run as blocks to be written, in the order of `at`: as they come where that and the format allow it.
    `ties`: those of one instant by their events."""
    if ties or format in _WHOLE:
        whole = shape.block(list(batches))
        return iter([whole.by_events() if ties else whole])
    return (shape.block([batch]) for batch in batches)


def write_blocks(shape: Shape, blocks: Blocks, format: ResultFormat, out: BinaryIO, *, stream: bool = False) -> int:
    """Write matches in the order given; returns how many. `stream`: Arrow as an IPC stream, not a file."""
    check_format(shape, format)
    if format == "arrow" or format == "parquet":
        (whole,) = blocks
        _write_table(arrow_table(whole), format, out, stream=stream)
        return len(whole)
    count = 0

    def counted() -> Iterator[Block]:
        nonlocal count
        for block in blocks:
            count += len(block)
            yield block

    for text in text_of(shape, counted(), format):
        out.write(text.encode())
    return count


@contextmanager
def opened(path: Path) -> Iterator[BinaryIO]:
    """A file that appears when all is written; it is compressed if its name ends in `.gz`."""
    if path.exists() and not path.is_file():  # a pipe or a device cannot be replaced
        with path.open("wb") as file:
            yield file
        return
    with replacing(path) as part, part.open("wb") as file:
        if path.suffix.lower() == ".gz":
            with gzip.GzipFile(fileobj=file, mode="wb", mtime=0) as zipped:
                yield cast(BinaryIO, zipped)
        else:
            yield file


def _write_table(table: pa.Table, format: Literal["arrow", "parquet"], out: Any, *, stream: bool) -> None:
    if format == "parquet":
        pq.write_table(table, out, compression="zstd")
        return
    new = pa.ipc.new_stream if stream else pa.ipc.new_file
    with new(out, table.schema) as writer:
        writer.write_table(table)
