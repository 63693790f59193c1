"""`load`: RDF files and tables into a store's folder, cleaned, and with inferences if requested.

sources ─▶ valid statements (bad ones: quarantine) ─▶ bulk load ─▶ RDFS ─▶ VoID ─▶ the store is whole
"""

from __future__ import annotations

from pathlib import Path
from typing import Literal, TypeAlias

from pyoxigraph import Store as RdfStore

from oxiseq.engine.errors import KbError
from oxiseq.kb_loader.choice import Engine, choose
from oxiseq.kb_loader.job import Job
from oxiseq.kb_loader.marker import begin, end
from oxiseq.kb_loader.plain import load_plain
from oxiseq.kb_loader.preparing import Given, beside, check_apart, check_reasoning, prepared
from oxiseq.kb_loader.quarantine import Quarantine
from oxiseq.kb_loader.report import LoadReport, Progress, Watch
from oxiseq.kb_loader.shapes import Shapes
from oxiseq.kb_loader.sources import PARTS
from oxiseq.kb_loader.staging import check_staging, remove_left
from oxiseq.kb_loader.tables import Mapping

Reasoning: TypeAlias = Literal["rdfs"]


def load(
    sources: Given,
    location: str | Path,
    *,
    reasoning: Reasoning | None = None,
    mapping: str | Path | Mapping | None = None,
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
    """Load files, folders, globs and DataFrames into a new store in the folder `location`.

    A DataFrame is Spark's, or anything with `__arrow_c_stream__` (pandas, Polars, Arrow). Spark reads `table:NAME`
    (what may follow FROM in its SQL), addresses (`s3a://bucket/folder`), and the folder of a Delta, Iceberg or
    Hudi table.

    Bad statements go to the folder `quarantine` (default: `location` with ".quarantine" behind it); with `strict` the
    first one stops the load. `mapping`: the CONSTRUCT query for tables, as a file or text. `graph`: the IRI of the
    graph that takes what would go to the default graph. Until all is done the store is marked as half loaded; loading
    again starts over. `restart` replaces a store that is whole.

    `engine`: "plain" (this process), "spark", or "auto": Spark where the sources are too big for this process, or where
    only Spark reads one of them. Spark runs at `master` (default "local[*]") with so much Java `memory` ("4g"; see
    `spark_session`), unless a Spark session is active, or a source is of one: that is then taken. `parts` keeps what
    Spark writes there: sorted N-Quads (data/, inferred/) and Parquet with coded terms (coded/); on a cluster all
    workers must see this folder and the sources.

    `shapes`: a file of SHACL shapes that the store, with what is inferred, is validated against; what breaks them stays
    in it, and is listed in the quarantine's folder; with `strict` the load fails.

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
        spark=engine != "plain",
    )
    found = job.sources
    choice = choose(engine, found, _only_spark(job, engine, master, parts))
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
            load_plain(job, new_store(), report, reasons=job.reasoning)
        if shaped is not None:
            report.violations = shaped.validated(stores[0], bad, report, watch)
        end(folder)
    except OSError as error:
        raise KbError(f"{folder}: loading failed: {error}") from error
    report.judged(bad)
    return report


def _only_spark(job: Job, engine: Engine, master: str | None, parts: str | Path | None) -> str | None:
    """What of a load only Spark can do, if anything."""
    if master is not None:
        return "master"
    if parts is not None:
        return "parts"
    if job.asked:
        return job.asked[0].name
    of_spark = any(source.frame is not None and source.frame.of_spark for source in job.sources)
    return "a DataFrame of Spark's" if of_spark and engine != "plain" else None
