"""WRITE: what the instant's reading has found becomes groups.

Fired groups go, kills are stamped, pending prefixes join the group of their edge and live key or make one.
"""

from __future__ import annotations

from oxiseq.engine.kernels.compiling.options import inner
from oxiseq.engine.kernels.matches.counting import unite
from oxiseq.engine.kernels.matches.records import CARRIED, DONE, NEED_LIMBS, NEED_NODES, NODE_TOP, PROGRESS, SPINE
from oxiseq.engine.kernels.memory.numbers import i64
from oxiseq.engine.kernels.memory.pointers import Ptr
from oxiseq.engine.kernels.sequence import records as v
from oxiseq.engine.kernels.sequence.buckets import find_bucket, link, new_bucket
from oxiseq.engine.kernels.sequence.closings import push_closing, push_lapse
from oxiseq.engine.kernels.sequence.entries import clear_entries, put_entry
from oxiseq.engine.kernels.sequence.groups import enqueue, find_group, killed, new_group, remove_group
from oxiseq.engine.kernels.sequence.hashing import hash_key
from oxiseq.engine.kernels.sequence.joining import key_order
from oxiseq.engine.kernels.sequence.leads import see_lead
from oxiseq.engine.kernels.sequence.queues import has_room, is_queue, push
from oxiseq.engine.kernels.sequence.reading import bucket_of
from oxiseq.engine.kernels.sequence.records import (
    BEFORE_ALL,
    BUCKET_COUNT,
    CLOSINGS,
    COUNTED_END,
    FIRED,
    GROUP_COUNT,
    HEAP,
    LAPSES,
    LISTED,
    NEED_AGED,
    NEED_BUCKETS,
    NEED_CLOSINGS,
    NEED_GROUPS,
    NEED_LAPSES,
    NEVER,
    NEVER_CLOSES,
    PARTITIONED,
    PENDING,
    PROBES,
    STAMP,
    STRICT,
    STRICTS,
    WINDOW_END,
    Memory,
    Rows,
    Tables,
)
from oxiseq.engine.kernels.sequence.tallies import tally
from oxiseq.engine.kernels.sequence.windows import cut, window_begin
from oxiseq.engine.kernels.terms.columns import Columns


@inner
def settle(T: Ptr[Tables], S: Ptr[Memory], R: Ptr[Rows], k: int) -> None:
    """Stamp kills, remove what was marked, clear the last `,` waits, note leading negations."""
    scalars = v.scalars(S)
    for r in range(v.first(R)[k], v.first(R)[k + 1]):
        letter = v.letter(R)[r]
        for i in range(v.guards_at(T)[letter], v.guards_at(T)[letter + 1]):
            s = i64(v.guards_of(T)[i])
            if v.signatures(T)[s].index == STAMP:
                b = bucket_of(T, S, R, r, s)
                if b >= 0:
                    v.buckets(S)[b].kill = v.instant(R)[k]
    _stay_gone(T, S)
    for i in range(scalars[FIRED]):
        remove_group(T, S, v.fired(S)[i])
    scalars[FIRED] = 0
    if v.sizes(T)[STRICTS]:
        clear_entries(S, v.partition(R)[k] if v.sizes(T)[PARTITIONED] else i64(0))
    for r in range(v.first(R)[k], v.first(R)[k + 1]):
        letter = v.letter(R)[r]
        for i in range(v.leads_at(T)[letter], v.leads_at(T)[letter + 1]):
            see_lead(T, S, R, r, i64(v.leads_of(T)[i]), v.clock(R)[k])


@inner
def _stay_gone(T: Ptr[Tables], S: Ptr[Memory]) -> None:
    """A run that has been fired or killed at an instant takes no step of a negated group there."""
    for i in range(v.scalars(S)[PENDING]):
        g = i64(v.pending(S)[i, 2])
        if g >= 0 and (v.groups(S)[g].reach > 0 or killed(T, S, g)):
            v.pending(S)[i, 0] = -1


@inner
def write(T: Ptr[Tables], S: Ptr[Memory], C: Columns, instant: int, clock: int, time: int) -> int:
    """Pending prefixes become groups, or `,` entries; resumes at the item where something was full."""
    scalars = v.scalars(S)
    while scalars[PROGRESS] < scalars[PENDING]:
        i = scalars[PROGRESS]
        edge = i64(v.pending(S)[i, 0])
        if edge < 0:
            need = i64(DONE)
        elif v.edges(T)[edge].waits == COUNTED_END:
            need = tally(T, S, i, edge, clock)
        elif v.edges(T)[edge].op == STRICT:
            need = put_entry(T, S, i, edge, instant, time)
        else:
            need = _put_group(T, S, C, i, edge, instant, clock, time)
        if need != DONE:
            return need
        scalars[PROGRESS] = i + 1
    return DONE


@inner
def _put_group(
    T: Ptr[Tables], S: Ptr[Memory], C: Columns, i: int, edge: int, instant: int, clock: int, time: int
) -> int:
    node = i64(v.pending(S)[i, 1])
    for c in range(v.edges(T)[edge].width):
        v.key(S)[c] = v.pending_keys(S)[i, c]
    close, query = i64(NEVER_CLOSES), i64(v.edges(T)[edge].query)
    window = v.windows(T)[query]
    if v.edges(T)[edge].waits == WINDOW_END and window.size > 0:
        if window.slides == 1:
            close = v.nodes(S)[node].maxs + window.size
        else:
            close = window_begin(T, S, query, clock) + window.size - 1
    return insert_run(T, S, C, edge, node, instant, clock, time, cut(T, S, edge), close)


@inner
def insert_run(
    T: Ptr[Tables],
    S: Ptr[Memory],
    C: Columns,
    edge: int,
    node: int,
    instant: int,
    clock: int,
    time: int,
    tau: int,
    close: int,
) -> int:
    """A run with the prefixes `node` joins the group of `edge` with the key in `v.key(S)`, or makes one.

    It came to its gap at `time`, at an instant of this number; `close`: the clock at which the window ends for which it
    waits, if it waits. Nothing has changed where something is full.
    """
    scalars, groups = v.scalars(S), v.groups(S)
    queue = is_queue(T, edge)
    if scalars[NODE_TOP] + SPINE > v.nodes(S).shape[0]:
        return NEED_NODES
    if queue and not has_room(S):
        return NEED_AGED
    width = v.edges(T)[edge].width
    h = hash_key(edge, v.key(S), width)
    g = find_group(S, edge, h, v.key(S), width)
    if g >= 0 and (groups[g].maxs < tau or killed(T, S, g)):
        remove_group(T, S, g)  # as if it had gone when it died: the new one is younger
        g = i64(-1)
    if g >= 0:
        if not _join(T, S, g, node, time, tau, queue):
            return NEED_LIMBS
        groups[g].inserted = max(groups[g].inserted, instant)
        return DONE
    if scalars[GROUP_COUNT] == v.groups(S).shape[0]:
        return NEED_GROUPS
    if scalars[BUCKET_COUNT] + v.sizes(T)[PROBES] > v.buckets(S).shape[0]:
        return NEED_BUCKETS
    if scalars[CLOSINGS] == v.closings(S).shape[0]:
        return NEED_CLOSINGS
    if scalars[LAPSES] == v.lapses(S).shape[0]:
        return NEED_LAPSES
    g = new_group(T, S, edge, h, v.key(S), width)
    groups[g].maxs = BEFORE_ALL
    groups[g].inserted = instant
    groups[g].close = close
    _join(T, S, g, node, time, tau, queue)
    lapse = _lapses_at(T, S, edge)
    if v.edges(T)[edge].waits == 0:
        enqueue(S, g, clock)
    elif close != NEVER_CLOSES:
        push_closing(S, close, g)
    if lapse != NEVER_CLOSES:
        push_lapse(S, lapse, g)
    index_group(T, S, C, g, edge)
    return DONE


@inner
def _join(T: Ptr[Tables], S: Ptr[Memory], g: int, node: int, time: int, tau: int, queue: bool) -> bool:
    """The prefixes `node` join those of group `g`. False: their number needs more limbs, and they have not."""
    groups = v.groups(S)
    groups[g].time = time
    if queue:  # its largest start is never too small; it may be that of a run that has gone on
        push(T, S, g, node, time, tau)
        groups[g].maxs = max(groups[g].maxs, v.nodes(S)[node].maxs)
        return True
    if groups[g].node >= 0:
        node = unite(S, node, i64(groups[g].node), tau)
        if v.scalars(S)[CARRIED]:
            return False
    groups[g].node = node
    groups[g].maxs = v.nodes(S)[node].maxs
    return True


@inner
def _lapses_at(T: Ptr[Tables], S: Ptr[Memory], edge: int) -> int:
    """When (µs) what LASTING bounds has lasted too long in a group of `edge`, or a negated group has been waited for;
    its key is in `v.key(S)`."""
    lapse = i64(NEVER_CLOSES)
    for i in range(v.edges(T)[edge].lasting0, v.edges(T)[edge].lasting1):
        lapse = min(lapse, v.key(S)[v.lasting(T)[i, 0]] + v.lasting(T)[i, 1])
    return lapse


@inner
def index_group(T: Ptr[Tables], S: Ptr[Memory], C: Columns, g: int, edge: int) -> None:
    """Put a new group into the bucket of each probe that has a signature."""
    probes = v.sizes(T)[PROBES]
    for p in range(v.edges(T)[edge].probe0, v.edges(T)[edge].probe1):
        probe = v.probes(T)[p]
        s = i64(probe.signature)
        if s < 0:
            continue
        kind, number = LISTED, 0.0
        if probe.index == HEAP:
            kind, number = key_order(T, S, p, v.keys(S), g, C)
        elif probe.index == STAMP:
            kind = NEVER
        width = probe.equal1 - probe.equal0
        for c in range(width):
            v.key(S)[c] = v.keys(S)[g, v.equal(T)[probe.equal0 + c, 0]]
        h = hash_key(s, v.key(S), width)
        b = find_bucket(S, s, h, v.key(S), width)
        if b < 0:
            b = new_bucket(S, s, h, v.key(S), width)
        link(S, g * probes + probe.local, b, kind, number)
