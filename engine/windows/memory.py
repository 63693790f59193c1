"""The running state of a window: allocation and growth. Nothing is sized by the window: all doubles on demand."""

from __future__ import annotations

from typing import Final

import numpy as np

from oxiseq.engine.kernels.memory.growing import longer
from oxiseq.engine.kernels.memory.pointers import WORDS, Pointers, call
from oxiseq.engine.kernels.memory.slots import SLOT
from oxiseq.engine.kernels.windows import records as k
from oxiseq.engine.kernels.windows.hashing import fill_buckets, fill_pairs
from oxiseq.engine.windows.plan import WindowPlan
from oxiseq.grammar.records import dataclass

MOST_OUT: Final = 1 << 16
"""Rows after which the output no longer grows: it is emptied oftener instead."""
_STRIDE: Final = 64
"""Open patterns of a level."""


@dataclass(frozen=True, slots=True)
class Capacities:
    """Numbers of records to begin with: few, since thousands of windows may never hold more; the smallest are for
    tests."""

    entries: int = 32
    notes: int = 32
    out: int = 32

    @classmethod
    def smallest(cls) -> Capacities:
        """So small that every array has to grow at once."""
        return cls(entries=1, notes=1, out=1)


def allocate(plan: WindowPlan, sizes: Capacities) -> k.Memory:
    """Empty memory for one run of a plan."""
    scalars = np.zeros(k.SCALARS, np.int64)
    scalars[[k.FREE, k.ENTRY_AT, k.DEPTH, k.SKIP]] = -1
    programs = [p.tolist() for p in plan.programs] + [f.code for q in plan.queries for f in q.joint]
    depth = max((code[1] for code in programs), default=1)
    patterns = max(len(q.patterns) for q in plan.queries)
    width = max(max(len(q.keys) for q in plan.queries), 1)
    stored = np.zeros(len(plan.views), k.STORED)
    stored["head"] = -1
    return k.Memory(
        scalars=scalars,
        entries=np.zeros(sizes.entries, k.ENTRY),
        pairs=np.zeros(table_size(sizes.entries), SLOT),
        buckets=np.zeros(8, k.BUCKET),
        stored=stored,
        listed=np.full((plan.sources, 2), -1, np.int64).view(k.LISTED).reshape(-1),
        notes=np.zeros(max(sizes.notes, len(plan.views)), k.NOTED),
        reports=np.zeros(len(plan.queries), np.int32),
        levels=np.zeros(patterns + 1, k.LEVEL),
        best=np.zeros((patterns + 1) * _STRIDE, k.BEST),
        values=np.zeros(width, np.int64),
        numbers=np.zeros((depth, 2), np.float64),
        machine=np.zeros((depth, 4), np.int64),
        one=np.zeros(1, np.int64),
        memo=np.zeros((1, 1), np.uint8),
        out=np.zeros(sizes.out, k.OUT),
        out_values=np.zeros((sizes.out, width), np.uint32),
        batch=np.zeros(WORDS * len(k.Batch._fields), np.int64),
    )


def table_size(entries: int) -> int:
    """Slots of a hash table for so many, half full at the most."""
    return 1 << max(2 * entries - 1, 2).bit_length()


def grow(memory: k.Memory, tables: Pointers[k.Tables], need: int) -> k.Memory:
    """Memory with twice the room of what the kernel lacks."""
    if need == k.NEED_NOTES:
        return memory._replace(notes=longer(memory.notes, 2 * len(memory.notes)))
    if need == k.NEED_BUCKETS:
        memory = memory._replace(buckets=np.zeros(2 * len(memory.buckets), k.BUCKET))
        call(fill_buckets, tables, Pointers(memory))
        return memory
    assert need == k.NEED_ENTRIES, need
    entries = longer(memory.entries, 2 * len(memory.entries))
    memory = memory._replace(entries=entries, pairs=np.zeros(table_size(len(entries)), SLOT))
    call(fill_pairs, Pointers(memory))
    return memory


def more_out(memory: k.Memory) -> k.Memory:
    """Memory with twice the room for rows; the old content is lost."""
    if len(memory.out) >= MOST_OUT:
        return memory
    size, width = 2 * len(memory.out), memory.out_values.shape[1]
    return memory._replace(out=np.zeros(size, k.OUT), out_values=np.zeros((size, width), np.uint32))
