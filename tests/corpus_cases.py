"""The corpus as values: see corpus/README.md."""

from __future__ import annotations

import tomllib
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

FOLDER = Path(__file__).with_name("corpus")

Row: TypeAlias = tuple[int, tuple[tuple[str, str], ...]]
"""(end time, (variable, N-Triples term) pairs in order)."""
Found: TypeAlias = tuple[tuple[str, tuple[tuple[str, int], ...]], ...]
"""(GPM name, (stream IRI, time) of its events) pairs in order."""


@dataclass(frozen=True)
class Case:
    """One case; `streams`: IRI → (time, N-Triples) within its bounds."""

    name: str
    query: str
    streams: dict[str, list[tuple[int, str]]]
    kb: str | None
    start: int | None
    refused: bool
    rows: Counter[Row]
    matches: Counter[Found]


def load_cases() -> list[Case]:
    """All cases, by name."""
    return [_case(path.stem, tomllib.loads(path.read_text())) for path in sorted(FOLDER.glob("*.toml"))]


def _case(name: str, data: dict[str, Any]) -> Case:
    low, high = data.get("bounds", (None, None))
    events = data["events"]
    streams: dict[str, list[tuple[int, str]]] = {e["stream"]: [] for e in events}
    for e in events:
        if low is None or low <= e["time"] <= high:
            streams[e["stream"]].append((e["time"], e["graph"]))

    def found(match: dict[str, list[int]]) -> Found:
        return tuple(
            (gpm, tuple((events[n]["stream"], events[n]["time"]) for n in numbers))
            for gpm, numbers in sorted(match.items())
        )

    return Case(
        name,
        data["query"],
        streams,
        data.get("kb"),
        data.get("start"),
        data.get("refused", False),
        Counter((r["time"], tuple(sorted(r["bindings"].items()))) for r in data["rows"]),
        Counter(found(m) for m in data["matches"]),
    )
