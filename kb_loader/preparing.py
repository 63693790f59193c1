"""What is checked before a load begins, whichever way it is done: sources, mapping, folders."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from pyoxigraph import NamedNode

from oxiseq.engine.errors import KbError
from oxiseq.kb_loader.job import Job
from oxiseq.kb_loader.quarantine import Quarantine
from oxiseq.kb_loader.report import Watch
from oxiseq.kb_loader.sources import find_sources
from oxiseq.kb_loader.tables import Mapping, check_columns


def prepared(
    sources: str | Path | Iterable[str | Path],
    apart: Iterable[Path],
    quarantine: Quarantine,
    *,
    reasoning: bool,
    mapping: str | Path | None,
    graph: str | None,
    skolemise: bool,
    watch: Watch,
) -> Job:
    """The job of a load. `apart`: folders that it writes to. Raises KbError if a source cannot be loaded."""
    given = [sources] if isinstance(sources, str | Path) else sources
    found = find_sources(given, apart)
    if (closed := next((s for s in found if not os.access(s.path, os.R_OK)), None)) is not None:
        raise KbError(f"{closed.path}: must not be read by this user")
    mapped = Mapping.of_file(mapping) if mapping is not None else None
    if mapped is None and (table := next((s for s in found if s.format is None), None)) is not None:
        raise KbError(f"{table.path}: a table needs a mapping: a file with a SPARQL CONSTRUCT query over its columns")
    if mapped is not None:
        check_columns(mapped, found)
    return Job(found, quarantine, reasoning, mapped, _named(graph), skolemise, watch)


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
