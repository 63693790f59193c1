"""Vertices, edges and pairs of paths: found, made, linked and freed."""

from __future__ import annotations

from typing import Final

from oxiseq.engine.kernels.compiling.options import inner, kernel
from oxiseq.engine.kernels.flow import path_records as v
from oxiseq.engine.kernels.flow.path_records import (
    CHANGED_PAIRS,
    EDGE_FREE,
    EDGE_TOP,
    EDGES,
    LAST,
    LAST_CHANGED,
    NONE,
    PAIR_FREE,
    PAIR_TOP,
    PAIRS,
    THERE,
    UNLISTED,
    VERTEX_FREE,
    VERTEX_TOP,
    VERTICES,
)
from oxiseq.engine.kernels.memory.hashing import SEED, mixed, tag_of
from oxiseq.engine.kernels.memory.numbers import i64
from oxiseq.engine.kernels.memory.pointers import Array, Ptr
from oxiseq.engine.kernels.memory.slots import drop_slot, find_number, put_slot

_LOOK_UPS: Final = 2
"""New vertices that one row may bring."""


@inner
def has_row_room(S: Ptr[v.PathMemory]) -> bool:
    """For an edge and its two vertices."""
    scalars = v.scalars(S)
    return (
        (scalars[EDGE_FREE] >= 0 or scalars[EDGE_TOP] < v.edges(S).shape[0])
        and 2 * (scalars[EDGES] + 1) <= v.edge_slots(S).shape[0]
        and scalars[VERTICES] + _LOOK_UPS <= v.vertices(S).shape[0]
        and 2 * (scalars[VERTICES] + _LOOK_UPS) <= v.vertex_slots(S).shape[0]
    )


@inner
def has_pair_room(S: Ptr[v.PathMemory]) -> bool:
    """For one more pair."""
    scalars = v.scalars(S)
    return (scalars[PAIR_FREE] >= 0 or scalars[PAIR_TOP] < v.pairs(S).shape[0]) and 2 * (
        scalars[PAIRS] + 1
    ) <= v.pair_slots(S).shape[0]


# --- vertices ---------------------------------------------------------------------------------------


@inner
def vertex_of(S: Ptr[v.PathMemory], given: Array, i: int, column: int) -> int:
    """The vertex of the node at a column of a row, in the context of the row; a new one if there is none."""
    rows, slots = v.rows(S), v.vertex_slots(S)
    context = rows.shape[1] - 1
    h = mixed(SEED, given[i, column])
    for c in range(context):
        h = mixed(h, given[i, c])
    tag = tag_of(h)
    mask = slots.shape[0] - 1
    at = tag & mask
    while slots[at].number != 0:
        if slots[at].tag == tag:
            x = i64(slots[at].number) - 1
            c = i64(0)
            while c < context and rows[x, c] == given[i, c]:
                c += 1
            if c == context and rows[x, context] == given[i, column]:
                return x
        at = (at + 1) & mask
    return _new_vertex(S, given, i, column, tag)


@inner
def _new_vertex(S: Ptr[v.PathMemory], given: Array, i: int, column: int, tag: int) -> int:
    scalars, vertices, rows = v.scalars(S), v.vertices(S), v.rows(S)
    x = scalars[VERTEX_FREE]
    if x >= 0:
        scalars[VERTEX_FREE] = vertices[x].ending
    else:
        x = scalars[VERTEX_TOP]
        scalars[VERTEX_TOP] += 1
    scalars[VERTICES] += 1
    context = rows.shape[1] - 1
    for c in range(context):
        rows[x, c] = given[i, c]
    rows[x, context] = given[i, column]
    vertex = vertices[x]
    vertex.tag = tag
    vertex.edges = 0
    vertex.leaving = NONE
    vertex.arriving = NONE
    vertex.ending = NONE
    put_slot(v.vertex_slots(S), tag, x)
    return x


@inner
def release_vertex(S: Ptr[v.PathMemory], x: int) -> None:
    """An edge has gone that had it at an end; without any it goes, too."""
    scalars, vertex, rows = v.scalars(S), v.vertices(S)[x], v.rows(S)
    vertex.edges -= 1
    if vertex.edges > 0:
        return
    drop_slot(v.vertex_slots(S), find_number(v.vertex_slots(S), vertex.tag, x))
    for c in range(rows.shape[1]):
        rows[x, c] = 0  # its terms are held no longer
    vertex.edges = NONE
    vertex.ending = scalars[VERTEX_FREE]
    scalars[VERTEX_FREE] = x
    scalars[VERTICES] -= 1


# --- edges ------------------------------------------------------------------------------------------


@inner
def _pair_tag(a: int, b: int) -> int:
    return tag_of(mixed(mixed(SEED, a), b))


@inner
def _between(slots: Array, records: Array, tag: int, source: int, target: int) -> int:
    """The record of two vertices, of edges or of pairs, or NONE."""
    mask = slots.shape[0] - 1
    at = tag & mask
    while slots[at].number != 0:
        if slots[at].tag == tag:
            k = i64(slots[at].number) - 1
            if records[k].source == source and records[k].target == target:
                return k
        at = (at + 1) & mask
    return i64(NONE)


@inner
def edge_of(S: Ptr[v.PathMemory], source: int, target: int) -> int:
    """The edge between two vertices; a new one of weight 0 if there is none."""
    scalars, edges, slots = v.scalars(S), v.edges(S), v.edge_slots(S)
    tag = _pair_tag(source, target)
    e = _between(slots, edges, tag, source, target)
    if e >= 0:
        return e
    e = scalars[EDGE_FREE]
    if e >= 0:
        scalars[EDGE_FREE] = edges[e].chain
    else:
        e = scalars[EDGE_TOP]
        scalars[EDGE_TOP] += 1
    scalars[EDGES] += 1
    edge = edges[e]
    edge.source = source
    edge.target = target
    edge.weight = 0
    edge.tag = tag
    edge.chain = UNLISTED
    v.vertices(S)[source].edges += 1
    v.vertices(S)[target].edges += 1
    put_slot(slots, tag, e)
    return e


@inner
def link_edge(S: Ptr[v.PathMemory], e: int) -> None:
    """It is there from now on."""
    edges, edge = v.edges(S), v.edges(S)[e]
    source, target = v.vertices(S)[edge.source], v.vertices(S)[edge.target]
    edge.left = NONE
    edge.leaving = source.leaving
    if edge.leaving >= 0:
        edges[edge.leaving].left = e
    source.leaving = e
    edge.arrived = NONE
    edge.arriving = target.arriving
    if edge.arriving >= 0:
        edges[edge.arriving].arrived = e
    target.arriving = e


@inner
def unlink_edge(S: Ptr[v.PathMemory], e: int) -> None:
    """It is not there any more."""
    edges, edge = v.edges(S), v.edges(S)[e]
    if edge.leaving >= 0:
        edges[edge.leaving].left = edge.left
    if edge.left >= 0:
        edges[edge.left].leaving = edge.leaving
    else:
        v.vertices(S)[edge.source].leaving = edge.leaving
    if edge.arriving >= 0:
        edges[edge.arriving].arrived = edge.arrived
    if edge.arrived >= 0:
        edges[edge.arrived].arriving = edge.arriving
    else:
        v.vertices(S)[edge.target].arriving = edge.arriving


@inner
def free_edge(S: Ptr[v.PathMemory], e: int) -> None:
    """Give back an edge that is not linked; its vertices go with the last of their edges."""
    scalars, edge = v.scalars(S), v.edges(S)[e]
    drop_slot(v.edge_slots(S), find_number(v.edge_slots(S), edge.tag, e))
    release_vertex(S, edge.source)
    release_vertex(S, edge.target)
    edge.source = NONE
    edge.chain = scalars[EDGE_FREE]
    scalars[EDGE_FREE] = e
    scalars[EDGES] -= 1


# --- pairs ------------------------------------------------------------------------------------------


@inner
def find_pair(S: Ptr[v.PathMemory], source: int, target: int) -> int:
    """The record of a pair, which may be there or not; NONE if it has none."""
    return _between(v.pair_slots(S), v.pairs(S), _pair_tag(source, target), source, target)


@inner
def new_pair(S: Ptr[v.PathMemory], source: int, target: int) -> int:
    """A record for a pair that has none; there is room."""
    scalars, pairs, vertex = v.scalars(S), v.pairs(S), v.vertices(S)[target]
    k = scalars[PAIR_FREE]
    if k >= 0:
        scalars[PAIR_FREE] = pairs[k].chain
    else:
        k = scalars[PAIR_TOP]
        scalars[PAIR_TOP] += 1
    scalars[PAIRS] += 1
    pair = pairs[k]
    pair.source = source
    pair.target = target
    pair.chain = UNLISTED
    pair.state = 0
    pair.ended = NONE
    pair.ending = vertex.ending
    if pair.ending >= 0:
        pairs[pair.ending].ended = k
    vertex.ending = k
    put_slot(v.pair_slots(S), _pair_tag(source, target), k)
    return k


@inner
def free_pair(S: Ptr[v.PathMemory], k: int) -> None:
    """Give back the record of a pair."""
    scalars, pairs, pair = v.scalars(S), v.pairs(S), v.pairs(S)[k]
    drop_slot(v.pair_slots(S), find_number(v.pair_slots(S), _pair_tag(pair.source, pair.target), k))
    if pair.ending >= 0:
        pairs[pair.ending].ended = pair.ended
    if pair.ended >= 0:
        pairs[pair.ended].ending = pair.ending
    else:
        v.vertices(S)[pair.target].ending = pair.ending
    pair.source = NONE
    pair.state = 0
    pair.chain = scalars[PAIR_FREE]
    scalars[PAIR_FREE] = k
    scalars[PAIRS] -= 1


@inner
def is_there(S: Ptr[v.PathMemory], k: int) -> bool:
    """Whether a record is that of a pair that is there."""
    return k >= 0 and v.pairs(S)[k].state & THERE != 0


@inner
def list_pair(S: Ptr[v.PathMemory], k: int) -> None:
    """A pair may be emitted at the end of the tick."""
    scalars, pairs = v.scalars(S), v.pairs(S)
    if pairs[k].chain != UNLISTED:
        return
    pairs[k].chain = LAST
    if scalars[CHANGED_PAIRS] == LAST:
        scalars[CHANGED_PAIRS] = k
    else:
        pairs[scalars[LAST_CHANGED]].chain = k
    scalars[LAST_CHANGED] = k


# --- room -------------------------------------------------------------------------------------------


@kernel
def fill_row_slots(S: Ptr[v.PathMemory]) -> None:
    """Fill empty hash tables from the vertices and the edges."""
    scalars, vertices, edges = v.scalars(S), v.vertices(S), v.edges(S)
    for x in range(scalars[VERTEX_TOP]):
        if vertices[x].edges >= 0:
            put_slot(v.vertex_slots(S), vertices[x].tag, x)
    for e in range(scalars[EDGE_TOP]):
        if edges[e].source >= 0:
            put_slot(v.edge_slots(S), edges[e].tag, e)


@kernel
def fill_pair_slots(S: Ptr[v.PathMemory]) -> None:
    """Fill an empty hash table from the pairs."""
    pairs = v.pairs(S)
    for k in range(v.scalars(S)[PAIR_TOP]):
        if pairs[k].source >= 0:
            put_slot(v.pair_slots(S), _pair_tag(pairs[k].source, pairs[k].target), k)
