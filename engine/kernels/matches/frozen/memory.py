"""What a frozen set consists of: its arrays, each by the address of a `FrozenMemory`, and what may come of a call."""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np

from oxiseq.engine.kernels.matches.records import NODE
from oxiseq.engine.kernels.memory.pointers import Array, view_of

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


class FrozenMemory(NamedTuple):
    """What the kernels of a frozen set work on. `state` and all behind it is the set's own."""

    nodes: Array
    finals: Array  # i64[*, 2]: node, cut-off, the same for all
    number: Array  # i32[nodes in use]: its place in the set, -1 if it has none; scratch
    stack: Array  # i64
    state: Array  # i64[FROZEN_STATES]
    pos: Array  # i64[n]: of an output the record's `pos`, -1: a union
    kids: Array  # i32[n, 3]: of an output its prefixes, of a union its parts in the order of enumeration; -1: none
    ways: Array  # u64[n, limbs]: matches below
    above: Array  # u64[n, limbs]: ways from a node to the ends of matches
    blocked: Array  # u8[n]: 1: an output whose matches do not count
    values: Array  # f64[n, k]: what an output adds to what matches are ordered by; smaller is better
    cursors: Array  # i32[n, 3]: the last entry taken of each child
    turns: Array  # i32[n, 3]: ASK, READY, OVER
    lists: Array  # i32[n, 3]: the first and the last entry of its best, and 1 if there are no more
    records: Array
    sums: Array  # f64[records, k]
    entries: Array  # i32[*, 2]: record, the next entry or -1
    picked: Array  # i32: records


nodes = view_of(FrozenMemory, "nodes", NODE)
finals = view_of(FrozenMemory, "finals", np.int64, 2)
number = view_of(FrozenMemory, "number", np.int32)
stack = view_of(FrozenMemory, "stack", np.int64)
state = view_of(FrozenMemory, "state", np.int64)
pos = view_of(FrozenMemory, "pos", np.int64)
kids = view_of(FrozenMemory, "kids", np.int32, 2)
ways = view_of(FrozenMemory, "ways", np.uint64, 2)
above = view_of(FrozenMemory, "above", np.uint64, 2)
blocked = view_of(FrozenMemory, "blocked", np.uint8)
values = view_of(FrozenMemory, "values", np.float64, 2)
cursors = view_of(FrozenMemory, "cursors", np.int32, 2)
turns = view_of(FrozenMemory, "turns", np.int32, 2)
lists = view_of(FrozenMemory, "lists", np.int32, 2)
records = view_of(FrozenMemory, "records", RECORD)
sums = view_of(FrozenMemory, "sums", np.float64, 2)
entries = view_of(FrozenMemory, "entries", np.int32, 2)
picked = view_of(FrozenMemory, "picked", np.int32)
