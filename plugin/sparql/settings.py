"""What a SPARQL endpoint allows."""

from __future__ import annotations

from dataclasses import field

from oxiseq.grammar.records import dataclass
from oxiseq.options.addresses import Network


@dataclass(frozen=True, slots=True)
class Limits:
    """Bounds of one request; None is no bound.

    `seconds`: from the request to the last byte of a query's or graph's answer (updates are not interrupted);
    `rows` of a SELECT, triples of a CONSTRUCT; `body`: bytes of a request, unpacked; `query`: bytes of a
    query's text; `nesting`: brackets inside brackets; `running`: evaluations at a time, beyond which requests
    wait `patience` seconds and are then sent away; `memory`: bytes that a query's process may take.
    """

    seconds: float | None = 300.0
    rows: int | None = None
    body: int = 128 << 20
    query: int = 1 << 20
    nesting: int = 500
    running: int = 32
    patience: float = 5.0
    memory: int = 1 << 30


@dataclass(frozen=True, slots=True)
class SparqlSettings:
    """`union_default_graph`: queries see all graphs as one; `allow_service`, `allow_load`: queries and
    updates may fetch from other servers (LOAD: by http only, see `loading`); `load_networks`: addresses that LOAD may
    reach beside public ones."""

    read_only: bool = False
    union_default_graph: bool = False
    allow_service: bool = False
    allow_load: bool = False
    limits: Limits = field(default_factory=Limits)
    load_networks: tuple[Network, ...] = ()
