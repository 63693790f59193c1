"""`load`: RDF files and tables into a store's folder, cleaned, and reasoned over if asked.

    sources ─▶ valid statements (bad ones: quarantine) ─▶ bulk load ─▶ RDFS ─▶ VoID ─▶ the store is whole
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from time import perf_counter
from typing import Literal, TypeAlias

from pyoxigraph import NamedNode

from oxiseq.engine.errors import KbError
from oxiseq.kb_loader.job import Job
from oxiseq.kb_loader.marker import begin, end
from oxiseq.kb_loader.plain import PlainLoad
from oxiseq.kb_loader.quarantine import Quarantine
from oxiseq.kb_loader.rdfs import reason
from oxiseq.kb_loader.report import LoadReport, Progress, Watch
from oxiseq.kb_loader.sources import find_sources
from oxiseq.kb_loader.tables import Mapping
from oxiseq.kb_loader.void import describe

Reasoning: TypeAlias = Literal["rdfs"]


def load(
    sources: str | Path | Iterable[str | Path],
    location: str | Path,
    *,
    reasoning: Reasoning | None = None,
    mapping: str | Path | None = None,
    graph: str | None = None,
    skolemise: bool = False,
    strict: bool = False,
    restart: bool = False,
    quarantine: str | Path | None = None,
    watch: Watch = lambda progress: None,
) -> LoadReport:
    """Load files, folders and globs into a new store in the folder `location`.

    Bad statements go to the folder `quarantine` (default: `location` with ".quarantine" behind it); with `strict`
    the first one stops the load. `mapping`: a file with the CONSTRUCT query for tables. `graph`: the IRI of the
    graph that takes what would go to the default graph. Until all is done the store is marked as half loaded;
    loading again starts over. `restart` replaces a store that is whole.

    Raises KbError.
    """
    if reasoning not in (None, "rdfs"):
        raise KbError(f"unknown reasoning {reasoning!r}; known: rdfs")
    folder = Path(location)
    given = [sources] if isinstance(sources, str | Path) else sources
    found = find_sources(given)
    mapped = Mapping.of_file(mapping) if mapping is not None else None
    if mapped is None and (table := next((s for s in found if s.format is None), None)) is not None:
        raise KbError(f"{table.path}: a table needs a mapping: a file with a SPARQL CONSTRUCT query over its columns")
    bad = Quarantine(_new_folder(quarantine or folder.with_name(folder.name + ".quarantine")), strict=strict)
    report = LoadReport(folder, files=len(found))
    job = Job(found, bad, reasoning is not None, mapped, NamedNode(graph) if graph else None, skolemise, watch)
    plain = PlainLoad(job)
    total = sum(source.size for source in found)
    try:
        store = begin(folder, restart=restart)
        with _timed(report, "loading"):
            plain.into(store)
        report.read, report.stored = plain.read, len(store)
        if reasoning is not None:
            watch(Progress("reasoning", total, total, plain.read))
            with _timed(report, "reasoning"):
                report.inferred = reason(store)
        watch(Progress("counting", total, total, plain.read))
        with _timed(report, "counting"):
            report.statistics = describe(store)
        store.flush()
        del store
        end(folder)
    except OSError as error:
        raise KbError(f"{folder}: loading failed: {error}") from error
    report.quarantined, report.faults = bad.count, bad.first
    report.quarantine = bad.folder if bad.count else None
    return report


def _new_folder(path: str | Path) -> Path:
    """A quarantine's folder, emptied of an earlier load's files. Raises KbError if it holds anything else."""
    folder = Path(path)
    if folder.exists():
        old = list(folder.iterdir()) if folder.is_dir() else [folder]
        other = [e for e in old if e.suffix != ".jsonl"]
        if other:
            raise KbError(f"{other[0]}: is not a quarantine's: give another folder for the quarantine")
        for entry in old:
            entry.unlink()
    return folder


@contextmanager
def _timed(report: LoadReport, step: str) -> Iterator[None]:
    begun = perf_counter()
    yield
    report.seconds[step] = perf_counter() - begun
