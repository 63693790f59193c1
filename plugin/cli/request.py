"""What `oxiseq run` and `oxiseq convert` were asked to do."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeAlias

from oxiseq.cli.options import QuerySource

OnError: TypeAlias = Literal["stop", "skip"]
TimeUnit: TypeAlias = Literal["s", "ms", "us", "ns"]
Engine: TypeAlias = Literal["auto", "plain", "spark"]


@dataclass(frozen=True, slots=True)
class RunRequest:
    """The arguments of `oxiseq run`. `given`: the declared options, as data."""

    query: QuerySource
    streams: tuple[str, ...]
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
class ReplayRequest:
    """The arguments of `oxiseq replay`: those of `run`, without streams; the store's folder; since:until in µs."""

    run: RunRequest
    location: Path
    since: int | None
    until: int | None


@dataclass(frozen=True, slots=True)
class HistoryRequest:
    """Over which events `why` and `what-if` work: files, or a server's folder. `given`: the declared options."""

    streams: tuple[str, ...]
    location: Path | None
    kbs: tuple[str, ...]
    given: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class ConvertRequest:
    """The arguments of `oxiseq convert`."""

    source: Path
    target: Path
    source_format: str | None
    target_format: str | None
    time_predicate: str
    on_error: OnError
    quiet: bool


@dataclass(frozen=True, slots=True)
class LoadRequest:
    """The arguments of `oxiseq load`."""

    sources: tuple[str, ...]
    location: Path
    reasoning: str | None
    mapping: Path | None
    graph: str | None
    skolemise: bool
    strict: bool
    quarantine: Path | None
    engine: Engine
    master: str | None
    memory: str | None
    parts: Path | None
    restart: bool
    quiet: bool


@dataclass(frozen=True, slots=True)
class EventsRequest:
    """What `oxiseq events` is asked for; `every` in µs."""

    sources: tuple[str, ...]
    output: Path
    mapping: Path | None
    time: str
    time_unit: TimeUnit | None
    every: int
    to: str
    engine: str
    master: str
    memory: str
    time_predicate: str
    quiet: bool
