"""The corpus of continuous SPARQL and RSEP-QL as values: see corpus/README.md."""

from __future__ import annotations

import tomllib
from collections import Counter
from dataclasses import dataclass
from typing import Any, TypeAlias

from corpus_cases import FOLDER

Told: TypeAlias = tuple[int, tuple[int, int] | None, tuple[tuple[str, str], ...]]
"""(instant, (start, end) of the event mapping if the case has them, (variable, N-Triples term) pairs in order)."""


@dataclass(frozen=True)
class RspCase:
    """One case. `rows` is None for those that are about a window alone."""

    name: str
    language: str
    query: str | None
    window: str | None
    streams: dict[str, list[tuple[int, str]]]
    kb: str
    instants: list[int] | None
    report: str | None
    rows: Counter[Told] | None
    timed: bool
    """Whether the rows have the times of event mappings; without them they are a set."""
    items: list[int] | None
    graph: list[str] | None


def load_rsp_cases() -> list[RspCase]:
    """All cases, by language and name."""
    return [
        _case(f"{language}-{path.stem}", language, tomllib.loads(path.read_text()))
        for language in ("rsepql", "spectra")
        for path in sorted((FOLDER / language).glob("*.toml"))
    ]


def _case(name: str, language: str, data: dict[str, Any]) -> RspCase:
    streams: dict[str, list[tuple[int, str]]] = {}
    for event in data["events"]:
        streams.setdefault(event["stream"], []).append((event["time"], event["graph"]))
    rows = [
        (r["at"], (r["start"], r["end"]) if "start" in r else None, tuple(sorted(r["bindings"].items())))
        for r in data.get("rows", [])
    ]
    return RspCase(
        name,
        language,
        data.get("query"),
        data.get("window"),
        streams,
        data.get("kb", ""),
        data.get("instants"),
        data.get("report"),
        Counter(rows) if "rows" in data else None,
        any(times is not None for _, times, _ in rows),
        data.get("items"),
        data.get("graph"),
    )
