"""What a family's memory, which counts, holds for one of its queries, moved into memory of that query's own tables.

T, S: tables and memory of the family; A, M: of the query; made: i32[nodes], the query's node for each of the
family's, or -1; progress: where to go on when something was full. First nodes, then groups, then the `,` waits.
"""

from __future__ import annotations

from oxiseq.engine.kernels.compiling.options import inner, kernel
from oxiseq.engine.kernels.matches.counting import take_member
from oxiseq.engine.kernels.matches.records import DONE, NEED_NODES, NODE_TOP, PROGRESS, SPINE, MatchMemory
from oxiseq.engine.kernels.memory.numbers import i64
from oxiseq.engine.kernels.memory.pointers import Array, Ptr
from oxiseq.engine.kernels.sequence import records as v
from oxiseq.engine.kernels.sequence.groups import killed
from oxiseq.engine.kernels.sequence.records import BEFORE_ALL, CLOCK, COUNTED, PENDING, Memory, Tables
from oxiseq.engine.kernels.sequence.windows import window_begin
from oxiseq.engine.kernels.sequence.writing import write
from oxiseq.engine.kernels.terms.columns import Columns


@kernel
def move_nodes(
    T: Ptr[Tables],
    S: Ptr[MatchMemory],
    A: Ptr[Tables],
    M: Ptr[MatchMemory],
    C: Columns,
    made: Array,
    progress: Array,
    member: int,
) -> int:
    """Nodes whose number of matches is not 0 for the query."""
    while progress[0] < v.scalars(S)[NODE_TOP]:
        if v.scalars(M)[NODE_TOP] + 2 * SPINE > v.nodes(M).shape[0]:
            return NEED_NODES
        made[progress[0]] = take_member(S, progress[0], member, M)
        progress[0] += 1
    return DONE


@kernel
def move_groups(
    T: Ptr[Tables],
    S: Ptr[Memory],
    A: Ptr[Tables],
    M: Ptr[Memory],
    C: Columns,
    made: Array,
    progress: Array,
    member: int,
) -> int:
    """In the order in which they expire; those whose keys differ in the floor alone become one. progress: the next."""
    while progress[0] >= 0:
        group = v.groups(S)[progress[0]]
        node = i64(-1) if group.node < 0 else i64(made[group.node])
        floor = v.edges(T)[group.edge].floor
        clock = i64(BEFORE_ALL) if v.sizes(T)[COUNTED] else v.scalars(S)[CLOCK]
        begin = window_begin(T, S, i64(v.edges(T)[group.edge].query), clock)
        holds = node >= 0 and v.nodes(M)[node].maxs >= begin and not killed(T, S, progress[0])
        if holds and (floor < 0 or v.keys(S)[progress[0], floor] <= member):
            need = _put(A, M, C, group.edge, node, v.keys(S), progress[0], group.inserted, group.queued, group.time)
            if need != DONE:
                return need
        progress[0] = group.next
    return DONE


@kernel
def move_entries(
    T: Ptr[Tables],
    S: Ptr[Memory],
    A: Ptr[Tables],
    M: Ptr[Memory],
    C: Columns,
    made: Array,
    progress: Array,
    member: int,
) -> int:
    """Of each partition in the order in which they were made. progress: the partition, and the next of its waits."""
    while progress[0] < v.waits(S).shape[0]:
        wait = v.waits(S)[progress[0]]
        if progress[1] < 0:
            progress[1] = wait.first
        while progress[1] >= 0:
            entry = v.entries(S)[progress[1]]
            if made[entry.node] >= 0:
                at, keys = progress[1], v.entry_keys(S)
                need = _put(A, M, C, entry.edge, i64(made[entry.node]), keys, at, wait.instant, wait.instant, wait.time)
                if need != DONE:
                    return need
            progress[1] = entry.sister
        progress[0] += 1
    return DONE


@inner
def _put(
    A: Ptr[Tables],
    M: Ptr[Memory],
    C: Columns,
    edge: int,
    node: int,
    keys: Array,
    at: int,
    instant: int,
    clock: int,
    time: int,
) -> int:
    """A run with this key (without the floor, its last value) waits at an edge."""
    v.pending(M)[0, 0], v.pending(M)[0, 1], v.pending(M)[0, 2] = edge, node, -1
    for c in range(v.edges(A)[edge].width):
        v.pending_keys(M)[0, c] = keys[at, c]
    v.scalars(M)[PENDING], v.scalars(M)[PROGRESS] = 1, 0
    need = write(A, M, C, instant, clock, time)
    v.scalars(M)[PENDING] = 0
    return need
