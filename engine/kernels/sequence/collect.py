"""Reclamation of a sequence's compact set: who holds which node, and from when on (kernels/matches/collect.py)."""

from __future__ import annotations

from oxiseq.engine.kernels.compiling.options import inner, kernel
from oxiseq.engine.kernels.matches.collect import reach, root, slide
from oxiseq.engine.kernels.matches.records import FINALS
from oxiseq.engine.kernels.memory.numbers import i64
from oxiseq.engine.kernels.memory.pointers import Array, Ptr
from oxiseq.engine.kernels.sequence import records as v
from oxiseq.engine.kernels.sequence.entries import drop_entries, owner_of
from oxiseq.engine.kernels.sequence.partitions import floor_of, partition_of
from oxiseq.engine.kernels.sequence.records import (
    AGED_TOP,
    ENTRY_TOP,
    GROUP_TOP,
    PARTITIONED,
    PENDING,
    TAU,
    Memory,
    Tables,
)


@kernel
def collect(T: Ptr[Tables], S: Ptr[Memory], marks: Array, floors: Array) -> int:
    """Drop what is dead and slide the nodes down; the smallest row id still referred to.

    `marks`: i32[nodes], zeros; `floors`: i64[partitions + 1], scratch. Must not run while matches are being enumerated.
    """
    scalars, groups = v.scalars(S), v.groups(S)
    partitions = floors.shape[0] - 1
    for p in range(partitions):
        floors[p] = floor_of(T, S, p)
    floors[partitions] = scalars[TAU]
    _hold_what_the_instant_has(S, marks, floors)
    _hold_entries(T, S, marks, floors)
    for g in range(scalars[GROUP_TOP]):
        if groups[g].edge < 0:
            continue
        owner = partition_of(T, S, g)
        if groups[g].maxs < floors[owner]:
            groups[g].node = -1
        elif groups[g].node >= 0:
            root(marks, floors, groups[g].node, owner)
    _hold_queues(T, S, marks, floors)
    reach(S, marks, floors)
    oldest = slide(S, marks)
    for g in range(scalars[GROUP_TOP]):
        if groups[g].edge >= 0 and groups[g].node >= 0:
            groups[g].node = marks[groups[g].node]
    for x in range(scalars[AGED_TOP]):
        entry = v.aged(S)[x]
        if entry.group >= 0:
            entry.node = marks[entry.node] if entry.node >= 0 else -1
            entry.union = marks[entry.union] if entry.union >= 0 else -1
    for i in range(scalars[PENDING]):
        v.pending(S)[i, 1] = marks[v.pending(S)[i, 1]]
    for i in range(scalars[FINALS]):
        v.finals(S)[i, 0] = marks[v.finals(S)[i, 0]]
    for i in range(scalars[ENTRY_TOP]):
        if v.entries(S)[i].edge >= 0:
            v.entries(S)[i].node = marks[v.entries(S)[i].node]
    return oldest


@inner
def _hold_what_the_instant_has(S: Ptr[Memory], marks: Array, floors: Array) -> None:
    """Nodes of the instant in work: of the last owner."""
    scalars, owner = v.scalars(S), i64(floors.shape[0] - 1)
    for i in range(scalars[PENDING]):
        root(marks, floors, v.pending(S)[i, 1], owner)
    for i in range(scalars[FINALS]):
        root(marks, floors, v.finals(S)[i, 0], owner)


@inner
def _hold_entries(T: Ptr[Tables], S: Ptr[Memory], marks: Array, floors: Array) -> None:
    """Nodes of `,` waits. Dead ones go where there are partitions; else the next instant clears them."""
    for p in range(floors.shape[0] - 1 if v.sizes(T)[PARTITIONED] else 0):
        drop_entries(S, p, floors[p])
    for i in range(v.scalars(S)[ENTRY_TOP]):
        if v.entries(S)[i].edge >= 0:
            owner = owner_of(T, i64(v.entries(S)[i].edge), v.entry_keys(S), i)
            root(marks, floors, v.entries(S)[i].node, owner if v.sizes(T)[PARTITIONED] else floors.shape[0] - 1)


@inner
def _hold_queues(T: Ptr[Tables], S: Ptr[Memory], marks: Array, floors: Array) -> None:
    """Nodes of runs in age segments; those that are dead have none from now on."""
    nodes = v.nodes(S)
    for x in range(v.scalars(S)[AGED_TOP]):
        entry = v.aged(S)[x]
        if entry.group < 0:
            continue
        owner = partition_of(T, S, i64(entry.group))
        if entry.node >= 0 and nodes[entry.node].maxs < floors[owner]:
            entry.node = -1
        if entry.union >= 0 and nodes[entry.union].maxs < floors[owner]:
            entry.union = -1
        if entry.node >= 0:
            root(marks, floors, entry.node, owner)
        if entry.union >= 0:
            root(marks, floors, entry.union, owner)
