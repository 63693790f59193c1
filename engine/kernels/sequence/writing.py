"""WRITE: what the instant's reading has found becomes groups.

Fired groups go, kills are stamped, pending prefixes join the group of their edge and live key or make one.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from oxiseq.engine.kernels.compiling.options import inner
from oxiseq.engine.kernels.matches.counting import unite
from oxiseq.engine.kernels.matches.nodes import SPINE
from oxiseq.engine.kernels.matches.records import CARRIED, DONE, NEED_LIMBS, NEED_NODES, NODE_TOP, PROGRESS
from oxiseq.engine.kernels.sequence import views as v
from oxiseq.engine.kernels.sequence.buckets import find_bucket, link, new_bucket
from oxiseq.engine.kernels.sequence.closings import push_closing
from oxiseq.engine.kernels.sequence.groups import enqueue, find_group, killed, new_group, remove_group
from oxiseq.engine.kernels.sequence.hashing import hash_key, hash_row
from oxiseq.engine.kernels.sequence.joining import key_order
from oxiseq.engine.kernels.sequence.leads import see_lead
from oxiseq.engine.kernels.sequence.reading import bucket_of
from oxiseq.engine.kernels.sequence.records import (
    BUCKET_COUNT,
    CHAINED,
    CLOSINGS,
    COUNTED_END,
    DIRECT,
    ENTRY_TOP,
    FIRED,
    GROUP_COUNT,
    HEAP,
    LISTED,
    NEED_BUCKETS,
    NEED_CLOSINGS,
    NEED_ENTRIES,
    NEED_GROUPS,
    NEVER,
    PARTITIONED,
    PENDING,
    PROBES,
    SLIDING,
    STAMP,
    STRICT,
    WINDOW,
    WINDOW_END,
)
from oxiseq.engine.kernels.sequence.tallies import tally


@inner
def settle(T: Any, S: Any, R: Any, k: int) -> None:
    """Stamp kills, remove what was marked, clear the last `,` waits, note leading negations."""
    scalars = v.scalars(S)
    for r in range(v.first(R)[k], v.first(R)[k + 1]):
        letter = v.letter(R)[r]
        for i in range(v.guards_at(T)[letter], v.guards_at(T)[letter + 1]):
            p = np.int64(v.guards_of(T)[i])
            if v.probes(T)[p].index == STAMP:
                b = bucket_of(T, S, R, r, p)
                if b >= 0:
                    v.buckets(S)[b].kill = v.instant(R)[k]
    for i in range(scalars[FIRED]):
        remove_group(T, S, v.fired(S)[i])
    scalars[FIRED] = 0
    scalars[ENTRY_TOP] = 0
    for r in range(v.first(R)[k], v.first(R)[k + 1]):
        letter = v.letter(R)[r]
        for i in range(v.leads_at(T)[letter], v.leads_at(T)[letter + 1]):
            see_lead(T, S, R, r, np.int64(v.leads_of(T)[i]), v.clock(R)[k])


@inner
def write(T: Any, S: Any, C: Any, instant: int, clock: int, tau: int) -> int:
    """Pending prefixes become groups, or `,` entries; resumes at the item where something was full."""
    scalars = v.scalars(S)
    while scalars[PROGRESS] < scalars[PENDING]:
        i = scalars[PROGRESS]
        edge = np.int64(v.pending(S)[i, 0])
        if v.edges(T)[edge].waits == COUNTED_END:
            need = tally(T, S, i, edge, clock)
        elif v.edges(T)[edge].op == STRICT and v.sizes(T)[PARTITIONED] == 0:
            need = _put_entry(T, S, i, edge, instant)
        else:
            need = _put_group(T, S, C, i, edge, instant, clock, tau)
        if need != DONE:
            return need
        scalars[PROGRESS] = i + 1
    return DONE


@inner
def _put_entry(T: Any, S: Any, i: int, edge: int, instant: int) -> int:
    scalars = v.scalars(S)
    at = scalars[ENTRY_TOP]
    if at == v.entries(S).shape[0]:
        return NEED_ENTRIES
    node = np.int64(v.pending(S)[i, 1])
    width = v.edges(T)[edge].width
    chained, first = v.edges(T)[edge].chained, v.edges(T)[edge].chain0
    for c in range(chained):
        v.key(S)[c] = v.pending_keys(S)[i, v.chain(T)[first + c]]
    h = hash_key(edge, v.key(S), chained) & np.uint64(v.chains(S).shape[0] - 1)
    chain = v.chains(S)[h]
    entry = v.entries(S)[at]
    entry.edge = edge
    entry.node = node
    entry.maxs = v.nodes(S)[node].maxs
    entry.next = chain.head if chain.stamp == instant else -1
    for c in range(width):
        v.entry_keys(S)[at, c] = v.pending_keys(S)[i, c]
    chain.stamp = instant
    chain.head = at
    scalars[ENTRY_TOP] = at + 1
    return DONE


@inner
def _put_group(T: Any, S: Any, C: Any, i: int, edge: int, instant: int, clock: int, tau: int) -> int:
    scalars, groups = v.scalars(S), v.groups(S)
    if scalars[NODE_TOP] + SPINE > v.nodes(S).shape[0]:
        return NEED_NODES
    node = np.int64(v.pending(S)[i, 1])
    width = v.edges(T)[edge].width
    h = hash_row(edge, v.pending_keys(S), i, width)
    for c in range(width):
        v.key(S)[c] = v.pending_keys(S)[i, c]
    g = find_group(S, edge, h, v.key(S), width)
    if g >= 0:
        stale = v.edges(T)[edge].op == STRICT and groups[g].inserted != instant
        if stale or groups[g].maxs < tau or killed(T, S, g):
            groups[g].node = node
        else:
            node = unite(S, node, np.int64(groups[g].node), tau)
            if scalars[CARRIED]:
                return NEED_LIMBS
            groups[g].node = node
        groups[g].maxs = v.nodes(S)[groups[g].node].maxs
        groups[g].inserted = instant
        return DONE
    if scalars[GROUP_COUNT] == v.groups(S).shape[0]:
        return NEED_GROUPS
    if scalars[BUCKET_COUNT] + v.sizes(T)[PROBES] > v.buckets(S).shape[0]:
        return NEED_BUCKETS
    if v.edges(T)[edge].waits == WINDOW_END and scalars[CLOSINGS] == v.closings(S).shape[0]:
        return NEED_CLOSINGS
    g = new_group(S, edge, h, v.key(S), width)
    groups[g].node = node
    groups[g].maxs = v.nodes(S)[node].maxs
    groups[g].inserted = instant
    if v.edges(T)[edge].waits == WINDOW_END:
        start = v.nodes(S)[node].maxs
        close = start + v.sizes(T)[WINDOW] if v.sizes(T)[SLIDING] else tau + v.sizes(T)[WINDOW] - 1
        push_closing(S, close, g)
    else:
        enqueue(S, g, clock)
    _index(T, S, C, g, edge)
    return DONE


@inner
def _index(T: Any, S: Any, C: Any, g: int, edge: int) -> None:
    """Put a new group into the bucket of each probe that has an index."""
    probes = v.sizes(T)[PROBES]
    for p in range(v.edges(T)[edge].probe0, v.edges(T)[edge].probe1):
        probe = v.probes(T)[p]
        if probe.index == DIRECT or probe.index == CHAINED:
            continue
        kind, number = LISTED, 0.0
        if probe.index == HEAP:
            kind, number = key_order(T, S, p, v.keys(S), g, C)
        elif probe.index == STAMP:
            kind = NEVER
        width = probe.equal1 - probe.equal0
        for c in range(width):
            v.key(S)[c] = v.keys(S)[g, v.equal(T)[probe.equal0 + c, 0]]
        h = hash_key(p, v.key(S), width)
        b = find_bucket(S, p, h, v.key(S), width)
        if b < 0:
            b = new_bucket(S, p, h, v.key(S), width)
        link(S, probes, probe.local, g, b, kind, number)
