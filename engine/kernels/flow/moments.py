"""The memory of a timeline: rows by key, those of a key in order of a time.

Rows of one key and one time hang on one *moment*. The moments of a key are a treap (Seidel, Aragon 1996), the
priorities of which are hashes of their numbers, and a list in order of time as well. So what lies before a time is
found in O(log n), in O(1) where the time is later than all, and walked from there.

A time is two columns of its row: the halves of an i64, the sign turned, so that both compare as unsigned numbers.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from oxiseq.engine.arrays.declared import Arrays, array
from oxiseq.engine.kernels.compiling.options import inner
from oxiseq.engine.kernels.memory.numbers import i64
from oxiseq.engine.kernels.memory.pointers import Array
from oxiseq.engine.kernels.memory.slots import SLOT, slots_for

ENTRY: Final = np.dtype(
    [("weight", "i8"), ("tag", "u4"), ("moment", "i4"), ("next", "i4"), ("previous", "i4")], align=True
)
"""A row. moment: NONE if it is free; next: in its moment, or of the free ones."""

MOMENT: Final = np.dtype(
    [
        ("time", "i8"),
        ("parent", "i4"),  # of a free one: the next free one
        ("lower", "i4"),
        ("higher", "i4"),
        ("before", "i4"),
        ("after", "i4"),
        ("first", "i4"),  # entry
        ("group", "i4"),  # NONE if it is free
        ("spare", "i4"),
    ],
    align=True,
)
"""The rows of one key and one time."""

GROUP: Final = np.dtype([("tag", "u4"), ("root", "i4"), ("head", "i4"), ("tail", "i4")], align=True)
"""The moments of one key; root: NONE if it is free, head is the next free one then."""

NONE: Final = -1

INTERVAL: Final = 4
"""Columns of an interval: two times."""
START, END = 0, 2
"""Where they are in it."""
NO_START: Final = 1 << 62
NO_END: Final = -(1 << 62)
"""Of a row without a time: its start lies behind its end, it is before nothing and after nothing, and it changes no
hull."""

(
    TIME,  # column of the time's upper half
    LEAST,  # entries below which the tables do not shrink
    COUNT,  # entries
    TOP,  # entries ever used
    FREE,  # the first free one
    MOMENT_TOP,
    MOMENT_FREE,
    GROUP_TOP,
    GROUP_FREE,
    LACK,  # what is wanted before the kernel is called again
    SCALARS,
) = range(11)

NOTHING, ENTRIES, MOMENTS, GROUPS, LESS = range(5)
"""What is wanted: more of these, or less of all."""


class Timeline(Arrays):
    """Rows in order of time."""


scalars = array(Timeline, "scalars", np.int64, rows=SCALARS)
key = array(Timeline, "key", np.int64)  # columns
entries = array(Timeline, "entries", ENTRY, rows="entries")
rows = array(Timeline, "rows", np.uint32, 2, rows="entries", columns="width")
slots = array(Timeline, "slots", SLOT, rows="entries", slots=slots_for)  # entry
moments = array(Timeline, "moments", MOMENT, rows="moments")
groups = array(Timeline, "groups", GROUP, rows="groups")
keys = array(Timeline, "keys", np.uint32, 2, rows="groups", columns="key")
group_slots = array(Timeline, "group_slots", SLOT, rows="groups", slots=slots_for)  # group


@inner
def time_in(rows: Array, i: int, place: int) -> int:
    """The time of which a row has the upper half at a place, the lower half behind it."""
    return (i64(rows[i, place]) - 0x80000000) << 32 | i64(rows[i, place + 1])


@inner
def put_time(rows: Array, i: int, place: int, time: int) -> None:
    """Write a time that `time_in` reads."""
    rows[i, place], rows[i, place + 1] = (time >> 32) + 0x80000000, time & 0xFFFFFFFF
