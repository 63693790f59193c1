"""A run that forgets its partial matches goes on as one that begins there: with the events that wait, and no others."""

from __future__ import annotations

import random
import sys
from pathlib import Path

import pytest
from ceql_strategies import VOCAB, CeqlEvent, CeqlOptions, CeqlSituation, ceql_situations
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from profiles import in_the_gate
from saved_runs import Life, crowded
from test_ceql_snapshots import Found, TupleLife
from test_moved_features import MORE, QUERIES

from oxiseq.engine.cea.memory import Capacities as CeaCapacities
from oxiseq.engine.events.encode import encode_events
from oxiseq.engine.run.resets import Resets
from oxiseq.engine.sequence.memory import Capacities

sys.path.insert(0, str(Path(__file__).parent.parent / "engine"))
from engine_runs import STREAM, random_readings, readings_batch

WITHOUT_SHRINKING = [Phase.explicit, Phase.reuse, Phase.generate]
NOW = 1_700_000_000_000_000


def beginner(of: Life) -> Life:
    """Another run of the same query, at the same place in the stream, that has not worked on anything."""
    life = Life(of.text, of.kb_text, of.lateness, of.start, of.capacities)
    life.run.finder.start = of.run.finder.start
    return life


@pytest.mark.parametrize(
    "room", [pytest.param(None, marks=pytest.mark.full), Capacities.smallest()], ids=["ample", "smallest"]
)
@pytest.mark.parametrize("name", in_the_gate(sorted(QUERIES.keys() - MORE)[::2], QUERIES))
def test_a_run_that_forgets_is_as_one_that_begins(name: str, room: Capacities | None) -> None:
    dice = random.Random(name)
    seen = random_readings(len(name), 200, "aabbcn", 6 if "partitions" in name else 2, 9)
    rest = random_readings(2 * len(name), 300, "aabbcn", 6 if "partitions" in name else 2, 9)
    rest = [each._replace(time=each.time + seen[-1].time) for each in rest]
    old = Life(QUERIES[name], lateness=2, capacities=room)
    while seen:
        count = dice.choice([1, 5, 9])
        old.run.push(STREAM, readings_batch(old.terms, seen[:count]))
        old.advance()
        del seen[:count]
    new = beginner(old)
    for reading in random_readings(len(name), 200, "aabbcn", 6 if "partitions" in name else 2, 9):
        new.run.push(STREAM, readings_batch(new.terms, [reading]))
    while new.run.clock.complete():
        new.run.clock.take()  # complete, and not worked on
    records, completed = old.run.records, old.run.clock.completed
    assert records > 3  # composed windows have one for each key
    old.run.forget(NOW)
    assert old.run.resets == Resets(1, NOW, completed, records)
    assert old.run.records == new.run.records
    assert old.run.bytes <= beginner(old).run.bytes
    old.found = []
    while rest:
        count = dice.choice([1, 5, 9])
        for life in (old, new):
            life.run.push(STREAM, readings_batch(life.terms, rest[:count]))
            life.advance()
        if dice.random() < 0.2:
            old.move(crowded(dice))
        del rest[:count]
    for life in (old, new):
        life.finish()
    assert old.found == new.found
    assert new.found
    assert old.run.resets.count == 1


@settings(phases=WITHOUT_SHRINKING)
@given(ceql_situations(CeqlOptions(most=14)), st.integers(0, 2**32), st.booleans())
def test_a_tuple_run_that_forgets_is_as_one_that_begins(situation: CeqlSituation, seed: int, small: bool) -> None:
    dice = random.Random(seed)
    old, new = (TupleLife(situation.text, 0, CeaCapacities.smallest() if small else None) for _ in range(2))
    at = dice.randrange(len(situation.events) + 1)
    for number, each in enumerate(situation.events):
        if number == at:
            while new.run._merging.take() is not None:
                pass
            old.run.forget(NOW)
            old.found = []
            shift = old.run._cea.position
        for life in (old, new):
            life.run.push(VOCAB + each.stream, encode_events([(each.time, each.graph)], life.terms))
        if number >= at:
            new.advance()
        old.advance()
        if number >= at and dice.random() < 0.3:
            old.move(crowded(dice))
    if at == len(situation.events):
        return
    for life in (old, new):
        life.run.close()
        life.advance()
    assert old.found == [shifted(each, shift) for each in new.found]


def shifted(found: Found, by: int) -> Found:
    """With positions that begin later."""
    start, end, time, positions, *rest = found
    return start + by, end + by, time, tuple(p + by for p in positions), *rest


def test_a_tuple_run_that_forgets_knows_no_place_of_before() -> None:
    """What begins after it has forgotten stands where it stood before: it must not be taken for what was there."""
    life = TupleLife(f"VOCAB <{VOCAB}> SELECT * FROM S WHERE A : C PARTITION BY [v]", 0, None)
    for time, (kind, value) in enumerate(["A1", "A3", "C2", "A1", "C1"]):
        if time == 2:
            life.run.forget(NOW)
        graph = CeqlEvent("S", time, kind, (("v", value),)).graph
        life.run.push(VOCAB + "S", encode_events([(time, graph)], life.terms))
        life.advance()
    assert [each[:2] for each in life.found] == [(3, 4)]


def test_a_tuple_run_that_forgets_still_tells_what_was_behind() -> None:
    capacities = CeaCapacities(disorder=1)
    life = TupleLife(f"VOCAB <{VOCAB}> SELECT * FROM S WHERE A; B WITHIN 1 [t]", 0, capacities)
    for time, (kind, clock) in enumerate([("A", 1), ("A", 9), ("B", 1)]):
        graph = CeqlEvent("S", time, kind, (("t", str(clock)),)).graph
        life.run.push(VOCAB + "S", encode_events([(time, graph)], life.terms))
        life.advance()
    assert life.run.behind == 1
    life.run.forget(NOW)
    assert life.run.behind == 1
