"""Rows and their numbers: a hash table against a dictionary."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from numba import njit

from oxiseq.engine.kernels.matches.numbering import enter_rows, find_rows
from oxiseq.engine.kernels.memory.hashing import row_tag
from oxiseq.engine.kernels.memory.slots import SLOT, slots_for

# few values, so that rows are equal; the largest id, since ids are unsigned
IDS = st.sampled_from([0, 1, 2, (1 << 32) - 1])
TABLES = st.integers(0, 3).flatmap(lambda width: st.lists(st.lists(IDS, min_size=width, max_size=width), max_size=40))


@given(TABLES, st.integers(0, 40))
def test_of_equal_rows_the_first_is_found(rows: list[list[int]], entered: int) -> None:
    width = len(rows[0]) if rows else 0
    known = np.array(rows, np.uint32).reshape(len(rows), width)
    entered = min(entered, len(rows))
    slots = np.zeros(slots_for(entered), SLOT)
    enter_rows(np.arange(entered), slots, known)
    found = np.zeros(len(rows), np.int64)
    find_rows(known, slots, known, found)
    first: dict[tuple[int, ...], int] = {}
    for number, row in enumerate(rows[:entered]):
        first.setdefault(tuple(row), number)
    assert found.tolist() == [first.get(tuple(row), -1) for row in rows]
    assert len(slots) >= 2 * entered


@njit
def _tag_of_two(rows: Any) -> int:
    return row_tag(rows, 0, 0, 2)


@njit
def _tag(rows: Any, width: int) -> int:
    return row_tag(rows, 0, 0, width)


def test_a_tag_does_not_depend_on_what_the_compiler_knows() -> None:
    """The product of a signed hash overflows: it was a constant where the width is one."""
    for row in ([1500, 0], [1, 2], [2**32 - 1, 7]):
        rows = np.array([row], np.uint32)
        assert _tag_of_two(rows) == _tag(rows, 2)
