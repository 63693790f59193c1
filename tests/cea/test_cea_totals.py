"""Aggregates over the complex events that end at one event, against the list of all of them."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pytest
from ceql_strategies import CeqlOptions, CeqlSituation, as_tuples, ceql_situations, with_totals
from hypothesis import given
from hypothesis import strategies as st
from loaded import load
from reference.ceql_totals import TotalsRow, is_settled, totals_of
from tuple_runs import batches_of

import oxiseq
from oxiseq.engine.cea.memory import Capacities
from oxiseq.engine.cea.plan import compile_ceql
from oxiseq.engine.errors import LimitError
from oxiseq.engine.events.tuples import read_rows
from oxiseq.engine.output import end_totals
from oxiseq.engine.output.batch import MatchBatch
from oxiseq.engine.run.tuples import TupleRun
from oxiseq.engine.terms.dictionary import TermDictionary
from oxiseq.languages.sequences.explain import explain

COUNTABLE = CeqlOptions(limits=False, falling_clocks=False, most=10)


def told(situation: CeqlSituation, capacities: Capacities | None, size: int, tables: bool) -> list[TotalsRow]:
    """What a run tells of events that come in batches, as graphs or as tables."""
    names = [column.name for column in load(situation.text, "ceql").totals.columns]
    rows = []
    for batch, terms in batches_of(situation, capacities, size, tables):
        assert isinstance(batch, MatchBatch)
        for time, row in zip(batch.time.tolist(), batch.values.tolist(), strict=True):
            rows.append(TotalsRow(time, {name: terms.term(i) for name, i in zip(names, row, strict=True) if i}))
    return rows


def check(situation: CeqlSituation, capacities: Capacities | None, size: int, tables: bool) -> None:
    query, events = load(situation.text, "ceql"), as_tuples(situation.events)
    if not is_settled(query, events):
        lines = ["SELECT COUNT(*) AS c0" if line.startswith("SELECT") else line for line in situation.text.split("\n")]
        lines = [line for line in lines if not line.startswith(("GROUP", "HAVING"))]
        situation = replace(situation, text="\n".join(lines))
        query = load(situation.text, "ceql")
    assert told(situation, capacities, size, tables) == totals_of(query, events)


@given(ceql_situations(COUNTABLE), st.integers(0, 2**32), st.booleans())
def test_random_queries(situation: CeqlSituation, seed: int, tables: bool) -> None:
    check(with_totals(situation, seed), None, 100, tables)


@given(ceql_situations(COUNTABLE), st.integers(0, 2**32), st.booleans())
def test_random_queries_with_the_smallest_capacities(situation: CeqlSituation, seed: int, tables: bool) -> None:
    check(with_totals(situation, seed), Capacities.smallest(), 2, tables)


LOOP = "VOCAB <http://e/> SELECT {} FROM S WHERE A AS x; B+ AS y; C AS z {}"


def loop(columns: str, tail: str, count: int) -> list[oxiseq.Match]:
    """One A, so many B's whose v is 1, 2, 3..., one C: 2^count - 1 complex events."""
    kinds = ["A", *["B"] * count, "C"]
    rows = pa.table({"type": kinds, "time": [1_000_000 * i for i in range(len(kinds))], "v": list(range(len(kinds)))})
    return list(oxiseq.run(LOOP.format(columns, tail), streams={"S": rows}, language="ceql"))


def test_what_cannot_be_listed_is_counted_exactly() -> None:
    columns = "COUNT(*) AS n, SUM(y[v]) AS s, COUNT(y) AS c, AVG(y[v]) AS a, MIN(y[v]) AS low, MAX(y[v]) AS high"
    (row,) = loop(columns, "", 200)
    assert {name: term.value for name, term in row.items()} == {
        "n": str(2**200 - 1),
        "s": str(2**199 * 20_100),
        "c": str(2**199 * 200),
        "a": "100.5",
        "low": "1",
        "high": "200",
    }
    assert row.at_us == 201_000_000 and row.start is None and row.positions is None


def test_an_alert_on_a_count_that_no_engine_could_list() -> None:
    assert len(loop("COUNT(*) AS n", f"HAVING COUNT(*) >= {2**300 - 1}", 300)) == 1
    assert len(loop("COUNT(*) AS n", f"HAVING COUNT(*) >= {2**300}", 300)) == 0


def test_beyond_what_can_be_counted_nothing_wrong_is_told() -> None:
    (row,) = loop("COUNT(*) AS n, COUNT(y) AS c, SUM(y[v]) AS s, MAX(y[v]) AS m", "HAVING COUNT(*) > 1000", 4_100)
    assert {name: term.value for name, term in row.items()} == {"m": "4100"}
    assert loop("COUNT(*) AS n", "HAVING COUNT(y) > 1000", 4_100) == []


TWO = "VOCAB <http://e/> SELECT COUNT(*) AS n, SUM(x[v]) AS s FROM S WHERE A+ AS x; A+ AS y"


def two(count: int) -> list[oxiseq.Match]:
    rows = pa.table({"type": ["A"] * count, "time": list(range(count)), "v": [1] * count})
    return list(oxiseq.run(TWO, streams={"S": rows}, language="ceql"))


def test_where_a_variable_may_hold_this_or_that_they_are_listed(monkeypatch: pytest.MonkeyPatch) -> None:
    assert [row["n"].value for row in two(5)] == ["1", "3", "7", "15"]
    monkeypatch.setattr(end_totals, "MOST_LISTED", 10)
    with pytest.raises(LimitError, match="give types variables of their own"):
        two(5)


def test_values_of_one_stream_do_not_stay_in_memory() -> None:
    terms = TermDictionary()
    text = "VOCAB <http://e/> SELECT SUM(x[v]) AS s FROM S WHERE A AS x; B WITHIN 10 EVENTS"
    run = TupleRun(compile_ceql(load(text, "ceql")), terms)
    live = []
    for low in range(0, 40_000, 4_000):
        numbers = range(low, low + 4_000)
        rows = pa.table({"type": ["A"] * 4_000, "time": list(numbers), "v": list(numbers)})
        for batch in read_rows(rows):
            run.push("http://e/S", batch)
        run.advance()
        run.collect()
        terms.collect()
        live.append(terms.live)
    assert live[-1] < 4_000 + live[0]


@pytest.mark.parametrize(
    ("where", "columns", "way"),
    [
        ("A+ AS x; B", "SUM(x[v]) AS s", "none is listed"),
        ("A+ AS x; A+ AS y", "COUNT(*) AS n", "none is listed"),
        ("A+ AS x; A+ AS y", "COUNT(x) AS n", "listed, 100000 at most, where several variables may hold an"),
    ],
)
def test_explain_says_how_they_are_counted(where: str, columns: str, way: str) -> None:
    text = f"VOCAB <http://e/> SELECT {columns} FROM S WHERE {where} HAVING COUNT(*) > 3"
    told = str(explain(compile_ceql(load(text, "ceql"))))
    assert f"SELECT {columns}" in told and "HAVING COUNT(*) > 3" in told and way in told


@pytest.mark.parametrize("window", ["", "WITHIN 90 SECONDS", "WITHIN 90 EVENTS", "WITHIN 90000000 [t]"])
def test_small_and_large_counts_come_in_order(window: str) -> None:
    """Those beyond 62 bits are not the kernel's."""
    kinds = ["A", *"BC" * 80, *["B"] * 20, "C"]
    rows = pa.table(
        {
            "type": kinds,
            "time": [1_000_000 * i for i in range(len(kinds))],
            "t": [1_000_000 * i for i in range(len(kinds))],
        }
    )
    text = f"VOCAB <http://e/> SELECT COUNT(*) AS n FROM S WHERE (A OR B) AS x; B+; C {window}"
    found = list(oxiseq.run(text, streams={"S": rows}, language="ceql"))
    again = list(oxiseq.run(f"{text} HAVING COUNT(*) > 1000 AND 2 < COUNT(*)", streams={"S": rows}, language="ceql"))
    assert [m.at_us for m in found] == sorted(m.at_us for m in found) and len(found) == 81
    assert again == [m for m in found if int(m["n"].value) > 1000]
    counts = []
    for at, kind in enumerate(kinds):
        first = max(0, at - 90) if window else 0
        events = [k for k in kinds[first:at] if k in "AB"]
        if kind == "C":
            behind = [sum(k == "B" for k in events[i + 1 :]) for i in range(len(events))]
            counts.append(sum(2**b - 1 for b in behind))  # each start, then some of the B's behind it
    assert [int(m["n"].value) for m in found] == [n for n in counts if n]
