"""Statements as Parquet with a coded term table, as Spark writes them; read as N-Quads text.

A folder with terms/*.parquet (`id` long, `text`: the term as N-Quads writes it, "" for the default graph) and
quads/*.parquet (`s`, `p`, `o`, `g`: ids). Wherever a source is taken, such a folder is one.
"""

from __future__ import annotations

import io
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from oxiseq.engine.extras import loaded, needed

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.compute as pc
else:
    pa = needed("pyarrow")
    pc = needed("pyarrow.compute")

_ROWS = 1 << 16
"""Quads read at a time."""


def is_coded(path: Path) -> bool:
    """Whether a folder holds coded statements."""
    return (path / "terms").is_dir() and (path / "quads").is_dir()


def coded_size(path: Path) -> int:
    """Bytes of the folder's tables."""
    return sum(file.stat().st_size for file in path.glob("*/*.parquet"))


class CodedText(io.RawIOBase):
    """The statements of a folder as N-Quads text. All terms are held in memory. Raises OSError, ValueError."""

    def __init__(self, folder: Path) -> None:
        self._texts = _texts(folder / "terms")
        self._size = coded_size(folder)
        quads = _dataset(folder / "quads")
        self._rows, self._read = max(1, quads.count_rows()), 0
        self._batches = quads.to_batches(columns=["s", "p", "o", "g"], batch_size=_ROWS)
        self._held = memoryview(b"")

    def readable(self) -> bool:
        """Yes."""
        return True

    def tell(self) -> int:
        """How far reading is, in bytes of the tables."""
        return int(self._size * self._read / self._rows)

    def readinto(self, buffer: Any, /) -> int:
        """Fill the buffer with what comes next; 0 at the end."""
        while not self._held:
            batch = next(self._batches, None)
            if batch is None:
                return 0
            if not batch.num_rows:
                continue
            self._read += batch.num_rows
            self._held = memoryview(_lines(self._texts, batch))
        target = memoryview(buffer).cast("B")
        count = min(len(target), len(self._held))
        target[:count] = self._held[:count]
        self._held = self._held[count:]
        return count


def _dataset(folder: Path) -> Any:
    """The Parquet files of a folder."""
    return loaded("pyarrow.dataset").dataset(folder)  # imports pandas where it is installed, which takes half a second


def _texts(folder: Path) -> pa.Array:
    """Texts by id. Raises ValueError if the ids are not 0, 1, 2..."""
    table = _dataset(folder).to_table(columns=["id", "text"])
    table = table.take(pc.sort_indices(table["id"]))
    if not np.array_equal(table["id"].to_numpy(), np.arange(table.num_rows)):
        raise ValueError(f"{folder}: the ids of the terms are not 0, 1, 2...")
    return table["text"].cast(pa.large_string()).combine_chunks()


def _lines(texts: pa.Array, batch: pa.RecordBatch) -> bytes:
    def text(of: str) -> pa.Scalar:
        return pa.scalar(of, pa.large_string())

    s, p, o, g = (texts.take(batch.column(name)) for name in "spog")
    graph = pc.if_else(pc.equal(g, text("")), g, pc.binary_join_element_wise(text(" "), g, text("")))
    joined = pc.binary_join_element_wise(s, text(" "), p, text(" "), o, graph, text(" .\n"), text(""))
    _, offsets, data = joined.buffers()
    first, *_, last = np.frombuffer(offsets, np.int64)[joined.offset : joined.offset + len(joined) + 1].tolist()
    return bytes(memoryview(data)[first:last])
