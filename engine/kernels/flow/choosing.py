"""Solutions that use up what they are made of, instant by instant (semantics.md 5, CONSUME).

A solution is a row that says of which triples it is made (using.py); their numbers have NUMBER_BITS below those that
tell the instant. Of an instant's solutions that count each SEQ, innermost first, keeps those with the first, or last,
second operand among those that are equal in what its operands share, and for each second operand those with its first,
or last, first one. The rest is emitted.
"""

from __future__ import annotations

import numpy as np

from oxiseq.engine.arrays.declared import Arrays, array
from oxiseq.engine.kernels.compiling.options import inner, kernel
from oxiseq.engine.kernels.flow import buffers
from oxiseq.engine.kernels.flow.buffers import DONE, NEED_ROOM, Delta
from oxiseq.engine.kernels.flow.merging import NUMBER_BITS
from oxiseq.engine.kernels.flow.using import Kept, Rows, is_free, most_used, number_at, use
from oxiseq.engine.kernels.memory.hashing import SEED, mixed, tag_of
from oxiseq.engine.kernels.memory.numbers import i64
from oxiseq.engine.kernels.memory.pointers import Array, Ptr

(
    RECENT,  # 1: the last operands are chosen
    PLACE,  # row that is looked at next: the first of an instant
    COUNT,  # used triples
    SCALARS,
) = range(4)

FIRST, SECOND, SHARED, OWN, PARTS = range(5)
"""What a choice looks at: the triples of its operands, the columns that both bind, those that tell second operands
apart. `begin` has for each choice where these begin in `columns`."""


class Choosing(Arrays):
    """What has been used, and what is being chosen."""


_scalars = array(Choosing, "scalars", np.int64)
_begin = array(Choosing, "begin", np.int64)  # i64[choices * PARTS + 1]
_columns = array(Choosing, "columns", np.int64)
_used = array(Choosing, "used", np.int64)  # i64[2^n]: the numbers of used triples, hashed; 0: none
_kept = array(Choosing, "kept", np.int64)  # i64 by row: 1: it is emitted
_ends = array(Choosing, "ends", np.int64)  # i64 by row: when an operand ended
_heads = array(Choosing, "heads", np.int64)  # i64[2^m], twice as many as rows: a row of a group + 1, hashed
_best = array(Choosing, "best", np.int64)  # i64 by row: the best end of its group


@kernel
def choose(S: Ptr[Choosing], F: Ptr[Rows], G: Ptr[Kept], D: Delta) -> int:
    """Mark the rows of a delta, of the form F (using.Rows), that are told. Room for used triples is wanted before an
    instant that may need it."""
    scalars, at, count, kept = _scalars(S), buffers.at(D), buffers.count(D)[0], _kept(S)
    rows, used, uses = buffers.rows(D), _used(S), most_used(F)
    while scalars[PLACE] < count:
        low = scalars[PLACE]
        high = low + 1
        while high < count and at[high] == at[low]:
            high += 1
        if 2 * (scalars[COUNT] + uses * (high - low)) > used.shape[0]:
            return NEED_ROOM
        for i in range(low, high):
            kept[i] = i64(is_free(F, G, used, rows, i))
        for choice in range((_begin(S).shape[0] - 1) // PARTS):
            _choose(S, D, low, high, choice * PARTS)
        for i in range(low, high):
            if kept[i] != 0:
                scalars[COUNT] += use(F, used, rows, i)
        scalars[PLACE] = high
    scalars[PLACE] = 0
    return DONE


@inner
def _choose(S: Ptr[Choosing], D: Delta, low: int, high: int, part: int) -> None:
    """One SEQ's choice among rows; those of which it is no part stay."""
    _end(S, D, low, high, part + SECOND)
    for i in range(low, high):
        if _ends(S)[i] == 0:  # it is no part: it does not take part in the choice
            _ends(S)[i] = -1
    _keep_best(S, D, low, high, part + SHARED)
    for i in range(low, high):
        _best(S)[i] = _ends(S)[i]  # kept while the first operands' are found
    _end(S, D, low, high, part + FIRST)
    for i in range(low, high):
        if _best(S)[i] < 0:
            _ends(S)[i] = -1
    _keep_best(S, D, low, high, part + OWN)


@inner
def _end(S: Ptr[Choosing], D: Delta, low: int, high: int, part: int) -> None:
    """When the last of some triples of each row ended."""
    rows, begin, columns, ends = buffers.rows(D), _begin(S), _columns(S), _ends(S)
    for i in range(low, high):
        ends[i] = 0
        for c in range(begin[part], begin[part + 1]):
            ends[i] = max(ends[i], number_at(rows, i, columns[c]) >> NUMBER_BITS)


@inner
def _keep_best(S: Ptr[Choosing], D: Delta, low: int, high: int, part: int) -> None:
    """Keep of rows with equal columns those that end first, or last."""
    scalars, heads, kept, ends, best = _scalars(S), _heads(S), _kept(S), _ends(S), _best(S)
    size = i64(2)
    while size < 2 * (high - low):
        size *= 2
    for slot in range(size):
        heads[slot] = 0
    for i in range(low, high):
        if kept[i] == 0 or ends[i] < 0:
            continue
        slot = _group(S, D, i, part, size)
        if heads[slot] == 0:
            heads[slot] = i + 1
            best[i] = ends[i]
        else:
            e = heads[slot] - 1
            best[e] = max(best[e], ends[i]) if scalars[RECENT] else min(best[e], ends[i])
    for i in range(low, high):
        if kept[i] != 0 and ends[i] >= 0 and ends[i] != best[heads[_group(S, D, i, part, size)] - 1]:
            kept[i] = -1
    for i in range(low, high):
        kept[i] = max(kept[i], 0)


@inner
def _group(S: Ptr[Choosing], D: Delta, i: int, part: int, size: int) -> int:
    """The slot of the rows that are equal to one in some columns."""
    rows, heads = buffers.rows(D), _heads(S)
    slot = _hash(S, rows, i, part) & (size - 1)
    while heads[slot] != 0 and not _equal(S, rows, i, heads[slot] - 1, part):
        slot = (slot + 1) & (size - 1)
    return slot


@inner
def _hash(S: Ptr[Choosing], rows: Array, i: int, part: int) -> int:
    begin, columns = _begin(S), _columns(S)
    h = i64(SEED)
    for c in range(begin[part], begin[part + 1]):
        h = mixed(h, i64(rows[i, columns[c]]))
    return tag_of(h)


@inner
def _equal(S: Ptr[Choosing], rows: Array, i: int, j: int, part: int) -> bool:
    begin, columns = _begin(S), _columns(S)
    for c in range(begin[part], begin[part + 1]):  # noqa: SIM110  kernels have no generators
        if rows[i, columns[c]] != rows[j, columns[c]]:
            return False
    return True
