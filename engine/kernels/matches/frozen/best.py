"""The k best matches of a frozen set, one after the other (recursive enumeration, Jiménez and Marzal, WAE 1999).

Of each node a list of its best prefixes grows on demand: an output's i-th best is the i-th best of what it
extends, with its row; a union merges the lists of its parts. What matches are ordered by is a sum over their rows, so a
prefix that is better stays better whatever follows. Ties go to the match that has the first of the rows in which
two differ, as SELECT NEXT decides (semantics.md 2.6b).
"""

from __future__ import annotations

from oxiseq.engine.kernels.compiling.options import inner, kernel
from oxiseq.engine.kernels.matches.frozen import memory as f
from oxiseq.engine.kernels.matches.records import PLACE_BITS
from oxiseq.engine.kernels.memory.numbers import i64
from oxiseq.engine.kernels.memory.pointers import Array, Ptr

_UNKNOWN, _NONE = -1, -2


@kernel
def find_best(M: Ptr[f.FrozenMemory]) -> int:
    """Put the records of the WANTED best, or of all if there are not so many, into `picked`."""
    state = f.state(M)
    while state[f.PICKED] < state[f.WANTED]:
        entry = _following(M, state[f.ROOT], state[f.LAST])
        if entry == _NONE:
            break
        if entry == _UNKNOWN:
            need = _look(M)
            if need != f.FOUND:
                return need
            continue
        if state[f.PICKED] == f.picked(M).shape[0]:
            return f.MORE_PICKED
        state[f.LAST] = entry
        f.picked(M)[state[f.PICKED]] = f.entries(M)[entry, 0]
        state[f.PICKED] += 1
    return f.FOUND


@inner
def _following(M: Ptr[f.FrozenMemory], n: int, entry: int) -> int:
    """The entry of node `n` behind `entry` (-1: the first one); _UNKNOWN before it has been looked for."""
    lists = f.lists(M)
    following = i64(lists[n, 0]) if entry < 0 else i64(f.entries(M)[entry, 1])
    if following >= 0:
        return following
    return _NONE if lists[n, 2] == 1 else _UNKNOWN


@inner
def _look(M: Ptr[f.FrozenMemory]) -> int:
    """The root's next entry. The stack holds nodes of which the one above waits for the next entry of the one below;
    no node is on it twice, since nodes are older than what they are below."""
    state, stack = f.state(M), f.stack(M)
    if state[f.STACK_TOP] == 0:
        stack[0] = state[f.ROOT]
        state[f.STACK_TOP] = 1
    while state[f.STACK_TOP] > 0:
        if state[f.RECORDS] == f.records(M).shape[0]:
            return f.MORE_RECORDS
        if state[f.ENTRIES] == f.entries(M).shape[0]:
            return f.MORE_ENTRIES
        n = stack[state[f.STACK_TOP] - 1]
        waits_for = _extend(M, n) if f.pos(M)[n] >= 0 else _merge(M, n)
        if waits_for >= 0:
            stack[state[f.STACK_TOP]] = waits_for
            state[f.STACK_TOP] += 1
        else:
            state[f.STACK_TOP] -= 1
    return f.FOUND


@inner
def _extend(M: Ptr[f.FrozenMemory], n: int) -> int:
    """An output's next entry; the node whose next entry it needs, -1 if it is done."""
    before, lists = i64(f.kids(M)[n, 0]), f.lists(M)
    if before < 0:
        if lists[n, 0] < 0:
            _list(M, n, _record(M, -1, n))
        else:
            lists[n, 2] = 1
        return -1
    entry = _following(M, before, i64(f.cursors(M)[n, 0]))
    if entry == _UNKNOWN:
        return before
    if entry == _NONE:
        lists[n, 2] = 1
    else:
        f.cursors(M)[n, 0] = entry
        _list(M, n, _record(M, i64(f.entries(M)[entry, 0]), n))
    return -1


@inner
def _merge(M: Ptr[f.FrozenMemory], n: int) -> int:
    """A union's next entry, the best of its parts' next ones; the part whose next entry it needs, -1 if it is done."""
    kids, turns, cursors, entries = f.kids(M), f.turns(M), f.cursors(M), f.entries(M)
    best = i64(-1)
    for j in range(3):
        kid = i64(kids[n, j])
        if kid < 0:
            continue
        if turns[n, j] == f.ASK:
            entry = _following(M, kid, i64(cursors[n, j]))
            if entry == _UNKNOWN:
                return kid
            turns[n, j] = f.OVER if entry == _NONE else f.READY
            if entry >= 0:
                cursors[n, j] = entry
        if turns[n, j] == f.READY and (
            best < 0 or _wins(M, i64(entries[cursors[n, j], 0]), i64(entries[cursors[n, best], 0]))
        ):
            best = i64(j)
    if best < 0:
        f.lists(M)[n, 2] = 1
    else:
        turns[n, best] = f.ASK
        _list(M, n, i64(entries[cursors[n, best], 0]))
    return -1


@inner
def _list(M: Ptr[f.FrozenMemory], n: int, record: int) -> None:
    """A new last entry of node `n`."""
    state, lists, entries = f.state(M), f.lists(M), f.entries(M)
    entry = state[f.ENTRIES]
    state[f.ENTRIES] = entry + 1
    entries[entry, 0], entries[entry, 1] = record, -1
    if lists[n, 0] < 0:
        lists[n, 0] = entry
    else:
        entries[lists[n, 1], 1] = entry
    lists[n, 1] = entry


@inner
def _record(M: Ptr[f.FrozenMemory], parent: int, n: int) -> int:
    """The prefix `parent` (-1: none) and output `n`'s row."""
    state, records, sums, values = f.state(M), f.records(M), f.sums(M), f.values(M)
    made = state[f.RECORDS]
    state[f.RECORDS] = made + 1
    record = records[made]
    record.pos = f.pos(M)[n]
    record.parent = parent
    for i in range(values.shape[1]):
        sums[made, i] = values[n, i] + (sums[parent, i] if parent >= 0 else 0.0)
    if parent < 0:
        record.depth = 1
        record.jump = -1
        return made
    record.depth = records[parent].depth + 1
    jump = i64(records[parent].jump)
    far = i64(records[jump].jump) if jump >= 0 else i64(-1)
    here, there = i64(records[parent].depth), _depth(records, jump)
    record.jump = far if here - there == there - _depth(records, far) else parent
    return made


@inner
def _depth(records: Array, r: int) -> int:
    return i64(records[r].depth) if r >= 0 else i64(0)


@inner
def _wins(M: Ptr[f.FrozenMemory], a: int, b: int) -> bool:
    """Whether prefix `a` comes before prefix `b`: by what they add up to, then by the first row in which they
    differ. That cannot be undecided: two matches, or prefixes with one continuation, differ in a row."""
    sums = f.sums(M)
    for i in range(sums.shape[1]):
        if sums[a, i] != sums[b, i]:
            return sums[a, i] < sums[b, i]
    return _comes_first(f.records(M), a, b)


@inner
def _comes_first(records: Array, a: int, b: int) -> bool:
    """Whether the first row in which they differ is `a`'s. Logarithmic, by jumps to where they are still one."""
    x, y = i64(a), i64(b)
    while _depth(records, x) > _depth(records, y):
        jump = i64(records[x].jump)
        x = jump if _depth(records, jump) >= _depth(records, y) else i64(records[x].parent)
    while _depth(records, y) > _depth(records, x):
        jump = i64(records[y].jump)
        y = jump if _depth(records, jump) >= _depth(records, x) else i64(records[y].parent)
    longer = _depth(records, a) > _depth(records, b)
    if x == y:
        return longer
    late_x, late_y = x, y
    while records[x].parent != records[y].parent:
        if records[x].jump != records[y].jump:
            x, y = i64(records[x].jump), i64(records[y].jump)
        else:
            x, y = i64(records[x].parent), i64(records[y].parent)
    if records[x].pos >> PLACE_BITS != records[y].pos >> PLACE_BITS:
        return records[x].pos < records[y].pos
    # the same row in two records: what they differ in comes later
    first = longer
    x, y = late_x, late_y
    while x != y:
        if records[x].pos >> PLACE_BITS != records[y].pos >> PLACE_BITS:
            first = records[x].pos < records[y].pos
        x, y = i64(records[x].parent), i64(records[y].parent)
    return first
