"""Follow, Best by time and Lasting against bags that are computed anew at each tick."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal as One

import numpy as np
import pytest
from bags import Bag, Change, Row, at_tick, bag, batches, cuts, difference, up_to
from hypothesis import given
from hypothesis import strategies as st
from profiles import drawn, thorough
from pyoxigraph import Literal

from oxiseq.engine.flow import plan as p
from oxiseq.engine.flow.delta import Buffer, Delta
from oxiseq.engine.flow.operators.best import BestNode
from oxiseq.engine.flow.operators.follow import FollowNode
from oxiseq.engine.flow.operators.in_time import lasting
from oxiseq.engine.flow.operators.node import Node
from oxiseq.engine.flow.times import halves_of, times_at
from oxiseq.engine.snapshot.container import pack, unpack
from oxiseq.engine.terms.dictionary import TermDictionary
from oxiseq.engine.terms.order import TermOrder
from oxiseq.engine.terms.saved import KnownTerms, SavedTerms

TICKS = range(6)
TIMES = (-(1 << 63), -(1 << 33), -1, 0, 1, 2, (1 << 32) + 1, (1 << 63) - 1)
ANY_TIME = st.integers(-(1 << 63), (1 << 63) - 1)


# --- what is drawn: rows of values, the last column a time ----------------------------------------------


@dataclass(frozen=True)
class Side:
    """Rows of values, and a time behind them; where the columns are by which they are compared."""

    values: int
    key: tuple[int, ...]
    loose: tuple[int, ...]
    changed: list[Change]

    @property
    def timed(self) -> p.Timed:
        return p.Timed(0, self.values, self.key, self.loose)


@dataclass(frozen=True)
class Case:
    left: Side
    right: Side
    choice: One["ALL", "EARLIEST", "LATEST"]
    meeting: bool
    cut: list[int]


def changes(values: int, most: int) -> st.SearchStrategy[list[Change]]:
    row = st.tuples(*[st.integers(0, 2)] * values, st.sampled_from(TIMES))
    weight = st.sampled_from([1, 1, 1, -1, -1, 2, -2])
    return st.lists(st.tuples(st.integers(0, 5), weight, row), max_size=most).map(lambda c: sorted(c, key=tick_of))


def tick_of(change: Change) -> int:
    return change[0]


@st.composite
def cases(draw: st.DrawFn) -> Case:
    choice: One["ALL", "EARLIEST", "LATEST"] = draw(st.sampled_from(("ALL", "EARLIEST", "LATEST")))
    keys = draw(st.integers(0, 2))
    loose = draw(st.integers(0, 2)) if choice == "ALL" else 0
    sides = []
    for _ in range(2):
        values = keys + loose + draw(st.integers(0, 1))
        places = draw(st.permutations(range(values)))
        changed = draw(changes(values, 20))
        sides.append(Side(values, tuple(places[:keys]), tuple(places[keys : keys + loose]), changed))
    return Case(sides[0], sides[1], choice, draw(st.booleans()), draw(cuts()))


# --- what it means -----------------------------------------------------------------------------------


def agree(case: Case, a: Row, b: Row) -> bool:
    """Keys are equal, loose columns are where both have a value, and the times are in order."""
    left, right = case.left, case.right
    return (
        all(a[i] == b[j] for i, j in zip(left.key, right.key, strict=True))
        and all(a[i] == b[j] or 0 in (a[i], b[j]) for i, j in zip(left.loose, right.loose, strict=True))
        and (a[-1] < b[-1] or (case.meeting and a[-1] == b[-1]))
    )


def pairs(case: Case, tick: int) -> Bag:
    lefts, rights = up_to(case.left.changed, tick), up_to(case.right.changed, tick)
    found = []
    for b, w in rights.items():
        partners = [a for a in lefts if agree(case, a, b)]
        if case.choice != "ALL" and partners:
            time = (min if case.choice == "EARLIEST" else max)(a[-1] for a in partners)
            partners = [a for a in partners if a[-1] == time]
        found += [(lefts[a] * w, a + b) for a in partners]
    return bag(found)


def chosen(side: Side, latest: bool, tick: int) -> Bag:
    rows = {row: weight for row, weight in up_to(side.changed, tick).items() if weight > 0}

    def is_chosen(row: Row) -> bool:
        times = [o[-1] for o in rows if all(o[i] == row[i] for i in side.key)]
        return row[-1] == (max if latest else min)(times)

    return {row: w for row, w in rows.items() if is_chosen(row)}


# --- at work -----------------------------------------------------------------------------------------


def delta_of(changed: Sequence[Change], values: int, ids: Sequence[int]) -> Delta:
    """Rows with an id for each value, and the halves of the time."""
    at, weight = (np.array([c[i] for c in changed], np.int64) for i in (0, 1))
    known = [[ids[value] for value in row[:values]] for _, _, row in changed]
    times = halves_of(np.array([row[values] for _, _, row in changed], np.int64))
    return Delta(at, weight, np.column_stack([np.array(known, np.uint32).reshape(len(changed), values), times]))


def changes_of(delta: Delta, values: Sequence[int], ids: Sequence[int]) -> list[Change]:
    """The other way; rows of as many values, with a time behind each part."""
    rows: list[Row] = [() for _ in range(len(delta))]
    place = 0
    for count in values:
        part = delta.rows[:, place : place + count].tolist()
        times = times_at(delta.rows, place + count).tolist()
        rows = [(*row, *map(ids.index, some), time) for row, some, time in zip(rows, part, times, strict=True)]
        place += count + 2
    return list(zip(delta.at.tolist(), delta.weight.tolist(), rows, strict=True))


class Work:
    """A node whose memory has room for one row; `shift`: how many other terms have ids before those of the values."""

    def __init__(self, form: p.Follow | p.Best, sides: Sequence[Side], shift: int = 0) -> None:
        self.form, self.sides = form, sides
        self.terms = TermDictionary()
        for number in range(shift):
            self.terms.intern(Literal(f"other {number}"))
        self.ids = [0, *(self.terms.intern(Literal(str(value))) for value in (1, 2))]
        self.sources = [Buffer(side.values + 2) for side in sides]
        for source, side in zip(self.sources, sides, strict=True):
            source.raw = (side.values, side.values + 1)
        self.node = self.made(form)
        self.node.out = Buffer(self.node.out.width, 1)

    def made(self, form: p.Follow | p.Best) -> Node:
        match form:
            case p.Follow():
                return FollowNode(form, self.sources[0], self.sources[1], room=1)
            case p.Best():
                return BestNode(form, self.sources[0], self.terms, TermOrder(self.terms), room=1)

    def step(self, batch: Sequence[Sequence[Change]]) -> list[Change]:
        for source, side, changed in zip(self.sources, self.sides, batch, strict=True):
            source.put(delta_of(changed, side.values, self.ids))
        self.node.out.clear()
        self.node.step()
        return changes_of(self.node.out.delta, [side.values for side in self.sides], self.ids)

    def again(self) -> Work:
        """The same, saved and restored with other ids."""
        named = SavedTerms(self.terms)
        saved = self.node.save(named)
        state = unpack(pack({"node": saved, "terms": named.state()}))
        made = Work(self.form, self.sides, shift=3)
        made.node.restore(state["node"], KnownTerms(state["terms"], made.terms))
        return made


def told(work: Work, cut: Sequence[int], save_before: int | None) -> tuple[Work, list[Change]]:
    found: list[Change] = []
    split = zip(*(batches(cut, side.changed) for side in work.sides), strict=True)
    for number, batch in enumerate(split):
        if number == save_before:
            work = work.again()
        found += work.step(batch)
    assert [t for t, _, _ in found] == sorted(t for t, _, _ in found)
    return work, found


def held(work: Work) -> set[int]:
    return {work.ids.index(each) for ids in work.node.held_ids() for row in ids.tolist() for each in row}


def values_of(rows: Iterable[Row]) -> set[int]:
    return {value for row in rows for value in row[:-1]}


save_points = st.none() | st.integers(0, 5)


@thorough()
@given(cases(), save_points)
def test_follow_tells_how_the_pairs_in_order_of_time_change_at_each_tick(case: Case, save_before: int | None) -> None:
    form = p.Follow(case.left.timed, case.right.timed, case.choice, case.meeting)
    work, found = told(Work(form, (case.left, case.right)), case.cut, save_before)
    for tick in TICKS:
        assert at_tick(found, tick) == difference(pairs(case, tick), pairs(case, tick - 1))
    rows = [*up_to(case.left.changed, 5), *up_to(case.right.changed, 5)]
    assert work.node.records == len(rows)
    assert held(work) == values_of(rows)


@st.composite
def sides(draw: st.DrawFn) -> Side:
    keys = draw(st.integers(0, 2))
    values = keys + draw(st.integers(0, 1))
    return Side(values, tuple(draw(st.permutations(range(values)))[:keys]), (), draw(changes(values, 30)))


@thorough()
@given(sides(), st.booleans(), cuts(), save_points)
def test_best_by_time_tells_how_the_first_or_last_rows_change_at_each_tick(
    side: Side, latest: bool, cut: list[int], save_before: int | None
) -> None:
    form = p.Best(0, side.key, p.by_time(side.values, latest), ties=True)
    work, found = told(Work(form, (side,)), cut, save_before)
    for tick in TICKS:
        assert at_tick(found, tick) == difference(chosen(side, latest, tick), chosen(side, latest, tick - 1))
    assert work.node.records == len(up_to(side.changed, 5))
    assert held(work) == values_of(up_to(side.changed, 5))


def ranked(side: Side, form: p.Best, tick: int) -> Bag:
    """By key the rows of some ranks; those of one time in the order of their values."""
    groups: dict[Row, list[Row]] = {}
    for row, weight in up_to(side.changed, tick).items():
        groups.setdefault(tuple(row[i] for i in side.key), []).extend([row] * max(weight, 0))
    found: list[Row] = []
    for rows in groups.values():
        rows.sort()
        rows.sort(key=lambda row: row[-1], reverse=form.order[0].descending)
        ties = [row for row in rows if rows and row[-1] == rows[0][-1]]
        found += ties if form.ties else rows[form.start : form.stop]
    return bag((1, row) for row in found)


@drawn(50)
@given(sides(), st.booleans(), st.booleans(), st.integers(0, 2), st.none() | st.integers(0, 4), cuts(), save_points)
def test_best_ranks_rows_by_times(
    side: Side, descending: bool, ties: bool, start: int, stop: int | None, cut: list[int], save_before: int | None
) -> None:
    order = tuple(p.Rank(side.values + half, descending) for half in (0, 1))
    form = p.Best(0, side.key, order, start, stop, ties)
    work, found = told(Work(form, (side,)), cut, save_before)
    for tick in TICKS:
        assert at_tick(found, tick) == difference(ranked(side, form, tick), ranked(side, form, tick - 1))
    assert held(work) - {0} == values_of(up_to(side.changed, 5)) - {0}


# --- many rows ---------------------------------------------------------------------------------------


def shuffled(count: int) -> list[int]:
    return np.random.default_rng(3).permutation(count).tolist()


@pytest.mark.parametrize("choice", ["EARLIEST", "LATEST"])
def test_pairs_are_right_whatever_the_order_in_which_many_rows_come_and_go(
    choice: One["EARLIEST", "LATEST"],
) -> None:
    order, count = shuffled(400), 400
    come = [(0, 1, (1, 3 * i)) for i in order]
    go = [(2, -1, (1, 3 * i)) for i in shuffled(count) if i % 3]
    rights = [(1, 1, (1, 3 * i + 1)) for i in order]
    case = Case(Side(1, (0,), (), [*come, *go]), Side(1, (0,), (), rights), choice, False, [])
    work = Work(p.Follow(case.left.timed, case.right.timed, choice), (case.left, case.right))
    found = work.step([case.left.changed, case.right.changed])
    for tick in range(3):
        assert at_tick(found, tick) == difference(pairs(case, tick), pairs(case, tick - 1))


def test_tables_shrink_after_a_burst_and_keep_what_is_left() -> None:
    side = Side(1, (), (), [])
    work = Work(p.Best(0, (), p.by_time(1, True), ties=True), (side,))
    burst = [(0, 1, (1, i)) for i in range(5000)]
    work.step([burst])
    large = work.node.bytes
    work.step([[(1, -1, (1, i)) for i in range(4990)]])
    assert sorted(work.step([[(2, -1, (1, 4999))]])) == [(2, -1, (1, 4999)), (2, 1, (1, 4998))]
    assert work.node.bytes < large / 20
    assert work.node.records == 9


def test_a_restored_node_has_each_of_many_rows_once() -> None:
    """Their moments do not fit into the room with which it begins."""
    work = Work(p.Best(0, (), p.by_time(1, True), ties=True), (Side(1, (), (), []),))
    work.step([[(0, 1, (1, i)) for i in range(100)]])
    work = work.again()
    assert work.node.records == 100
    for tick, last in enumerate(range(99, 0, -1), 1):
        assert bag((w, row) for _, w, row in work.step([[(tick, -1, (1, last))]])) == {(1, last): -1, (1, last - 1): 1}


# --- intervals ---------------------------------------------------------------------------------------


@given(st.lists(ANY_TIME, max_size=5))
def test_halves_of_times_are_the_times_and_stand_in_their_order(times: list[int]) -> None:
    halves = halves_of(np.array(times, np.int64))
    assert times_at(halves, 0).tolist() == times
    assert sorted(times) == [time for _, time in sorted(zip(map(tuple, halves.tolist()), times, strict=True))]


def rows_of(times: Sequence[Sequence[int]]) -> Buffer:
    made = Buffer(2 * len(times[0]))
    halves = np.concatenate([halves_of(np.array(each, np.int64)) for each in zip(*times, strict=True)], axis=1)
    count = len(times)
    made.put(Delta(np.zeros(count, np.int64), np.arange(1, count + 1), halves))
    return made


@drawn(50)
@given(st.lists(st.tuples(ANY_TIME, ANY_TIME), min_size=1, max_size=6), ANY_TIME, ANY_TIME)
def test_an_interval_lasts_from_its_start_to_its_end(times: list[tuple[int, int]], least: int, most: int) -> None:
    node = lasting(p.Lasting(0, 0, 2, least, most), rows_of(times))
    node.step()
    kept = [i + 1 for i, (start, end) in enumerate(times) if start <= end and least <= end - start <= most]
    assert node.out.delta.weight.tolist() == kept
