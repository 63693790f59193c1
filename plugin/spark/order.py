"""A query as it is sent to workers. This module needs no engine: several processes of Spark's only pass it on."""

from __future__ import annotations

from typing import Literal, TypeAlias

from oxiseq.grammar.records import dataclass

Form: TypeAlias = Literal["text", "ntriples", "terms"]
"""How workers emit values: as IRIs and lexical forms, as N-Triples, or as the parts of terms."""


@dataclass(frozen=True, slots=True)
class Order:
    """A query as it is sent to workers, in a language of ours.

    `kb`: a file, a store's folder, N-Quads text or None; `origin` in µs; `given`: the IRIs of the streams that have
    events; `buckets`: how many runs share the keys; `on_error` as in `run`; `behind`: those of the streams that a
    stateful operator emits: Spark's watermark has passed their events when they come; `mappings`: (IRI, mapping as
    JSON) of the streams whose rows are no events."""

    text: str
    kb: str | None
    origin: int | None
    given: tuple[str, ...]
    buckets: int
    on_error: Literal["stop", "skip"] = "stop"
    behind: tuple[str, ...] = ()
    mappings: tuple[tuple[str, str], ...] = ()
    language: str = "spaseq"
