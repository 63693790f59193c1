"""The arguments of `oxiseq run`, `why` and `compare`."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from oxiseq.cli.options import QuerySource
from oxiseq.grammar.records import dataclass


@dataclass(frozen=True, slots=True)
class RunRequest:
    """The arguments of `oxiseq run`: over files, or over a server's folder. `given`: the declared options, as data."""

    query: QuerySource
    streams: tuple[str, ...]
    location: Path | None
    kbs: tuple[str, ...]
    format: str | None
    output: Path | None
    late: Path | None
    sort: bool
    quiet: bool
    given: Mapping[str, Any]
    rules: tuple[QuerySource, ...] = ()
    """The files of the rules in `given`."""


@dataclass(frozen=True, slots=True)
class HistoryRequest:
    """Over which events `why` and `compare` work: files, or a server's folder. `given`: the declared options."""

    streams: tuple[str, ...]
    location: Path | None
    kbs: tuple[str, ...]
    given: Mapping[str, Any]
