"""One query's part of a memory that several have: which nodes are below its own, and how its groups come into another.

Nodes and groups of a query name no other query's, so a part is what its edges have and what is below that. Of queries
whose edges stand once, each has what begins with certain rows.
"""

from __future__ import annotations

from oxiseq.engine.kernels.compiling.options import inner, kernel
from oxiseq.engine.kernels.matches.nodes import meld, output
from oxiseq.engine.kernels.matches.records import NODE_TOP, PLACE_BITS, SPINE, MatchMemory
from oxiseq.engine.kernels.memory.numbers import i64
from oxiseq.engine.kernels.memory.pointers import Array, Ptr
from oxiseq.engine.kernels.memory.slots import put_slot
from oxiseq.engine.kernels.sequence import records as v
from oxiseq.engine.kernels.sequence.groups import enqueue, remove_group
from oxiseq.engine.kernels.sequence.hashing import hash_row, tag_in
from oxiseq.engine.kernels.sequence.records import (
    AGED_TOP,
    BEFORE_ALL,
    ENTRY_TOP,
    GROUP_TOP,
    PROBES,
    STAMP,
    WAITING,
    Memory,
    Tables,
)
from oxiseq.engine.kernels.sequence.writing import index_group
from oxiseq.engine.kernels.terms.columns import Columns


@kernel
def nodes_below(S: Ptr[MatchMemory], roots: Array, marks: Array, found: Array) -> int:
    """How many nodes are `roots` or below them: each is put into `found` once. `roots`: i32, -1 for none; `marks`:
    i32[nodes], -1; `found`: i32[nodes]."""
    top = i64(0)
    for i in range(roots.shape[0]):
        top = _note(marks, found, i64(roots[i]), top)
    at = i64(0)
    while at < top:
        node = v.nodes(S)[found[at]]
        top = _note(marks, found, i64(node.left), top)
        top = _note(marks, found, i64(node.right), top)
        top = _note(marks, found, i64(node.leaf), top)
        at += 1
    return top


@inner
def _note(marks: Array, found: Array, node: int, top: int) -> int:
    if node < 0 or marks[node] >= 0:
        return top
    marks[node] = 0
    found[top] = node
    return top + 1


@kernel
def keep_begun(S: Ptr[MatchMemory], M: Ptr[MatchMemory], begins: Array, base: int, made: Array, first: int) -> int:
    """Have in `M` what node `first` and those behind it hold of matches that begin with one of the rows that `begins`
    has, u8 from row `base` on. Children are older than their parents. `made`: i32[nodes], the node there, or -1. The
    next node, where there is no room, or the number of nodes."""
    nodes, top = v.nodes(S), i64(v.scalars(S)[NODE_TOP])
    for i in range(first, top):
        if v.scalars(M)[NODE_TOP] + 2 * SPINE > v.nodes(M).shape[0]:
            return i
        left, right, leaf = i64(nodes[i].left), i64(nodes[i].right), i64(nodes[i].leaf)
        if leaf >= 0:
            node = i64(made[leaf])
            if left >= 0:
                node = meld(v.nodes(M), v.scalars(M), v.spine(M), node, i64(made[left]), BEFORE_ALL)
            if right >= 0:
                node = meld(v.nodes(M), v.scalars(M), v.spine(M), node, i64(made[right]), BEFORE_ALL)
            made[i] = node
        elif left < 0:
            row = (nodes[i].pos >> PLACE_BITS) - base
            if row >= 0 and begins[row]:
                made[i] = output(v.nodes(M), v.scalars(M), -1, nodes[i].pos, nodes[i].maxs)
        elif made[left] >= 0:
            maxs = v.nodes(M)[made[left]].maxs
            made[i] = output(v.nodes(M), v.scalars(M), i64(made[left]), nodes[i].pos, maxs)
    return top


@kernel
def adopt_groups(T: Ptr[Tables], S: Ptr[Memory], C: Columns, low: int, high: int) -> None:
    """Groups `low : high`, which have come in the order in which they expire, are found from now on. There is room in
    all tables."""
    groups = v.groups(S)
    for g in range(low, high):
        edge = i64(groups[g].edge)
        h = hash_row(edge, v.keys(S), g, i64(v.edges(T)[edge].width))
        groups[g].hash = h
        put_slot(v.table(S), tag_in(h), g)
        v.scalars(S)[WAITING] += v.edges(T)[edge].waits
        if v.edges(T)[edge].waits == 0:
            enqueue(S, i64(g), groups[g].queued)
        index_group(T, S, C, i64(g), edge)
        for p in range(v.edges(T)[edge].probe0, v.edges(T)[edge].probe1):
            if v.probes(T)[p].index == STAMP:  # what others have met in the bucket is none of its own
                bucket = v.links(S)[g * v.sizes(T)[PROBES] + v.probes(T)[p].local].bucket
                groups[g].inserted = max(groups[g].inserted, v.buckets(S)[bucket].kill)


@kernel
def drop_queries(T: Ptr[Tables], S: Ptr[Memory], gone: Array) -> None:
    """Remove all groups of the queries that `gone`, u8 by query, names."""
    for g in range(v.scalars(S)[GROUP_TOP]):
        edge = i64(v.groups(S)[g].edge)
        if edge >= 0 and gone[v.edges(T)[edge].query]:
            remove_group(T, S, i64(g))


@kernel
def count_records(T: Ptr[Tables], S: Ptr[Memory], owners: Array, counts: Array) -> None:
    """Count the groups and nodes of each query into `counts`, i64 by query. `owners`: i32[nodes], -1."""
    nodes = v.nodes(S)
    for g in range(v.scalars(S)[GROUP_TOP]):
        edge = i64(v.groups(S)[g].edge)
        if edge >= 0:
            query = i64(v.edges(T)[edge].query)
            counts[query] += 1
            if v.groups(S)[g].node >= 0:
                owners[v.groups(S)[g].node] = query
    for x in range(v.scalars(S)[AGED_TOP]):
        entry = v.aged(S)[x]
        if entry.group >= 0 and entry.node >= 0:
            owners[entry.node] = v.edges(T)[v.groups(S)[entry.group].edge].query
    for x in range(v.scalars(S)[ENTRY_TOP]):
        if v.entries(S)[x].edge >= 0:
            owners[v.entries(S)[x].node] = v.edges(T)[v.entries(S)[x].edge].query
    for i in range(v.scalars(S)[NODE_TOP] - 1, -1, -1):  # children are older than their parents
        if owners[i] < 0:
            continue
        counts[owners[i]] += 1
        if nodes[i].left >= 0:
            owners[nodes[i].left] = owners[i]
        if nodes[i].right >= 0:
            owners[nodes[i].right] = owners[i]
        if nodes[i].leaf >= 0:
            owners[nodes[i].leaf] = owners[i]
