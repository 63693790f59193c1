"""Long streams: counts, memory and the work per event."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import pytest
from cea_runs import Driven, answers
from loaded import load
from profiles import crossed
from pyoxigraph import Literal, NamedNode
from reference.ceql_count import count_ends
from reference.tuples import TupleEvent

from oxiseq.engine.cea.events import MarkedEvents
from oxiseq.engine.cea.listed import FoundEvents
from oxiseq.engine.cea.memory import Capacities
from oxiseq.engine.cea.plan import compile_ceql
from oxiseq.engine.cea.run import CeaRun

VOCAB = "http://e/"
INTEGER = NamedNode("http://www.w3.org/2001/XMLSchema#integer")


@lru_cache
def stream(count: int, types: str = "ABCDEFGH", seed: int = 1, keys: int = 5) -> list[TupleEvent]:
    """One event per second."""
    random = np.random.default_rng(seed)
    kinds, values, groups = random.integers(0, [[len(types)], [10], [keys]], (3, count))
    return [
        TupleEvent(
            n,
            n * 1_000_000,
            VOCAB + types[kind],
            {VOCAB + "v": number(value), VOCAB + "k": number(key), VOCAB + "t": number(n)},
        )
        for n, (kind, value, key) in enumerate(zip(kinds.tolist(), values.tolist(), groups.tolist(), strict=True))
    ]


def number(value: int) -> Literal:
    return Literal(str(value), datatype=INTEGER)


def query(rest: str, select: str = "*") -> str:
    return f"VOCAB <{VOCAB}> SELECT {select} FROM S WHERE {rest}"


def in_batches(driven: Driven, events: list[TupleEvent], size: int = 5000) -> list[FoundEvents]:
    return [driven.feed(events[low : low + size]) for low in range(0, len(events), size)]


@pytest.mark.parametrize(
    ("formula", "select"),
    [
        pytest.param("A; B; C WITHIN 40 SECONDS", "*", marks=pytest.mark.full),
        ("A; B; C WITHIN 60 EVENTS", "A, C"),
        ("A : (B OR C) : D WITHIN 9 [t]", "*"),
        ("A; B+; C FILTER B[v > 6] WITHIN 60 SECONDS", "*"),
        ("A; (B AS x; C)+ ; (A OR x_) AS y FILTER y[v < 3]".replace("x_", "D") + " WITHIN 40 SECONDS", "x, y"),
        ("A; B; C FILTER A[v = 1] OR B[v = 2] PARTITION BY [k] WITHIN 300 SECONDS", "*"),
        pytest.param("A; A; A WITHIN 70 EVENTS", "*", marks=pytest.mark.full),
    ],
)
def test_as_many_as_can_be_counted(formula: str, select: str) -> None:
    events, text = stream(40_000), query(formula, select)
    driven = Driven(text)
    counts = np.zeros(len(events), np.int64)
    for found in in_batches(driven, events):
        counts += np.bincount(found.end, minlength=len(events))
    assert counts.sum() > 100
    assert (counts == count_ends(load(text, "ceql"), events).astype(np.int64)).all()


FORMULAS = "A; B; C", "A; B+; C", "A; (B; C)+; D", "A+", "A; B : C", "A; B; C; D; E; F; G; H", "A AS x; (B OR A)+"


@pytest.mark.parametrize(("formula", "unit"), crossed(FORMULAS, ["SECONDS", "EVENTS", "[t]"]))
def test_work_per_event_is_the_same_in_any_window(formula: str, unit: str) -> None:
    """Records looked at and made, not time. LIMIT 1, since matches take what they take."""
    events = stream(12_000)
    work = []
    for size in (100, 1_000, 5_000):
        driven = Driven(query(f"{formula} WITHIN {size} {unit} LIMIT 1"))
        in_batches(driven, events[:6_000])
        before = driven.run.state["touched"]
        in_batches(driven, events[6_000:])
        work.append((driven.run.state["touched"] - before) / 6_000)
    assert max(work) < 1.2 * work[0] + 2, work


def test_windows_of_centuries_are_exact_in_small_batches() -> None:
    """Beyond 2^53 µs doubles have no odd numbers."""
    size = 2**53 + 1
    driven = Driven(query(f"A; B WITHIN {size // 10**6}.{size % 10**6:06} SECONDS"))
    events = [(0, "A"), (1, "A"), (size, "B"), (size + 1, "B"), (size + 2, "B")]
    for time, kind in events:
        found = driven.feed([TupleEvent(0, time, VOCAB + kind, {})])
        assert len(found) == (max(0, size + 2 - time) if kind == "B" else 0)


def test_unbounded_partial_matches_cost_no_more() -> None:
    driven = Driven(query("A; B+; C; D LIMIT 1"))
    events = stream(60_000)
    in_batches(driven, events[:10_000])
    before = driven.run.state["touched"]
    in_batches(driven, events[10_000:20_000])
    middle = driven.run.state["touched"]
    in_batches(driven, events[20_000:])
    assert (driven.run.state["touched"] - middle) / 40_000 < 1.1 * (middle - before) / 10_000


@pytest.mark.parametrize("unit", ["SECONDS", "EVENTS"])
@pytest.mark.parametrize("partition", ["", "PARTITION BY [k]"])
@pytest.mark.parametrize("select", [pytest.param("*", marks=pytest.mark.full), "C"])
def test_memory_does_not_grow_with_the_stream(unit: str, partition: str, select: str) -> None:
    driven = Driven(query(f"A; B+; C AS x; C {partition} WITHIN 200 {unit} LIMIT 1", select))
    events = stream(80_000, "ABCDEFGHIJKLMNOPQ", keys=20)
    in_batches(driven, events[:40_000])
    state = driven.run.state
    in_batches(driven, events[40_000:])
    driven.run.collect()
    assert driven.run.state["bytes"] <= state["bytes"]
    assert driven.run.state["nodes"] < 20_000
    assert driven.run.oldest >= 80_000 - 20 * 300


def test_a_strategy_lets_go_of_what_is_over() -> None:
    driven = Driven(query("A; B WITHIN 20 EVENTS", "MAX *"))
    in_batches(driven, stream(80_000, "AB"))
    assert driven.run.state["nodes"] < 40_000


@pytest.mark.parametrize("clause", ["WITHIN 200 SECONDS", "WITHIN 200 EVENTS"])
def test_oldest_moves_without_asking(clause: str) -> None:
    driven = Driven(query(f"A; B; C {clause} LIMIT 1"))
    in_batches(driven, stream(60_000))
    assert driven.run.oldest > 60_000 - 2 * (1 << 14)


def test_consumed_partial_matches_are_freed() -> None:
    driven = Driven(query("A; B CONSUME BY ANY LIMIT 1"))
    in_batches(driven, stream(50_000, "AAB"))
    driven.run.collect()
    assert driven.run.state["nodes"] < 20
    assert driven.run.oldest > 49_900


def test_many_partitions_take_memory_by_partition_only() -> None:
    driven = Driven(query("A; B; C PARTITION BY [k] WITHIN 100 SECONDS"))
    in_batches(driven, stream(50_000, keys=5_000))
    assert driven.run.state["bytes"] < 2_000_000


def exploding(letters: int) -> str:
    """Its deterministic automaton has some 2**letters states."""
    return query("C AS x; A" + " : (A OR B)" * letters + " WITHIN 60 EVENTS LIMIT 1", "x")


def test_table_of_steps_is_bounded() -> None:
    """Silent letters guess which A it was: each pattern of the last A's and B's is a state."""
    events = stream(4_000, "AAAABBBBC")
    bounded, free = Driven(exploding(9), Capacities(moves=512)), Driven(exploding(9), Capacities(moves=1 << 22))
    found = [[a for found in in_batches(driven, events, 500) for a in answers(found)] for driven in (bounded, free)]
    assert found[0] == found[1]
    assert len(found[0]) > 10
    assert free.run.state["rebuilds"] == 0
    assert free.run.state["states"] > 400
    assert bounded.run.state["rebuilds"] > 3
    assert bounded.run.state["steps"] <= 512
    assert bounded.run.state["states"] <= 256
    assert bounded.run.state["bytes"] < free.run.state["bytes"]


def test_symbols_that_never_come_again_take_no_steps_in_python() -> None:
    """20 independent atoms: a million symbols, but each state asks for one bit."""
    names = [f"x{i}" for i in range(20)]
    tests = " AND ".join(f"{name}[v > {i}]" for i, name in enumerate(names))
    formula = "; ".join(f"A AS {name}" for name in names) + f" FILTER {tests} WITHIN 30 EVENTS LIMIT 1"
    run = CeaRun(compile_ceql(load(query(formula), "ceql")))
    symbol = np.random.default_rng(3).integers(0, 1 << 20, (50_000, 1)).astype(np.uint64)
    time = np.arange(50_000)
    found = run.feed(MarkedEvents(symbol, time, np.zeros(50_000, np.int64)))
    assert len(found) > 100
    bits = found.positions.reshape(-1, 20)
    assert all(((symbol[bits[:, i], 0] >> np.uint64(i)) & np.uint64(1)).all() for i in range(20))
    assert run.state["steps"] <= 40
    assert run.state["rebuilds"] > 0
    assert run.state["bytes"] < 8_000_000
