"""PARTITION BY in the kernels: what is dead in which partition.

A partition is a substream with instants of its own, and its number is part of every live key. So all partitions share
one run, but each has its own `floors` (what starts before has been consumed): CONSUME BY PARTITION raises one alone.
With windows that count events each has its own clock, too, not comparable with those of others.
"""

from __future__ import annotations

from oxiseq.engine.kernels.compiling.options import inner, kernel
from oxiseq.engine.kernels.matches.records import DONE, EVERYTHING
from oxiseq.engine.kernels.memory.numbers import i64
from oxiseq.engine.kernels.memory.pointers import Array, Ptr
from oxiseq.engine.kernels.sequence import records as v
from oxiseq.engine.kernels.sequence.closings import end_wait
from oxiseq.engine.kernels.sequence.entries import drop_entries
from oxiseq.engine.kernels.sequence.groups import remove_group
from oxiseq.engine.kernels.sequence.records import (
    CLOSINGS,
    CONSUMED,
    FORGOTTEN,
    GROUP_TOP,
    HERE,
    LEADS,
    NEED_FINALS,
    PARTITIONED,
    WINDOW_END,
    Memory,
    Rows,
    Tables,
)
from oxiseq.engine.kernels.sequence.windows import cut_in, least_cut


@inner
def enter_partition(T: Ptr[Tables], S: Ptr[Memory], R: Ptr[Rows], k: int) -> None:
    """Instant `k` begins in its partition: the floor may rise."""
    scalars, floors = v.scalars(S), v.floors(S)
    p = v.partition(R)[k]
    if scalars[CONSUMED] < v.moment(R)[k]:
        scalars[FORGOTTEN] = scalars[CONSUMED]
    for query in range(v.windows(T).shape[0]):
        if v.windows(T)[query].consumes == EVERYTHING and scalars[FORGOTTEN] >= v.moments(S)[p]:
            floors[p, query] = max(floors[p, query], v.clock(R)[k])
    v.moments(S)[p] = v.moment(R)[k]
    v.numbers(S)[p] = v.instant(R)[k]
    scalars[HERE] = p


@inner
def partition_of(T: Ptr[Tables], S: Ptr[Memory], g: int) -> int:
    """The partition of group `g`; 0 where there are none."""
    if v.sizes(T)[PARTITIONED] == 0:
        return i64(0)
    return v.keys(S)[g, v.edges(T)[v.groups(S)[g].edge].part] - 1


@inner
def close_waits_of(T: Ptr[Tables], S: Ptr[Memory], p: int, number: int) -> int:
    """Where windows count events: groups of partition `p` whose window has closed before its instant `number` become
    final. Looks at all groups that wait."""
    scalars, closings, groups = v.scalars(S), v.closings(S), v.groups(S)
    i = i64(0)
    while i < scalars[CLOSINGS]:
        g, close = i64(closings[i].group), closings[i].close
        alive = groups[g].edge >= 0 and groups[g].serial == closings[i].serial
        if alive and (close >= number or partition_of(T, S, g) != p):
            i += 1
            continue
        if alive and not end_wait(T, S, g, close):
            return NEED_FINALS
        last = scalars[CLOSINGS] - 1
        for j in range(i, last):  # in their order, on which that of the matches depends
            closings[j].close = closings[j + 1].close
            closings[j].serial = closings[j + 1].serial
            closings[j].group = closings[j + 1].group
        scalars[CLOSINGS] = last
    return DONE


# --- memory -----------------------------------------------------------------------------------------


@kernel
def sweep(T: Ptr[Tables], S: Ptr[Memory]) -> None:
    """Remove groups and `,` waits that are dead in their partition."""
    groups = v.groups(S)
    for g in range(v.scalars(S)[GROUP_TOP]):
        if groups[g].edge < 0 or v.edges(T)[groups[g].edge].waits == WINDOW_END:
            continue
        query = i64(v.edges(T)[groups[g].edge].query)
        if groups[g].maxs < cut_in(T, S, query, partition_of(T, S, i64(g))):
            remove_group(T, S, g)
    for p in range(v.waits(S).shape[0]):
        if v.waits(S)[p].first >= 0:
            drop_entries(S, p, least_cut(T, S, i64(p)))


@kernel
def used_partitions(T: Ptr[Tables], S: Ptr[Memory], used: Array) -> None:
    """Set `used` (u8 by partition) where a group, a `,` wait or a leading negation is known."""
    groups = v.groups(S)
    for g in range(v.scalars(S)[GROUP_TOP]):
        if groups[g].edge >= 0:
            used[partition_of(T, S, g)] = 1
    for p in range(used.shape[0]):
        if v.waits(S)[p].first >= 0:
            used[p] = 1
    for at in range(v.scalars(S)[LEADS]):
        lead = v.leads(T)[v.lead_keys(S)[at, 0]]
        used[v.lead_keys(S)[at, 2 + lead.part] - 1] = 1
