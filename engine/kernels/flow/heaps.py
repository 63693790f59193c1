"""Pairing heaps of the rows of a group, on each side of a border: its last low row, its first high row.

Putting in takes one comparison; taking any row out O(log n) amortised (Fredman, Sedgewick, Sleator, Tarjan 1986). Links
go to the first child, to the next sibling, and back to the sibling before or, from a first child, to the parent.
"""

from __future__ import annotations

from oxiseq.engine.kernels.compiling.options import inner
from oxiseq.engine.kernels.flow import rank_records as v
from oxiseq.engine.kernels.flow.rank_records import (
    BY_NUMBER,
    BY_TERM,
    DOWN,
    LOW,
    NEITHER,
    NONE,
    NUMBER_DOWN,
    ORDERED,
    STEPS,
)
from oxiseq.engine.kernels.memory.numbers import i64
from oxiseq.engine.kernels.memory.pointers import Array, Ptr
from oxiseq.engine.kernels.terms.order import Order, compare_terms, compare_values
from oxiseq.engine.kernels.terms.table import Terms


@inner
def compare_ordered(S: Ptr[v.RankMemory], D: Terms, L: Order, a: int, b: int) -> int:
    """Below 0, 0 or above 0: how two entries compare by the columns of ORDER BY alone."""
    return _compare(S, D, L, a, b, v.scalars(S)[ORDERED])


@inner
def _compare(S: Ptr[v.RankMemory], D: Terms, L: Order, a: int, b: int, columns: int) -> int:
    rows, sequence = v.rows(S), v.sequence(S)
    for i in range(columns):
        x, y, how = i64(rows[a, sequence[i, 0]]), i64(rows[b, sequence[i, 0]]), sequence[i, 1]
        if x != y:
            if how >= BY_NUMBER:
                order = i64(-1 if x < y else 1)
            else:
                order = compare_terms(D, L, x, y) if how == BY_TERM else compare_values(D, L, x, y)
            if order != 0:
                return -order if how in (DOWN, NUMBER_DOWN) else order
    return i64(0)


@inner
def ranks_before(S: Ptr[v.RankMemory], D: Terms, L: Order, border: int, a: int, b: int) -> bool:
    """Whether an entry ranks before another one."""
    links, count = v.links(S), v.bounds(S).shape[0]
    v.scalars(S)[STEPS] += 1
    x, y = links[a * count + border].prefix, links[b * count + border].prefix
    return x < y if x != y else _compare(S, D, L, a, b, v.sequence(S).shape[0]) < 0


@inner
def meld(S: Ptr[v.RankMemory], D: Terms, L: Order, border: int, a: int, b: int, side: int) -> int:
    """One heap of two (NONE: empty), the roots of which have no siblings; its root."""
    if a < 0:
        return b
    if b < 0:
        return a
    if ranks_before(S, D, L, border, a, b) == (side == LOW):  # the last low row is on top
        a, b = b, a
    links, count = v.links(S), v.bounds(S).shape[0]
    top, other = links[a * count + border], links[b * count + border]
    first = i64(top.child)
    other.next = first
    other.previous = a
    if first >= 0:
        links[first * count + border].previous = b
    top.child = b
    return a


@inner
def put_in(S: Ptr[v.RankMemory], D: Terms, L: Order, border: int, root: int, e: int, side: int) -> int:
    """Put an entry that is in no heap of the border into one; the new root."""
    link = v.links(S)[e * v.bounds(S).shape[0] + border]
    link.child = NONE
    link.next = NONE
    link.previous = NONE
    link.side = side
    return meld(S, D, L, border, root, e, side)


@inner
def take_out(S: Ptr[v.RankMemory], D: Terms, L: Order, border: int, root: int, e: int) -> int:
    """Take an entry out of its heap; the new root."""
    links, count = v.links(S), v.bounds(S).shape[0]
    link = links[e * count + border]
    side = i64(link.side)
    rest = _gather(S, D, L, border, link.child, side)
    link.side = NEITHER
    if e == root:
        return rest
    before, after = i64(link.previous), i64(link.next)
    if links[before * count + border].child == e:
        links[before * count + border].child = after
    else:
        links[before * count + border].next = after
    if after >= 0:
        links[after * count + border].previous = before
    return meld(S, D, L, border, root, rest, side)


@inner
def _gather(S: Ptr[v.RankMemory], D: Terms, L: Order, border: int, first: int, side: int) -> int:
    """One heap of siblings: in pairs from the first to the last, then pair by pair from the last back."""
    links, count = v.links(S), v.bounds(S).shape[0]
    pairs = i64(NONE)  # the last pair melded; `previous` leads to those before
    a = i64(first)
    while a >= 0:
        b = i64(links[a * count + border].next)
        following = i64(NONE)
        _part(links, a * count + border)
        if b >= 0:
            following = i64(links[b * count + border].next)
            _part(links, b * count + border)
        pair = meld(S, D, L, border, a, b, side)
        links[pair * count + border].previous = pairs
        pairs, a = pair, following
    root = i64(NONE)
    while pairs >= 0:
        before = i64(links[pairs * count + border].previous)
        links[pairs * count + border].previous = NONE
        root = meld(S, D, L, border, root, pairs, side)
        pairs = before
    return root


@inner
def _part(links: Array, at: int) -> None:
    links[at].next = NONE
    links[at].previous = NONE
