"""Many instants at once: consumption from tick to tick, ticks without events, windows that have ended, large numbers,
errors of the KB."""

from __future__ import annotations

import random
from collections.abc import Iterable
from contextlib import suppress
from typing import Any, NamedTuple
from unittest.mock import patch

import numpy as np
import pytest
from failing_kb import FailingKb
from hypothesis import given
from hypothesis import strategies as st
from loaded import load
from profiles import drawn
from pyoxigraph import NamedNode, Quad, RdfFormat, Store, Triple, parse

from oxiseq.engine.errors import KbError, LimitError
from oxiseq.engine.events.batch import EventBatch
from oxiseq.engine.events.encode import encode_events
from oxiseq.engine.kb import StoreKb
from oxiseq.engine.rsp import items as items_module
from oxiseq.engine.rsp.held import Content
from oxiseq.engine.rsp.items import Items, WindowRange
from oxiseq.engine.rsp.plan import RspOptions, compile_rsp
from oxiseq.engine.rsp.schedule import Rhythm, Schedule, Stretches
from oxiseq.engine.run import rsp as rsp_module
from oxiseq.engine.run.rsp import RspRun
from oxiseq.engine.terms.dictionary import TermDictionary
from oxiseq.grammar.rsp_algebra import IntervalWindow, LandmarkWindow, RangeWindow, Report

S = "urn:S"
P = "PREFIX : <urn:> SELECT * "


def graph(*facts: str) -> list[Triple]:
    text = " ".join(f"<urn:{s}> <urn:{p}> {o} ." for s, p, o in (f.split() for f in facts))
    return [quad.triple for quad in parse(text.encode(), format=RdfFormat.TURTLE)]


class Run:
    """A query at work on one stream."""

    def __init__(self, text: str, language: str = "rsepql", report: str | None = None, kb: Any = None) -> None:
        self.terms = TermDictionary()
        said = RspOptions(report=None if report is None else Report(report))
        self.plan = compile_rsp(load(text, language), self.terms, said)  # type: ignore[arg-type]
        self.run = RspRun(self.plan, self.terms, StoreKb(Store()) if kb is None else kb)
        self.found: list[tuple[int, ...]] = []

    def push(self, *events: tuple[int, list[Triple]]) -> None:
        self.run.push(S, encode_events(events, self.terms))

    def advance(self) -> Run:
        """(instant, numbers of all columns) of what is told."""
        for batch in self.run.advance():
            for at, row in zip(batch.time.tolist(), batch.values.tolist(), strict=True):
                values = (self.terms.term(i) for i in row)
                self.found.append((at, *(int(v.value) for v in values if v is not None and v.value.isdigit())))
        return self


def told(text: str, events: Iterable[tuple[int, list[Triple]]], report: str = "RSTREAM") -> list[tuple[int, ...]]:
    run = Run(text, report=report)
    run.push(*events)
    run.run.close()
    return sorted(run.advance().found)


# --- consumption -------------------------------------------------------------------------------------


FIRST = (
    P
    + """FROM NAMED <urn:S> WIN [RANGE 10 SLIDE 10] AS :w EVENT ON :w { ?s :p ?o } AS E
WHERE { MATCH { FIRST(E) } } CONSUME CHRONOLOGICAL """
)


def test_what_is_used_up_lets_the_next_through_at_the_next_tick() -> None:
    """The window holds the same from 10 to 19."""
    events = [(time, graph(f"a p {time}")) for time in (1, 2, 3, 4)]
    assert told(FIRST + "REPORT EVERY 1", events) == [(10, 1), (11, 2), (12, 3), (13, 4)]
    assert told(FIRST + "REPORT EVERY 4", events) == [(12, 1), (16, 2)]
    assert told(FIRST + "REPORT EVERY 4", events, "DSTREAM") == [(16, 1), (20, 2)]
    assert told(FIRST + "REPORT EVERY 1", [*events, (15, graph("a p 15"))], "ISTREAM")[-2:] == [(13, 4), (20, 15)]


PAIRS = (
    P
    + """FROM NAMED <urn:S> WIN [RANGE 7 SLIDE 1] AS :w
EVENT ON :w { ?s :p0 ?a } AS A EVENT ON :w { ?s :p1 ?b } AS B
WHERE { MATCH { A SEQ B } } CONSUME RECENT"""
)


class Fact(NamedTuple):
    """An event of one triple: s`sensor` p`kind` `number`."""

    time: int
    kind: int
    sensor: int
    number: int


def used_up(facts: list[Fact], size: int) -> list[tuple[int, ...]]:
    """At an instant all pairs of a 0 and a later 1 of one sensor that have not been used before; then they are."""
    used, found = set[Fact](), list[tuple[int, ...]]()
    for now in sorted({fact.time for fact in facts}):
        free = [fact for fact in facts if now - size < fact.time <= now and fact not in used]
        pairs = [
            (a, b)
            for a in free
            for b in free
            if a.time < b.time and (a.kind, b.kind) == (0, 1) and a.sensor == b.sensor
        ]
        found += [(now, a.number, b.number) for a, b in pairs]
        used.update(fact for pair in pairs for fact in pair)
    return sorted(found)


@drawn(10)
@given(st.integers(0, 2**32), st.sampled_from([1, 3, 40]))
def test_many_events_at_once_are_used_up(seed: int, sensors: int) -> None:
    """More than there is room for to begin with."""
    dice, time, facts = random.Random(seed), 0, list[Fact]()
    for _ in range(dice.randint(1, 12)):
        time += dice.randint(1, 3)
        for _ in range(dice.choice([1, 5, 60])):
            facts.append(Fact(time, dice.randint(0, 1), dice.randrange(sensors), len(facts)))
    events = [(f.time, graph(f"s{f.sensor} p{f.kind} {f.number}")) for f in facts]
    expected = [(now, *sorted(pair)) for now, *pair in used_up(facts, 7)]
    assert [(now, *sorted(pair)) for now, *pair in told(PAIRS, events)] == expected
    run = Run(PAIRS, report="RSTREAM")
    for event in events:
        run.push(event)
        run.advance()
    run.run.close()
    assert sorted((now, *sorted(pair)) for now, *pair in run.advance().found) == expected


# --- ticks -------------------------------------------------------------------------------------------


def test_a_stretch_is_divided_where_something_is_used_up() -> None:
    schedule = Schedule(Rhythm(None, (4, 6)))
    stretches = Stretches(np.array([4, 100]), np.array([20, 101]))
    assert schedule.further_of(stretches).tolist() == [6, 0]  # 6 8 12 16 18 20
    divided = schedule.divided(stretches, np.array([3, 1]))
    assert (divided.at.tolist(), divided.until.tolist()) == ([4, 6, 8, 100], [4, 6, 20, 101])


@given(
    st.lists(st.sampled_from([*range(-9, 10), -(2**62), 2**62, -(2**63), 2**63 - 1]), min_size=1, max_size=5),
    st.sampled_from([1, 2, 5, 2**61, 2**63, 2**70]),
    st.sampled_from([1, 3, 2**62, 2**65]),
    st.booleans(),
)
def test_bounds_of_windows_are_exact(times: list[int], size: int, slide: int, floored: bool) -> None:
    window = WindowRange((RangeWindow(size, slide), LandmarkWindow(-3), IntervalWindow(-5, 8)), floored)
    low, high = window.bounds(np.array(times, np.int64))
    assert low is not None
    ends = [time // slide * slide if floored else time for time in times]
    starts = [(end if floored else -(-time // slide) * slide) - size for time, end in zip(times, ends, strict=True)]
    assert [int(x) for x in low] == [max(start, -4) for start in starts]
    assert [int(x) for x in high] == [min(end, time, 8) for end, time in zip(ends, times, strict=True)]


NEAR = st.integers(-12, 30)
OPERATORS = st.one_of(
    st.builds(RangeWindow, st.sampled_from([1, 2, 5, 2**63, 2**70]), st.sampled_from([1, 3, 2**65])),
    st.builds(RangeWindow, st.sampled_from([1, 2, 5]), st.sampled_from([1, 3]), st.just(True)),
    st.builds(LandmarkWindow, NEAR),
    NEAR.flatmap(lambda start: st.builds(IntervalWindow, st.just(start), st.integers(start, 35))),
)


@given(
    st.lists(NEAR, min_size=1, max_size=12).map(sorted),
    st.lists(OPERATORS, min_size=1, max_size=2),
    st.booleans(),
)
def test_a_window_goes_through_instants_one_by_one_as_through_all_at_once(
    times: list[int], operators: list[Any], floored: bool
) -> None:
    if len({isinstance(o, RangeWindow) and o.events for o in operators}) > 1:
        return  # numbers of events and times are not mixed
    window, every, single = WindowRange(tuple(operators), floored), Items(False), Items(False)
    batch = encode_events([(time, graph("a p 1")) for time in times], TermDictionary())
    every.add(batch)
    instants = np.unique(batch.time)
    starts, stops = Content(0, window).through(every, instants)
    one = Content(0, window)
    for number, now in enumerate(instants):
        for i in np.flatnonzero(batch.time == now).tolist():
            single.add(batch.slice(i, i + 1))
        start, stop = one.through(single, np.array([now]))
        assert range(start.item(), stop.item()) == range(starts[number], stops[number])  # all empty ones are equal


@given(st.lists(st.tuples(st.integers(1, 5), st.integers(0, 6)), min_size=1, max_size=20))
def test_graphs_of_events_stand_at_their_places_in_however_many_pushes_they_came(steps: list[tuple[int, int]]) -> None:
    whole = encode_events([(time, graph(f"a p {time}")) for time in range(100)], TermDictionary())
    items, before = Items(True), 0
    with patch.object(items_module, "_FEW", 3):
        for size, further in steps:
            marked, end = items.marked(), items.end
            items.add(whole.slice(end, end + size))
            assert EventBatch.concat([*marked.graphs(before, end)]).same(whole.slice(before, end))
            before = min(before + further, items.end)
            items.forget_graphs(before)
            for low in range(before, items.end + 1):
                for high in {low, min(low + 1, items.end), items.end}:
                    assert EventBatch.concat([*items.graphs(low, high)]).same(whole.slice(low, high))
            assert len(items.kept) <= 3 + 2 * items.end // 3


# --- windows that have ended ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    "other", [pytest.param("", marks=pytest.mark.full), "FROM NAMED <urn:S> WIN [RANGE 5 SLIDE 1] AS :v "]
)
def test_what_comes_after_an_interval_is_not_kept(other: str) -> None:
    text = P + f"FROM NAMED <urn:S> WIN [INTERVAL 2 6] AS :w {other} EVENT ON :w {{ ?s :q ?n }} AS E "
    text += "WHERE { WINDOW :w { ?s :p ?o } MATCH { E } }"
    run = Run(text)
    for first in range(0, 20_000, 1000):
        run.push(*((time, graph(f"a p {time}", f"a q {time}")) for time in range(first, first + 1000)))
        run.advance()
    assert len([row for row in run.found if row[0] == 19_000]) == 25
    assert run.run.state["items"] < 2_100
    assert run.run.state["mappings"] <= 7
    assert sum(len(ids) for ids in run.run.held_ids()) < 20_000


@pytest.mark.parametrize("report", ["RSTREAM", "ISTREAM"])
def test_a_tick_comes_behind_a_change_of_the_kb(report: str) -> None:
    where = "{ WINDOW :w { ?s :v ?a } GRAPH :g { ?s :n ?n } }"
    text = f"{P} FROM NAMED WINDOW :w ON <urn:S> [RANGE 3 SLIDE 2] WHERE {where}"
    store = Store()
    kb = StoreKb(store)
    run = Run(f"{text} REPORT EVERY 2", "rspql", report, kb)
    run.push((15, graph("a v 1")))
    run.run.keep_answers()  # up to the event; the first tick that sees it is behind the change
    store.add(Quad(NamedNode("urn:a"), NamedNode("urn:n"), graph("a n 7")[0].object, NamedNode("urn:g")))
    kb.touch()
    run.run.close()
    assert run.advance().found == [(16, 1, 7)]


# --- errors of the KB ----------------------------------------------------------------------------------


QUERIES = {
    "steady": "FROM NAMED WINDOW :w ON <urn:S> [RANGE 100] WHERE { WINDOW :w { ?s :v ?a } GRAPH :g { ?s :n ?n } }",
    "ticks": "FROM NAMED <urn:S> WIN [RANGE 9 SLIDE 3] AS :w WHERE { WINDOW :w { ?s :v ?a } GRAPH :g { ?s :n ?n } }"
    " REPORT EVERY 3",
    "events": "FROM NAMED <urn:S> WIN [LND 0] AS :w EVENT ON :w { ?s :v ?a GRAPH :g { ?s :n ?n } } AS E"
    " WHERE { MATCH { E } }",
    "used": "FROM NAMED <urn:S> WIN [LND 0] AS :w EVENT ON :w { ?s :v ?a GRAPH :g { ?s :n ?n } } AS E"
    " WHERE { MATCH { E } } CONSUME RECENT",
}


@pytest.mark.parametrize("name", [*QUERIES])
@pytest.mark.parametrize("changes", [False, True])
def test_an_error_of_the_kb_loses_nothing(name: str, changes: bool) -> None:
    language = "rspql" if name == "steady" else "rsepql"
    runs = []
    for fails in (False, True):
        store = Store()
        store.add(Quad(NamedNode("urn:a"), NamedNode("urn:n"), graph("a n 7")[0].object, NamedNode("urn:g")))
        kb = FailingKb(store)
        run = Run(P + QUERIES[name], language, "RSTREAM", kb)
        run.push((1, graph("a v 1")))
        if changes:
            run.run.keep_answers()
            store.extend([Quad(NamedNode("urn:b"), NamedNode("urn:n"), graph("b n 8")[0].object, NamedNode("urn:g"))])
            kb.touch()
        run.push((2, graph("b v 2")), (5, graph("a v 3")))
        if fails:
            kb.failing = True
            with suppress(KbError):
                run.advance()  # of the KB of before the change rows may be told first
            for _ in range(2):
                with pytest.raises(KbError):
                    run.advance()
            kb.failing = False
        run.push((7, []))
        run.run.close()
        runs.append(run.advance())
    assert runs[0].found == runs[1].found
    assert runs[0].found


# --- batches -------------------------------------------------------------------------------------------


def test_many_instants_are_worked_on_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    text = (
        P
        + """FROM NAMED <urn:S> WIN [RANGE 4 SLIDE 2] AS :w EVENT ON :w { ?s :p ?o } AS E
    WHERE { MATCH { E } WINDOW :w { ?s :q ?n } } REPORT EVERY 1"""
    )
    events = [(time, graph(f"a p {time}", f"a q {time % 3}")) for time in range(0, 60, 3)]
    whole = told(text, events)
    monkeypatch.setattr(rsp_module, "MOST_INSTANTS", 3)
    assert told(text, events) == whole
    assert whole


def test_too_much_that_is_told_again_is_an_error() -> None:
    window = "[RANGE 3000000 SLIDE 3000000]"
    text = P + f"FROM NAMED <urn:S> WIN {window} AS :w WHERE {{ WINDOW :w {{ ?s :p ?o }} }} REPORT EVERY 1"
    with pytest.raises(LimitError, match="repeats while the windows do not change"):
        told(text, [(1, graph("a p 1"))])
    assert told(text, [(1, graph("a p 1"))], "ISTREAM") == [(3_000_000, 1)]
