"""Reach: against breadth-first search from every node, at every tick."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TypeAlias

import numpy as np
import pytest
from bags import between_ticks
from hypothesis import given
from hypothesis import strategies as st
from profiles import thorough
from pyoxigraph import NamedNode

from oxiseq.engine.errors import LimitError
from oxiseq.engine.flow.delta import Buffer, Delta
from oxiseq.engine.flow.operators.reach import ReachNode
from oxiseq.engine.snapshot.container import pack, unpack
from oxiseq.engine.terms.dictionary import TermDictionary
from oxiseq.engine.terms.saved import KnownTerms, SavedTerms

Row: TypeAlias = tuple[int, ...]
"""Context, from, to: numbers of nodes, 0 being unbound."""
Change: TypeAlias = tuple[int, int, Row]
"""Tick, weight, row."""


class Runner:
    """A node, its input, and what has been told of it so far."""

    def __init__(self, width: int, room: int = 1, most_pairs: int = 10**6) -> None:
        self.width, self.room, self.most_pairs = width, room, most_pairs
        self.told: set[Row] = set()
        self._begin(TermDictionary(capacity=1))

    def _begin(self, terms: TermDictionary) -> None:
        self.terms = terms
        self.input = Buffer(self.width, self.room)
        self.node = ReachNode(self.input, self.most_pairs, self.room)
        terms.register(self.node)

    def push(self, changes: Sequence[Change]) -> dict[int, set[Row]]:
        """What is told after each tick that tells something."""
        ids = [[n and self.terms.intern(NamedNode(f"http://{n}")) for n in row] for _, _, row in changes]
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
        after: dict[int, set[Row]] = {}
        once = set()
        for at, weight, row in zip(out.at.tolist(), out.weight.tolist(), out.rows.tolist(), strict=True):
            pair = tuple(i and int(self.terms.term(i).value[7:]) for i in row)  # type: ignore[union-attr]
            assert (at, pair) not in once  # what cancels within a tick is not told
            once.add((at, pair))
            assert weight == (-1 if pair in self.told else 1)
            self.told ^= {pair}
            if len(once) == len(out) or out.at[len(once)] != at:
                after[at] = set(self.told)
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


def closure(edges: Mapping[Row, int]) -> set[Row]:
    """By breadth-first search from each node of each context."""
    steps: dict[Row, set[int]] = {}
    for (*context, source, target), weight in edges.items():
        if weight > 0:
            steps.setdefault((*context, source), set()).add(target)
    found = set()
    for start, level in steps.items():
        context = start[:-1]
        reached: set[int] = set()
        while level:
            reached |= level
            level = {z for y in level for z in steps.get((*context, y), ())} - reached
        found |= {(*start, y) for y in reached}
    return found


def random_changes(dice: random.Random, width: int, ticks: int = 15) -> list[Change]:
    nodes = dice.choice([2, 4, 7, 12])
    going = dice.choice([0.3, 0.5, 0.6])
    here: Counter[Row] = Counter()
    changes: list[Change] = []
    for tick in range(ticks):
        for _ in range(dice.randint(0, 6)):
            there = list(here)
            if there and dice.random() < going:
                row = dice.choice(there)
                weight = -dice.choice([here[row], 1])
            else:
                row = (*(dice.randint(0, 2) for _ in range(width - 2)), dice.randint(1, nodes), dice.randint(1, nodes))
                weight = dice.choice([1, 1, 2])
            here[row] += weight
            if not here[row]:
                del here[row]
            parts = [(tick, w, row) for w in dice.choice([(weight, 0), (weight - 1, 1), (-2, weight + 2)]) if w]
            changes += dice.sample(parts, len(parts))
    return changes


def check(seed: int) -> None:
    dice = random.Random(seed)
    width = dice.choice([2, 2, 3, 4])
    runner = Runner(width, dice.choice([1, 16]))
    edges: Counter[Row] = Counter()
    for batch in between_ticks(random_changes(dice, width), dice):
        before = set(runner.told)
        after = runner.push(batch)
        for tick in sorted({at for at, _, _ in batch}):
            for at, weight, row in batch:
                if at == tick:
                    edges[row] += weight
            before = after.get(tick, before)
            assert before == closure(edges)
        assert runner.node.records == len(runner.told)
        if dice.random() < 0.2:
            runner.save_and_restore()
        if dice.random() < 0.3:
            runner.terms.collect()


@thorough()
@given(st.integers(0, 2**62))
def test_pairs_are_those_of_a_search_at_every_tick(seed: int) -> None:
    check(seed)


def test_a_self_loop_reaches_itself_alone() -> None:
    runner = Runner(2)
    assert runner.push([(0, 1, (1, 1))]) == {0: {(1, 1)}}
    assert runner.push([(1, -1, (1, 1))]) == {1: set()}


def test_a_cycle_does_not_hold_itself_up() -> None:
    runner = Runner(2)
    runner.push([(0, 1, (1, 2)), (0, 1, (2, 3)), (0, 1, (3, 2))])
    assert runner.push([(1, -1, (1, 2))])[1] == {(2, 3), (3, 2), (2, 2), (3, 3)}
    assert runner.push([(2, -1, (3, 2))])[2] == {(2, 3)}


def test_an_edge_that_another_replaces_within_a_tick_tells_nothing_of_pairs_that_stay() -> None:
    runner = Runner(2)
    runner.push([(0, 1, (1, 2)), (0, 1, (2, 3)), (0, 1, (2, 4))])
    assert runner.push([(1, -1, (2, 3)), (1, 1, (4, 3))]) == {1: {(1, 2), (2, 4), (1, 4), (4, 3), (1, 3), (2, 3)}}
    assert len(runner.node.out) == 1


def test_edges_of_two_contexts_make_no_path() -> None:
    runner = Runner(3)
    assert runner.push([(0, 1, (7, 1, 2)), (0, 1, (8, 2, 3))]) == {0: {(7, 1, 2), (8, 2, 3)}}


def test_past_the_limit_it_says_so() -> None:
    runner = Runner(2, most_pairs=10)
    runner.push([(0, 1, (i, i + 1)) for i in range(1, 5)])  # 10 pairs
    with pytest.raises(LimitError, match="pairs of nodes that a path"):
        runner.push([(1, 1, (5, 6))])


def test_memory_is_given_back_after_a_burst() -> None:
    runner = Runner(2)
    chain = [(i, i + 1) for i in range(1, 150)]
    runner.push([(0, 1, row) for row in chain])
    full = runner.node.bytes
    left = runner.push([(1, -1, row) for row in chain[5:]])
    assert left == {1: closure(dict.fromkeys(chain[:5], 1))}
    assert runner.node.bytes < full / 50
    assert runner.push([(2, -1, row) for row in chain[:5]]) == {2: set()}


def test_edges_that_come_and_go_use_their_memory_again() -> None:
    runner = Runner(2)
    runner.push([(0, 1, (i, i + 1)) for i in range(1, 10)])
    before = 0
    for i in range(1, 60):
        runner.push([(i, -1, (i, i + 1)), (i, 1, (i + 9, i + 10))])
        before = before or runner.node.bytes
    assert runner.node.bytes == before
    runner.input.clear()
    runner.terms.collect()
    assert runner.terms.live == 10
