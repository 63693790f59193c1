"""Sources that Spark's own readers reach: DataFrames, tables, lakes, addresses.

    lines (.nt, .nq) of an address     Spark's text reader, in stretches
    Parquet of an address              Spark's Parquet reader
    any other file of an address       whole, as bytes: what reads it is what reads files of this machine

In the flow: the sources of `load` → **rows of `CLEAN`**, as `cleaning.py` makes them of files of this machine.
"""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import IO, Final, NamedTuple
from urllib.parse import unquote

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from py4j.protocol import Py4JJavaError
from pyspark import TaskContext
from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as f

from oxiseq.engine.errors import KbError
from oxiseq.engine.folders import LAKE_LOGS, lake_reason
from oxiseq.grammar.byte_order import MARK
from oxiseq.grammar.records import dataclass
from oxiseq.kb_loader.frames import Asked, Frame
from oxiseq.kb_loader.job import Job
from oxiseq.kb_loader.quarantine import texts
from oxiseq.kb_loader.sources import LINE_FORMATS, Source, is_known, source_by_name
from oxiseq.kb_loader.spark.cleaning import CLEAN, Cleaner
from oxiseq.kb_loader.spark.pieces import Piece
from oxiseq.kb_loader.tables import check_columns

_MOST: Final = (1 << 31) - 1
"""Bytes of a file that Spark hands over whole."""
_SPLIT: Final = ("", ".gz", ".bz2")
"""Packings that Spark's text reader has."""
_PLACE: Final = ("oxiseq_file", "oxiseq_start")
_ADVICE: Final = (
    "; Spark needs the package that reads it: name it as spark.jars.packages in the spark-defaults.conf of the folder "
    "SPARK_CONF_DIR, or start the session with it"
)
_CLASSES: Final = re.compile(r"^(?:(?:\w+\.)+\w+: )+")
_SCHEME: Final = re.compile(r"^[A-Za-z][A-Za-z0-9+.-]*:")
_MISSING: Final = re.compile("DATA_SOURCE_NOT_FOUND|ClassNotFoundException|UnsupportedFileSystemException")


class Asking(NamedTuple):
    """Sources, and what reads some of them: it makes rows of `CLEAN`, given their numbers by name."""

    sources: list[Source]
    rows: Callable[[dict[str, int], Cleaner], DataFrame]


def resolved(spark: SparkSession, job: Job) -> list[Asking]:
    """The job's sources that are no files of this machine. Raises KbError for what Spark does not find, or what has no
    mapping, or has not the columns that the mapping wants."""
    found = [_of_frame(spark, source) for source in job.sources if source.frame is not None]
    known: set[str] = set()
    for asked in dict.fromkeys(job.asked):
        found += _asking(spark, asked, known)
    sources = [*(s for s in job.sources if s.frame is None), *(s for asking in found for s in asking.sources)]
    table = next((s for s in sources if s.format is None), None)
    if job.mapping is None and table is not None:
        raise KbError(f"{table.label}: a table needs a mapping: a file with a SPARQL CONSTRUCT query over its columns")
    if job.mapping is not None and not any(s.format is None and s.name and s.frame is None for s in sources):
        check_columns(job.mapping, sources)
    return found


def _asking(spark: SparkSession, asked: Asked, known: set[str]) -> list[Asking]:
    """What a source is to Spark. `known`: files that have been found already; more are added."""
    try:
        if asked.kind == "table":
            return [_frame(spark, asked.name, spark.sql(f"SELECT * FROM {asked.text}"))]
        if asked.kind != "address":
            return [_frame(spark, asked.name, spark.read.format(asked.kind).load(asked.text))]
        if (kind := _lake(spark, asked.text)) is not None:
            return _asking(spark, Asked(kind.lower(), asked.text), known)
        return _address(spark, asked.text, known)
    except (PySparkException, Py4JJavaError) as error:
        reason = _told(error)
        raise KbError(f"{asked.name}: {reason}{_ADVICE * bool(_MISSING.search(str(error)))}") from error


def _of_frame(spark: SparkSession, source: Source) -> Asking:
    """A DataFrame that was given."""
    assert source.frame is not None
    if source.frame.of_spark:
        return _frame(spark, source.name, source.frame.given)
    return _frame(spark, source.name, spark.createDataFrame(pa.Table.from_batches(source.frame.batches())))


# --- DataFrames -------------------------------------------------------------------------------------


def _frame(spark: SparkSession, name: str, rows: DataFrame) -> Asking:
    source = Source(Path(name), None, "", "", name=name, frame=Frame(rows))
    return Asking([source], lambda numbers, cleaner: rows.mapInArrow(_Rows(name, numbers[name], cleaner), CLEAN))


@dataclass(frozen=True, slots=True)
class _Rows:
    """For mapInArrow: the rows of a DataFrame."""

    name: str
    number: int
    cleaner: Cleaner

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        context = TaskContext.get()
        part = context.partitionId() if context is not None else 0
        # blank nodes of one partition are apart from those of others
        source = Source(Path(self.name), None, "", "", batch=str(part), name=self.name, frame=Frame(batches))
        yield from self.cleaner.rows(Piece(self.number, self.name, part), partial(self.cleaner.file, source))


# --- addresses --------------------------------------------------------------------------------------


def _address(spark: SparkSession, address: str, known: set[str]) -> list[Asking]:
    listed = spark.read.format("binaryFile").option("recursiveFileLookup", "true").load(address)
    sizes = {row["path"]: row["length"] for row in listed.select("path", "length").collect()}
    found = {path: _source(path) for path in sorted(sizes) if is_known(Path(path))}
    if not found:
        raise KbError(f"{address}: holds no RDF file and no table; names that begin with _ or . are not read")
    _check_folders(spark, address, found)
    new = [source for path, source in found.items() if path not in known]
    known.update(found)
    lines = [s for s in new if s.format in LINE_FORMATS and s.packing in _SPLIT]
    tables = [s for s in new if s.ending == ".parquet" and not s.packing]
    whole = [s for s in new if s not in lines and s not in tables]
    if (big := next((s for s in whole if sizes[s.name] > _MOST), None)) is not None:
        raise KbError(f"{big.name}: has {sizes[big.name]:,} bytes; Spark reads at most {_MOST:,} of such a file")
    kinds: tuple[tuple[list[Source], Callable[..., DataFrame]], ...] = (
        (lines, _lines),
        (tables, _tables),
        (whole, _whole),
    )
    return [Asking(sources, partial(rows, spark, sources)) for sources, rows in kinds if sources]


def _source(path: str) -> Source:
    return source_by_name(Path(_SCHEME.sub("", path)), name=path)


def _lines(spark: SparkSession, sources: list[Source], numbers: dict[str, int], cleaner: Cleaner) -> DataFrame:
    rows = spark.read.option("lineSep", "\n").text(_paths(sources)).select(*_placed(), f.col("value").cast("binary"))
    return rows.mapInArrow(_Runs(numbers, cleaner), CLEAN)


def _tables(spark: SparkSession, sources: list[Source], numbers: dict[str, int], cleaner: Cleaner) -> DataFrame:
    read = spark.read.option("recursiveFileLookup", "true").option("mergeSchema", "true").parquet(*_paths(sources))
    return read.select(*_placed(), "*").mapInArrow(_Runs(numbers, cleaner), CLEAN)


def _whole(spark: SparkSession, sources: list[Source], numbers: dict[str, int], cleaner: Cleaner) -> DataFrame:
    read = spark.read.format("binaryFile").load(_paths(sources)).select("path", "content")
    return read.mapInArrow(_Files(numbers, cleaner), CLEAN)


def _paths(sources: Iterable[Source]) -> list[str]:
    """As Spark's readers take them, which look for patterns in them."""
    return [literal(source.name) for source in sources]


def literal(path: str) -> str:
    """Hadoop's pattern that matches this path alone."""
    return re.sub(r"([\\{}\[\]*?])", r"\\\1", path)


def _placed() -> list[Column]:
    fields = ("_metadata.file_path", "_metadata.file_block_start")
    return [f.col(field).alias(name) for field, name in zip(fields, _PLACE, strict=True)]


@dataclass(frozen=True, slots=True)
class _Files:
    """For mapInArrow: whole files as bytes."""

    numbers: dict[str, int]
    cleaner: Cleaner

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for path, content in zip(batch.column(0).to_pylist(), batch.column(1), strict=True):
                source = _source(path)
                opened = partial(_opened, content)
                found = partial(self.cleaner.file, source, opened=opened)
                piece = Piece(self.numbers[path], path)
                yield from self.cleaner.rows(piece, found, partial(texts, source, opened=opened))


def _opened(content: pa.BinaryScalar) -> IO[bytes]:
    return io.BufferedReader(io.BytesIO(content.as_buffer()))


@dataclass(frozen=True, slots=True)
class _Runs:
    """For mapInArrow: rows of files behind each other, with the file's address and where its stretch begins."""

    numbers: dict[str, int]
    cleaner: Cleaner

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for path, start, rows in _Stretches(batches):
            source = _source(path)
            piece = Piece(self.numbers[path], path, start)
            if source.format is not None:
                found = partial(self.cleaner.lines, source, _texts(rows, start))
            else:
                # blank nodes of one stretch are apart from those of others
                frame = replace(source, batch=str(start), frame=Frame(rows))
                found = partial(self.cleaner.file, frame)
            yield from self.cleaner.rows(piece, found)


class _Stretches:
    """(address, start, batches of rows) of each stretch; its batches are to be read before the next stretch."""

    def __init__(self, batches: Iterator[pa.RecordBatch]) -> None:
        self._batches = batches
        self._next: tuple[tuple[str, int], pa.RecordBatch] | None = None
        self._parts = self._cut()

    def __iter__(self) -> Iterator[tuple[str, int, Iterator[pa.RecordBatch]]]:
        self._next = next(self._parts, None)
        while self._next is not None:
            (path, start), _ = self._next
            rows = self._of(self._next[0])
            yield unquote(path), start, rows
            for _ in rows:  # what was not read
                pass

    def _of(self, place: tuple[str, int]) -> Iterator[pa.RecordBatch]:
        while self._next is not None and self._next[0] == place:
            rows = self._next[1]
            self._next = next(self._parts, None)
            yield rows

    def _cut(self) -> Iterator[tuple[tuple[str, int], pa.RecordBatch]]:
        """Batches where all rows are of one stretch."""
        for batch in self._batches:
            files = pc.dictionary_encode(batch.column(0))
            start = batch.column(1).to_numpy()
            changes = np.flatnonzero((np.diff(files.indices.to_numpy()) != 0) | (np.diff(start) != 0)) + 1
            for first, last in zip([0, *changes.tolist()], [*changes.tolist(), batch.num_rows], strict=True):
                if first < last:
                    place = files[first].as_py(), int(start[first])
                    part = batch.slice(first, last - first)
                    yield place, part.select(list(range(2, part.num_columns)))


def _texts(rows: Iterator[pa.RecordBatch], start: int) -> Iterator[bytes]:
    """Lines as blocks of text."""
    first = start == 0
    for batch in rows:
        lines = batch.column(0)
        text = b"\n".join(lines.to_pylist()) + b"\n"
        yield text.removeprefix(MARK) if first else text
        first = False


# --- lakes ------------------------------------------------------------------------------------------


def _lake(spark: SparkSession, folder: str) -> str | None:
    """Delta, Iceberg or Hudi, if the folder at the address is such a table. Raises Py4JJavaError."""
    return next((kind for kind, log in LAKE_LOGS.items() if exists(spark, f"{folder.rstrip('/')}/{log}")), None)


def exists(spark: SparkSession, pattern: str) -> bool:
    """Whether there is a file or folder by Hadoop's pattern. Raises Py4JJavaError."""
    jvm = spark.sparkContext._jvm
    assert jvm is not None
    path = jvm.org.apache.hadoop.fs.Path(pattern)
    found = path.getFileSystem(spark.sparkContext._jsc.hadoopConfiguration()).globStatus(path)
    return found is not None and len(found) > 0


def _check_folders(spark: SparkSession, address: str, files: Iterable[str]) -> None:
    """Raise KbError if a file is a lake's: not all of its files count."""
    folders = {folder for file in files for folder in _above(file)}
    for folder in sorted(folders):
        if (kind := _lake(spark, literal(folder))) is not None:
            raise KbError(f"{folder}: {lake_reason(kind)}; or give the table's own folder instead of {address}")


def _above(file: str) -> Iterator[str]:
    """The folders above a file that may be a table's: not those of its partitions."""
    folder = file.rpartition("/")[0]
    while folder.rstrip("/").count("/") > 0 and not folder.endswith("/"):
        if "=" not in folder.rpartition("/")[2]:
            yield folder
        folder = folder.rpartition("/")[0]


def _told(error: PySparkException | Py4JJavaError) -> str:
    """What has happened, in one line."""
    text = str(error.java_exception) if isinstance(error, Py4JJavaError) else str(error)
    lines = [line for line in text.splitlines() if line.strip()]
    return _CLASSES.sub("", lines[0]) if lines else type(error).__name__
