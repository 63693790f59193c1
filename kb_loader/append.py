"""`append`: more files into a store that is there.

    sources ─▶ valid statements (bad ones: quarantine) ─▶ bulk load ─▶ RDFS again ─▶ VoID again ─▶ the batch is recorded

A batch has an id. Loading it again does nothing once it is noted; before, it goes over what an interrupted append has
left, which adds nothing twice: the same statements, and blank nodes with the same labels.
"""

from __future__ import annotations

import hashlib
from dataclasses import replace
from pathlib import Path
from typing import Literal

from pyoxigraph import Store as RdfStore

from oxiseq.engine.errors import KbError
from oxiseq.kb_loader.graphs import INFERRED
from oxiseq.kb_loader.job import Job
from oxiseq.kb_loader.marker import batches, begin_append, end, note_batch
from oxiseq.kb_loader.plain import load_plain
from oxiseq.kb_loader.preparing import Given, beside, check_apart, check_reasoning, prepared
from oxiseq.kb_loader.quarantine import Quarantine
from oxiseq.kb_loader.report import LoadReport, Watch
from oxiseq.kb_loader.shapes import Shapes
from oxiseq.kb_loader.tables import Mapping

_LONGEST = 200
"""Characters of a batch's id."""


def append(
    sources: Given,
    location: str | Path,
    *,
    batch: str | None = None,
    reasoning: Literal["rdfs"] | None = None,
    mapping: str | Path | Mapping | None = None,
    graph: str | None = None,
    skolemise: bool = False,
    strict: bool = False,
    quarantine: str | Path | None = None,
    shapes: str | Path | None = None,
    watch: Watch = lambda progress: None,
) -> LoadReport:
    """Add files, folders, globs and DataFrames to the store in the folder `location`, in this process; else as `load`.

    `batch`: the id of what is added (default: made of the files' paths, sizes and times of change;
    DataFrames need one). A batch that is in
    the store already is not loaded again: the report says `known`. Blank nodes of a file are those of its batch. What
    the store has inferred, and its statistics, are rebuilt over all data. While it works the store is marked as half
    loaded; after a kill append the same batch again. `stored` counts statements that are new.

    Raises KbError, also if the folder holds no store, or a half loaded one.
    """
    check_reasoning(reasoning)
    folder = Path(location)
    bad = Quarantine(Path(quarantine or beside(folder, "quarantine")), strict=strict)
    shaped = Shapes(shapes) if shapes is not None else None
    job = prepared(
        sources,
        [folder, bad.folder],
        bad,
        reasoning=reasoning is not None,
        mapping=mapping,
        graph=graph,
        skolemise=skolemise,
        watch=watch,
    )
    check_apart(folder, bad.folder, "quarantine")
    number = _id(job) if batch is None else batch
    if not 0 < len(number) <= _LONGEST:
        raise KbError(f"a batch's id has 1 to {_LONGEST} characters, not {len(number)}")
    report = LoadReport(folder, "plain", len(job.sources), batch=number)
    if number in batches(folder):
        report.known = True
        return report
    job = replace(job, sources=[replace(source, batch=number) for source in job.sources])
    try:
        store, reasons = begin_append(folder, number, lambda store: job.reasoning or _has_inferred(store))
        bad.empty()
        load_plain(job, store, report, reasons=reasons)
        if shaped is not None:
            report.violations = shaped.validated(store, bad, report, watch)
        note_batch(folder, number, report.read)
        end(folder)
    except OSError as error:
        raise KbError(f"{folder}: appending failed: {error}") from error
    report.judged(bad)
    return report


def _id(job: Job) -> str:
    """Of the files as they are now. Raises KbError if one is not a file."""
    if (frame := next((s for s in job.sources if s.frame is not None), None)) is not None:
        raise KbError(f"{frame.label}: has no path and no time to make a batch's id of: give batch=")
    digest = hashlib.blake2b(digest_size=16)
    for source in sorted(job.sources, key=lambda source: str(source.path.resolve())):
        digest.update(f"{source.path.resolve()}\0{source.size}\0{source.path.stat().st_mtime_ns}\0".encode())
    return digest.hexdigest()


def _has_inferred(store: RdfStore) -> bool:
    return store.contains_named_graph(INFERRED)
