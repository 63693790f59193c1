"""The memory of an arrangement: rows with weights, to be found by their columns as of any tick of the batch in work
(operators.md, 3.1).

An entry is a row with one weight, from tick `born` until before tick `died`: another weight is another entry. It is a
record of 64-bit words, one cache line where the row has up to six columns:

    words   0 weight | 1 born | 2 died | 3 tag, next | 4 ... the row, u32 each | links: (following, previous), i32 each

`words`, `halves` and `links` are the same memory, read as i64, u32 and i32.

Entries that agree in what a join looks for are a chain. Without loose columns that is the key, and there is one chain
for each. With them it is by `mask`, which of the loose columns the row binds, and by `subset`, those of them that the
other side binds too: the chain of the rows with this mask that agree in key and subset. Chains of a mask and a subset
are made when a join first asks for them, and kept from then on. An entry's links are numbered in the order in which
the subsets of its mask were asked for. The first entry of a chain has no previous one: -1, or where chains are counted
how many they are, below 0.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from oxiseq.engine.arrays.declared import Arrays, array
from oxiseq.engine.kernels.memory.slots import SLOT, slots_for

WEIGHT, BORN, DIED = range(3)
"""Words of an entry."""
TAG, NEXT, ROW = 6, 7, 8
"""Halves of an entry: hash of its row (unless the key is the row); the next one of the dead, or of the free; its first
column."""

NEVER: Final = np.iinfo(np.int64).max
"""`died` of a row that is there."""
FREED: Final = np.iinfo(np.int64).min
"""`died` of an entry that is none."""
BEFORE_ALL: Final = FREED + 1
"""`born` of what a saved state brings."""

MOST_LOOSE: Final = 4
"""Loose columns by which chains are made; further ones are compared row by row."""

(
    WIDTH,  # columns of a row
    WHOLE,  # 1: the key is the whole row, and its chain finds the row, too
    LINK0,  # half where an entry's links begin
    LINKS,  # how many it has room for
    SHIFT,  # bits of the link's number in slots of `by_key`
    LEAST,  # entries below which the table does not shrink
    TOP,  # entries ever used
    FREE,  # the first free one below; -1: none
    DEAD,  # the first that has died in this batch; -1: none
    LIVE,  # entries that are there
    SPENT,  # entries that are dead and still in chains
    CHAINS,
    PLACE,  # row of the delta that is taken in next
    LACK,  # what is wanted before the kernel is called again
    WANTED,  # how many chains there are to be room for
    CLOCK,  # address of the clock that rows are kept by (buffers.py); 0: they are kept until they go
    BEGINS,  # column of the time at which a row begins
    LIMIT,  # for how long it is kept
    KEPT,  # rows that the last look has left
    COMING,  # 1: rows only come, each once: none is looked for as a whole
    COUNTED,  # 1: of a source (windowing.py): chains know their length, and `by_row` has what has died in this batch
    SCALARS,
) = range(22)

NOTHING, ENTRIES, KEYS, LINKS_EACH, LESS = range(5)
"""What is wanted: more entries, more slots by key, more links for each, or less of all."""


class Arrangement(Arrays):
    """Rows that are kept."""


scalars = array(Arrangement, "scalars", np.int64, rows=SCALARS)
key = array(Arrangement, "key", np.int64)  # columns
loose = array(Arrangement, "loose", np.int64)  # up to MOST_LOOSE columns
checked = array(Arrangement, "checked", np.int64)  # further loose columns
words = array(Arrangement, "words", np.int64, 2, rows="entries", columns="words", lined=True)
halves = array(Arrangement, "halves", np.uint32, 2, of="words")
links = array(Arrangement, "links", np.int32, 2, of="words")
by_row = array(Arrangement, "by_row", SLOT, rows="found", slots=slots_for)
"""SLOT → entry, of those that are there; unused if WHOLE or COMING."""
by_key = array(Arrangement, "by_key", SLOT, rows="chains", slots=slots_for)
"""SLOT → newest entry of a chain << SHIFT | number of its link."""
seen = array(Arrangement, "seen", np.int64, rows="masks")  # entries in chains
asked = array(Arrangement, "asked", np.int64, rows="masks")  # how many of its subsets have chains
subsets = array(Arrangement, "subsets", np.int64, 2, rows="masks", columns="masks")
"""By mask and number of the link: the subset."""
