"""`load`: RDF files and tables into a store's folder, cleaned, and reasoned over if asked.

sources ─▶ valid statements (bad ones: quarantine) ─▶ bulk load ─▶ RDFS ─▶ VoID ─▶ the store is whole
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Literal, TypeAlias

from pyoxigraph import Store as RdfStore

from oxiseq.engine.errors import KbError
from oxiseq.kb_loader.choice import Engine, choose
from oxiseq.kb_loader.marker import begin, end
from oxiseq.kb_loader.plain import load_plain
from oxiseq.kb_loader.preparing import beside, check_apart, check_reasoning, prepared
from oxiseq.kb_loader.quarantine import Quarantine
from oxiseq.kb_loader.report import LoadReport, Progress, Watch
from oxiseq.kb_loader.shapes import Shapes
from oxiseq.kb_loader.sources import PARTS
from oxiseq.kb_loader.staging import check_staging, remove_left

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
    shapes: str | Path | None = None,
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

    `shapes`: a file of SHACL shapes that the store, with what is inferred, is validated against; what breaks them stays
    in it, and is told in the quarantine's folder; with `strict` the load fails.

    Raises KbError, SparkMissing if Spark is needed and cannot be used, and ExtraError for shapes without pyshacl.
    """
    check_reasoning(reasoning)
    folder = Path(location)
    bad = Quarantine(Path(quarantine or beside(folder, "quarantine")), strict=strict)
    staging = Path(parts or beside(folder, "parts"))
    used = engine != "plain" and (staging / PARTS).exists()
    shaped = Shapes(shapes) if shapes is not None else None
    job = prepared(
        sources,
        [folder, bad.folder, *[staging] * used],
        bad,
        reasoning=reasoning is not None,
        mapping=mapping,
        graph=graph,
        skolemise=skolemise,
        watch=watch,
    )
    found = job.sources
    asked = "master" if master is not None else "parts" if parts is not None else None
    choice = choose(engine, found, asked)
    check_apart(folder, bad.folder, "quarantine")
    if choice.engine == "spark":
        check_apart(folder, staging, "parts")
        check_staging(staging)
    total = sum(source.size for source in found)
    watch(Progress("starting", 0, total, 0, choice.why))
    report = LoadReport(folder, choice.engine, len(found))

    stores: list[RdfStore] = []

    def new_store() -> RdfStore:
        store = begin(folder, restart=restart)
        stores.append(store)
        bad.empty()
        remove_left(beside(folder, "parts"))
        return store

    try:
        if choice.engine == "spark":
            from oxiseq.kb_loader.spark.load import OnSpark, load_on_spark  # noqa: PLC0415  pyspark may not be there

            how = OnSpark(master or "local[*]", memory or "2g", staging, parts is not None)
            load_on_spark(job, how, new_store, report)
        else:
            load_plain(job, new_store(), report)
        if shaped is not None:
            report.violations = shaped.validated(stores[0], bad, report, watch)
        end(folder)
    except OSError as error:
        raise KbError(f"{folder}: loading failed: {error}") from error
    report.judged(bad)
    return report
