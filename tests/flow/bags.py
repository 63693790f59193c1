"""Changes of bags of rows by tick, drawn and plain: what operators of a flow are compared with."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from random import Random
from typing import Any, TypeAlias

import numpy as np
from hypothesis import strategies as st

from oxiseq.engine.flow.delta import Delta

Row: TypeAlias = tuple[int, ...]
Bag: TypeAlias = dict[Row, int]
Change: TypeAlias = tuple[int, int, Row]
"""Tick, weight, row."""

MOST_VALUE = 3
"""Values are 0 (unbound) to this."""


def changes(width: int, most: int = 12) -> st.SearchStrategy[list[Change]]:
    """Changes at ticks 0 to 5, in any order of weights: a row may go before it comes."""
    row = st.tuples(*[st.integers(0, MOST_VALUE)] * width)
    weight = st.sampled_from([1, 1, 1, -1, -1, 2, -2, 7])
    return st.lists(st.tuples(st.integers(0, 5), weight, row), max_size=most).map(lambda c: sorted(c, key=_tick))


def many_changes(dice: Random, width: int, ticks: int) -> list[Change]:
    """Up to thirty changes a tick, as many of them removals of what is there: memory is used again and again."""
    changed: list[Change] = []
    there: list[Row] = []
    for tick in range(ticks):
        for _ in range(dice.randrange(30)):
            if there and dice.random() < min(0.2 + len(there) / 60, 0.8):
                changed.append((tick, -1, there.pop(dice.randrange(len(there)))))
            else:
                there.append(tuple(dice.randint(0, MOST_VALUE) for _ in range(width)))
                changed.append((tick, 1, there[-1]))
    return changed


def _tick(change: Change) -> int:
    return change[0]


def cuts() -> st.SearchStrategy[list[int]]:
    """The ticks with which batches begin, after the first."""
    return st.lists(st.integers(1, 5), max_size=5, unique=True).map(sorted)


def batches(cut: Sequence[int], changed: Sequence[Change]) -> list[list[Change]]:
    """The changes of each batch."""
    bounds = [-1, *cut, 99]
    return [[c for c in changed if low <= c[0] < high] for low, high in pairwise(bounds)]


def between_ticks(changed: Sequence[tuple[int, int, Any]], dice: Random) -> Iterator[list[tuple[int, int, Any]]]:
    """The changes of each batch, cut between some ticks; rows of any kind."""
    part: list[tuple[int, int, Any]] = []
    for i, change in enumerate(changed):
        part.append(change)
        if i + 1 == len(changed) or (changed[i + 1][0] != change[0] and dice.random() < 0.4):
            yield part
            part = []


def delta_of(changed: Sequence[Change], width: int, ids: Sequence[int] = range(MOST_VALUE + 1)) -> Delta:
    """The same with an id for each value."""
    rows = np.array([[ids[value] for value in row] for _, _, row in changed], np.uint32)
    at = np.array([t for t, _, _ in changed], np.int64)
    return Delta(at, np.array([w for _, w, _ in changed], np.int64), rows.reshape(len(changed), width))


def changes_of(delta: Delta, ids: Sequence[int] = range(MOST_VALUE + 1)) -> list[Change]:
    """A delta as changes of rows of values."""
    value = {each: number for number, each in enumerate(ids)}
    rows = [tuple(value[i] for i in row) for row in delta.rows.tolist()]
    return list(zip(delta.at.tolist(), delta.weight.tolist(), rows, strict=True))


def at_tick(changed: Iterable[Change], tick: int) -> Bag:
    """What changes at a tick; rows that cancel are left out."""
    return bag((w, row) for t, w, row in changed if t == tick)


def up_to(changed: Iterable[Change], tick: int) -> Bag:
    """What there is at the end of a tick."""
    return bag((w, row) for t, w, row in changed if t <= tick)


def bag(weighed: Iterable[tuple[int, Row]]) -> Bag:
    """Weights added up; rows of weight 0 are none."""
    total: Counter[Row] = Counter()
    for w, row in weighed:
        total[row] += w
    return {row: w for row, w in total.items() if w != 0}


def difference(now: Mapping[Row, int], before: Mapping[Row, int]) -> Bag:
    """What changes from one bag to another."""
    return bag([*((w, row) for row, w in now.items()), *((-w, row) for row, w in before.items())])
