"""What a frozen set consists of: its arrays, each by the address of a `FrozenMemory`, and what may come of a call."""

from __future__ import annotations

from typing import Final

import numpy as np

from oxiseq.engine.arrays.declared import Arrays, array
from oxiseq.engine.kernels.matches.records import NODE

RECORD: Final = np.dtype([("pos", "i8"), ("parent", "i4"), ("depth", "i4"), ("jump", "i4")], align=True)
"""A prefix that is among the best of a node: its last row, the prefix before (-1: none), how many rows it has, and a
prefix far before, to compare two in logarithmic time."""

(FINAL_COUNT, FROZEN, ROOT, WANTED, STACK_TOP, RECORDS, ENTRIES, PICKED, LAST, FROZEN_STATES) = range(10)
"""Places in `state`. FINAL_COUNT and WANTED are given; FROZEN is how many nodes the set has, ROOT the one above all
(-1: no match); PICKED how many of the best have been found, LAST the last of them among the entries."""

FOUND, MORE_FROZEN, MORE_STACK, MORE_LIMBS, MORE_RECORDS, MORE_ENTRIES, MORE_PICKED = range(7)
"""Outcomes: done, or too little room for something, to be called again. Only `find_best` continues where it was."""

ASK, READY, OVER = range(3)
"""Of a child: its next best is to be computed, is known and not used yet, or there is none."""


class FrozenMemory(Arrays):
    """What the kernels of a frozen set work on. `state` and all behind it is the set's own."""


nodes = array(FrozenMemory, "nodes", NODE)
finals = array(FrozenMemory, "finals", np.int64, 2, columns=2)  # node, cut-off, the same for all
number = array(FrozenMemory, "number", np.int32)  # i32[nodes in use]: its place in the set, -1 if it has none; scratch
stack = array(FrozenMemory, "stack", np.int64, rows="stack")
state = array(FrozenMemory, "state", np.int64, rows=FROZEN_STATES)
pos = array(FrozenMemory, "pos", np.int64)  # i64[n]: of an output the record's `pos`, -1: a union
kids = array(FrozenMemory, "kids", np.int32, 2, columns=3)
"""i32[n, 3]: of an output its prefixes, of a union its parts in the order of enumeration; -1: none."""
ways = array(FrozenMemory, "ways", np.uint64, 2, columns=1)  # matches below
above = array(FrozenMemory, "above", np.uint64, 2, columns=1)  # ways from a node to the ends of matches
blocked = array(FrozenMemory, "blocked", np.uint8)  # u8[n]: 1: an output whose matches do not count
values = array(FrozenMemory, "values", np.float64, 2)
"""f64[n, k]: what an output adds to what matches are ordered by; smaller is better."""
cursors = array(FrozenMemory, "cursors", np.int32, 2, columns=3)  # the last entry taken of each child
turns = array(FrozenMemory, "turns", np.int32, 2, columns=3)  # ASK, READY, OVER
lists = array(FrozenMemory, "lists", np.int32, 2, columns=3)
"""i32[n, 3]: the first and the last entry of its best, and 1 if there are no more."""
records = array(FrozenMemory, "records", RECORD, rows="records")
sums = array(FrozenMemory, "sums", np.float64, 2, rows="records")
entries = array(FrozenMemory, "entries", np.int32, 2, rows="entries", columns=2)  # record, the next entry or -1
picked = array(FrozenMemory, "picked", np.int32, rows="picked")  # records
