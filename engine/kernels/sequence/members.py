"""What a memory holds for one of several queries, moved into memory of that query's own tables.

T, S: tables and memory of all; A, M: of the query; made: i32[nodes], the query's node for each of theirs, or -1;
progress: where to go on when something was full. First nodes, then groups, then the `,` waits.
"""

from __future__ import annotations

from oxiseq.engine.kernels.compiling.options import inner, kernel
from oxiseq.engine.kernels.matches.counting import extend, take_member, unite
from oxiseq.engine.kernels.matches.families import EVERYBODY
from oxiseq.engine.kernels.matches.records import DONE, NEED_NODES, NODE_TOP, PLACE_BITS, PROGRESS, SPINE, MatchMemory
from oxiseq.engine.kernels.memory.numbers import i64
from oxiseq.engine.kernels.memory.pointers import Array, Ptr
from oxiseq.engine.kernels.sequence import records as v
from oxiseq.engine.kernels.sequence.groups import killed
from oxiseq.engine.kernels.sequence.records import BEFORE_ALL, CLOCK, COUNTED, PENDING, Memory, Tables
from oxiseq.engine.kernels.sequence.windows import window_begin
from oxiseq.engine.kernels.sequence.writing import write
from oxiseq.engine.kernels.terms.columns import Columns


@kernel
def move_counts(S: Ptr[MatchMemory], M: Ptr[MatchMemory], made: Array, progress: Array, member: int) -> int:
    """Nodes whose number of matches is not 0 for a query of the family."""
    while progress[0] < v.scalars(S)[NODE_TOP]:
        if v.scalars(M)[NODE_TOP] + 2 * SPINE > v.nodes(M).shape[0]:
            return NEED_NODES
        made[progress[0]] = take_member(S, progress[0], member, M)
        progress[0] += 1
    return DONE


@kernel
def move_begun(S: Ptr[MatchMemory], M: Ptr[MatchMemory], made: Array, progress: Array, begins: Array, base: int) -> int:
    """Outputs of matches that begin with one of the rows that `begins` has, u8 from row `base` on, and unions of them;
    children are older than their parents."""
    nodes = v.nodes(S)
    while progress[0] < v.scalars(S)[NODE_TOP]:
        i = progress[0]
        if v.scalars(M)[NODE_TOP] + 2 * SPINE > v.nodes(M).shape[0]:
            return NEED_NODES
        left, right, leaf = i64(nodes[i].left), i64(nodes[i].right), i64(nodes[i].leaf)
        if leaf >= 0:
            node = i64(made[leaf])
            if left >= 0:
                node = unite(M, node, i64(made[left]), BEFORE_ALL)
            if right >= 0:
                node = unite(M, node, i64(made[right]), BEFORE_ALL)
            made[i] = node
        elif left < 0:
            row = (nodes[i].pos >> PLACE_BITS) - base
            if row >= 0 and begins[row]:
                made[i] = extend(M, -1, nodes[i].pos, nodes[i].maxs, 0, EVERYBODY)
        elif made[left] >= 0:
            made[i] = extend(M, i64(made[left]), nodes[i].pos, v.nodes(M)[made[left]].maxs, 0, EVERYBODY)
        progress[0] = i + 1
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
