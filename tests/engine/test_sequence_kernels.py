"""The kernels' data structures against plain twins: heaps, hash tables, the compact set.

Inner functions have no door to Python, so small drivers are compiled here. They are not cached: Numba would not
see when the functions that they call have changed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from engine_runs import query
from hypothesis import given
from hypothesis import strategies as st
from loaded import load
from numba import njit

from oxiseq.engine.kernels.compiling.as_python import either, runnable
from oxiseq.engine.kernels.matches import records as matches
from oxiseq.engine.kernels.matches.nodes import meld, output
from oxiseq.engine.kernels.matches.records import SPINE
from oxiseq.engine.kernels.memory.pointers import Array, Pointers
from oxiseq.engine.kernels.memory.slots import SLOT, drop_slot, find_number, put_slot
from oxiseq.engine.kernels.sequence import records as k
from oxiseq.engine.kernels.sequence import records as v
from oxiseq.engine.kernels.sequence.buckets import link, unlink
from oxiseq.engine.kernels.sequence.closings import _pop, push_closing
from oxiseq.engine.plan.query import compile_query
from oxiseq.engine.sequence.memory import Capacities, allocate
from oxiseq.engine.terms.dictionary import TermDictionary


def memory(groups: int) -> k.Memory:
    """Empty running state with room for so many groups."""
    plan = compile_query(load(query("A; B", B="FILTER(?bv > ?av)")), TermDictionary())
    return allocate(plan.runner.sequence, Capacities(groups=groups))


driver = either(njit(error_model="numpy"), runnable)
KINDS = (k.HEAP_NUMBER, k.HEAP_TIME, k.LISTED, k.NEVER)


# --- skew heaps and lists ---------------------------------------------------------------------------


@driver
def put_into_bucket(S: Any, x: Any, b: Any, kind: Any, value: Any) -> None:
    link(S, x, b, kind, value)


@driver
def take_from_bucket(S: Any, x: Any) -> None:
    unlink(S, x)


def heap_members(links: Array, root: int, parent: int = -1) -> Iterator[tuple[int, float]]:
    """(group, value), asserting order and parent links."""
    if root < 0:
        return
    here = links[root]
    assert here["parent"] == parent
    assert parent < 0 or links[parent]["value"] <= here["value"]
    yield root, float(here["value"])
    yield from heap_members(links, int(here["left"]), root)
    yield from heap_members(links, int(here["right"]), root)


def list_members(links: Array, first: int) -> Iterator[int]:
    before = -1
    while first >= 0:
        assert links[first]["right"] == before
        yield first
        before, first = first, int(links[first]["left"])


@given(st.lists(st.tuples(st.integers(0, 15), st.sampled_from(KINDS), st.integers(-3, 9))))
def test_buckets_against_dictionaries(steps: list[tuple[int, int, int]]) -> None:
    """Each step puts a group into the bucket, or takes it out if it is there."""
    state = memory(16)
    pointers, links, bucket = Pointers(state), state.links, state.buckets
    bucket["signature"][0], bucket["count"][0] = 0, 1  # one that never leaves, so that the bucket is not freed
    for root in ("number", "time", "list"):
        bucket[root][0] = -1
    held: dict[int, tuple[int, float]] = {}
    for g, kind, value in steps:
        if g in held:
            take_from_bucket(pointers.address, g)
            del held[g]
        else:
            put_into_bucket(pointers.address, g, 0, kind, float(value))
            held[g] = (kind, float(value))
        for root, of in (("number", k.HEAP_NUMBER), ("time", k.HEAP_TIME)):
            found = dict(heap_members(links, int(bucket[root][0])))
            assert found == {m: v for m, (sort, v) in held.items() if sort == of}
        listed = list(list_members(links, int(bucket["list"][0])))
        assert sorted(listed) == sorted(m for m, (sort, _) in held.items() if sort == k.LISTED)
        assert bucket["count"][0] == 1 + len(held)


# --- open addressing --------------------------------------------------------------------------------


@driver
def put_into_table(table: Any, tag: Any, value: Any) -> None:
    put_slot(table, tag, value)


@driver
def drop_from_table(table: Any, tag: Any, value: Any) -> None:
    drop_slot(table, find_number(table, tag, value))


def is_found(table: Array, tag: int, value: int) -> bool:
    """Linear probing as the kernels do it: up to the first empty place."""
    at = tag % len(table)
    while table["number"][at]:
        if table["number"][at] == value + 1:
            return bool(table["tag"][at] == tag)
        at = (at + 1) % len(table)
    return False


@given(
    st.lists(st.sampled_from([0, 1, 2, 7, 14, 15, 16, 31, (1 << 32) - 1]), min_size=8, max_size=8),
    st.lists(st.integers(0, 7), max_size=60),
)
def test_table_with_backward_shifts_against_a_set(tags: list[int], steps: list[int]) -> None:
    """Each step puts a record into the table, or takes it out if it is there; tags collide and wrap around."""
    table = np.zeros(16, SLOT)
    held: set[int] = set()
    for number in steps:
        if number in held:
            drop_from_table(table, tags[number], number)
            held.remove(number)
        else:
            put_into_table(table, tags[number], number)
            held.add(number)
        there = table["number"][table["number"] > 0]
        assert sorted((there - 1).tolist()) == sorted(held)
        assert all(is_found(table, tags[n], n) for n in held)


# --- groups that wait for their window to close -----------------------------------------------------


@driver
def push_close(S: Any, close: Any, g: Any) -> None:
    push_closing(S, close, g)


@driver
def pop_close(S: Any) -> None:
    _pop(v.closings(S), v.scalars(S), k.CLOSINGS)


@given(st.lists(st.one_of(st.none(), st.integers(0, 5)), max_size=40))
def test_closings_come_in_order_of_time_then_age(steps: list[int | None]) -> None:
    state = memory(64)
    state.groups["serial"] = np.arange(64)
    pointers, waiting = Pointers(state), list[tuple[int, int]]()
    for number, close in enumerate(steps):
        if close is not None:
            push_close(pointers.address, close, number)
            waiting.append((close, number))
        elif waiting:
            first = state.closings[0]
            assert (int(first["close"]), int(first["group"])) == min(waiting)
            waiting.remove(min(waiting))
            pop_close(pointers.address)
        assert state.scalars[k.CLOSINGS] == len(waiting)


# --- the compact set --------------------------------------------------------------------------------


@driver
def new_output(nodes: Any, scalars: Any, left: Any, pos: Any, maxs: Any) -> Any:
    return output(nodes, scalars, left, pos, maxs)


@driver
def union(nodes: Any, scalars: Any, spine: Any, a: Any, b: Any, tau: Any) -> Any:
    return meld(nodes, scalars, spine, a, b, tau)


class CompactSet:
    """Nodes as the kernels make them."""

    def __init__(self, room: int = 4_096) -> None:
        self.nodes = np.zeros(room, matches.NODE)
        self.scalars = np.zeros(k.SCALARS, np.int64)
        self.spine = np.zeros(SPINE, np.int64)

    @property
    def top(self) -> int:
        return int(self.scalars[matches.NODE_TOP])

    def leaf(self, pos: int, start: int, left: int = -1) -> int:
        return int(new_output(self.nodes, self.scalars, left, pos, start))

    def meld(self, a: int, b: int, tau: int) -> int:
        return int(union(self.nodes, self.scalars, self.spine, a, b, tau))

    def starts(self, node: int, tau: int) -> Iterator[int]:
        """Starts that are alive at `tau`, asserting the heap's order and that no dead root is visited."""
        if node < 0 or self.nodes[node]["maxs"] < tau:
            return
        here = self.nodes[node]
        yield int(here["maxs"])
        if here["leaf"] < 0:
            return
        assert self.nodes[here["leaf"]]["leaf"] < 0
        ranks = []
        for child in (int(here["left"]), int(here["right"])):
            assert child < node
            ranks.append(int(self.nodes[child]["rank"]) if child >= 0 else 0)
            if child >= 0:
                assert self.nodes[child]["maxs"] <= here["maxs"]
            yield from self.starts(child, tau)
        assert ranks[0] >= ranks[1] and here["rank"] == ranks[1] + 1


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3), st.integers(0, 30), st.integers(0, 2)), max_size=60))
def test_melds_against_multisets(steps: list[tuple[int, int, int, int]]) -> None:
    """Each step adds a start to one of four heaps, then melds another into it; the cut-off rises."""
    made, tau = CompactSet(), 0
    heaps, twins = [-1] * 4, [Counter[int]() for _ in range(4)]
    for number, (into, other, start, passed) in enumerate(steps):
        tau += passed
        old, before = heaps[into], Counter(made.starts(heaps[into], tau))
        heaps[into] = made.meld(made.leaf(number, start + tau), heaps[into], tau)
        twins[into][start + tau] += 1
        if into != other and number % 3 == 0:
            heaps[into] = made.meld(heaps[into], heaps[other], tau)
            twins[into] += twins[other]
            heaps[other], twins[other] = -1, Counter()
        for heap, twin in zip(heaps, twins, strict=True):
            assert Counter(made.starts(heap, tau)) == Counter({s: n for s, n in twin.items() if s >= tau})
        assert Counter(made.starts(old, tau)) == before  # nothing is changed, only added


def test_a_newer_start_makes_one_node() -> None:
    made = CompactSet()
    heap = made.leaf(0, 0)
    for start in range(1, 100):
        leaf, before = made.leaf(start, start), made.top
        heap = made.meld(leaf, heap, 0)
        assert made.top == before + 1


@pytest.mark.parametrize("order", ["falling", "mixed"])
def test_any_start_makes_few_nodes(order: str) -> None:
    made = CompactSet(1 << 16)
    heap = -1
    for number in range(2_000):
        start = 2_000 - number if order == "falling" else 1 + number * 7_919 % 2_000
        leaf, before = made.leaf(number, start), made.top
        heap = made.meld(leaf, heap, 0)
        assert made.top - before <= 12  # the right spine of 2,000 has at most log2(2,001) nodes
    assert sorted(made.starts(heap, 1_900)) == list(range(1_900, 2_001))


def test_a_meld_drops_what_is_over() -> None:
    made = CompactSet()
    old, new = made.leaf(0, 1), made.leaf(1, 9)
    assert made.meld(new, old, 5) in (new, made.top - 1)
    assert list(made.starts(made.meld(new, old, 5), 5)) == [9]
    assert made.meld(old, -1, 5) == -1
    assert made.meld(-1, -1, 5) == -1
