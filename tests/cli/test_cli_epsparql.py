"""EP-SPARQL on the command line: run, check, explain, rules."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from cli_files import EVENTS, EX, STREAM, oxiseq, write

QUERY = f"""PREFIX : <{EX}>
SELECT ?who ?first ?second
WHERE {{ {{ ?who :paid ?first }} SEQ {{ ?who :paid ?second }} FILTER(?second >= 10 * ?first && getDURATION() < 3e9) }}
"""
RULE = f"PREFIX : <{EX}> CONSTRUCT {{ ?who :rich 1 }} WHERE {{ ?who :paid ?much FILTER(?much >= 50) }}"
RICH = f"PREFIX : <{EX}> SELECT ?who FROM STREAM <{STREAM}> WHERE {{ ?who :rich 1 }}"


@pytest.fixture(autouse=True)
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name, text in (("jumps.epsparql", QUERY), ("rich.epsparql", RICH), ("rule.epsparql", RULE), ("e.nq", EVENTS)):
        write(tmp_path, name, text)


@pytest.mark.parametrize("stream", ["e.nq", f"{STREAM}=e.nq"])
def test_a_query_that_names_no_stream_reads_what_is_given(stream: str) -> None:
    result = oxiseq("run", "jumps.epsparql", "--stream", stream, "-f", "table")
    assert result.exit_code == 0, result.stderr
    header, _, *rows = result.stdout.splitlines()
    assert header.split() == ["at", "start", "end", "?who", "?first", "?second"]
    assert [row.split()[1:3] for row in rows] == [
        ["2024-05-01T10:00:00Z", "2024-05-01T10:02:00Z"],
        ["2024-05-01T10:00:00Z", "2024-05-01T10:03:00Z"],
        ["2024-05-01T10:01:00Z", "2024-05-01T10:03:00Z"],
    ]


def test_rules_are_files() -> None:
    result = oxiseq("run", "rich.epsparql", "-s", "e.nq", "--rules", "rule.epsparql", "-f", "json")
    assert len(json.loads(result.stdout)["results"]["bindings"]) == 3


def test_explain_and_check() -> None:
    shown = oxiseq("explain", "rich.epsparql", "--rules", "rule.epsparql").stdout
    assert "stratum: rules 1" in shown and "triples ?who :rich 1" in shown
    text = oxiseq("explain", "jumps.epsparql").stdout
    assert "SEQ on ?who within less than 50 MINUTES   [keeps first for less than 50 MINUTES]" in text
    assert json.loads(oxiseq("explain", "jumps.epsparql", "--json").stdout)["form"] == "SELECT"
    assert oxiseq("explain", "jumps.epsparql", "--dot").stdout.startswith("digraph")
    assert oxiseq("check", "jumps.epsparql", "rule.epsparql").exit_code == 0
