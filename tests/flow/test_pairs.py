"""Arrange, Join, Distinct, Consolidate against bags that are computed anew at each tick."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random

import numpy as np
import pytest
from bags import (
    Bag,
    Change,
    Row,
    at_tick,
    bag,
    batches,
    changes,
    changes_of,
    cuts,
    delta_of,
    difference,
    many_changes,
    up_to,
)
from hypothesis import given
from hypothesis import strategies as st
from profiles import drawn, thorough
from pyoxigraph import Literal

from oxiseq.engine.errors import LimitError
from oxiseq.engine.flow import delta as deltas
from oxiseq.engine.flow import plan as p
from oxiseq.engine.flow.delta import Buffer
from oxiseq.engine.flow.flow import Flow
from oxiseq.engine.flow.operators.arrange import ArrangeNode
from oxiseq.engine.flow.operators.distinct import ConsolidateNode, DistinctNode
from oxiseq.engine.flow.operators.join import JoinNode
from oxiseq.engine.flow.operators.node import Node
from oxiseq.engine.flow.operators.rows import RowByRow, UnionNode, pick
from oxiseq.engine.flow.times import halves_of
from oxiseq.engine.kernels.flow import copying
from oxiseq.engine.kernels.flow.counting import NUMBER_BITS
from oxiseq.engine.kernels.flow.moments import NO_END
from oxiseq.engine.snapshot.container import pack, unpack
from oxiseq.engine.terms.dictionary import TermDictionary
from oxiseq.engine.terms.saved import KnownTerms, SavedTerms

TICKS = range(6)
LEFT, RIGHT = 0, 1


# --- what is drawn -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Side:
    """Rows of a width, and where the columns are by which they are joined."""

    width: int
    key: tuple[int, ...]
    loose: tuple[int, ...]
    changed: list[Change]


@dataclass(frozen=True)
class Case:
    sides: tuple[Side, Side]
    cut: list[int]
    ticks: int = 6


@st.composite
def cases(draw: st.DrawFn, most_loose: int = 3) -> Case:
    keys, loose = draw(st.integers(0, 3)), draw(st.integers(0, most_loose))
    sides = []
    for _ in range(2):
        width = keys + loose + draw(st.integers(0, 2))
        places = draw(st.permutations(range(width)))
        sides.append(Side(width, tuple(places[:keys]), tuple(places[keys : keys + loose]), draw(changes(width))))
    return Case((sides[0], sides[1]), draw(cuts()))


# --- what it means -----------------------------------------------------------------------------------


def agree(left: Side, a: Row, right: Side, b: Row) -> bool:
    """Keys are equal, loose columns are where both have a value."""
    return all(a[i] == b[j] for i, j in zip(left.key, right.key, strict=True)) and all(
        a[i] == b[j] or a[i] == 0 or b[j] == 0 for i, j in zip(left.loose, right.loose, strict=True)
    )


def pairs(left: Side, right: Side, tick: int) -> Bag:
    """The join of what both sides have at the end of a tick."""
    lefts, rights = up_to(left.changed, tick), up_to(right.changed, tick)
    return bag((v * w, a + b) for a, v in lefts.items() for b, w in rights.items() if agree(left, a, right, b))


# --- at work -----------------------------------------------------------------------------------------


class Work:
    """Two arrangements with room for one row, read by four joins: both ways, and each side with itself."""

    ways = ((LEFT, RIGHT), (RIGHT, LEFT), (LEFT, LEFT), (RIGHT, RIGHT))

    def __init__(self, case: Case, terms: TermDictionary, shift: int = 0) -> None:
        for number in range(shift):
            terms.intern(Literal(f"other {number}"))
        self.terms = terms
        self.ids = [0, *(terms.intern(Literal(str(value))) for value in range(1, 4))]
        self.sources = [Buffer(side.width) for side in case.sides]
        self.sides = [
            ArrangeNode(p.Arrange(0, side.key, side.loose), source, room=1)
            for side, source in zip(case.sides, self.sources, strict=True)
        ]
        self.joins = [JoinNode(self.sides[one], self.sides[other]) for one, other in self.ways]
        for join in self.joins:
            join.out = Buffer(join.out.width, 1)

    @property
    def nodes(self) -> list[Node]:
        return [*self.sides, *self.joins]

    def step(self, batch: Sequence[Sequence[Change]]) -> list[list[Change]]:
        """What the joins make of a batch."""
        for source, changed in zip(self.sources, batch, strict=True):
            source.put(delta_of(changed, source.width, self.ids))
        for node in self.nodes:
            node.out.clear()
            if any(node.inputs):
                node.step()
        return [changes_of(join.out.delta, self.ids) for join in self.joins]

    def again(self, case: Case, shift: int) -> Work:
        """The same, saved and restored with other ids."""
        named = SavedTerms(self.terms)
        states = [node.save(named) for node in self.nodes]
        state = unpack(pack({"nodes": states, "terms": named.state()}))
        made = Work(case, TermDictionary(), shift)
        known = KnownTerms(state["terms"], made.terms)
        for node, saved in zip(made.nodes, state["nodes"], strict=True):
            node.restore(saved, known)
        return made


def check_pairs(case: Case, work: Work, save_before: int | None = None) -> None:
    """Each join tells at each tick how the pairs change."""
    told: list[list[Change]] = [[] for _ in Work.ways]
    split = zip(*(batches(case.cut, side.changed) for side in case.sides), strict=True)
    for number, batch in enumerate(split):
        if number == save_before:
            work = work.again(case, shift=2)
        for known, new in zip(told, work.step(batch), strict=True):
            assert [t for t, _, _ in new] == sorted(t for t, _, _ in new)
            known += new
    for (one, other), known in zip(Work.ways, told, strict=True):
        left, right = case.sides[one], case.sides[other]
        before: Bag = {}
        for tick in range(case.ticks):
            now = pairs(left, right, tick)
            assert at_tick(known, tick) == difference(now, before)
            before = now
    for arranged, side in zip(work.sides, case.sides, strict=True):
        rows = up_to(side.changed, case.ticks - 1)
        assert arranged.records == len(rows)
        held = {work.ids.index(each) for ids in arranged.held_ids() for row in ids.tolist() for each in row}
        assert held == {value for row in rows for value in row}


@thorough()
@given(cases())
def test_a_join_tells_how_the_pairs_of_both_sides_change_at_each_tick(case: Case) -> None:
    check_pairs(case, Work(case, TermDictionary()))


@drawn(30)
@given(cases(most_loose=6))
def test_columns_that_may_be_unbound_are_compared_however_many_they_are(case: Case) -> None:
    check_pairs(case, Work(case, TermDictionary()))


@drawn(50)
@given(cases(), st.integers(0, 5))
def test_a_restored_arrangement_goes_on_as_the_one_that_was_saved(case: Case, save_before: int) -> None:
    check_pairs(case, Work(case, TermDictionary()), save_before)


@drawn(10)
@given(st.integers(0, 2**62), st.integers(0, 2))
def test_a_join_is_right_after_many_rows_have_come_and_gone(seed: int, loose: int) -> None:
    dice = Random(seed)
    one, other = (many_changes(dice, 3, 25) for _ in range(2))
    sides = Side(3, (0,), (1, 2)[:loose], one), Side(3, (1,), (2, 0)[:loose], other)
    check_pairs(Case(sides, sorted(dice.sample(range(1, 25), 12)), 25), Work(Case(sides, []), TermDictionary()), 5)


def test_rows_of_equal_hash_are_told_apart() -> None:
    count = 300_000  # some ten pairs of them have one tag of 32 bits
    dice = np.random.default_rng(1)
    rows = dice.permutation(np.unique(dice.integers(1, 1 << 32, 3 * count, np.uint32)))[: 2 * count].reshape(count, 2)
    source = Buffer(2)
    source.put(deltas.Delta(np.zeros(count, np.int64), np.ones(count, np.int64), rows))
    coming = p.Arrange(0, (0,), coming=True)
    for form in (p.Arrange(0, (0,)), p.Arrange(0, (), (1,)), p.Arrange(0, (1, 0)), coming):
        side = ArrangeNode(form, source)
        join = JoinNode(side, side)
        side.step()
        join.step()
        assert side.records == len(join.out) == count
    node, same, once = DistinctNode(source), ConsolidateNode(source), ConsolidateNode(source, once=True)
    for each in (node, same, once):
        each.step()
        assert len(each.out) == count
    assert node.records == count


# --- rows counted ------------------------------------------------------------------------------------


@st.composite
def counted(draw: st.DrawFn) -> Case:
    width = draw(st.integers(0, 3))
    side = Side(width, (), (), draw(changes(width, 40)))
    return Case((side, side), draw(cuts()))


def stepped(node: Node, source: Buffer, changed: Sequence[Change], ids: Sequence[int]) -> list[Change]:
    """What a node tells of a batch."""
    source.put(delta_of(changed, source.width, ids))
    node.out.clear()
    if source:
        node.step()
    return changes_of(node.out.delta, ids)


@thorough()
@given(counted(), st.integers(0, 5))
def test_distinct_tells_a_row_when_its_weight_comes_to_be_above_0_or_ceases_to_be(case: Case, save_before: int) -> None:
    side, terms = case.sides[0], TermDictionary()
    ids = [0, *(terms.intern(Literal(str(value))) for value in range(1, 4))]
    source = Buffer(side.width)
    node = DistinctNode(source, room=1)
    node.out = Buffer(side.width, 1)
    told: list[Change] = []
    for number, batch in enumerate(batches(case.cut, side.changed)):
        if number == save_before:
            named = SavedTerms(terms)
            state = unpack(pack({"node": node.save(named), "terms": named.state()}))
            terms = TermDictionary()
            node = DistinctNode(source, room=1)
            node.restore(state["node"], KnownTerms(state["terms"], terms))
            ids = [0, *(terms.intern(Literal(str(value))) for value in range(1, 4))]
        told += stepped(node, source, batch, ids)
    for tick in TICKS:
        now, before = ({row: 1 for row, w in up_to(side.changed, t).items() if w > 0} for t in (tick, tick - 1))
        assert sorted((row, w) for t, w, row in told if t == tick) == sorted(difference(now, before).items())
    assert node.records == len(up_to(side.changed, TICKS[-1]))


@thorough()
@given(counted())
def test_consolidate_tells_each_row_of_a_tick_once_unless_it_cancels(case: Case) -> None:
    side, source = case.sides[0], Buffer(case.sides[0].width)
    node = ConsolidateNode(source, slots=4)
    node.out = Buffer(side.width, 1)
    told = [change for batch in batches(case.cut, side.changed) for change in stepped(node, source, batch, range(4))]
    assert [t for t, _, _ in told] == sorted(t for t, _, _ in told)
    for tick in TICKS:
        assert sorted((row, w) for t, w, row in told if t == tick) == sorted(at_tick(side.changed, tick).items())


@thorough()
@given(counted(), st.integers(1, 30))
def test_each_row_of_a_tick_is_told_once(case: Case, often: int) -> None:
    """A few rows of a tick are compared one by one, many found by hash."""
    side, source = case.sides[0], Buffer(case.sides[0].width)
    changed = [(at, abs(weight), row) for at, weight, row in side.changed for _ in range(often)]
    node = ConsolidateNode(source, slots=4, once=True)
    node.out = Buffer(side.width, 1)
    told = [change for batch in batches(case.cut, changed) for change in stepped(node, source, batch, range(4))]
    assert sorted(told) == sorted({(at, 1, row) for at, _, row in changed})
    assert [t for t, _, _ in told] == sorted(t for t, _, _ in told)


@drawn(50)
@given(st.lists(st.tuples(st.integers(1, 5), st.integers(0, 9)), max_size=60), cuts())
def test_rows_with_a_time_are_numbered_by_ticks(come: list[tuple[int, int]], cut: list[int]) -> None:
    """Rows of the value 0 have no time."""
    source, rows = Buffer(5), sorted(come)
    node = ConsolidateNode(source, slots=4, once=True, numbered="TIMED")
    numbers: dict[tuple[int, int], int] = {}
    for batch in batches(cut, [(at, 1, (value,)) for at, value in rows]):
        values = np.array([value for _, _, (value,) in batch], np.int64)
        ends = np.where(values > 0, np.array([at for at, _, _ in batch], np.int64), NO_END)
        columns = [halves_of(ends), halves_of(ends), values.astype(np.uint32)[:, None]]
        at = np.array([at for at, _, _ in batch], np.int64)
        source.put(deltas.Delta(at, np.ones(len(at), np.int64), np.concatenate(columns, axis=1)))
        node.out.clear()
        node.step()
        told = node.out.delta
        found = told.rows[:, 5].astype(np.int64) << 32 | told.rows[:, 6]
        numbers |= dict(zip(zip(told.at.tolist(), told.rows[:, 4].tolist(), strict=True), found.tolist(), strict=True))
    assert numbers.keys() == set(rows)
    timed = [number for (_, value), number in numbers.items() if value]
    assert len(set(timed)) == len(timed)
    assert all(number >> NUMBER_BITS == (at if value else 0) for (at, value), number in numbers.items())


@drawn(10)
@given(st.integers(0, 2**62))
def test_rows_are_counted_right_after_many_have_come_and_gone(seed: int) -> None:
    dice = Random(seed)
    changed, source = many_changes(dice, 2, 40), Buffer(2)
    cut = sorted(dice.sample(range(1, 40), 20))
    distinct, same = DistinctNode(source, room=1), ConsolidateNode(source, slots=4)
    told: list[list[Change]] = [[], []]
    for batch in batches(cut, changed):
        for node, known in zip((distinct, same), told, strict=True):
            known += stepped(node, source, batch, range(4))
    for tick in range(40):
        now, before = ({row: 1 for row, w in up_to(changed, t).items() if w > 0} for t in (tick, tick - 1))
        assert sorted((row, w) for t, w, row in told[0] if t == tick) == sorted(difference(now, before).items())
        assert sorted((row, w) for t, w, row in told[1] if t == tick) == sorted(at_tick(changed, tick).items())


# --- rows handed on ----------------------------------------------------------------------------------


@drawn(50)
@given(st.lists(changes(2), min_size=1, max_size=4), cuts())
def test_a_union_tells_the_rows_of_all_in_order_of_ticks(parts: list[list[Change]], cut: list[int]) -> None:
    sources = [Buffer(2) for _ in parts]
    node, told = UnionNode(sources), list[Change]()
    node.out = Buffer(2, 1)
    for batch in zip(*(batches(cut, part) for part in parts), strict=True):
        for source, changed in zip(sources, batch, strict=True):
            source.put(delta_of(changed, 2))
        node.out.clear()
        node.step()
        told += changes_of(node.out.delta)
    assert [t for t, _, _ in told] == sorted(t for t, _, _ in told)
    assert sorted(told) == sorted(change for part in parts for change in part)


@drawn(50)
@given(changes(3), st.lists(st.lists(st.integers(0, 2), max_size=3), max_size=4))
def test_a_picked_column_is_the_first_of_its_places_that_is_bound(
    changed: list[Change], columns: list[list[int]]
) -> None:
    source = Buffer(3)
    node = pick(p.Pick(0, tuple(map(tuple, columns))), source)
    node.out = Buffer(len(columns), 1)
    expected = [
        (t, w, tuple(next((row[i] for i in places if row[i] != 0), 0) for places in columns)) for t, w, row in changed
    ]
    assert stepped(node, source, changed, range(4)) == expected


@drawn(20)
@given(changes(2))
def test_what_is_negated_goes_where_it_came(changed: list[Change]) -> None:
    source = Buffer(2)
    node = RowByRow(copying.negate, source.width, source)
    node.out = Buffer(2, 1)
    assert stepped(node, source, changed, range(4)) == [(t, -w, row) for t, w, row in changed]


# --- memory ------------------------------------------------------------------------------------------


def burst(count: int, weight: int, tick: int) -> list[Change]:
    return [(tick, weight, (i, i % 7)) for i in range(1, count + 1)]


def plain(changed: Sequence[Change]) -> deltas.Delta:
    return delta_of(changed, 2, range(10_001))


@pytest.mark.parametrize("kind", ["arrange by key", "arrange by all", "distinct"])
def test_a_table_shrinks_after_a_burst_and_keeps_what_is_left(kind: str) -> None:
    source = Buffer(2)
    node = {
        "arrange by key": lambda: ArrangeNode(p.Arrange(0, (1,)), source),
        "arrange by all": lambda: ArrangeNode(p.Arrange(0, (1, 0)), source),
        "distinct": lambda: DistinctNode(source),
    }[kind]()
    small = node.bytes
    source.put(plain(burst(10_000, 2, 1)))
    node.step()
    large = node.bytes
    source.put(plain(burst(9_990, -2, 2)))
    node.step()
    source.put(plain([(3, 1, (1, 1))]))
    node.step()
    assert large > 20 * small
    assert node.bytes <= 4 * small
    assert node.records == 11


def test_a_table_does_not_grow_while_rows_come_and_go() -> None:
    source = Buffer(2)
    node, sizes = ArrangeNode(p.Arrange(0, (1,)), source), set()
    for tick in range(300):
        coming = [(tick, 1, (1 + (10 * tick + i) % 5000, i % 3)) for i in range(10)]
        going = [(tick, -1, (1 + (10 * tick + i - 50) % 5000, i % 3)) for i in range(10)] if tick >= 5 else []
        source.put(plain([*going, *coming]))
        node.step()
        assert node.records == min(tick + 1, 5) * 10
        if tick > 10:
            sizes.add(node.bytes)
    assert len(sizes) == 1


def test_a_join_of_more_pairs_than_are_allowed_raises(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deltas, "MOST_ROWS", 100)
    source = Buffer(2)
    side = ArrangeNode(p.Arrange(0, ()), source)
    join = JoinNode(side, side)
    source.put(plain(burst(10, 1, 1)))
    side.step()
    join.step()
    assert len(join.out) == 100
    source.put(plain(burst(1, 1, 2)))
    side.step()
    join.out.clear()
    join.step()
    assert len(join.out) == 20  # ten with what was there, and ten with what is there then
    source.put(plain(burst(10, 1, 3)))
    side.step()
    join.out.clear()
    with pytest.raises(LimitError, match="100"):
        join.step()


# --- a plan at work ----------------------------------------------------------------------------------


def optional_plan() -> tuple[p.FlowPlan, int, int]:
    """A(x, y) OPTIONAL B(y, z), y surely bound: P + A − S(A, π_y B), and one constant row (1, 1, 1)."""
    sheet = p.Sheet()
    a, b = sheet.add(p.Given("a", 2)), sheet.add(p.Given("b", 2))
    by_y, others = sheet.add(p.Arrange(a, (1,))), sheet.add(p.Arrange(b, (0,)))
    joined = sheet.add(p.Pick(sheet.add(p.Join(by_y, others)), ((0,), (1, 2), (3,))))
    keys = sheet.add(p.Arrange(sheet.add(p.Distinct(sheet.add(p.Pick(b, ((0,),))))), (0,)))
    met = sheet.add(p.Pick(sheet.add(p.Join(by_y, keys)), ((0,), (1,))))
    alone = sheet.add(p.Consolidate(sheet.add(p.Union((a, sheet.add(p.Negate(met)))))))
    padded = sheet.add(p.Pick(alone, ((0,), (1,), ())))
    one = Literal("1")
    constant = sheet.add(p.Constant(((one, one, one),), 3))
    return sheet.plan(sheet.add(p.Union((joined, padded, constant)))), a, b


@drawn(50)
@given(changes(2), changes(2), cuts(), st.integers(0, 6))
def test_a_plan_tells_at_each_tick_how_its_answer_changes(
    lefts: list[Change], rights: list[Change], cut: list[int], save_before: int
) -> None:
    lefts = [c for c in lefts if c[2][1] != 0]
    rights = [c for c in rights if c[2][0] != 0]
    plan, a, b = optional_plan()
    terms = TermDictionary()
    ids = [0, *(terms.intern(Literal(str(value))) for value in range(1, 4))]
    flow, told = Flow(plan, terms), []
    batch = zip([0, *cut], batches(cut, lefts), batches(cut, rights), strict=True)
    for number, (tick, left, right) in enumerate(batch):
        if number == save_before:
            named = SavedTerms(terms)
            state = unpack(pack({"flow": flow.save(named), "terms": named.state()}))
            terms = TermDictionary()
            two, three, one = (terms.intern(Literal(str(value))) for value in (2, 3, 1))
            ids = [0, one, two, three]
            flow = Flow(plan, terms)
            flow.restore(state["flow"], KnownTerms(state["terms"], terms))
        half = len(left) // 2
        flow.feed(a, delta_of(left[:half], 2, ids))
        flow.feed(a, delta_of(left[half:], 2, ids))
        flow.feed(b, delta_of(right, 2, ids))
        told += changes_of(flow.step(tick), ids)
    for tick in TICKS:
        expected = difference(optional(lefts, rights, tick), optional(lefts, rights, tick - 1))
        if tick == 0:
            expected = difference(expected, {(1, 1, 1): -1})
        assert at_tick(told, tick) == expected


def optional(lefts: list[Change], rights: list[Change], tick: int) -> Bag:
    """A OPTIONAL B at the end of a tick; a row of B hides A's row while its key's weight is above 0."""
    a, b = up_to(lefts, tick), up_to(rights, tick)
    keys = bag((w, (row[0],)) for row, w in b.items())
    joined = [(v * w, (x, y, z)) for (x, y), v in a.items() for (other, z), w in b.items() if other == y]
    alone = [(v, (x, y, 0)) for (x, y), v in a.items() if keys.get((y,), 0) <= 0]
    return bag([*joined, *alone])


def test_a_flow_takes_deltas_at_its_sources_only_and_of_their_width() -> None:
    plan, a, _ = optional_plan()
    flow = Flow(plan, TermDictionary())
    with pytest.raises(ValueError, match="no source"):
        flow.feed(plan.root, delta_of([], 3))
    with pytest.raises(ValueError, match="3 columns, 2 wanted"):
        flow.feed(a, delta_of([], 3))


def test_a_flow_that_failed_in_the_middle_of_a_batch_does_not_go_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deltas, "MOST_ROWS", 20)
    sheet = p.Sheet()
    a = sheet.add(p.Given("a", 2))
    side = sheet.add(p.Arrange(a, ()))
    flow = Flow(sheet.plan(sheet.add(p.Join(side, side))), TermDictionary())
    flow.feed(a, plain(burst(10, 1, 1)))
    with pytest.raises(LimitError):
        flow.step(1)
    with pytest.raises(LimitError):
        flow.step(2)
