"""PARTITION BY over many values: what is remembered of partitions goes when nothing can come of it any more."""

from __future__ import annotations

import random
import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from ceql_strategies import VOCAB, CeqlOptions, CeqlSituation, ceql_situations
from ceql_tables import as_table
from hypothesis import Phase, assume, given, settings
from hypothesis import strategies as st
from loaded import load

from oxiseq.engine.cea.memory import Capacities
from oxiseq.engine.cea.plan import compile_ceql
from oxiseq.engine.events.encode import encode_events
from oxiseq.engine.events.tuples import Naming, read_rows
from oxiseq.engine.run.tuples import TupleRun
from oxiseq.engine.terms.dictionary import TermDictionary

sys.path.insert(0, str(Path(__file__).parent.parent / "snapshot"))
from saved_runs import crowded
from test_ceql_snapshots import TupleLife

SECOND = 1_000_000
WITHOUT_SHRINKING = [Phase.explicit, Phase.reuse, Phase.generate]
FEW = 1 << 12


def query(rest: str, select: str = "*") -> str:
    return f"VOCAB <{VOCAB}> SELECT {select} FROM S WHERE {rest}"


def rows(first: int, count: int, keys: np.ndarray, kinds: str = "A") -> pa.RecordBatch:
    """An event each second from `first` on; t is its number."""
    numbers = np.arange(first, first + count)
    return pa.RecordBatch.from_pydict(
        {
            "time": numbers * SECOND,
            "type": [kinds[n % len(kinds)] for n in numbers],
            "t": numbers,
            "k": pa.array([f"key {key}" for key in keys.tolist()]),
            "n": keys,
        }
    )


def fed(run: TupleRun, batch: pa.RecordBatch) -> list[tuple[int, int]]:
    """Start and end of what is found."""
    for part in read_rows(batch, Naming(unit="us")):
        run.push(f"{VOCAB}S", part)
    return [(int(found.start[i]), int(found.end[i])) for found in run.advance() for i in range(len(found))]


def new_run(rest: str, select: str = "*", capacities: Capacities | None = None) -> TupleRun:
    return TupleRun(compile_ceql(load(query(rest, select), "ceql")), TermDictionary(), capacities=capacities)


ENDING = {
    "time": "A; B PARTITION BY [k] WITHIN 10 SECONDS",
    "numbers": "A; B PARTITION BY [n] WITHIN 10 SECONDS",
    "two attributes": "A; B PARTITION BY [k], [n] WITHIN 10 SECONDS",
    "largest": "A; B PARTITION BY [k] WITHIN 10 SECONDS CONSUME BY PARTITION",
    "no window, consumed": "A; A PARTITION BY [k] CONSUME BY ANY",
    "nothing begins": "B; A PARTITION BY [k]",
    "nothing begins in n events": "B; A PARTITION BY [k] WITHIN 3 EVENTS",
    "nothing begins in the attribute": "B; A PARTITION BY [k] WITHIN 3 [t]",
    "one event is enough": "A PARTITION BY [k]",
    "at once, in n events": "A : A PARTITION BY [k] WITHIN 3 EVENTS CONSUME BY ANY",
    "ambiguous": "(A AS x : B) OR (A AS y : C) PARTITION BY [k] WITHIN 10 SECONDS",
}


GATE = ["largest", "no window, consumed", "nothing begins in n events", "nothing begins in the attribute", "ambiguous"]


@pytest.mark.parametrize(
    ("name", "select"),
    [
        *(pytest.param(name, "*", marks=() if name in GATE else pytest.mark.full) for name in ENDING),
        *(("time", f"{how} *") for how in ("MAX", "NEXT", "LAST")),
    ],
)
def test_values_that_never_come_again_are_forgotten(name: str, select: str) -> None:
    run, sizes = new_run(ENDING[name], select), []
    step = 5_000
    for low in range(0, 20 * step, step):
        keys = np.arange(low, low + step)
        if "consume" in name or "at once" in name:
            keys //= 2  # the second one consumes all
        fed(run, rows(low, step, keys))
        sizes.append((run.records, run.bytes))
        assert run.state["partitions"] <= 2 * FEW + step
    for size in zip(*sizes, strict=True):
        assert max(size[10:]) <= 1.1 * max(size[:10]), size
    assert max(records for records, _ in sizes) < 40_000
    run.collect()
    assert run.state["partitions"] <= 11
    assert run.records < 100


def test_values_of_which_something_waits_are_kept() -> None:
    """Of n EVENTS and without a window a partial match waits for ever; in windows of an attribute, too."""
    for clause in ("", "WITHIN 1 EVENTS", "WITHIN 100000 [t]"):
        run = new_run(f"A; B PARTITION BY [k] {clause}")
        fed(run, rows(0, 10_000, np.arange(10_000)))
        run.collect()
        assert run.state["partitions"] == 10_000
        assert run.records >= 20_000
        assert fed(run, rows(10_000, 10_000, np.arange(10_000), "B")) == [(n, 10_000 + n) for n in range(10_000)]


def test_records_and_bytes_count_values() -> None:
    run, short = new_run("A; B PARTITION BY [k]"), new_run("A; B PARTITION BY [k]")
    batch = rows(0, 5_000, np.arange(5_000))
    fed(short, batch)
    long = pa.array([f"{key}{'x' * 1000}" for key in batch.column("k").to_pylist()])
    fed(run, batch.set_column(batch.schema.get_field_index("k"), "k", long))
    assert run.records == short.records >= 15_000
    assert run.bytes - short.bytes >= 5_000_000
    few = new_run("A; B PARTITION BY [n]")
    fed(few, rows(0, 5_000, np.zeros(5_000, np.int64)))
    assert few.records <= run.records - 4_999


def test_forgetting_costs_a_constant_per_event(monkeypatch: pytest.MonkeyPatch) -> None:
    """Partitions and nodes looked at, however small the batches are."""
    run, looked_at = new_run("A; B PARTITION BY [n] WITHIN 2000 SECONDS"), []
    run._merging.lateness = 3_000 * SECOND
    in_use = run._cea.partitions_in_use

    def counted(count: int) -> np.ndarray:
        looked_at.append(count + run._cea.state["nodes"])
        return in_use(count)

    monkeypatch.setattr(run._cea, "partitions_in_use", counted)
    count = 60_000
    for low in range(0, count, 100):
        fed(run, rows(low, 100, np.arange(low, low + 100), "AC"))
    assert len(looked_at) > 5
    assert sum(looked_at) < 4 * count


def test_a_value_that_comes_again_begins_anew() -> None:
    """The partition's old partial match is out of its window; what comes at once (:) is of now."""
    run = new_run("A : B PARTITION BY [k] WITHIN 10 SECONDS")
    assert fed(run, rows(0, 1, np.array([7]))) == []
    fed(run, rows(100, 20_000, np.arange(100, 20_100), "C"))
    run.collect()
    assert run.state["partitions"] == 0
    assert fed(run, rows(30_000, 2, np.array([7, 7]), "AB")) == [(20_001, 20_002)]


def test_events_that_wait_keep_their_partitions() -> None:
    """They are numbered when they come, and worked on when their place is known."""
    run = new_run("A; B PARTITION BY [k] WITHIN 20 SECONDS")
    run._merging.lateness = 5_000 * SECOND
    found = []
    for low in range(0, 30_000, 500):
        keys = np.arange(low, low + 500) // 2
        found += fed(run, rows(low, 500, keys, "AB"))
        run.collect()
    run.close()
    found += fed(run, rows(0, 0, np.zeros(0, np.int64)))
    assert found == [(n, n + 1) for n in range(0, 30_000, 2)]


@settings(phases=WITHOUT_SHRINKING)
@given(ceql_situations(CeqlOptions(most=16)), st.integers(0, 2**32))
def test_neither_answer_nor_order_depends_on_when_partitions_are_forgotten(situation: CeqlSituation, seed: int) -> None:
    """Nor does it on snapshots, in any window, with any strategy, for graphs and rows; `behind` does not either."""
    assume("PARTITION BY" in situation.text)
    dice = random.Random(seed)
    capacities = replace(dice.choice([Capacities(), Capacities.smallest()]), disorder=dice.choice([1, 2, 3, 4096]))
    lateness = dice.choice([0, 0, 2, 5])
    lives = [TupleLife(situation.text, lateness, capacities) for _ in range(2)]
    for event in situation.events:
        table, pauses = dice.random() < 0.5, dice.random() < 0.7
        for life in lives:
            pairs = [(event.time, event.graph)]
            for batch in read_rows(as_table([event])) if table else [encode_events(pairs, life.terms)]:
                life.run.push(VOCAB + event.stream, batch)
            if pauses:
                life.advance()
        if dice.random() < 0.6:
            lives[1].run.collect()
        if dice.random() < 0.1:
            lives[1].move(crowded(dice))
    for life in lives:
        life.run.close()
        life.advance()
    assert lives[1].found == lives[0].found
    assert lives[1].run.behind == lives[0].run.behind


def test_three_attributes_are_told_apart_after_forgetting() -> None:
    run = new_run("A : B PARTITION BY [a], [b], [c] WITHIN 4 SECONDS")
    dice, found, expected = random.Random(3), [], []
    last: dict[tuple[int, ...], tuple[int, str]] = {}
    for n in range(3_000):
        key, kind = tuple(dice.choice([0, 1, n]) for _ in range(3)), dice.choice("AB")
        row = {"time": [n * SECOND], "type": [kind], "a": [key[0]], "b": [key[1]], "c": [key[2]]}
        found += fed(run, pa.RecordBatch.from_pydict(row))
        before = last.get(key)
        if kind == "B" and before is not None and before[1] == "A" and n - before[0] <= 4:
            expected.append((before[0], n))
        last[key] = n, kind
        if n % 7 == 0:
            run.collect()
    assert len(expected) > 10
    assert Counter(found) == Counter(expected)
