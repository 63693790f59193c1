"""What is checked before a load begins, whichever way it is done: sources, mapping, folders."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any, TypeAlias

from pyoxigraph import NamedNode

from oxiseq.engine.errors import KbError
from oxiseq.kb_loader.frames import Asked, frames_among, is_frame
from oxiseq.kb_loader.job import Job
from oxiseq.kb_loader.quarantine import Quarantine
from oxiseq.kb_loader.report import Watch
from oxiseq.kb_loader.sources import Source, find_sources
from oxiseq.kb_loader.tables import Mapping, check_columns

DataFrame: TypeAlias = Any
"""What has `__arrow_c_stream__`: a DataFrame of Spark, pandas or Polars, an Arrow table."""
Given: TypeAlias = str | Path | DataFrame | Iterable[str | Path | DataFrame]
"""Sources, as `load` takes them."""


def prepared(
    sources: Given,
    apart: Iterable[Path],
    quarantine: Quarantine,
    *,
    reasoning: bool,
    mapping: str | Path | Mapping | None,
    graph: str | None,
    skolemise: bool,
    watch: Watch,
    spark: bool = False,
) -> Job:
    """The job of a load. `apart`: folders that it writes to. `spark`: whether Spark may read sources. Raises
    KbError if a source cannot be loaded."""
    files, frames, asked = frames_among([sources] if isinstance(sources, str | Path) or is_frame(sources) else sources)
    if not spark:
        files += _not_asked(asked)
        asked = []
    found = find_sources(files, apart) if files or not (frames or asked) else []
    if (closed := next((s for s in found if not os.access(s.path, os.R_OK)), None)) is not None:
        raise KbError(f"{closed.path}: must not be read by this user")
    names = ["DataFrame"] if len(frames) == 1 else [f"DataFrame {n}" for n in range(1, len(frames) + 1)]
    found += [Source(Path(name), None, "", "", name=name, frame=f) for name, f in zip(names, frames, strict=True)]
    mapped = Mapping.given(mapping)
    tables = [s.label for s in found if s.format is None] + [a.name for a in asked if a.kind != "address"]
    if mapped is None and tables:
        raise KbError(f"{tables[0]}: a table needs a mapping: a file with a SPARQL CONSTRUCT query over its columns")
    if mapped is not None and not asked:  # of what Spark finds it knows the columns
        check_columns(mapped, found)
    return Job(found, quarantine, reasoning, mapped, _named(graph), skolemise, watch, asked)


def _not_asked(asked: Iterable[Asked]) -> list[str | Path]:
    """The folders of lakes, which are refused with the reason. Raises KbError for what else only Spark reads."""
    asked = list(asked)
    if (other := next((a for a in asked if a.kind in ("table", "address")), None)) is not None:
        raise KbError(f"{other.name}: only `load` on Spark reads this; here give files, or the rows as a DataFrame")
    return [a.text for a in asked]


def check_reasoning(reasoning: str | None) -> None:
    """Raise KbError for what is no reasoning of ours."""
    if reasoning not in (None, "rdfs"):
        raise KbError(f"unknown reasoning {reasoning!r}; known: rdfs")


def beside(folder: Path, name: str) -> Path:
    """The folder of this name beside a store's."""
    return folder.with_name(f"{folder.name}.{name}")


def check_apart(location: Path, other: Path, what: str) -> None:
    """Raise KbError if a folder is within the store's."""
    if other.resolve().is_relative_to(location.resolve()):
        raise KbError(f"{other}: is in the store's folder: give another folder for the {what}")


def _named(graph: str | None) -> NamedNode | None:
    try:
        return NamedNode(graph) if graph else None
    except ValueError as error:
        raise KbError(f"the graph {graph!r} is no IRI: {error}") from error
