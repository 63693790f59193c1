"""The corpus as values: see corpus/README.md."""

from __future__ import annotations

import tomllib
from collections import Counter
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeAlias

FOLDER = Path(__file__).with_name("corpus")

Row: TypeAlias = tuple[int, tuple[tuple[str, str], ...]]
"""(end time, (variable, N-Triples term) pairs in order)."""
Result: TypeAlias = tuple[int, int, tuple[tuple[str, str], ...]]
"""(at, end time, columns as in Row)."""
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
    rows: Counter[Row]
    matches: Counter[Found]
    results: list[Result]
    """Of cases whose rows have an order: those about the time of a match, UNTIL, PERMUTE and SUPPRESS."""


@dataclass(frozen=True)
class CeqlCase:
    """One case of CEQL; `events`: (stream IRI, time, N-Triples) in order. `streams`: name in FROM → IRI, where it
    is not the one VOCAB gives. `complex_events`: (start, end, D, what each variable holds)."""

    name: str
    query: str
    streams: dict[str, str]
    events: list[tuple[str, int, str]]
    complex_events: Counter[tuple[int, int, frozenset[int], frozenset[tuple[str, int]]]]


def load_ceql_cases() -> list[CeqlCase]:
    """All cases of CEQL, by name."""
    return [_ceql_case(p.stem, tomllib.loads(p.read_text())) for p in sorted((FOLDER / "ceql").glob("*.toml"))]


def _ceql_case(name: str, data: dict[str, Any]) -> CeqlCase:
    return CeqlCase(
        name,
        data["query"],
        data.get("streams", {}),
        [(e["stream"], e["time"], e["graph"]) for e in data["events"]],
        Counter(
            (
                c["start"],
                c["end"],
                frozenset(c["positions"]),
                frozenset((x, p) for x, positions in c["holds"].items() for p in positions),
            )
            for c in data.get("complex_events", [])
        ),
    )


def load_cases() -> list[Case]:
    """All cases, by name."""
    return _cases(FOLDER)


def load_at_cases() -> list[Case]:
    """All cases about the time of a match, by name."""
    return _cases(FOLDER / "at")


def load_clause_cases(*clauses: str) -> list[Case]:
    """All cases about UNTIL, PERMUTE and SUPPRESS, or about some of them, by clause and name."""
    clauses = clauses or ("until", "permute", "suppress")
    return [replace(case, name=f"{clause}-{case.name}") for clause in clauses for case in _cases(FOLDER / clause)]


def _cases(folder: Path) -> list[Case]:
    return [_case(path.stem, tomllib.loads(path.read_text())) for path in sorted(folder.glob("*.toml"))]


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

    def columns(row: dict[str, Any]) -> tuple[tuple[str, str], ...]:
        return tuple(sorted(row["bindings"].items()))

    rows = data["rows"]
    return Case(
        name,
        data["query"],
        streams,
        data.get("kb"),
        data.get("start"),
        Counter((r.get("time", r.get("end")), columns(r)) for r in rows),
        Counter(found(m) for m in data.get("matches", [{}] * len(rows))),  # a group's row has no events
        [(r["at"], r["end"], columns(r)) for r in rows if "at" in r],
    )
