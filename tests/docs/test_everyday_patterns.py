"""Every pattern of docs/patterns.md reports its matches where its table says so, and so do the drawings of SPAseq."""

from __future__ import annotations

import re
from datetime import datetime
from pathlib import Path

import pyarrow
import pytest

import oxiseq

PAGE = Path(__file__).parents[2] / "docs" / "patterns.md"
SECTIONS = {part.split("\n", 1)[0]: part for part in PAGE.read_text(encoding="utf-8").split("\n## ")[1:]}
EX = "http://example.org/"
KB = "".join(f"<{EX}{name}> a <{EX}Sensor> .\n" for name in "abc")
MOST = 10
"""Lines of a query."""


def rows_of(section: str) -> list[dict[str, str]]:
    """The rows of its table; the column without a name says where a match is reported."""
    lines = [line for line in section.splitlines() if line.startswith("|")]
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in (lines[0], *lines[2:])]
    return [dict(zip(cells[0], row, strict=True)) for row in cells[1:]]


def moment(clock: str) -> datetime:
    return datetime.fromisoformat(f"2026-03-02T{clock}+00:00")


def value(cell: str) -> str | int | None:
    return int(cell) if cell.isdigit() else cell or None


def tables(rows: list[dict[str, str]]) -> dict[str, pyarrow.Table]:
    """By stream the events, as a CSV file has them."""
    names = [name for name in rows[0] if name not in ("", "time", "stream")]
    events = [row for row in rows if any(row[name] for name in names)]
    found = {}
    for stream in {row.get("stream", "S") for row in events}:
        mine = [row for row in events if row.get("stream", "S") == stream]
        columns = {name: [value(row[name]) for row in mine] for name in names}
        found[stream] = pyarrow.table({"time": [moment(row["time"]) for row in mine], **columns})
    return found


@pytest.mark.parametrize("name", SECTIONS)
def test_matches_are_where_the_table_says(name: str, tmp_path: Path) -> None:
    section, rows = SECTIONS[name], rows_of(SECTIONS[name])
    [text] = re.findall(r"```sparql\n(.*?)```", section, re.DOTALL)
    assert len(text.splitlines()) <= MOST
    assert sum(any(row[column] for column in row if column not in ("", "time", "stream")) for row in rows) >= 5
    if "REGISTER" in text:
        (tmp_path / "kb.trig").write_text(f"GRAPH <{EX}kb> {{ {KB} }}", encoding="utf-8")
        graphs = [(moment(r["time"]), f"<{EX}{r['sensor']}> <{EX}temp> {r['temp']} .") for r in rows if r["sensor"]]
        query = oxiseq.Query(text, language="rspql")
        found = query.run({f"{EX}readings": graphs}, kb=tmp_path / "kb.trig")
    else:
        query = oxiseq.Query(text)
        found = query.run(dict(tables(rows)))
    assert query.check() == ()
    said = [moment(row["time"]) for row in rows if row[""].startswith("**match**")]
    assert list(dict.fromkeys(match.at for match in found)) == said


def drawn() -> tuple[dict[int, str], dict[str, list[tuple[int, ...]]]]:
    """The events of the drawing by their second, and the matches of each sequence, as the seconds of their events."""
    page = (PAGE.parent / "languages" / "spaseq.md").read_text(encoding="utf-8")
    seconds, events, *lines = page.split("```text\nseconds")[1].split("\n```")[0].splitlines()
    seconds = f"seconds{seconds}"
    clock = {seconds.index(f" {text}") + 1: int(text) for text in seconds.split()[1:]}
    found, label = dict[str, list[tuple[int, ...]]](), ""
    for line in lines:
        label = line[: min(clock)].strip() or label
        found.setdefault(label, []).append(tuple(clock[at] for at, sign in enumerate(line) if sign == "●"))
    return {second: events[at] for at, second in clock.items()}, found


@pytest.mark.parametrize("sequence", drawn()[1])
def test_drawings_are_what_the_operators_do(sequence: str) -> None:
    events, said = drawn()
    steps = {name: name.lower() for name in re.findall(r"\b[ABN]\b", sequence)}
    defined = " ".join(f"DEFINE GPM {name} ON S {{ ?x :is :{each} }}" for name, each in steps.items())
    whole = sequence if sequence.startswith("SEQ(") else f"SEQ({sequence})"
    text = f"PREFIX : <{EX}>\nSELECT * WITHIN 1 HOUR SLIDING FROM STREAM S <{EX}s> WHERE {{ {whole} {defined} }}"
    graphs = [(second * 1_000_000, f"<{EX}x> <{EX}is> <{EX}{name}> .") for second, name in events.items()]
    found = [
        tuple(sorted(time // 1_000_000 for each in match.events.values() for _, time in each))
        for match in oxiseq.run(text, {"S": graphs})
    ]
    assert sorted(found) == sorted(said[sequence])
