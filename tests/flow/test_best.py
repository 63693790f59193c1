"""Best: against plain sorting at every tick."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

import numpy as np
import pytest
from bags import between_ticks
from hypothesis import given
from hypothesis import strategies as st
from profiles import drawn, thorough
from pyoxigraph import Literal, NamedNode, QuerySolutions, Store

from oxiseq.engine.flow import plan as p
from oxiseq.engine.flow.delta import Buffer, Delta
from oxiseq.engine.flow.operators.best import BestNode
from oxiseq.engine.snapshot.container import pack, unpack
from oxiseq.engine.terms.dictionary import TermDictionary
from oxiseq.engine.terms.order import TermOrder, order_key
from oxiseq.engine.terms.saved import KnownTerms, SavedTerms
from oxiseq.engine.terms.texts import Term

XSD: Final = "http://www.w3.org/2001/XMLSchema#"
Row: TypeAlias = tuple[Term | None, ...]
Change: TypeAlias = tuple[int, int, Row]
"""Tick, weight, row."""


def literal(text: str, datatype: str) -> Literal:
    return Literal(text, datatype=NamedNode(XSD + datatype))


TERMS: Final = (
    None,
    NamedNode("http://a"),
    NamedNode("http://b"),
    literal("1", "integer"),
    literal("1", "double"),
    literal("2", "integer"),
    literal("0.1", "decimal"),
    literal("0.1", "double"),
    literal("NaN", "double"),
    Literal("b"),
    Literal("a", language="en"),
    literal("2000-01-01", "date"),
    literal("P1M", "duration"),
)


class Runner:
    """A node, its input, and what has been told of it so far."""

    def __init__(self, form: p.Best, width: int, room: int = 1) -> None:
        self.form, self.width, self.room = form, width, room
        self.told: Counter[Row] = Counter()
        self._begin(TermDictionary(capacity=1))

    def _begin(self, terms: TermDictionary) -> None:
        self.terms = terms
        self.input = Buffer(self.width, self.room)
        self.node = BestNode(self.form, self.input, terms, TermOrder(terms), self.room)
        terms.register(self.node)

    def push(self, changes: Sequence[Change]) -> dict[int, Counter[Row]]:
        """What is told after each tick that tells something."""
        ids = [[0 if t is None else self.terms.intern(t) for t in row] for _, _, row in changes]
        self.input.put(
            Delta(
                np.array([at for at, _, _ in changes], np.int64),
                np.array([w for _, w, _ in changes], np.int64),
                np.array(ids, np.uint32).reshape(len(ids), self.width),
            )
        )
        self.node.out.clear()
        self.node.step()
        out = self.node.out.delta
        assert (np.diff(out.at) >= 0).all()
        assert (out.weight != 0).all()
        after: dict[int, Counter[Row]] = {}
        once = set()
        for at, weight, row in zip(out.at.tolist(), out.weight.tolist(), out.rows.tolist(), strict=True):
            terms = tuple(None if i == 0 else self.terms.term(i) for i in row)
            assert (at, terms) not in once  # what cancels within a tick is not told
            once.add((at, terms))
            self.told[terms] += weight
            last = len(once) == len(out) or out.at[len(once)] != at
            if last:
                after[at] = Counter({row: n for row, n in self.told.items() if n})
        return after

    def save_and_restore(self) -> None:
        """Go on with another node, in another dictionary."""
        named = SavedTerms(self.terms)
        state = self.node.save(named)
        saved = unpack(pack({"node": state, "terms": named.state()}))
        terms = TermDictionary(capacity=1)
        terms.intern(NamedNode("http://another"))
        self._begin(terms)
        self.node.restore(saved["node"], KnownTerms(saved["terms"], terms))


def ranked(rows: Counter[Row], form: p.Best) -> Counter[Row]:
    """The same by sorting."""
    groups: dict[Row, list[Row]] = {}
    for row, count in rows.items():
        groups.setdefault(tuple(row[c] for c in form.key), []).extend([row] * max(count, 0))
    found: Counter[Row] = Counter()
    for group in groups.values():
        group.sort(key=lambda row: [(order_key(t), str(t)) for t in row])
        ordered = {r.place for r in form.order}
        group.sort(key=lambda row: [(order_key(t), str(t)) for i, t in enumerate(row) if i not in ordered])
        for r in reversed(form.order):
            group.sort(key=lambda row: order_key(row[r.place]), reverse=r.descending)
        if form.ties:
            values = [[order_key(row[r.place]) for r in form.order] for row in group]
            found.update(row for row, value in zip(group, values, strict=True) if value == values[0])
        else:
            found.update(group[form.start : form.stop])
    return found


@dataclass(frozen=True)
class Case:
    form: p.Best
    width: int
    changes: list[Change]


def random_case(dice: random.Random, ticks: int = 12) -> Case:
    width = dice.randint(0, 3)
    places = list(range(width))
    key = tuple(sorted(dice.sample(places, dice.randint(0, min(width, 2)))))
    order = tuple(p.Rank(c, dice.random() < 0.4) for c in dice.sample(places, dice.randint(0, width)))
    start = dice.choice([0, 0, 1, 2, 5])
    stop = dice.choice([None, start, start + 1, start + 2, start + 4, start + 100])
    form = p.Best(0, key, order, start, stop, ties=dice.random() < 0.25)
    some = dice.sample(TERMS, dice.choice([3, 5, len(TERMS)]))
    here: Counter[Row] = Counter()
    changes: list[Change] = []
    for tick in range(ticks):
        for _ in range(dice.randint(0, 5)):
            row = tuple(dice.choice(some) for _ in places)
            there = list(here)
            if there and dice.random() < 0.45:
                row = dice.choice(there)
                weight = -dice.choice([here[row], 1])
            else:
                weight = dice.choice([1, 1, 2, 5])
            here[row] += weight
            if not here[row]:
                del here[row]
            part = dice.choice([0, 0, 1, -2])  # within a tick a weight may go below 0
            split = [(tick, part, row), (tick, weight - part, row)]
            changes += dice.sample([each for each in split if each[1]], len([each for each in split if each[1]]))
    return Case(form, width, changes)


def check(seed: int) -> None:
    dice = random.Random(seed)
    case = random_case(dice)
    runner = Runner(case.form, case.width, dice.choice([1, 1, 16]))
    rows: Counter[Row] = Counter()
    for batch in between_ticks(case.changes, dice):
        before = Counter({row: n for row, n in runner.told.items() if n})
        after = runner.push(batch)
        for tick in sorted({at for at, _, _ in batch}):
            for at, weight, row in batch:
                if at == tick:
                    rows[row] += weight
            assert after.get(tick, before) == ranked(rows, case.form)
            before = after.get(tick, before)
        assert runner.node.records == sum(1 for n in rows.values() if n)
        if dice.random() < 0.2:
            runner.save_and_restore()
        if dice.random() < 0.3:
            runner.terms.collect()


@thorough()
@given(st.integers(0, 2**62))
def test_ranks_are_those_of_sorting_at_every_tick(seed: int) -> None:
    check(seed)


@drawn(30)
@given(st.lists(st.sampled_from(TERMS), max_size=8), st.booleans(), st.integers(0, 3), st.integers(0, 4))
def test_the_top_is_that_of_oxigraph(found: list[Term | None], descending: bool, start: int, count: int) -> None:
    of_one_class = [t for t in found if t is None or order_key(t)[0] in (1, 2, 3)]
    runner = Runner(p.Best(0, (), (p.Rank(0, descending),), start, start + count), 1)
    told = runner.push([(0, 1, (t,)) for t in of_one_class]).get(0, Counter())
    values = " ".join("UNDEF" if t is None else str(t) for t in of_one_class)
    way = "DESC" if descending else "ASC"
    query = f"SELECT ?x {{ VALUES ?x {{ {values} }} }} ORDER BY {way}(?x) LIMIT {count} OFFSET {start}"
    solutions = Store().query(query)
    assert isinstance(solutions, QuerySolutions)
    theirs = [solution[0] for solution in solutions]
    exact = literal("0.1", "decimal") not in of_one_class  # which Oxigraph rounds
    if exact:
        assert sorted(order_key(t) for t in told.elements() for t in t) == sorted(map(order_key, theirs))


def numbers(values: Sequence[int]) -> list[Row]:
    return [(literal(str(v), "integer"),) for v in values]


def test_a_row_that_comes_and_goes_within_a_tick_is_not_told() -> None:
    runner = Runner(p.Best(0, (), (p.Rank(0),), 0, 2), 1)
    runner.push([(0, 1, row) for row in numbers([1, 2, 3])])
    (first,) = numbers([0])
    assert runner.push([(1, 1, first), (1, -1, first)]) == {}


def test_behind_the_last_row_told_two_comparisons_are_enough() -> None:
    runner = Runner(p.Best(0, (), (p.Rank(0),), 0, 10), 1, 1 << 12)
    runner.push([(0, 1, row) for row in numbers(range(1000))])
    before = runner.node.steps
    assert runner.push([(1, 1, row) for row in numbers([5000])]) == {}
    assert runner.node.steps - before == 2  # with the last row told, with the first behind it


def test_work_per_row_does_not_grow_with_the_limit() -> None:
    steps = []
    for limit in (1, 5000):
        runner = Runner(p.Best(0, (), (p.Rank(0),), 0, limit), 1, 1 << 14)
        dice = random.Random(1)
        values = dice.sample(range(10**6), 10_000)
        runner.push([(0, 1, row) for row in numbers(values)])
        before = runner.node.steps
        gone = dice.sample(values, 500)
        runner.push([(1 + i, -1, row) for i, row in enumerate(numbers(gone))])
        steps.append((runner.node.steps - before) / 500)
    assert 1 < max(steps) < 60


def test_memory_is_given_back_after_a_burst() -> None:
    runner = Runner(p.Best(0, (0,), (p.Rank(0),), 0, 1), 1)
    rows = numbers(range(20_000))
    runner.push([(0, 1, row) for row in rows])
    full = runner.node.bytes
    runner.push([(1, -1, row) for row in rows[5:]])
    assert runner.node.bytes < full / 50
    assert runner.push([(2, -1, row) for row in rows[:5]])[2] == Counter()
    assert runner.node.records == 0


def test_rows_that_come_and_go_use_their_memory_again() -> None:
    runner = Runner(p.Best(0, (0,), (p.Rank(0),), 0, 1), 1)
    runner.push([(0, 1, row) for row in numbers(range(9))])  # room for 16
    before = runner.node.bytes
    for i in range(100):
        gone, new = numbers([i % 9, 9 + i % 3])
        runner.push([(2 * i + 1, -1, gone), (2 * i + 1, 1, new)])
        runner.push([(2 * i + 2, 1, gone), (2 * i + 2, -1, new)])
    assert runner.node.bytes == before


@pytest.mark.parametrize("stop", [2, None])
def test_terms_of_rows_that_are_gone_are_freed(stop: int | None) -> None:
    runner = Runner(p.Best(0, (), (p.Rank(0),), 0, stop), 1)
    rows = numbers(range(50))
    runner.push([(0, 1, row) for row in rows])
    runner.push([(1, -1, row) for row in rows[1:]])
    runner.input.clear()
    runner.terms.collect()
    assert runner.terms.live == 1
