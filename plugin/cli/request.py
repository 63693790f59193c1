"""What `oxiseq run` and `oxiseq convert` were asked to do."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias

from oxiseq.cli.options import QuerySource

OnError: TypeAlias = Literal["stop", "skip"]
TimeUnit: TypeAlias = Literal["s", "ms", "us", "ns"]
Engine: TypeAlias = Literal["auto", "plain", "spark"]


@dataclass(frozen=True, slots=True)
class RunRequest:
    """The arguments of `oxiseq run`; times and durations in microseconds."""

    query: QuerySource
    streams: tuple[str, ...]
    kbs: tuple[str, ...]
    format: str | None
    output: Path | None
    start: int | None
    lateness: int
    late: Path | None
    columns: tuple[str, str, TimeUnit | None]
    """Of tables of tuples: those that hold the type and the time, and the unit of integers there."""
    time_predicate: str
    on_error: OnError
    sort: bool
    quiet: bool
    report: str | None = None
    """Of queries over windows, like the next two: what their text leaves open."""
    instants: tuple[int, ...] | None = None
    consumption: str | None = None
    rules: tuple[QuerySource, ...] = ()
    """Of an EP-SPARQL query."""


@dataclass(frozen=True, slots=True)
class ReplayRequest:
    """The arguments of `oxiseq replay`: those of `run`, without streams; the store's folder; times from:to in µs."""

    run: RunRequest
    location: Path
    begin: int | None
    end: int | None


@dataclass(frozen=True, slots=True)
class HistoryRequest:
    """Over which events `why` and `what-if` work: files, or a server's folder; times in microseconds."""

    streams: tuple[str, ...]
    location: Path | None
    kbs: tuple[str, ...]
    begin: int | None
    end: int | None
    start: int | None
    lateness: int
    time_predicate: str
    columns: tuple[str, str, TimeUnit | None] = ("type", "time", None)
    """Of tables of tuples: those that hold the type and the time, and the unit of integers there."""
    instants: tuple[int, ...] | None = None
    """Of queries over windows, like the next."""
    consumption: str | None = None
    rules: tuple[QuerySource, ...] = ()
    """Of an EP-SPARQL query."""
    on_error: OnError = "stop"


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
class ServeRequest:
    """The arguments of `oxiseq serve`; times in seconds, None where there is no limit or token."""

    location: Path | None
    host: str
    port: int
    upstream: str | None
    upstream_refresh: float | None
    """After how long what queries ask there is asked again."""
    read_only: bool
    cors: tuple[str, ...]
    """Origins; `*` is any, to read."""
    allowed_host: tuple[str, ...]
    union_default_graph: bool
    read_token: str | None
    write_token: str | None
    timeout: float | None
    max_rows: int | None
    query_memory: int
    max_body: int
    threads: int
    allow_service: bool
    allow_load: bool
    subscribers: int
    idle: float | None
    keep: int
    """µs for which a new stream keeps its events."""
    state_records: int
    state_bytes: int
    on_budget: Literal["fail", "reset"]
    event_triples: int
    event_triples_for: float
    """After how long those that nobody asks for are let go of."""
    durability: Literal["full", "normal"]
    log_format: Literal["text", "json"]


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
