"""Ranks: rows come and go; the end of each tick emits how each group's first rows have changed (operators.md, 3.5).

    take    the rows of a tick, one by one: weights change; their entries are listed, their groups noted
    settle  entries go into the heaps of their groups and out of them, and over borders (rank_records.py)
    emit    of each listed entry − what was emitted, + what is to be emitted: the difference

O(log n) for each row, and for each row that is emitted; nothing depends on how many ranks are wanted.

The rows of a group are in pairing heaps on each side of a border: its last low row, its first high row. Putting in
takes one comparison; taking any row out O(log n) amortised (Fredman, Sedgewick, Sleator, Tarjan 1986). Links go to the
first child, to the next sibling, and back to the sibling before or, from a first child, to the parent.
"""

from __future__ import annotations

from oxiseq.engine.kernels.compiling.options import inner, kernel
from oxiseq.engine.kernels.flow import buffers as f
from oxiseq.engine.kernels.flow import rank_records as v
from oxiseq.engine.kernels.flow.buffers import DONE, NEED_ORDER, NEED_OUT, NEED_ROOM
from oxiseq.engine.kernels.flow.copying import put_row
from oxiseq.engine.kernels.flow.rank_records import (
    BY_NUMBER,
    BY_TERM,
    CHANGED,
    COUNT,
    DOWN,
    ENDLESS,
    FREE,
    GROUP_FREE,
    GROUP_TOP,
    GROUPS,
    HIGH,
    LAST,
    LISTED,
    LOW,
    NEITHER,
    NONE,
    NUMBER_DOWN,
    OPEN,
    ORDERED,
    ROW,
    SILENT,
    STARTS,
    STEPS,
    TELLING,
    TICK,
    TIES,
    TOP,
    UNLISTED,
)
from oxiseq.engine.kernels.memory.hashing import key_tag, row_tag
from oxiseq.engine.kernels.memory.numbers import i64
from oxiseq.engine.kernels.memory.pointers import Array, Ptr
from oxiseq.engine.kernels.memory.slots import drop_slot, find_key, find_number, put_slot, slot_of_row
from oxiseq.engine.kernels.terms.order import Order, compare_terms, compare_values, is_unknown, prefix_of
from oxiseq.engine.kernels.terms.table import Terms

# --- heaps -----------------------------------------------------------------------------------------


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


# --- ranks -----------------------------------------------------------------------------------------


@kernel
def rank(S: Ptr[v.RankMemory], D: Terms, L: Order, source: f.Delta, target: f.Delta) -> int:
    """Take the delta `source` from where the scalars say, and put into `target` what comes of it. D: the dictionary,
    L: the order of its terms."""
    scalars, at, n = v.scalars(S), f.at(source), f.count(source)[0]
    while True:
        if scalars[TELLING] == 0:
            i = scalars[ROW]
            if i < n and (scalars[OPEN] == 0 or at[i] == scalars[TICK]):
                need = _take(S, D, L, source, i)
                if need != DONE:
                    return need
                scalars[OPEN], scalars[TICK] = 1, at[i]
                scalars[ROW] += 1
                continue
            if scalars[OPEN] == 0:
                scalars[ROW] = 0
                return DONE
            _settle(S, D, L)
            scalars[TELLING] = 1
        if _tell(S, target) != DONE:
            return NEED_OUT
        _free_groups(S)
        scalars[TELLING] = scalars[OPEN] = 0


# --- take -------------------------------------------------------------------------------------------


@inner
def _take(S: Ptr[v.RankMemory], D: Terms, L: Order, source: f.Delta, i: int) -> int:
    """Add the weight of a row."""
    given, width = f.rows(source), f.rows(source).shape[1]
    tag = row_tag(given, i, 0, width)
    slot = slot_of_row(v.slots(S), tag, v.rows(S), 0, given, i, width)
    e = i64(v.slots(S)[slot].number) - 1 if slot >= 0 else i64(NONE)
    if e < 0:
        if not _has_room(S):
            return NEED_ROOM
        sequence = v.sequence(S)
        for c in range(sequence.shape[0]):
            if sequence[c, 1] < BY_NUMBER and is_unknown(D, L, given[i, sequence[c, 0]]):
                return NEED_ORDER
        e = _new_entry(S, D, L, given, i, tag)
    _note_group(S, v.entries(S)[e].group)
    _list(S, e)
    v.entries(S)[e].weight += f.weight(source)[i]
    return DONE


@inner
def _has_room(S: Ptr[v.RankMemory]) -> bool:
    """For one more entry and one more group."""
    scalars = v.scalars(S)
    return (
        (scalars[FREE] >= 0 or scalars[TOP] < v.entries(S).shape[0])
        and 2 * (scalars[COUNT] + 1) <= v.slots(S).shape[0]
        and (scalars[GROUP_FREE] >= 0 or scalars[GROUP_TOP] < v.groups(S).shape[0])
        and 2 * (scalars[GROUPS] + 1) <= v.group_slots(S).shape[0]
    )


@inner
def _new_entry(S: Ptr[v.RankMemory], D: Terms, L: Order, given: Array, i: int, tag: int) -> int:
    """An entry of weight 0 for a row that has none; there is room."""
    scalars, entries, rows, links = v.scalars(S), v.entries(S), v.rows(S), v.links(S)
    e = scalars[FREE]
    if e >= 0:
        scalars[FREE] = entries[e].chain
    else:
        e = scalars[TOP]
        scalars[TOP] += 1
    scalars[COUNT] += 1
    for c in range(rows.shape[1]):
        rows[e, c] = given[i, c]
    entry = entries[e]
    entry.weight = 0
    entry.told = 0
    entry.tag = tag
    entry.chain = UNLISTED
    entry.group = _group_of(S, e)
    v.groups(S)[entry.group].count += 1
    put_slot(v.slots(S), tag, e)
    count = v.bounds(S).shape[0]
    prefix = _prefix(S, D, L, e)
    for border in range(count):
        links[e * count + border].prefix = prefix
        links[e * count + border].side = NEITHER
    return e


@inner
def _prefix(S: Ptr[v.RankMemory], D: Terms, L: Order, e: int) -> int:
    sequence = v.sequence(S)
    if sequence.shape[0] == 0:
        return i64(0)
    first, how = i64(v.rows(S)[e, sequence[0, 0]]), sequence[0, 1]
    prefix = first if how >= BY_NUMBER else prefix_of(D, L, first)
    return 0x7FFFFFFFFFFFFFFF - prefix if how in (DOWN, NUMBER_DOWN) else prefix


@inner
def _group_of(S: Ptr[v.RankMemory], e: int) -> int:
    """The group of an entry's row, which may be new; there is room."""
    rows, place, keys, slots = v.rows(S), v.place(S), v.keys(S), v.group_slots(S)
    tag = key_tag(rows, e, 0, place, place, 0, 0)
    g = find_key(slots, tag, keys, rows, e, place)
    return g if g >= 0 else _new_group(S, e, tag)


@inner
def _new_group(S: Ptr[v.RankMemory], e: int, tag: int) -> int:
    scalars, groups, keys, borders = v.scalars(S), v.groups(S), v.keys(S), v.borders(S)
    place, count = v.place(S), v.bounds(S).shape[0]
    g = scalars[GROUP_FREE]
    if g >= 0:
        scalars[GROUP_FREE] = groups[g].chain
    else:
        g = scalars[GROUP_TOP]
        scalars[GROUP_TOP] += 1
    scalars[GROUPS] += 1
    for c in range(place.shape[0]):
        keys[g, c] = v.rows(S)[e, place[c]]
    group = groups[g]
    group.tag = tag
    group.count = 0
    group.chain = UNLISTED
    put_slot(v.group_slots(S), tag, g)
    for border in range(count):
        part = borders[g * count + border]
        part.copies = 0
        part.low = NONE
        part.high = NONE
    return g


@inner
def _note_group(S: Ptr[v.RankMemory], g: int) -> None:
    """Its heaps are to be set right; the last one before a border may be emitted or retracted."""
    scalars, group, count = v.scalars(S), v.groups(S)[g], v.bounds(S).shape[0]
    if group.chain != UNLISTED:
        return
    group.chain = scalars[CHANGED]
    scalars[CHANGED] = g
    for border in range(count):
        last = i64(v.borders(S)[g * count + border].low)
        if last >= 0:
            _list(S, last)


@inner
def _list(S: Ptr[v.RankMemory], e: int) -> None:
    """An entry may be emitted or retracted at the end of the tick."""
    scalars, entry = v.scalars(S), v.entries(S)[e]
    if entry.chain == UNLISTED:
        entry.was = entry.weight
        entry.chain = scalars[LISTED]
        scalars[LISTED] = e


# --- settle -----------------------------------------------------------------------------------------


@inner
def _settle(S: Ptr[v.RankMemory], D: Terms, L: Order) -> None:
    """Bring all heaps to the weights that there are now. A row whose weight is not above 0 is in none."""
    scalars, entries, groups, count = v.scalars(S), v.entries(S), v.groups(S), v.bounds(S).shape[0]
    e = scalars[LISTED]
    while e != LAST:
        entry = entries[e]
        if entry.was != entry.weight:
            for border in range(count):
                _move(S, D, L, e, border)
        e = i64(entry.chain)
    g = scalars[CHANGED]
    while g != LAST:
        for border in range(count):
            if scalars[TIES]:
                _level(S, D, L, g, border)
            else:
                _balance(S, D, L, g, border)
        g = i64(groups[g].chain)


@inner
def _move(S: Ptr[v.RankMemory], D: Terms, L: Order, e: int, border: int) -> None:
    """Put an entry into a border, take it out, or count its copies again."""
    count, entry = v.bounds(S).shape[0], v.entries(S)[e]
    part, link = v.borders(S)[entry.group * count + border], v.links(S)[e * count + border]
    was, now = entry.was, entry.weight
    if was > 0 and now > 0:
        if link.side == LOW:
            part.copies += now - was
    elif was > 0:
        if link.side == LOW:
            part.copies -= was
            part.low = take_out(S, D, L, border, part.low, e)
        else:
            part.high = take_out(S, D, L, border, part.high, e)
    elif now > 0:
        if part.low >= 0 and _belongs_low(S, D, L, e, part.low, border):
            part.copies += now
            part.low = put_in(S, D, L, border, part.low, e, LOW)
        else:
            part.high = put_in(S, D, L, border, part.high, e, HIGH)


@inner
def _belongs_low(S: Ptr[v.RankMemory], D: Terms, L: Order, e: int, last: int, border: int) -> bool:
    """Whether a new row comes before the last of the low rows; of ties: with them."""
    if v.scalars(S)[TIES]:
        return compare_ordered(S, D, L, e, last) == 0
    return ranks_before(S, D, L, border, e, last)


@inner
def _lower(S: Ptr[v.RankMemory], D: Terms, L: Order, g: int, border: int) -> None:
    """The first of the high rows becomes a low one."""
    part = v.borders(S)[g * v.bounds(S).shape[0] + border]
    e = i64(part.high)
    _list(S, e)
    part.high = take_out(S, D, L, border, e, e)
    part.low = put_in(S, D, L, border, part.low, e, LOW)
    part.copies += v.entries(S)[e].weight


@inner
def _raise(S: Ptr[v.RankMemory], D: Terms, L: Order, g: int, border: int) -> None:
    """The last of the low rows becomes a high one."""
    part = v.borders(S)[g * v.bounds(S).shape[0] + border]
    e = i64(part.low)
    _list(S, e)
    part.low = take_out(S, D, L, border, e, e)
    part.high = put_in(S, D, L, border, part.high, e, HIGH)
    part.copies -= v.entries(S)[e].weight


@inner
def _balance(S: Ptr[v.RankMemory], D: Terms, L: Order, g: int, border: int) -> None:
    """As few low rows as have the copies of the ranks before the border."""
    part, bound, entries = v.borders(S)[g * v.bounds(S).shape[0] + border], v.bounds(S)[border], v.entries(S)
    while part.copies < bound and part.high >= 0:
        _lower(S, D, L, g, border)
    while part.low >= 0 and part.copies - entries[part.low].weight >= bound:
        _raise(S, D, L, g, border)
    if part.low >= 0:
        _list(S, part.low)


@inner
def _level(S: Ptr[v.RankMemory], D: Terms, L: Order, g: int, border: int) -> None:
    """Low rows are those that are equal to the first."""
    part = v.borders(S)[g * v.bounds(S).shape[0] + border]
    if part.high < 0 or (part.low >= 0 and compare_ordered(S, D, L, part.low, part.high) < 0):
        return
    while part.low >= 0:
        _raise(S, D, L, g, border)
    first = i64(part.high)
    while part.high >= 0 and compare_ordered(S, D, L, first, part.high) == 0:
        _lower(S, D, L, g, border)


# --- emit -------------------------------------------------------------------------------------------


@inner
def _tell(S: Ptr[v.RankMemory], target: f.Delta) -> int:
    """Emit the change of each listed entry, and free those that are gone."""
    scalars, entries, rows = v.scalars(S), v.entries(S), v.rows(S)
    while scalars[LISTED] != LAST:
        e = scalars[LISTED]
        entry = entries[e]
        now = _copies(S, e)
        if now != entry.told:
            change = now - entry.told
            if scalars[SILENT] == 0 and not put_row(target, scalars[TICK], change, rows, e, 0, rows.shape[1]):
                return NEED_OUT
            entry.told = now
        scalars[LISTED] = entry.chain
        entry.chain = UNLISTED
        if entry.weight == 0:
            _free_entry(S, e)
    return DONE


@inner
def _copies(S: Ptr[v.RankMemory], e: int) -> int:
    """How many copies of a row are to be emitted."""
    scalars = v.scalars(S)
    told = max(v.entries(S)[e].weight, i64(0))
    if scalars[ENDLESS] == 0:
        told = _copies_before(S, e, v.bounds(S).shape[0] - 1)
    if scalars[STARTS]:
        told -= _copies_before(S, e, 0)
    return told


@inner
def _copies_before(S: Ptr[v.RankMemory], e: int, border: int) -> int:
    """How many copies of a row lie before a border."""
    count, entry = v.bounds(S).shape[0], v.entries(S)[e]
    if v.links(S)[e * count + border].side != LOW:
        return i64(0)
    part = v.borders(S)[entry.group * count + border]
    if v.scalars(S)[TIES] or part.low != e:
        return entry.weight
    return entry.weight - max(part.copies - v.bounds(S)[border], i64(0))


@inner
def _free_entry(S: Ptr[v.RankMemory], e: int) -> None:
    scalars, entry, rows = v.scalars(S), v.entries(S)[e], v.rows(S)
    drop_slot(v.slots(S), find_number(v.slots(S), entry.tag, e))
    v.groups(S)[entry.group].count -= 1
    for c in range(rows.shape[1]):
        rows[e, c] = 0  # its terms are held no longer
    entry.chain = scalars[FREE]
    scalars[FREE] = e
    scalars[COUNT] -= 1


@inner
def _free_groups(S: Ptr[v.RankMemory]) -> None:
    """Those that have no rows any more."""
    scalars, groups = v.scalars(S), v.groups(S)
    while scalars[CHANGED] != LAST:
        g = scalars[CHANGED]
        group = groups[g]
        scalars[CHANGED] = group.chain
        group.chain = UNLISTED
        if group.count == 0:
            drop_slot(v.group_slots(S), find_number(v.group_slots(S), group.tag, g))
            group.chain = scalars[GROUP_FREE]
            scalars[GROUP_FREE] = g
            scalars[GROUPS] -= 1


# --- room -------------------------------------------------------------------------------------------


@kernel
def fill_slots(S: Ptr[v.RankMemory]) -> None:
    """Fill empty hash tables from the entries and the groups."""
    scalars, entries, groups = v.scalars(S), v.entries(S), v.groups(S)
    free = scalars[FREE]
    while free >= 0:  # marked for now
        entries[free].group = NONE
        free = i64(entries[free].chain)
    for e in range(scalars[TOP]):
        if entries[e].group >= 0:
            put_slot(v.slots(S), entries[e].tag, e)
    free = scalars[GROUP_FREE]
    while free >= 0:
        groups[free].count = NONE
        free = i64(groups[free].chain)
    for g in range(scalars[GROUP_TOP]):
        if groups[g].count >= 0:
            put_slot(v.group_slots(S), groups[g].tag, g)
