"""Rows of triple patterns joined at once, of what has come and gone in the arrangement of each (operators.md, 3.7;
windows.md, section 5).

    ΔJ = Σ  all before i after the tick ⋈ ΔA of arrangement i ⋈ all behind i before it

A row that has come or gone is joined with the others depth first, always along the shortest chain at hand: each level
binds an arrangement to one of its rows, looks up all others that have a variable bound by it at once (nothing there,
and the level goes on with its next row; the one that had nothing for the last row is asked first), and the next level
takes the one with the fewest rows. No order is planned, no statistics are kept, nothing is stored.

What goes at a tick is joined before what comes, with what was there before and is not new; so no row comes and goes
within a tick. They are sets, from which no row goes and comes again within a tick (windowing.py, which also
sweeps them before each batch).
"""

from __future__ import annotations

from typing import Final

import numpy as np

from oxiseq.engine.arrays.declared import Arrays, array
from oxiseq.engine.kernels.compiling.options import inner, kernel
from oxiseq.engine.kernels.compiling.yielding import yield_after
from oxiseq.engine.kernels.expressions.machine import TRUE, UNDECIDED
from oxiseq.engine.kernels.flow import arrangement as v
from oxiseq.engine.kernels.flow import buffers
from oxiseq.engine.kernels.flow.arrangement import BORN, DIED, LINK0, LIVE, ROW, SPENT
from oxiseq.engine.kernels.flow.arranging import fetch_chain, first_of_chain, length_of_chain, link_number, row_of_set
from oxiseq.engine.kernels.flow.buffers import DONE, NEED_OUT, NEED_ROOM, TOO_MANY_READS, Delta
from oxiseq.engine.kernels.flow.computing import Sifting, outcome_of
from oxiseq.engine.kernels.flow.computing import values as terms_of
from oxiseq.engine.kernels.matching.match import lowest
from oxiseq.engine.kernels.memory.hashing import row_tag
from oxiseq.engine.kernels.memory.numbers import i64
from oxiseq.engine.kernels.memory.pointers import Array, Ptr
from oxiseq.engine.kernels.terms.table import Terms

LEVEL = np.dtype(
    [
        ("bound", "i8"),  # variables that levels above have bound
        ("open", "i8"),  # arrangements that are still to be joined
        ("child", "i4"),  # the arrangement of this level
        ("next", "i4"),  # entry to be tried next
        ("link", "i4"),  # number of the chain's links
    ],
    align=True,
)
"""A join in work."""

BEST = np.dtype([("head", "i4"), ("count", "i4"), ("link", "i4")], align=True)
"""By level and open arrangement the chain that agrees with what is bound; count 0: nothing is bound yet."""

(
    COME,  # 1: what rows that come find is wanted
    GO,
    DEPTH,  # of the join in work; -1: none
    START,  # the arrangement of whose delta a row is joined
    TICK,
    SIGN,  # 1: the row has come; -1: gone
    BEGUN,  # 1: the batch is in work
    WHICH,  # the arrangement that wants room
    TRIED,  # entries tried so far
    READS,  # how many may be at a tick
    LIMIT,  # TRIED past which this tick has more
    FAR,  # a mask of the arrangements for which it pays to fetch memory ahead
    SCALARS,
) = range(13)

_FAR: Final = 1 << 12
"""Rows from which on it pays to fetch memory ahead."""
_AHEAD: Final = 8
"""So many rows."""
_SHORT: Final = 2
"""A chain of so many entries is looked through at once for one that is there at the tick: those that come later in the
batch are in it, too."""
_NEVER: Final = np.iinfo(np.int64).max
_FAILED: Final = -1
_WANTING: Final = -2
_COMPLETE: Final = -3


class Conjoining(Arrays):
    """What is joined, and where the join is."""


scalars = array(Conjoining, "scalars", np.int64)
_kept = array(Conjoining, "kept", np.int64)  # i64 by arrangement: its address
_deltas = array(Conjoining, "deltas", np.int64)  # i64 by arrangement: the address of what has come and gone there
_next = array(Conjoining, "next", np.int64)  # i64 by arrangement: the row of its delta that comes next
_due = array(Conjoining, "due", np.int64)
"""i64 by arrangement: the tick of that row, times two, and one more if it comes."""
_first = array(Conjoining, "first", np.int64)  # i64[arrangements + 1]: where in `variables` its columns begin
_variables = array(Conjoining, "variables", np.int64)  # i64: the variable of each column
_contains = array(Conjoining, "contains", np.int64)  # i64 by variable: a mask of the arrangements that have it
_links = array(Conjoining, "links", np.int64, 2)
"""i64[arrangements, subsets of columns]: the number of the links of the chains that agree in these; -1: none yet."""
_levels = array(Conjoining, "levels", LEVEL)
_best = array(Conjoining, "best", BEST)
_suspect = array(Conjoining, "suspect", np.int64)
"""i64 by arrangement: the one that had nothing for the last of its rows that found nothing."""
_masks = array(Conjoining, "masks", np.int64)  # i64: the variables that each condition reads
_sought = array(Conjoining, "sought", np.uint32, 2)  # u32[arrangements, columns]: terms that are looked for


@kernel
def conjoin(J: Ptr[Conjoining], F: Ptr[Sifting], D: Terms, out: Delta) -> int:
    """The joined rows that come and go with the deltas, which the arrangements have taken in. F: conditions, and the
    terms of the join in work; D: the dictionary."""
    at, following = scalars(J), _next(J)
    if at[BEGUN] == 0:
        if not _has_all(J):
            return DONE
        at[BEGUN] = 1
        for i in range(following.shape[0]):
            following[i] = -1
            _advance(J, F, i)
    while at[DEPTH] >= 0 or _begin(J, F):
        answer = _join(J, F, D, out)
        if answer != DONE:
            return answer
    at[BEGUN] = 0
    return DONE


@inner
def _has_all(J: Ptr[Conjoining]) -> bool:
    """Whether every arrangement has rows, or had some before the batch."""
    at, kept = scalars(J), _kept(J)
    at[FAR] = 0
    for i in range(kept.shape[0]):
        numbers = v.scalars(kept[i])
        if numbers[LIVE] + numbers[SPENT] == 0:
            return False
        if numbers[LIVE] > _FAR:
            at[FAR] |= 1 << i
    return True


@inner
def _advance(J: Ptr[Conjoining], F: Ptr[Sifting], i: int) -> None:
    """The next row of a delta that is wanted: it is earlier the smaller its `due`."""
    at, following, due, D = scalars(J), _next(J), _due(J), _deltas(J)[i]
    n, count, weight = following[i] + 1, buffers.count(D)[0], buffers.weight(D)
    while n < count and at[COME if weight[n] > 0 else GO] == 0:
        n += 1
    following[i] = n
    if at[FAR] != 0 and n + _AHEAD < count:
        _fetch(J, F, i, n + _AHEAD)
    due[i] = 2 * buffers.at(D)[n] + (weight[n] > 0) if n < count else _NEVER


@inner
def _fetch(J: Ptr[Conjoining], F: Ptr[Sifting], i: int, n: int) -> None:
    """Row `n` of a delta will be joined soon: have memory fetched where it will look first."""
    kept, rows, first, variables, contains = (
        _kept(J),
        buffers.rows(_deltas(J)[i]),
        _first(J),
        _variables(J),
        _contains(J),
    )
    sought, values, links = _sought(J), terms_of(F), _links(J)
    touched, bound = i64(0), i64(0)
    for c in range(first[i + 1] - first[i]):
        variable = variables[first[i] + c]
        values[variable] = rows[n, c]
        bound |= 1 << variable
        touched |= contains[variable]
    touched &= scalars(J)[FAR] & ~(1 << i)
    while touched != 0:
        j = lowest(touched)
        touched &= touched - 1
        subset, width = i64(0), first[j + 1] - first[j]
        for c in range(width):
            variable = variables[first[j] + c]
            if bound >> variable & 1:
                subset |= 1 << c
                sought[j, c] = values[variable]
        if subset == (1 << width) - 1 or links[j, subset] >= 0:
            fetch_chain(kept[j], sought, j, (1 << width) - 1, subset)


@inner
def _begin(J: Ptr[Conjoining], F: Ptr[Sifting]) -> bool:
    """Set out to join the row that comes next: of the earliest tick, of these first what goes, then what comes. False:
    there is none."""
    at, due = scalars(J), _due(J)
    chosen = i64(0)
    for i in range(1, due.shape[0]):
        if due[i] < due[chosen]:
            chosen = i64(i)
    if due[chosen] == _NEVER:
        return False
    if at[TICK] != due[chosen] >> 1:
        at[LIMIT] = at[TRIED] + at[READS]
    at[START], at[TICK], at[SIGN], at[DEPTH] = chosen, due[chosen] >> 1, 1 if due[chosen] & 1 else -1, 0
    level = _levels(J)[0]
    level.bound, level.child, level.next = 0, chosen, _next(J)[chosen]
    level.open = ((1 << i64(due.shape[0])) - 1) & ~(1 << chosen)
    _advance(J, F, chosen)
    return True


@inner
def _join(J: Ptr[Conjoining], F: Ptr[Sifting], D: Terms, out: Delta) -> int:
    """Go on with the join in work: DONE, or what is wanted."""
    at, kept, levels, best, values = scalars(J), _kept(J), _levels(J), _best(J), terms_of(F)
    variables, first, count = _variables(J), _first(J), _kept(J).shape[0]
    d = at[DEPTH]
    while d >= 0:
        level = levels[d]
        e, child = i64(level.next), i64(level.child)
        if e < 0:
            d -= 1
            continue
        following = i64(-1)
        if d == 0:
            rows, column0 = buffers.rows(_deltas(J)[child]), i64(0)
        else:
            A = kept[child]
            following = i64(v.links(A)[e, v.scalars(A)[LINK0] + 2 * level.link])
            at[TRIED] += 1
            yield_after(at[TRIED])
            if at[TRIED] > at[LIMIT]:
                return TOO_MANY_READS
            if v.words(A)[e, BORN] >= _until(at, child) or v.words(A)[e, DIED] <= _since(at, child):
                level.next = following
                continue
            rows, column0 = v.halves(A), i64(ROW)
        bound = level.bound
        for c in range(first[child + 1] - first[child]):
            variable = variables[first[child] + c]
            values[variable] = rows[e, column0 + c]
            bound |= 1 << variable
        if not _may_pass(J, F, D, level.bound, bound):
            level.next = following
            continue
        chosen = _look_ahead(J, F, d, child, bound & ~level.bound, bound, level.open)
        if chosen == _WANTING or (chosen == _COMPLETE and not _emit(J, F, out)):
            at[DEPTH] = d
            return NEED_ROOM if chosen == _WANTING else NEED_OUT
        level.next = following
        if chosen < 0:
            continue
        below, chain = levels[d + 1], best[(d + 1) * count + chosen]
        below.bound = bound
        below.child = chosen
        below.next = chain.head
        below.link = chain.link
        d += 1
    at[DEPTH] = -1
    return DONE


@inner
def _may_pass(J: Ptr[Conjoining], F: Ptr[Sifting], D: Terms, before: int, bound: int) -> bool:
    """Whether no condition fails whose last variable has just been bound."""
    masks = _masks(J)
    for f in range(masks.shape[0]):
        if masks[f] & ~bound == 0 and masks[f] & ~before != 0:
            outcome = outcome_of(F, D, f)
            if outcome not in (TRUE, UNDECIDED):
                return False
    return True


@inner
def _until(at: Array, child: int) -> int:
    """The tick before which entries were born that are to be joined with the row in work."""
    return at[TICK] + (at[SIGN] > 0 and child < at[START])


@inner
def _since(at: Array, child: int) -> int:
    """And the one after which they died."""
    return at[TICK] - (at[SIGN] < 0 and child > at[START])


@inner
def _look_ahead(J: Ptr[Conjoining], F: Ptr[Sifting], d: int, child: int, fresh: int, bound: int, left: int) -> int:
    """Look up the chains of the open arrangements `left`, for level d + 1, which gets those that are open then: which
    has the fewest rows; _COMPLETE: all have a row that is bound; _FAILED: one has nothing that agrees; _WANTING: room
    is wanted. fresh: the variables that level d has bound, to a row of `child`; bound: all."""
    best, contains, kept, suspect = _best(J), _contains(J), _kept(J), _suspect(J)
    count = kept.shape[0]
    here, above = (d + 1) * count, d * count
    touched = i64(0)
    while fresh != 0:
        touched |= contains[lowest(fresh)]
        fresh &= fresh - 1
    chosen, fewest, open_ = i64(_COMPLETE), i64(0), left
    rest = left & touched
    while rest != 0:
        j = suspect[child]
        if rest >> j & 1 == 0:
            j = lowest(rest)
        rest &= ~(1 << j)
        found = _look_up(J, F, j, here + j, bound)
        if found < 0:
            suspect[child] = j
            return found
        if found == 0:
            open_ &= ~(1 << j)
        elif chosen < 0 or found < fewest or (found == fewest and j < chosen):
            chosen, fewest = j, found
    rest = left & ~touched
    while rest != 0:
        j = lowest(rest)
        rest &= rest - 1
        known = i64(0) if d == 0 else i64(best[above + j].count)
        best[here + j].count = known
        if known > 0:
            best[here + j].head, best[here + j].link = best[above + j].head, best[above + j].link
            if chosen < 0 or known < fewest:
                chosen, fewest = j, known
    while chosen < 0 and open_ != 0:  # none of them shares a variable with what is bound
        rest = open_
        while rest != 0:
            j = lowest(rest)
            rest &= rest - 1
            rows = v.scalars(kept[j])[LIVE]
            if chosen < 0 or rows < fewest:
                chosen, fewest = j, rows
        found = _look_up(J, F, chosen, here + chosen, bound)
        if found < 0:
            return found
        if found == 0:
            open_ &= ~(1 << chosen)
            chosen = i64(_COMPLETE)
    if chosen >= 0:
        _levels(J)[d + 1].open = open_ & ~(1 << chosen)
    return chosen


@inner
def _look_up(J: Ptr[Conjoining], F: Ptr[Sifting], j: int, place: int, bound: int) -> int:
    """Find the chain of an arrangement that agrees in what is bound: how long it is, 0 if all is bound and the row is
    there; or _FAILED, _WANTING."""
    values, variables, first, sought, chain = terms_of(F), _variables(J), _first(J), _sought(J), _best(J)[place]
    A = _kept(J)[j]
    width = first[j + 1] - first[j]
    subset = i64(0)
    for c in range(width):
        variable = variables[first[j] + c]
        if bound >> variable & 1:
            subset |= 1 << c
            sought[j, c] = values[variable]
    mask, links = (1 << width) - 1, _links(J)
    if subset == mask:
        at, tag = scalars(J), row_tag(sought, j, 0, width)
        e = row_of_set(A, sought, j, tag, width, _until(at, j), _since(at, j))
        return i64(0) if e >= 0 else i64(_FAILED)
    number = links[j, subset]
    if number < 0:
        number = links[j, subset] = link_number(A, mask, subset)
        if number < 0:
            scalars(J)[WHICH] = j
            return _WANTING
    head = first_of_chain(A, sought, j, v.key(A), v.loose(A), mask, subset, number)
    if head < 0:
        return _FAILED
    length = length_of_chain(A, head, number)
    if length <= _SHORT:
        at, words = scalars(J), v.words(A)
        while words[head, BORN] >= _until(at, j) or words[head, DIED] <= _since(at, j):
            at[TRIED] += 1
            yield_after(at[TRIED])
            head, length = i64(v.links(A)[head, v.scalars(A)[LINK0] + 2 * number]), length - 1
            if head < 0:
                return _FAILED
    chain.head, chain.count, chain.link = head, length, number
    return length


@inner
def _emit(J: Ptr[Conjoining], F: Ptr[Sifting], out: Delta) -> bool:
    """Write the row; False: there is no room."""
    at, values, top, rows = scalars(J), terms_of(F), buffers.count(out), buffers.rows(out)
    n = top[0]
    if n == buffers.at(out).shape[0]:
        return False
    buffers.at(out)[n], buffers.weight(out)[n] = at[TICK], at[SIGN]
    for c in range(rows.shape[1]):
        rows[n, c] = values[c]
    top[0] = n + 1
    return True
