"""Solutions that use up what they are made of, instant by instant (semantics.md 5, CONSUME).

A row says of which triples it is made: each in two columns, an unsigned number that grows with the triples' ends, with
NUMBER_BITS below those that tell the instant; 0: none, or one that is never used up. A row without its optional partner
comes beside those with one, and has a *guard* in two more columns: the number under which its partners are arranged. It
counts once none of these does: each is made of a used triple, or has a guard of its own and a partner that counts.

Of an instant's solutions that count each SEQ, innermost first, keeps those with the first, or last,
second operand among those that are equal in what its operands share, and for each second operand those with its first,
or last, first one. The rest is emitted.
"""

from __future__ import annotations

import numpy as np

from oxiseq.engine.arrays.declared import Arrays, array
from oxiseq.engine.kernels.compiling.options import inner, kernel
from oxiseq.engine.kernels.flow import arrangement as v
from oxiseq.engine.kernels.flow import buffers
from oxiseq.engine.kernels.flow.arranging import begin_again, drop, first_of_chain
from oxiseq.engine.kernels.flow.buffers import DONE, NEED_ROOM, Delta
from oxiseq.engine.kernels.flow.counting import NUMBER_BITS
from oxiseq.engine.kernels.memory.hashing import SEED, mixed, tag_of
from oxiseq.engine.kernels.memory.numbers import i64
from oxiseq.engine.kernels.memory.pointers import Array, Ptr

GUARD, ENTRY, NEXT, LEVEL = range(4)
"""A level of the walk: whose partners, the one in work, the next of that one's guards to be looked at."""


class Rows(Arrays):
    """What rows of one form are made of."""


_uses = array(Rows, "uses", np.int64)  # columns of the upper halves of triples' numbers
_guards = array(Rows, "guards", np.int64)  # addresses of `Guard`


class Guard(Arrays):
    """A guard in rows of one form."""


_key = array(Guard, "key", np.int64)  # i64[2]: the columns of its halves
_guard = array(Guard, "number", np.int64)  # i64[1]: which one it is


class Kept(Arrays):
    """Arrangements of what is made of triples: first, by guard, of the partners behind it."""


_arranged = array(Kept, "arranged", np.int64)  # their addresses
_forms = array(Kept, "forms", np.int64)  # the addresses of the `Rows` that are in them
_stack = array(Kept, "stack", np.int64, 2)  # i64[guards + 1, LEVEL]


# --- what is used up -------------------------------------------------------------------------------


@inner
def number_at(rows: Array, i: int, place: int) -> int:
    """The number in two columns."""
    return i64(rows[i, place]) << 32 | i64(rows[i, place + 1])


@inner
def slot_of(used: Array, number: int) -> int:
    """Where in the table of used triples a number is, or would be."""
    last = used.shape[0] - 1
    slot = tag_of(mixed(SEED, number)) & last
    while used[slot] != 0 and used[slot] != number:
        slot = (slot + 1) & last
    return slot


@inner
def is_free(F: Ptr[Rows], G: Ptr[Kept], used: Array, rows: Array, i: int) -> bool:
    """Whether row `i`, of the form F, counts."""
    if not _is_unused(F, used, rows, i):
        return False
    guards = _guards(F)
    for k in range(guards.shape[0]):  # noqa: SIM110  kernels have no generators
        if _is_held(G, used, rows, i, guards[k]):
            return False
    return True


@inner
def _is_unused(F: Ptr[Rows], used: Array, rows: Array, i: int) -> bool:
    uses = _uses(F)
    for c in range(uses.shape[0]):
        number = number_at(rows, i, uses[c])
        if number != 0 and used[slot_of(used, number)] != 0:
            return False
    return True


@inner
def _is_held(G: Ptr[Kept], used: Array, rows: Array, i: int, guard: Ptr[Guard]) -> bool:
    """Whether a partner behind a row's guard counts: guards of partners are followed level by level."""
    stack, level = _stack(G), i64(0)
    _enter(G, rows, i, guard, level)
    while True:
        g, e = stack[level, GUARD], stack[level, ENTRY]
        if e < 0:  # no partner counts: the row above is not held by this guard
            if level == 0:
                return False
            level -= 1
            stack[level, NEXT] += 1
            continue
        form, halves = _forms(G)[g], v.halves(_arranged(G)[g])
        guards, k = _guards(form), stack[level, NEXT]
        if k == 0 and not _is_unused(form, used, halves, e):
            _go_on(G, level)
        elif k < guards.shape[0]:
            level += 1
            _enter(G, halves, e, guards[k], level)
        elif level == 0:
            return True
        else:  # this partner counts, so the row above, which says that there is none, does not
            level -= 1
            _go_on(G, level)


@inner
def _enter(G: Ptr[Kept], rows: Array, i: int, guard: Ptr[Guard], level: int) -> None:
    """Begin with the partners behind a guard of a row."""
    stack, key, number = _stack(G), _key(guard), _guard(guard)[0]
    A = _arranged(G)[number]
    stack[level, GUARD], stack[level, ENTRY], stack[level, NEXT] = number, -1, 0
    if number_at(rows, i, key[0]) != 0:
        stack[level, ENTRY] = first_of_chain(A, rows, i, key, v.loose(A), 0, 0, 0)


@inner
def _go_on(G: Ptr[Kept], level: int) -> None:
    """To the next partner."""
    stack = _stack(G)
    A = _arranged(G)[stack[level, GUARD]]
    following = v.scalars(A)[v.LINK0]
    stack[level, ENTRY], stack[level, NEXT] = i64(v.links(A)[stack[level, ENTRY], following]), 0


@inner
def use(F: Ptr[Rows], used: Array, rows: Array, i: int) -> int:
    """Use up what a row is made of; there is room. How many triples were not used yet."""
    uses, count = _uses(F), i64(0)
    for c in range(uses.shape[0]):
        number = number_at(rows, i, uses[c])
        if number == 0:
            continue
        slot = slot_of(used, number)
        if used[slot] == 0:
            used[slot] = number
            count += 1
    return count


@inner
def most_used(F: Ptr[Rows]) -> int:
    """How many triples a row is made of at the most."""
    return _uses(F).shape[0]


@kernel
def drop_used(G: Ptr[Kept], used: Array) -> None:
    """Between batches: rows made of consumed triples are dropped."""
    arranged, forms = _arranged(G), _forms(G)
    for k in range(arranged.shape[0]):
        A = arranged[k]
        words, halves = v.words(A), v.halves(A)
        for e in range(v.scalars(A)[v.TOP]):
            if words[e, v.DIED] == v.NEVER and not _is_unused(forms[k], used, halves, e):
                drop(A, e)
        begin_again(A)


@kernel
def fill_used(used: Array, numbers: Array) -> None:
    """Fill an empty table of used triples from another."""
    for i in range(numbers.shape[0]):
        if numbers[i] != 0:
            used[slot_of(used, numbers[i])] = numbers[i]


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
