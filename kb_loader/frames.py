"""Sources that are no files of this machine: DataFrames, and what only Spark reads.

a DataFrame              Spark's, pandas', Polars', an Arrow table: anything with `__arrow_c_stream__`
table:NAME               a table of Spark's catalogs: what may follow FROM, also `NAME VERSION AS OF 3`
s3a://..., hdfs://...    files and folders that Spark's readers reach
the folder of a lake     Delta, Iceberg, Hudi: their log says which files count
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from oxiseq.engine.errors import KbError
from oxiseq.engine.extras import needed
from oxiseq.engine.folders import lake_kind
from oxiseq.grammar.records import dataclass

if TYPE_CHECKING:
    import pyarrow as pa
else:
    pa = needed("pyarrow")

_TABLE: Final = "table:"
_ADDRESS: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://.+", re.DOTALL)
_WEB: Final = ("http://", "https://", "ftp://")
"""For Hadoop each address there is a file, also a lake's log."""
_STREAM: Final = "__arrow_c_stream__"


@dataclass(frozen=True, slots=True)
class Frame:
    """A table at hand: a DataFrame, or an iterator of record batches."""

    given: Any

    @property
    def of_spark(self) -> bool:
        """Whether it is a DataFrame of a session in this program, which Spark itself can work on. One of Spark Connect
        is read like any other."""
        module = type(self.given).__module__
        return module.startswith("pyspark.sql.") and ".connect." not in module

    def schema(self) -> pa.Schema:
        """The columns; of a DataFrame of Spark's without running it."""
        if self.of_spark:
            from pyspark.sql.pandas.types import to_arrow_schema  # noqa: PLC0415  pyspark may not be there

            return to_arrow_schema(self.given.schema)
        if isinstance(self.given, pa.RecordBatchReader):
            return self.given.schema  # to be read once only
        return pa.RecordBatchReader.from_stream(self.given).schema

    def batches(self) -> Iterator[pa.RecordBatch]:
        """The rows."""
        return iter(pa.RecordBatchReader.from_stream(self.given) if hasattr(self.given, _STREAM) else self.given)


@dataclass(frozen=True, slots=True)
class Asked:
    """What Spark reads for `text`: `kind` is "table", "address", or the lake's format ("delta")."""

    kind: str
    text: str

    @property
    def name(self) -> str:
        """What messages call it."""
        return f"{_TABLE}{self.text}" if self.kind == "table" else self.text


def is_frame(given: object) -> bool:
    """Whether a source is a DataFrame."""
    return hasattr(given, _STREAM)


def asked_of_spark(given: object) -> Asked | None:
    """What Spark must read for a source that does not name files of this machine."""
    if isinstance(given, str) and given.startswith(_TABLE):
        return Asked("table", given.removeprefix(_TABLE).strip())
    if isinstance(given, str) and _ADDRESS.fullmatch(given):
        return Asked("address", given)
    if isinstance(given, str | Path) and (kind := lake_kind(Path(given))) is not None:
        return Asked(kind.lower(), str(Path(given).resolve()))
    return None


def _checked(asked: Asked) -> Asked:
    """Raise KbError for what Spark surely does not read."""
    if asked.kind == "table" and not asked.text:
        raise KbError(f"{_TABLE}NAME: the name of a table is missing")
    if asked.kind == "address" and asked.text.lower().startswith(_WEB):
        raise KbError(f"{asked.text}: Spark does not list files on the web: download the file, and load that")
    return asked


def check_frame(given: Any) -> Frame:
    """Raise KbError for a DataFrame that cannot be loaded."""
    if getattr(given, "isStreaming", False) is True:
        raise KbError("a streaming DataFrame has no end: load a static one, or each micro-batch in foreachBatch")
    return Frame(given)


def frames_among(sources: Iterable[object]) -> tuple[list[str | Path], list[Frame], list[Asked]]:
    """Sources by kind: files, DataFrames, what Spark reads. Raises KbError for what is none of these."""
    if isinstance(sources, bytes) or not isinstance(sources, Iterable):
        raise KbError(f"a source is a path or a DataFrame, not {type(sources).__name__}")
    files: list[str | Path] = []
    frames, asked = [], []
    for given in sources:
        if (of_spark := asked_of_spark(given)) is not None:
            asked.append(_checked(of_spark))
        elif isinstance(given, str | Path):
            files.append(given)
        elif is_frame(given):
            frames.append(check_frame(given))
        else:
            raise KbError(f"a source is a path or a DataFrame, not {type(given).__name__}")
    return files, frames, asked
