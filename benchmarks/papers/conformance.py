"""The papers' worked examples with input, expected rows and ours: made from tests/corpus."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final
from warnings import catch_warnings

import oxiseq

CORPUS: Final = Path(__file__).parents[2] / "tests" / "corpus"
FOLDERS: Final = {"spaseq": "", "rsepql": "rsepql", "epsparql": "epsparql", "core": "ceql", "spectra": "spectra"}
PAPERS: Final = {"spaseq": "SPAseq", "rsepql": "RSEP-QL", "epsparql": "EP-SPARQL", "core": "CORE", "spectra": "SPECTRA"}
_LANGUAGES: Final = {"core": "ceql"}


@dataclass(frozen=True, slots=True)
class WorkedExample:
    """An example of a paper. expected, ours: rows as text, sorted."""

    name: str
    source: str
    query: str
    events: tuple[tuple[str, str], ...]
    """(time, triples) in order."""
    expected: tuple[str, ...]
    ours: tuple[str, ...]
    note: str


def examples(paper: str) -> Iterator[WorkedExample]:
    """The examples of a paper that have rows."""
    for path in sorted((CORPUS / FOLDERS[paper]).glob("*.toml")):
        case = tomllib.loads(path.read_text("utf-8"))
        rows = case.get("complex_events", case.get("rows"))
        if "query" not in case or rows is None or not case["source"].startswith(PAPERS[paper]):
            continue
        if "semantics.md" in case["source"]:  # a reading of ours
            continue
        keys = tuple(rows[0]) if rows else ("time", "bindings")
        events = tuple((_time(event), _short(event["graph"])) for event in case["events"])
        yield WorkedExample(
            path.stem.replace("-", " "),
            case["source"],
            case["query"].strip(),
            events,
            tuple(sorted({_row(row, keys) for row in rows})),
            tuple(sorted(set(_answered(paper, case, keys)))),
            " ".join(case[name] for name in ("printed_differs", "note") if name in case),
        )


def page() -> tuple[str, list[str]]:
    """The page, and the sources of examples whose rows differ."""
    lines = [
        "# The papers' worked examples",
        "",
        "Each example of the five papers with its input, the rows that follow from the definitions, and ours: "
        "`python -m benchmarks.papers --conformance`. Where the paper prints another answer, the reason stands below. "
        "Times are in seconds, or as the paper counts them; terms are shortened.",
    ]
    differ: list[str] = []
    for paper in FOLDERS:
        lines += ["", f"## {PAPERS[paper]}"]
        for example in examples(paper):
            equal = example.expected == example.ours
            differ += [] if equal else [example.source]
            lines += [
                "",
                f"### {example.name}",
                "",
                example.source + ".",
                "",
                "```text",
                example.query,
                "```",
                "",
                "| time | triples |",
                "|---:|---|",
            ]
            lines += [f"| {time} | {triples} |" for time, triples in example.events]
            lines += ["", "Expected:", "", *(f"- {row}" for row in example.expected or ("no row",)), ""]
            lines += (
                ["oxiseq: the same."]
                if equal
                else ["oxiseq:", "", *(f"- {row}" for row in example.ours or ("no row",))]
            )
            lines += ["", example.note] if example.note else []
    return "\n".join(lines) + "\n", differ


def _answered(paper: str, case: dict[str, Any], keys: tuple[str, ...]) -> Iterator[str]:
    given: dict[str, Any] = {
        "rules": tuple(case.get("rules", ())),
        "evaluation_times": case.get("instants"),
        "stream_operator": case.get("report"),
        "origin": case.get("start"),
        "kb": case.get("kb") or None,
    }
    low, high = case.get("bounds", (None, None))
    streams: dict[str, list[tuple[Any, ...]]] = {}
    named = {iri: name for name, iri in case.get("streams", {}).items()}
    for event in case["events"]:
        starts = (event["start"],) if "start" in event else ()
        into = streams.setdefault(named.get(event["stream"], event["stream"]), [])
        if low is None or low <= event["time"] <= high:
            into.append((*starts, event["time"], event["graph"]))
    language = _LANGUAGES.get(paper, paper)
    with catch_warnings(action="ignore"):  # the papers' examples have no WITHIN, and share no variables
        matches = list(
            oxiseq.run(
                case["query"],
                streams=streams,
                language=language,
                **{name: value for name, value in given.items() if value},
            )
        )
    for match in matches:
        row: dict[str, Any] = {"at": match.at_us, "start": match.start_us, "end": match.end_us, "time": match.end_us}
        if language == "ceql":
            found = match.positions
            row |= {"start": found.first, "end": found.last, "positions": list(found.all)}
            row["holds"] = {name: list(held) for name, held in found.by.items() if held}
        else:
            row["bindings"] = {name: str(term) for name, term in match.items() if term is not None}
        yield _row(row, keys)


def _row(row: dict[str, Any], keys: tuple[str, ...]) -> str:
    parts = [f"{key} {_seconds(row[key])}" for key in keys if key in ("at", "start", "end", "time")]
    if "positions" in row:
        parts += [f"positions {row['positions']}", *(f"{x} {p}" for x, p in sorted(row["holds"].items()))]
    parts += [f"?{name} {_short(text)}" for name, text in sorted(row.get("bindings", {}).items())]
    return ", ".join(parts)


def _time(event: dict[str, Any]) -> str:
    start = f"{_seconds(event['start'])} to " if event.get("start", event["time"]) != event["time"] else ""
    return start + _seconds(event["time"])


def _seconds(micros: int) -> str:
    return f"{micros / 1e6:g}" if abs(micros) >= 1_000 else str(micros)


_LOCAL: Final = partial(re.compile(r"<[^<>]*[/#]([^<>/#]+)>").sub, r":\1")
_TYPED: Final = partial(re.compile(r'"([^"]*)"\^\^<[^<>]*(?:integer|decimal|double)>').sub, r"\1")


def _short(text: str) -> str:
    """Terms without namespaces, numbers without types, lines in one."""
    return _LOCAL(_TYPED(" ".join(text.split()))).replace("|", "\\|").replace(" . ", "; ").removesuffix(" .")
