"""Every case of the benchmarks at a tiny size. The cases themselves compare the answers of the ways they time."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from profiles import in_the_gate

from benchmarks.__main__ import CASES, main
from benchmarks.data import STEPS, quotes, stock_events
from benchmarks.drive import Prepared
from benchmarks.profile import CASES as PROFILES
from benchmarks.profile import run as run_profile
from benchmarks.report import Figure, Result, Row, Size, markdown
from benchmarks.sequences import query
from oxiseq.engine.terms.dictionary import TermDictionary

TINY = Size(events=300, rounds=1, kb=(8_000, 16_000), sparql_events=200, tries=2_000, pushes=40)


@pytest.mark.parametrize("name", in_the_gate(CASES.keys() - {"queries"}, CASES))  # a thousand of them take 5 s
@pytest.mark.slow
def test_case_runs_and_its_ways_agree(name: str) -> None:
    result = CASES[name](replace(TINY, events=3_000) if name == "queries" else TINY)
    assert result.name == name
    assert result.rows and result.figures
    assert sum(row.matches for row in result.rows) > 0


@pytest.mark.parametrize("name", PROFILES)
def test_profile_names_every_stage(name: str) -> None:
    table = run_profile(name, TINY)
    assert "matching" in table.splitlines()[0]
    assert len(table.splitlines()) > 2


@pytest.mark.parametrize("steps", STEPS)
def test_every_planted_sequence_is_one_match(steps: int) -> None:
    terms = TermDictionary()
    events = stock_events(terms, 500, every=200)
    assert Prepared.of(query(steps, 400), terms).counting(events)() == 3


def test_walk_moves_each_company_by_itself() -> None:
    terms = TermDictionary()
    (batch,) = quotes(terms, 400, companies=5, moves="falling").batches
    companies, prices = batch.object[0::3], terms.columns.number[batch.object[1::3]]
    for company in set(companies.tolist()):
        own = prices[companies == company]
        assert (own[1:] < own[:-1]).all() and own.min() >= 10


def test_table_marks_a_ratio_that_is_not_as_asked() -> None:
    row = Row("a", "b", 1234.5, 1.1, 7)
    text = markdown([Result("n", "T", "About.", (row,), (Figure("good", 1.2, 1.3), Figure("bad", 1.4, 1.3)))], "here")
    assert "| good | 1.20× | ≤ 1.3× |" in text
    assert "| bad | **1.40×** | ≤ 1.3× |" in text
    assert "| a | b | 1,234 | 810,000 | 7 |" in text


def test_command_writes_the_table(tmp_path: Path) -> None:
    file = tmp_path / "table.md"
    main(["--quick", "--only", "sequences", "--events", "200", "--rounds", "1", "--output", str(file)])
    assert "`:` 24 steps" in file.read_text(encoding="utf-8")
