"""`arrange`: two passes over a log, each a task for every source, then for every range of time.

A task reads files and writes files; so tasks run one after the other in this process, or wherever Spark puts them. A
range's events are sorted in memory: choose ranges that one task can hold.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple, TypeAlias

import numpy as np

from oxiseq.engine.events.batch import EventBatch
from oxiseq.engine.events.open import open_events, write_events
from oxiseq.engine.events.time import to_text
from oxiseq.engine.extras import loaded
from oxiseq.engine.folders import is_hidden
from oxiseq.engine.terms.dictionary import TermDictionary
from oxiseq.grammar.records import dataclass
from oxiseq.journal import pack_events, unpack_events
from oxiseq.kb_loader.java import SparkMissing, spark_missing
from oxiseq.kb_loader.quarantine import Fault, Quarantine
from oxiseq.kb_loader.sources import Source, find_sources
from oxiseq.kb_loader.tables import Mapping, check_columns
from oxiseq.logs.reading import MESSAGES, Meaning, read_source
from oxiseq.options.kinds import Duration, duration

Engine: TypeAlias = Literal["plain", "spark"]
Format: TypeAlias = Literal["arrow", "parquet"]
_SPOOL: Final = ".spool"
_TOGETHER: Final = 64
"""Batches that are spooled together."""


@dataclass(frozen=True, slots=True)
class Arranged:
    """What has become of a log: events written and files of them; `late` and `bad` rows, which are in `quarantine`;
    sources `without` any event, though it were late: no rows, all bad, or the mapping makes nothing of them."""

    events: int
    files: int
    late: int
    bad: int
    quarantine: Path | None
    without: tuple[Path, ...] = ()


@dataclass(frozen=True, slots=True)
class _Plan:
    output: Path
    quarantine: Path
    every: int
    """Microseconds of a range."""
    closed: int | None
    """Events before this time (µs) are late: an earlier run has written later ones."""
    meaning: Meaning
    format: Format


def arrange(
    sources: str | Path | Iterable[str | Path],
    output: str | Path,
    *,
    every: Duration = "1h",
    meaning: Meaning | None = None,
    format: Format = "parquet",
    engine: Engine = "plain",
    master: str = "local[*]",
    memory: str = "2g",
    watch: Callable[[str], object] = lambda step: None,
) -> Arranged:
    """Write the events of a log as coded tables in order of time, a file for each `every` (aligned to 1970).

    `sources`: files, folders or globs of N-Quads, TriG, RDF Messages and coded Parquet, and of CSV, TSV, Parquet or
    JSON Lines whose rows are events (`meaning.mapping`). Files of the folder `output` are named by the time their range
    begins, so `oxiseq.run` reads the folder in order. If it holds files already, the log continues after them, and
    events of their ranges or before are late. Bad and late rows go to the folder `output` with ".quarantine" behind it.
    `watch` gets the next step's name.

    Raises KbError for sources that are not there, EventError, and SparkMissing.
    """
    given = [sources] if isinstance(sources, str | Path) else sources
    folder = Path(output)
    bad = folder.with_name(folder.name + ".quarantine")
    step = duration(every, "every", least=1)
    loaded("pyarrow")  # for the tables: better said now than when all is read
    found = find_sources(given, [folder, bad], (MESSAGES,))
    if meaning is not None and isinstance(meaning.mapping, Mapping):
        check_columns(meaning.mapping, found)
    spool = folder / _SPOOL
    shutil.rmtree(spool, ignore_errors=True)
    spool.mkdir(parents=True)
    closed = _end_of(folder, step)
    plan = _Plan(folder.resolve(), bad.resolve(), step, closed, meaning or Meaning(), format)
    try:
        with _tasks(engine, master, memory, watch) as run:
            counts = run(lambda task: _spool(plan, *task), list(enumerate(found)), "reading source")
            ranges = sorted(int(p.name) for p in spool.iterdir())
            written = run(lambda start: _write(plan, start), ranges, "writing table")
        for start in ranges:  # oldest first: should it be interrupted here, the rest is not late the next time
            (spool / _name(plan, start)).replace(folder / _name(plan, start))
    finally:
        shutil.rmtree(spool, ignore_errors=True)
    late, wrong = sum(count.late for count in counts), sum(count.bad for count in counts)
    without = tuple(source.path for source, count in zip(found, counts, strict=True) if not count.told)
    return Arranged(sum(written), len(written), late, wrong, bad if late + wrong else None, without)


@contextmanager
def _tasks(engine: Engine, master: str, memory: str, watch: Callable[[str], object]) -> Iterator[Any]:
    """What does a piece of work for each item, and gives the results. `what`: its name."""

    def here(work: Callable[[object], object], items: list[object], what: str) -> list[object]:
        done = []
        for number, item in enumerate(items, 1):
            watch(f"{what} {number:,} of {len(items):,}")
            done.append(work(item))
        return done

    if engine == "plain":
        yield here
        return
    if (missing := spark_missing()) is not None:
        raise SparkMissing(missing)
    from pyspark.sql import SparkSession  # noqa: PLC0415  pyspark may not be there

    from oxiseq.kb_loader.session import spark_session, stop_session  # noqa: PLC0415  as above
    from oxiseq.kb_loader.spark.watching import described  # noqa: PLC0415  as above

    active = SparkSession.getActiveSession()
    spark = active or spark_session(master, memory)

    def run(work: Callable[[object], object], items: list[object], what: str) -> list[object]:
        watch(f"{what}: {len(items):,} tasks on Spark")
        context = spark.sparkContext
        with described(context, "oxiseq import", f"oxiseq import: {what}"):
            return context.parallelize(items, len(items)).map(work).collect() if items else []  # counts, not events

    try:
        yield run
    finally:
        if active is None:
            stop_session(spark)


class _Spooled(NamedTuple):
    """Of a source: how many events there were that say something, how many were late, how many faults there were."""

    told: int
    late: int
    bad: int


def _spool(plan: _Plan, number: int, source: Source) -> _Spooled:
    """A source's events into files by range."""
    terms, faults, late, told = TermDictionary(), list[Fault](), 0, 0
    waiting: list[EventBatch] = []
    part = 0
    for batch in read_source(source, plan.meaning, terms, faults.append):
        told += int(np.count_nonzero(np.diff(batch.offset)))
        if plan.closed is not None:
            behind = batch.time < plan.closed
            late += int(behind.sum())
            faults += [Fault(None, None, f"late: its time is {to_text(t)}") for t in batch.time[behind].tolist()]
            batch = batch.take(np.flatnonzero(~behind))
        terms.hold(*batch.ids)
        waiting.append(batch)
        if len(waiting) == _TOGETHER:
            _put(plan, EventBatch.concat(waiting), terms, f"{number}-{part}")
            part, waiting = part + 1, []
            terms.collect_if_due()
    _put(plan, EventBatch.concat(waiting), terms, f"{number}-{part}")
    if faults:
        Quarantine(plan.quarantine / f"{number:04}").write(source, faults)
    return _Spooled(told, late, len(faults) - late)


def _put(plan: _Plan, batch: EventBatch, terms: TermDictionary, name: str) -> None:
    starts = batch.time // plan.every * plan.every
    for start in np.unique(starts).tolist():
        folder = plan.output / _SPOOL / str(start)
        folder.mkdir(exist_ok=True)
        (folder / name).write_bytes(pack_events(batch.take(np.flatnonzero(starts == start)), terms))


def _write(plan: _Plan, start: int) -> int:
    """A range's table; how many events it has."""
    terms = TermDictionary()
    parts = sorted((plan.output / _SPOOL / str(start)).iterdir(), key=lambda p: [int(n) for n in p.name.split("-")])
    batch = unpack_events([p.read_bytes() for p in parts], terms)
    batch = batch.take(np.argsort(batch.time, kind="stable"))
    terms.hold(*batch.ids)
    return write_events([batch], terms, plan.output / _SPOOL / _name(plan, start))


def _name(plan: _Plan, start: int) -> str:
    return f"{to_text(start).replace(':', '').replace('-', '')}.{plan.format}"


def _end_of(folder: Path, step: int) -> int | None:
    """The position after the last range that is written there; None: there is none. Raises EventError."""
    inside = folder.iterdir() if folder.is_dir() else ()
    tables = sorted(p for p in inside if p.suffix in (".arrow", ".parquet") and not is_hidden(p, folder))
    if not tables:
        return None
    terms, newest = TermDictionary(), 0
    for batch in open_events(tables[-1], terms):
        newest = max(newest, int(batch.time.max(initial=0)))
    return newest // step * step + step
