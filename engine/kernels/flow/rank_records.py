"""Record layouts and numbered scalars of ranks (operators.md, 3.5).

Rows of a group are in *borders*: one for the ranks before `start`, one for those before `stop`, as far as they are
wanted. A border at rank b parts a group's rows into *low*, the fewest rows of the first ranks that have b copies in
all (or all rows), and *high*, the others. So the last of the low rows is the only one of which some copies may lie
before the border and others behind it. A row is emitted as often as it lies before `stop`, less the copies before
`start`.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from oxiseq.engine.arrays.declared import Arrays, array
from oxiseq.engine.kernels.memory.slots import SLOT, slots_for

ENTRY: Final = np.dtype(
    [
        ("weight", "i8"),  # 0: free, or only until the end of the tick
        ("was", "i8"),  # its weight when the tick began; of one that is listed
        ("told", "i8"),  # copies emitted
        ("tag", "u4"),  # 32 bits of its row's hash
        ("group", "i4"),
        ("chain", "i4"),  # the next one that is listed, LAST; UNLISTED. Of a free one: the next free one
        ("spare", "i4"),
    ],
    align=True,
)
"""A row."""

LINK: Final = np.dtype(
    [
        ("prefix", "i8"),  # of what it is ordered by: mostly all that has to be looked at
        ("child", "i4"),  # of its heap: the first child
        ("next", "i4"),  # the next child of the same parent
        ("previous", "i4"),  # the one before, of the first child: the parent
        ("side", "i4"),
    ],
    align=True,
)
"""A row in a border: number entry * borders + border."""

GROUP: Final = np.dtype([("tag", "u4"), ("count", "i4"), ("chain", "i4")], align=True)
"""Rows with one key; count: entries; chain: the next group with changes. Of a free one: the next free one."""

BORDER: Final = np.dtype([("copies", "i8"), ("low", "i4"), ("high", "i4")], align=True)
"""Of a group, number group * borders + border: how many copies its low rows have, the last of the low rows, the first
of the high ones."""

NEITHER, LOW, HIGH = range(3)
"""Sides."""
NONE, LAST, UNLISTED = -1, -1, -2
"""No entry; no other one in the list; not in the list."""

(
    TOP,  # entries ever used
    FREE,  # the first free one
    COUNT,  # entries
    GROUP_TOP,
    GROUP_FREE,
    GROUPS,
    ROW,  # of the input, that comes next
    TICK,  # in work
    OPEN,  # whether a row of it has been taken
    TELLING,  # whether it has been settled
    LISTED,  # the first entry that has changed, or may be emitted or retracted
    CHANGED,  # the first group with changes
    ORDERED,  # columns that it orders by
    TIES,
    ENDLESS,  # whether there is no `stop`
    STARTS,  # whether `start` is above 0
    SILENT,  # whether changes count as emitted without being written
    STEPS,  # comparisons of rows, for tests of complexity
    SCALARS,
) = range(19)

BY_VALUE, DOWN, BY_TERM, BY_NUMBER, NUMBER_DOWN = range(5)
"""How two rows are compared in a column; the last two in one that holds numbers, not ids."""


class RankMemory(Arrays):
    """What `S` points to."""


scalars = array(RankMemory, "scalars", np.int64, rows=SCALARS)
entries = array(RankMemory, "entries", ENTRY, rows="entries")
links = array(RankMemory, "links", LINK, rows="entries", each="borders")
rows = array(RankMemory, "rows", np.uint32, 2, rows="entries", columns="width")  # term ids
slots = array(RankMemory, "slots", SLOT, rows="entries", slots=slots_for)
groups = array(RankMemory, "groups", GROUP, rows="groups")
borders = array(RankMemory, "borders", BORDER, rows="groups", each="borders")
keys = array(RankMemory, "keys", np.uint32, 2, rows="groups", columns="key")
group_slots = array(RankMemory, "group_slots", SLOT, rows="groups", slots=slots_for)
place = array(RankMemory, "place", np.int64)  # the columns of the key
sequence = array(RankMemory, "sequence", np.int64, 2)
"""i64[n, 2]: the columns by which rows are ordered one after the other, and how (BY_VALUE...)."""
bounds = array(RankMemory, "bounds", np.int64)  # i64[borders]: ranks, ascending
