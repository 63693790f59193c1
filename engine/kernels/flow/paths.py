"""Paths of one step or more, when edges come and go (operators.md, 5.1).

    take    the edges of a tick, one by one: weights change
    doubt   what has its proof from an edge that is gone, or from such a pair, is suspect; a suspect that another path
            proves is none, and so may those be that follow from it. The suspects that are left are gone
    seed    pairs that a new edge makes: of whatever reaches its source
    spread  what follows from a new pair by one edge more, until nothing new follows
    emit    pairs that are there and were not, or were and are not

Doubt costs the suspects, times the edges at their ends; seed and spread the new pairs, times the edges that leave them.
"""

from __future__ import annotations

from oxiseq.engine.kernels.compiling.options import inner, kernel
from oxiseq.engine.kernels.flow import buffers as f
from oxiseq.engine.kernels.flow import path_records as v
from oxiseq.engine.kernels.flow.buffers import DONE, NEED_OUT, NEED_ROOM
from oxiseq.engine.kernels.flow.path_records import (
    BROKEN,
    CHANGED_EDGES,
    CHANGED_PAIRS,
    EDGE_AT,
    LAST,
    LAST_WORK,
    NONE,
    OPEN,
    PAIR_AT,
    PHASE,
    ROW,
    SEED,
    SILENT,
    SPREAD,
    START,
    SUSPECT,
    SUSPECTS,
    TAKE,
    TELL,
    THERE,
    TICK,
    TOLD,
    UNLISTED,
    WORK,
)
from oxiseq.engine.kernels.flow.path_storing import (
    edge_of,
    find_pair,
    free_edge,
    free_pair,
    has_pair_room,
    has_row_room,
    is_there,
    link_edge,
    list_pair,
    new_pair,
    unlink_edge,
    vertex_of,
)
from oxiseq.engine.kernels.memory.numbers import i64
from oxiseq.engine.kernels.memory.pointers import Ptr


@kernel
def reach(S: Ptr[v.PathMemory], source: f.Delta, target: f.Delta) -> int:
    """Take the delta `source` from where the scalars say, and put into `target` what comes of it."""
    scalars, at, n = v.scalars(S), f.at(source), f.count(source)[0]
    while True:
        if scalars[PHASE] == TAKE:
            i = scalars[ROW]
            if i < n and (scalars[OPEN] == 0 or at[i] == scalars[TICK]):
                if not has_row_room(S):
                    return NEED_ROOM
                _take(S, source, i)
                scalars[OPEN], scalars[TICK] = 1, at[i]
                scalars[ROW] += 1
                continue
            if scalars[OPEN] == 0:
                scalars[ROW] = 0
                return DONE
            _relink(S)
            _doubt(S)
            scalars[EDGE_AT], scalars[PAIR_AT] = scalars[CHANGED_EDGES], START
            scalars[PHASE] = SEED
        if scalars[PHASE] == SEED:
            if not _seed(S):
                return NEED_ROOM
            scalars[EDGE_AT] = START
            scalars[PHASE] = SPREAD
        if scalars[PHASE] == SPREAD:
            if not _spread(S):
                return NEED_ROOM
            scalars[PHASE] = TELL
        if not _tell(S, target):
            return NEED_OUT
        _free_edges(S)
        scalars[OPEN], scalars[PHASE] = 0, TAKE


@inner
def _take(S: Ptr[v.PathMemory], source: f.Delta, i: int) -> None:
    scalars, given = v.scalars(S), f.rows(source)
    context = v.rows(S).shape[1] - 1
    x = vertex_of(S, given, i, context)
    y = vertex_of(S, given, i, context + 1)
    e = edge_of(S, x, y)
    edge = v.edges(S)[e]
    if edge.chain == UNLISTED:
        edge.was = edge.weight
        edge.chain = scalars[CHANGED_EDGES]
        scalars[CHANGED_EDGES] = e
    edge.weight += f.weight(source)[i]


@inner
def _relink(S: Ptr[v.PathMemory]) -> None:
    """Edges that are gone leave their vertices, new ones join theirs: proofs may use these at once."""
    edges = v.edges(S)
    e = v.scalars(S)[CHANGED_EDGES]
    while e != LAST:
        edge = edges[e]
        if edge.was > 0 and edge.weight <= 0:
            unlink_edge(S, e)
        elif edge.was <= 0 and edge.weight > 0:
            link_edge(S, e)
        e = i64(edge.chain)


# --- doubt ------------------------------------------------------------------------------------------


@inner
def _doubt(S: Ptr[v.PathMemory]) -> None:
    scalars, pairs = v.scalars(S), v.pairs(S)
    _first_suspects(S)
    k = scalars[CHANGED_PAIRS]
    while k != LAST:  # the list grows at its end meanwhile
        _suspect_children(S, k)
        k = i64(pairs[k].chain)
    k = scalars[CHANGED_PAIRS]
    while k != LAST:
        scalars[SUSPECTS] += 1
        if _has_proof(S, k):
            pairs[k].state &= ~SUSPECT
            _look_at(S, k)
        k = i64(pairs[k].chain)
    _clear(S)
    k = scalars[CHANGED_PAIRS]
    while k != LAST:
        if pairs[k].state & SUSPECT:
            pairs[k].state &= ~(SUSPECT | THERE)
            scalars[BROKEN] += 1
        k = i64(pairs[k].chain)


@inner
def _first_suspects(S: Ptr[v.PathMemory]) -> None:
    """Pairs (x, target) whose proof is the source of an edge that is gone; x is the source or reaches it."""
    edges, pairs, vertices = v.edges(S), v.pairs(S), v.vertices(S)
    e = v.scalars(S)[CHANGED_EDGES]
    while e != LAST:
        edge = edges[e]
        if edge.was > 0 and edge.weight <= 0:
            _suspect(S, edge.source, edge.target, edge.source)
            k = i64(vertices[edge.source].ending)
            while k >= 0:
                if pairs[k].source != edge.source:
                    _suspect(S, pairs[k].source, edge.target, edge.source)
                k = i64(pairs[k].ending)
        e = i64(edge.chain)


@inner
def _suspect(S: Ptr[v.PathMemory], source: int, target: int, proof: int) -> None:
    """A pair is suspect if it has this proof."""
    pairs, k = v.pairs(S), find_pair(S, source, target)
    if is_there(S, k) and pairs[k].proof == proof and pairs[k].state & SUSPECT == 0:
        pairs[k].state |= SUSPECT
        list_pair(S, k)


@inner
def _suspect_children(S: Ptr[v.PathMemory], k: int) -> None:
    """Pairs with the same source whose proof rests on a suspect. What follows the source itself rests on an edge."""
    edges, pair = v.edges(S), v.pairs(S)[k]
    if pair.source == pair.target:
        return
    e = i64(v.vertices(S)[pair.target].leaving)
    while e >= 0:
        _suspect(S, pair.source, edges[e].target, pair.target)
        e = i64(edges[e].leaving)


@inner
def _has_proof(S: Ptr[v.PathMemory], k: int) -> bool:
    """Whether an edge from the source, or from where a pair that is no suspect ends, leads to its target: takes it."""
    edges, pairs, pair = v.edges(S), v.pairs(S), v.pairs(S)[k]
    e = i64(v.vertices(S)[pair.target].arriving)
    while e >= 0:
        before = i64(edges[e].source)
        if before != pair.source:
            other = find_pair(S, pair.source, before)
            if not is_there(S, other) or pairs[other].state & SUSPECT:
                e = i64(edges[e].arriving)
                continue
        pair.proof = before
        return True
    return False


@inner
def _clear(S: Ptr[v.PathMemory]) -> None:
    """Suspects with another proof give those one that follow from them by an edge. First come those that need no
    other suspect: a proof of few steps makes fewer suspects later."""
    scalars, edges, pairs, vertices = v.scalars(S), v.edges(S), v.pairs(S), v.vertices(S)
    while scalars[WORK] >= 0:
        pair = pairs[scalars[WORK]]
        source, target = i64(pair.source), i64(pair.target)
        e = i64(vertices[target].leaving)
        while e >= 0:
            other = find_pair(S, source, edges[e].target)
            if other >= 0 and pairs[other].state & SUSPECT:
                pairs[other].state &= ~SUSPECT
                pairs[other].proof = target
                _look_at(S, other)
            e = i64(edges[e].leaving)
        scalars[WORK] = pair.work


@inner
def _look_at(S: Ptr[v.PathMemory], k: int) -> None:
    """Put a pair behind those that are to be looked at."""
    scalars, pairs = v.scalars(S), v.pairs(S)
    pairs[k].work = NONE
    if scalars[WORK] < 0:
        scalars[WORK] = k
    else:
        pairs[scalars[LAST_WORK]].work = k
    scalars[LAST_WORK] = k


# --- seed and spread --------------------------------------------------------------------------------


@inner
def _seed(S: Ptr[v.PathMemory]) -> bool:
    """Make the pairs of new edges; False: there is no room."""
    scalars, edges, pairs = v.scalars(S), v.edges(S), v.pairs(S)
    while scalars[EDGE_AT] != LAST:
        edge = edges[scalars[EDGE_AT]]
        if edge.was <= 0 and edge.weight > 0:
            source, target = i64(edge.source), i64(edge.target)
            if scalars[PAIR_AT] == START:
                if not _make(S, source, target, source):
                    return False
                scalars[PAIR_AT] = v.vertices(S)[source].ending
            while scalars[PAIR_AT] >= 0:
                k = scalars[PAIR_AT]
                if pairs[k].state & THERE and not _make(S, pairs[k].source, target, source):
                    return False
                scalars[PAIR_AT] = pairs[k].ending
        scalars[EDGE_AT], scalars[PAIR_AT] = edge.chain, START
    return True


@inner
def _spread(S: Ptr[v.PathMemory]) -> bool:
    """Extend new pairs by one edge, in the order in which they were made; False: there is no room."""
    scalars, edges, pairs, vertices = v.scalars(S), v.edges(S), v.pairs(S), v.vertices(S)
    while scalars[WORK] >= 0:
        pair = pairs[scalars[WORK]]
        source, target = i64(pair.source), i64(pair.target)
        if scalars[EDGE_AT] == START:
            scalars[EDGE_AT] = vertices[target].leaving
        while scalars[EDGE_AT] >= 0:
            if not _make(S, source, edges[scalars[EDGE_AT]].target, target):
                return False
            scalars[EDGE_AT] = edges[scalars[EDGE_AT]].leaving
        scalars[WORK], scalars[EDGE_AT] = pair.work, START
    return True


@inner
def _make(S: Ptr[v.PathMemory], source: int, target: int, proof: int) -> bool:
    """Have a pair there, and look at it later if it was not; False: there is no room."""
    pairs, k = v.pairs(S), find_pair(S, source, target)
    if k < 0:
        if not has_pair_room(S):
            return False
        k = new_pair(S, source, target)
    elif pairs[k].state & THERE:
        return True
    pairs[k].state |= THERE
    pairs[k].proof = proof
    list_pair(S, k)
    _look_at(S, k)
    return True


# --- emit -------------------------------------------------------------------------------------------


@inner
def _tell(S: Ptr[v.PathMemory], target: f.Delta) -> bool:
    """Tell what has changed, and free pairs that are gone; False: there is no room in `target`."""
    scalars, pairs = v.scalars(S), v.pairs(S)
    count, room = f.count(target), f.at(target).shape[0]
    while scalars[CHANGED_PAIRS] != LAST:
        k = scalars[CHANGED_PAIRS]
        there, told = pairs[k].state & THERE != 0, pairs[k].state & TOLD != 0
        if there != told and scalars[SILENT] == 0:
            if count[0] == room:
                return False
            _write(S, target, k, 1 if there else -1)
        scalars[CHANGED_PAIRS] = pairs[k].chain
        pairs[k].chain = UNLISTED
        if there:
            pairs[k].state |= TOLD
        else:
            free_pair(S, k)
    return True


@inner
def _write(S: Ptr[v.PathMemory], target: f.Delta, k: int, weight: int) -> None:
    given, rows, pair = f.rows(target), v.rows(S), v.pairs(S)[k]
    context, n = rows.shape[1] - 1, f.count(target)[0]
    f.at(target)[n], f.weight(target)[n] = v.scalars(S)[TICK], weight
    for c in range(context):
        given[n, c] = rows[pair.source, c]
    given[n, context] = rows[pair.source, context]
    given[n, context + 1] = rows[pair.target, context]
    f.count(target)[0] = n + 1


@inner
def _free_edges(S: Ptr[v.PathMemory]) -> None:
    """Those that have no weight any more."""
    scalars, edges = v.scalars(S), v.edges(S)
    while scalars[CHANGED_EDGES] != LAST:
        e = scalars[CHANGED_EDGES]
        scalars[CHANGED_EDGES] = edges[e].chain
        edges[e].chain = UNLISTED
        if edges[e].weight == 0:
            free_edge(S, e)
