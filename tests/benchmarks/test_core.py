"""CORE's experiments at a tiny size: all texts are read, all ways find the same, and as many as plain search finds."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from profiles import in_the_gate

from benchmarks.core import __main__ as command
from benchmarks.core import page
from benchmarks.core.count import _fits, count
from benchmarks.core.memory import Memory, sampled
from benchmarks.core.queries import Query, Step, every
from benchmarks.core.run import Found, found, ways_of
from benchmarks.core.streams import EVENTS, EVERY, numbers, repeated, stream
from benchmarks.core.ways import RDF, SPASEQ, TABLE, coded
from benchmarks.data import Events
from oxiseq.engine.terms.dictionary import TermDictionary
from oxiseq.grammar import load

SIZE = EVERY + 400
"""The planted steps are there once."""
QUERIES = {query.name: query for query in every()}


@pytest.fixture(scope="module")
def tables() -> dict[str, pa.Table]:
    return {name: stream(name, SIZE) for name in EVENTS}


@pytest.fixture(scope="module")
def events(tables: dict[str, pa.Table]) -> Events:
    return coded(tables["stocks"], TermDictionary())


def test_the_queries_are_all_there() -> None:
    assert len(QUERIES) == len(every()) == 64
    assert [len(QUERIES[f"S{n}"].steps) for n in (3, 6, 9, 12, 24)] == [3, 6, 9, 12, 24]
    assert len(QUERIES["T24'"].steps) == 25 and len(QUERIES["H3' 40 s"].steps) == 4


@pytest.mark.parametrize("query", every(), ids=lambda query: query.name)
def test_every_text_is_read(query: Query) -> None:
    read = load(query.text, "ceql")
    assert read.limit.count == 1_000 and read.consumption.whole_query
    if query.coded:
        load(query.spaseq(clauses=True))
        load(query.spaseq(clauses=False))


@pytest.mark.parametrize("query", in_the_gate([*every()][::4], every()), ids=lambda query: query.name)
def test_every_way_finds_what_is_counted(query: Query, tables: dict[str, pa.Table], events: Events) -> None:
    (one,) = found([query], tables[query.stream], events, 1, SIZE).values()
    assert one.faults == ()
    assert one.matches == 0 or not query.primed
    assert one.matches > 0 or query.primed or query.name in ("Q3", "Q6", "Q7")
    assert {TABLE, RDF} <= set(one.rates) or not query.coded
    assert SPASEQ in one.rates or not (query.coded and query.primed)


def by_search(query: Query, table: pa.Table) -> int:
    """By the definition: all choices of events for steps, of which the second may be iterated; then consumption."""
    clock, fits = numbers(table[query.clock]), np.stack([_fits(s, table) for s in query.steps], axis=1)
    ended: dict[int, list[int]] = {}
    for size in range(3, len(table) + 1 if query.steps[1].more else 4):
        steps = np.array([0, *[1] * (size - 2), 2])
        for chosen in combinations(range(len(table)), size):
            if clock[chosen[-1]] - clock[chosen[0]] <= query.window and fits[list(chosen), steps].all():
                ended.setdefault(chosen[-1], []).append(chosen[0])
    total, forgotten = 0, -1
    for end in sorted(ended):
        alive = [start for start in ended[end] if start > forgotten]
        total += min(len(alive), 1_000)
        forgotten = end if alive else forgotten
    return total


@pytest.mark.parametrize("seed", range(6))
def test_the_count_is_by_the_definition(seed: int) -> None:
    random = np.random.default_rng(seed)
    table = pa.table(
        {
            "type": random.choice(["A", "B"], 28),
            "x": random.integers(0, 3, 28),
            "t": np.cumsum(random.integers(0, 3, 28)),
        }
    )
    steps = (Step(("A",), (("x", ">", 0),)), Step(("A", "B"), (("x", "=", 1),)), Step(("B",), ()))
    query = Query("X", "stocks", steps, "t", 12)
    assert count(query, table) == by_search(query, table)
    more = replace(query, steps=(steps[0], replace(steps[1], more=True), steps[2]))
    assert count(more, table.slice(0, 14)) == by_search(more, table.slice(0, 14))


def test_iterations_are_subsets() -> None:
    """A, B, B, B, C: each non-empty choice of the B's."""
    table = pa.table({"type": list("ABBBC"), "t": range(5)})
    steps = (Step(("A",), ()), Step(("B",), (), more=True), Step(("C",), ()))
    assert count(Query("X", "stocks", steps, "t", 9), table) == 7
    assert count(Query("X", "stocks", steps, "t", 3), table) == 0
    assert count(Query("X", "stocks", steps, "t", 9, last=True), table) == 1


def test_a_way_that_differs_is_named(tables: dict[str, pa.Table], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("benchmarks.core.run.count", lambda query, table: 17)
    assert "17 were counted" in found([QUERIES["S3"]], tables["stocks"], None, 1, 1_000)["S3"].faults[0]


def test_only_coded_queries_ask_rdf(tables: dict[str, pa.Table], events: Events) -> None:
    assert set(ways_of(QUERIES["Q1"], tables["stocks"], events)) == {TABLE}
    assert set(ways_of(QUERIES["S3"], tables["stocks"], None)) == {TABLE}


def test_streams_are_like_the_originals() -> None:
    trades = stream("stocks", 50_000)
    times = numbers(trades["stock_time"])
    assert (np.diff(times) > 0).all()
    assert 4.3 < 1_000 * len(trades) / (times[-1] - times[0]) < 5.3
    assert len(trades["name"].unique()) == 10
    homes = stream("homes", 20_000)
    assert (np.diff(numbers(homes["plug_timestamp"])) >= 0).all()
    plugs = set(zip(numbers(homes["household_id"]).tolist(), numbers(homes["plug_id"]).tolist(), strict=True))
    assert len(plugs) == 85 and {h for h, _ in plugs} == set(range(17))
    assert len(stream("taxis", 50_000)["pickup_zone"].unique()) > 250
    assert stream("taxis", 100).equals(stream("taxis", 100))


def test_a_repeated_stream_goes_on() -> None:
    table = stream("stocks", 1_000)
    pieces = repeated(table, "stock_time", 1_000, 300)
    whole = pa.concat_tables(next(pieces) for _ in range(8))
    for name in ("time", "stock_time"):
        assert (np.diff(numbers(whole[name])) > 0).all()
    assert (np.diff(numbers(whole["time"])) == 1_000 * np.diff(numbers(whole["stock_time"]))).all()


def test_memory_is_sampled() -> None:
    memory = sampled(QUERIES["S3"], 20_000)
    assert 0 < memory.before <= memory.peak and memory.matches > 0


def test_what_is_not_as_asked_is_said() -> None:
    query = QUERIES["S3"]
    slow = {"S3": Found(query, {TABLE: 1e6, RDF: 4e6}, 5, ())}
    sizes = {"before": 1, "second": 100_000_000, "last": 150_000_000, "peak": 250_000_000, "private": 90_000_000}
    grown = Memory(**sizes, records=5, matches=0)
    assert page.missed(slow, {"S3": grown}) == [
        "S3, CEQL, table: 1 M events/s, 8 asked",
        "S3: memory grows 1.500× from the second quarter to the last",
        "S3: 250 MB resident, 200 asked",
    ]
    assert page.faults({"S3": replace(slow["S3"], faults=("x",))}, {}) == ["x"]


def test_the_command_writes_a_page(tmp_path: Path) -> None:
    file = tmp_path / "core.md"
    names = [option for name in ("S3", "S3'", "H3", "Q4") for option in ("--only", name)]
    size = ["--quick", "--events", "3000", "--rounds", "1", "--memory", "0"]
    status = command.main([*size, "--output", str(file), *names])
    text = file.read_text(encoding="utf-8")
    assert status == 0
    assert all(f"| {name} | " in text for name in ("S3", "S3'", "H3", "Q4"))


def test_the_page_has_growth_windows_and_memory() -> None:
    results = {q.name: Found(q, {TABLE: 9e6, RDF: 4e6} if q.coded else {TABLE: 9e6}, 1, ()) for q in every()}
    memory = {"S3": Memory(1, 2, 2, 3, 2, 4, 5)}
    text = page.page(results, memory, "here", 1_000)
    assert "| Sn', CEQL, RDF | 1.00× | 1.00× | 1.00× | 1.00× | 1.00× |" in text
    assert "| LAST T3' | 9 | 9 | 9 | 9 | 9 | 1.00× |" in text
    assert "All as asked." in text
    (result,) = page.pictures(results)
    assert [len(chart.lines) for chart in result.charts] == [4, 3]  # type: ignore[union-attr]  # no Histogram
