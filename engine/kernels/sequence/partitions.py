"""PARTITION BY in the kernels: what is dead in which partition.

A partition is a substream with instants of its own, and its number is part of every live key. So all partitions share
one run, but each has its own `floors` (everything that starts before is dead): with windows that count events it is
not comparable with those of others, and CONSUME BY PARTITION raises one alone.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from oxiseq.engine.kernels.compiling.options import inner, kernel
from oxiseq.engine.kernels.sequence import views as v
from oxiseq.engine.kernels.sequence.closings import end_wait
from oxiseq.engine.kernels.sequence.compact_set import mark_roots_of_instant, move_marked
from oxiseq.engine.kernels.sequence.groups import remove_group
from oxiseq.engine.kernels.sequence.records import (
    AGED_TOP,
    BEFORE_ALL,
    CLOSINGS,
    CONSUMED,
    CONSUMES,
    COUNTED,
    DONE,
    EVERYTHING,
    FORGOTTEN,
    GROUP_TOP,
    LEADS,
    NEED_FINALS,
    NODE_TOP,
    OPENED,
    STRICT,
    TAU,
)

_NEVER = 1 << 62


@inner
def enter_partition(T: Any, S: Any, R: Any, k: int) -> None:
    """Instant `k` begins in its partition: the floor may rise."""
    scalars, floors = v.scalars(S), v.floors(S)
    p = v.partition(R)[k]
    if scalars[CONSUMED] < v.moment(R)[k]:
        scalars[FORGOTTEN] = scalars[CONSUMED]
    floor = max(floors[p], v.tau(R)[k])
    if v.sizes(T)[CONSUMES] == EVERYTHING and scalars[FORGOTTEN] >= v.moments(S)[p]:
        floor = max(floor, v.clock(R)[k])
    floors[p] = floor
    v.moments(S)[p] = v.moment(R)[k]
    v.numbers(S)[p] = v.instant(R)[k]
    scalars[TAU] = floor
    scalars[OPENED] = v.tau(R)[k] if v.sizes(T)[COUNTED] == 0 else np.int64(BEFORE_ALL)


@inner
def _partition_of(T: Any, S: Any, g: int) -> int:
    return v.keys(S)[g, v.edges(T)[v.groups(S)[g].edge].part] - 1


@inner
def _floor(T: Any, S: Any, p: int) -> int:
    """What starts before is dead in partition `p`."""
    scalars = v.scalars(S)
    if v.sizes(T)[CONSUMES] == EVERYTHING and scalars[FORGOTTEN] > v.moments(S)[p]:
        return _NEVER
    return max(v.floors(S)[p], scalars[OPENED])


@inner
def close_waits_of(T: Any, S: Any, p: int, number: int) -> int:
    """Where windows count events: groups of partition `p` whose window has closed before its instant `number` become
    final. Looks at all groups that wait."""
    scalars, closings, groups = v.scalars(S), v.closings(S), v.groups(S)
    i = np.int64(0)
    while i < scalars[CLOSINGS]:
        g, close = np.int64(closings[i].group), closings[i].close
        alive = groups[g].edge >= 0 and groups[g].serial == closings[i].serial
        if alive and (close >= number or _partition_of(T, S, g) != p):
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
def sweep(T: Any, S: Any) -> None:
    """Remove groups that are dead in their partition, and `,` waits that it has passed."""
    groups = v.groups(S)
    for g in range(v.scalars(S)[GROUP_TOP]):
        if groups[g].edge < 0 or v.edges(T)[groups[g].edge].waits == 1:
            continue
        p = _partition_of(T, S, g)
        passed = v.edges(T)[groups[g].edge].op == STRICT and groups[g].inserted < v.numbers(S)[p]
        if passed or groups[g].maxs < _floor(T, S, p):
            remove_group(T, S, g)


@kernel
def used_partitions(T: Any, S: Any, used: Any) -> None:
    """Set `used` (u8 by partition) where a group or a leading negation is known."""
    groups = v.groups(S)
    for g in range(v.scalars(S)[GROUP_TOP]):
        if groups[g].edge >= 0:
            used[_partition_of(T, S, g)] = 1
    for at in range(v.scalars(S)[LEADS]):
        lead = v.leads(T)[v.lead_keys(S)[at, 0]]
        used[v.lead_keys(S)[at, 2 + lead.part] - 1] = 1


@inner
def _keep(marks: Any, low: Any, node: int, tau: int) -> None:
    if node >= 0:
        marks[node] = 1
        low[node] = min(low[node], tau)


@kernel
def collect_partitions(T: Any, S: Any, marks: Any, low: Any) -> int:
    """`compact_set.collect`, with a floor for each partition. `low` is i64[nodes]: scratch."""
    scalars, nodes, groups = v.scalars(S), v.nodes(S), v.groups(S)
    top = scalars[NODE_TOP]
    marks[:top] = 0
    low[:top] = _NEVER
    mark_roots_of_instant(S, marks)
    for i in range(top):
        if marks[i]:
            low[i] = scalars[TAU]
    for g in range(scalars[GROUP_TOP]):
        if groups[g].edge < 0:
            continue
        tau = _floor(T, S, _partition_of(T, S, g))
        if groups[g].maxs < tau:
            groups[g].node = -1
        _keep(marks, low, np.int64(groups[g].node), tau)
    for x in range(scalars[AGED_TOP]):
        entry = v.aged(S)[x]
        if entry.group >= 0:
            tau = _floor(T, S, _partition_of(T, S, np.int64(entry.group)))
            if entry.node >= 0 and nodes[entry.node].maxs < tau:
                entry.node = -1
            if entry.union >= 0 and nodes[entry.union].maxs < tau:
                entry.union = -1
            _keep(marks, low, np.int64(entry.node), tau)
            _keep(marks, low, np.int64(entry.union), tau)
    for i in range(top - 1, -1, -1):
        if marks[i] == 0:
            continue
        leaf, left, right = np.int64(nodes[i].leaf), np.int64(nodes[i].left), np.int64(nodes[i].right)
        for child in (leaf, left, right):
            if child >= 0 and nodes[child].maxs >= low[i]:
                marks[child] = 1
                low[child] = min(low[child], low[i])
    return move_marked(S, marks)
