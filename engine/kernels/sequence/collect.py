"""Reclamation of a sequence's compact set: who holds which node, and from when on (kernels/matches/collect.py)."""

from __future__ import annotations

from oxiseq.engine.kernels.compiling.options import inner, kernel
from oxiseq.engine.kernels.matches.collect import reach, root, slide
from oxiseq.engine.kernels.matches.records import FINALS
from oxiseq.engine.kernels.memory.numbers import i64
from oxiseq.engine.kernels.memory.pointers import Array, Ptr
from oxiseq.engine.kernels.sequence import records as v
from oxiseq.engine.kernels.sequence.entries import drop_entries, owner_of
from oxiseq.engine.kernels.sequence.partitions import partition_of
from oxiseq.engine.kernels.sequence.records import (
    AGED_TOP,
    ENTRY_TOP,
    GROUP_TOP,
    NEVER_CLOSES,
    PENDING,
    Memory,
    Tables,
)
from oxiseq.engine.kernels.sequence.windows import cut_here, cut_in


@kernel
def collect(T: Ptr[Tables], S: Ptr[Memory], marks: Array, floors: Array) -> int:
    """Drop what is dead and slide the nodes down; the smallest row id still referred to.

    `marks`: i32[nodes], zeros; `floors`: i64[owners + 1], scratch: owners are queries, or, where partitions differ in
    what is dead there, queries in partitions. Must not run while matches are being enumerated.
    """
    scalars, groups = v.scalars(S), v.groups(S)
    queries, last = i64(v.windows(T).shape[0]), i64(floors.shape[0] - 1)
    floors[last] = i64(NEVER_CLOSES)
    for query in range(queries):
        floors[last] = min(floors[last], cut_here(T, S, i64(query)))
    for owner in range(last):
        floors[owner] = cut_in(T, S, i64(owner % queries), i64(owner // queries))
    _hold_what_the_instant_has(S, marks, floors)
    _hold_entries(T, S, marks, floors)
    for g in range(scalars[GROUP_TOP]):
        if groups[g].edge < 0:
            continue
        owner = _owner(T, S, floors, i64(g))
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
def _owner(T: Ptr[Tables], S: Ptr[Memory], floors: Array, g: int) -> int:
    """Whose nodes a group holds."""
    query = i64(v.edges(T)[v.groups(S)[g].edge].query)
    return query if _only_queries(T, floors) else partition_of(T, S, g) * v.windows(T).shape[0] + query


@inner
def _only_queries(T: Ptr[Tables], floors: Array) -> bool:
    return floors.shape[0] == v.windows(T).shape[0] + 1


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
    """Nodes of `,` waits. Dead ones go; the next instant clears the others."""
    queries = v.windows(T).shape[0]
    for p in range(v.waits(S).shape[0]):
        drop_entries(T, S, i64(p))
    for i in range(v.scalars(S)[ENTRY_TOP]):
        entry = v.entries(S)[i]
        if entry.edge >= 0:
            owner = i64(v.edges(T)[entry.edge].query)
            if not _only_queries(T, floors):
                owner += owner_of(T, i64(entry.edge), v.entry_keys(S), i) * queries
            root(marks, floors, entry.node, owner if entry.maxs >= floors[owner] else floors.shape[0] - 1)


@inner
def _hold_queues(T: Ptr[Tables], S: Ptr[Memory], marks: Array, floors: Array) -> None:
    """Nodes of runs in age segments; those that are dead have none from now on."""
    nodes = v.nodes(S)
    for x in range(v.scalars(S)[AGED_TOP]):
        entry = v.aged(S)[x]
        if entry.group < 0:
            continue
        owner = _owner(T, S, floors, i64(entry.group))
        if entry.node >= 0 and nodes[entry.node].maxs < floors[owner]:
            entry.node = -1
        if entry.union >= 0 and nodes[entry.union].maxs < floors[owner]:
            entry.union = -1
        if entry.node >= 0:
            root(marks, floors, entry.node, owner)
        if entry.union >= 0:
            root(marks, floors, entry.union, owner)
