"""`load`: RDF files and tables into a store's folder, cleaned, and reasoned over if asked.

    sources ─▶ valid statements (bad ones: quarantine) ─▶ bulk load ─▶ RDFS ─▶ VoID ─▶ the store is whole
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Literal, TypeAlias

from pyoxigraph import NamedNode

from oxiseq.engine.errors import KbError
from oxiseq.kb_loader.choice import Engine, choose
from oxiseq.kb_loader.job import Job
from oxiseq.kb_loader.marker import begin, end
from oxiseq.kb_loader.plain import load_plain
from oxiseq.kb_loader.quarantine import Quarantine
from oxiseq.kb_loader.report import LoadReport, Progress, Watch
from oxiseq.kb_loader.sources import find_sources
from oxiseq.kb_loader.tables import Mapping

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
    engine: Engine = "auto",
    master: str | None = None,
    memory: str | None = None,
    parts: str | Path | None = None,
    watch: Watch = lambda progress: None,
) -> LoadReport:
    """Load files, folders and globs into a new store in the folder `location`.

    Bad statements go to the folder `quarantine` (default: `location` with ".quarantine" behind it); with `strict`
    the first one stops the load. `mapping`: a file with the CONSTRUCT query for tables. `graph`: the IRI of the
    graph that takes what would go to the default graph. Until all is done the store is marked as half loaded;
    loading again starts over. `restart` replaces a store that is whole.

    `engine`: "plain" (this process), "spark", or "auto": Spark where the sources are too big for this process. Spark
    runs at `master` (default "local[*]") with so much Java `memory` ("4g"; see `spark_session`), unless a Spark session
    is active, which is then taken. `parts` keeps what Spark writes there: sorted N-Quads (data/, inferred/) and Parquet
    with coded terms (coded/); on a cluster all workers must see this folder and the sources.

    Raises KbError, and SparkMissing if Spark is needed and cannot be used.
    """
    if reasoning not in (None, "rdfs"):
        raise KbError(f"unknown reasoning {reasoning!r}; known: rdfs")
    folder = Path(location)
    given = [sources] if isinstance(sources, str | Path) else sources
    found = find_sources(given)
    mapped = Mapping.of_file(mapping) if mapping is not None else None
    if mapped is None and (table := next((s for s in found if s.format is None), None)) is not None:
        raise KbError(f"{table.path}: a table needs a mapping: a file with a SPARQL CONSTRUCT query over its columns")
    asked = "master" if master is not None else "parts" if parts is not None else None
    choice = choose(engine, found, asked)
    total = sum(source.size for source in found)
    watch(Progress("starting", 0, total, 0, choice.why))
    bad = Quarantine(_new_folder(quarantine or folder.with_name(folder.name + ".quarantine")), strict=strict)
    job = Job(found, bad, reasoning is not None, mapped, NamedNode(graph) if graph else None, skolemise, watch)
    report = LoadReport(folder, choice.engine, len(found))
    try:
        store = begin(folder, restart=restart)
        if choice.engine == "spark":
            from oxiseq.kb_loader.spark.load import OnSpark, load_on_spark  # noqa: PLC0415  pyspark may not be there

            beside = folder.with_name(folder.name + ".parts")
            how = OnSpark(master or "local[*]", memory or "2g", Path(parts or beside), parts is not None)
            load_on_spark(job, how, store, report)
        else:
            load_plain(job, store, report)
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
