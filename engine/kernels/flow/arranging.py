"""Rows come into an arrangement, change their weight, and leave it.

A row's new weight is a new entry, born at the tick of the change, and the old entry dies then. What has died stays in
its chains until the next batch, since joins read the arrangement as of each tick of this one.

    as of the end of a tick t:  born <= t < died
"""

from __future__ import annotations

from typing import Final

from oxiseq.engine.kernels.compiling.options import inner, kernel
from oxiseq.engine.kernels.flow import arrangement as v
from oxiseq.engine.kernels.flow import buffers
from oxiseq.engine.kernels.flow.arrangement import (
    BEGINS,
    BORN,
    CHAINS,
    CLOCK,
    COMING,
    COUNTED,
    DEAD,
    DIED,
    ENTRIES,
    FREE,
    FREED,
    KEPT,
    KEYS,
    LACK,
    LEAST,
    LESS,
    LIMIT,
    LINK0,
    LINKS,
    LINKS_EACH,
    LIVE,
    NEVER,
    NEXT,
    PLACE,
    ROW,
    SHIFT,
    SPENT,
    TAG,
    TOP,
    WANTED,
    WEIGHT,
    WHOLE,
    WIDTH,
    Arrangement,
)
from oxiseq.engine.kernels.flow.buffers import DONE, NEED_ROOM, Delta, is_full, of_use_from
from oxiseq.engine.kernels.flow.moments import time_in
from oxiseq.engine.kernels.memory.hashing import key_tag, row_tag, same_rows
from oxiseq.engine.kernels.memory.numbers import i64
from oxiseq.engine.kernels.memory.pointers import WORDS, Array, Ptr
from oxiseq.engine.kernels.memory.raw import fetch, get
from oxiseq.engine.kernels.memory.slots import clear_slots, drop_slot, fetch_slot, find_number, put_slot, slot_of_row

_SPARSE: Final = 16
"""A table shrinks when it has so many times the entries that it needs."""
_WORDS: Final = WORDS * Arrangement._fields.index("words")
_BY_ROW: Final = WORDS * Arrangement._fields.index("by_row")
_BY_KEY: Final = WORDS * Arrangement._fields.index("by_key")
_CLEARED: Final = 32
"""So many slots are cleared in less time than one entry is taken out of its chains."""
_FAR: Final = 1 << 12
"""Entries from which on it pays to fetch memory ahead."""
_AHEAD: Final = 8
"""So many rows."""


@kernel
def arrange(S: Ptr[Arrangement], D: Delta) -> int:
    """Take in a delta D (buffers.Flowing)."""
    scalars, at, weight, rows = v.scalars(S), buffers.at(D), buffers.weight(D), buffers.rows(D)
    loose, count = v.loose(S), buffers.count(D)[0]
    if scalars[PLACE] == 0:
        sweep(S)
        if is_full(scalars[CLOCK], scalars[LIVE], scalars[KEPT], scalars[LIMIT]):
            _let_go(S)
        entries = v.words(S).shape[0]
        if entries > scalars[LEAST] and entries > _SPARSE * (scalars[LIVE] + count):
            scalars[LACK] = LESS
            return NEED_ROOM
    far = scalars[LIVE] > _FAR
    for i in range(scalars[PLACE], count):
        mask = mask_of(rows, i, 0, loose)
        if lacks_room(S, mask):
            scalars[PLACE] = i
            return NEED_ROOM
        if far and i + _AHEAD < count:
            fetch_row(S, rows, i + _AHEAD)
        _change(S, rows, i, mask, at[i], weight[i])
    scalars[PLACE] = 0
    return DONE


@inner
def lacks_room(S: Ptr[Arrangement], mask: int) -> bool:
    """Whether something is wanted before a row with this mask may come."""
    scalars = v.scalars(S)
    if scalars[FREE] < 0 and scalars[TOP] == v.words(S).shape[0]:
        scalars[LACK] = ENTRIES
        return True
    wanted = scalars[CHAINS] + v.asked(S)[mask]
    if 2 * wanted > v.by_key(S).shape[0]:
        scalars[LACK] = KEYS
        scalars[WANTED] = wanted
        return True
    return False


@inner
def fetch_row(S: Ptr[Arrangement], rows: Array, i: int) -> None:
    """Row `i` of a table will be taken in, or looked for, soon."""
    scalars, loose = v.scalars(S), v.loose(S)
    if scalars[WHOLE] == 0 and scalars[COMING] == 0:
        fetch_slot(S, _BY_ROW, row_tag(rows, i, 0, scalars[WIDTH]))
    if loose.shape[0] == 0:
        fetch_slot(S, _BY_KEY, key_tag(rows, i, 0, v.key(S), loose, 0, 0))
    elif scalars[COUNTED] != 0:
        mask = (1 << loose.shape[0]) - 1
        for number in range(v.asked(S)[mask]):
            fetch_slot(S, _BY_KEY, key_tag(rows, i, 0, v.key(S), loose, mask, v.subsets(S)[mask, number]))


@inner
def fetch_entry(S: Ptr[Arrangement], e: int) -> None:
    """An entry, or -1, will be read soon."""
    fetch(get(S, _WORDS) + 8 * e * get(S, _WORDS + 2))


@inner
def fetch_chain(S: Ptr[Arrangement], rows: Array, i: int, mask: int, subset: int) -> None:
    """A row, if the subset is all of it, or `first_of_chain` will be looked for soon."""
    if subset == mask:
        fetch_slot(S, _BY_ROW, row_tag(rows, i, 0, v.scalars(S)[WIDTH]))
    else:
        fetch_slot(S, _BY_KEY, key_tag(rows, i, 0, v.key(S), v.loose(S), mask, subset))


@inner
def mask_of(rows: Array, i: int, first: int, loose: Array) -> int:
    """Which of the loose columns a row binds."""
    mask = i64(0)
    for c in range(loose.shape[0]):
        if rows[i, first + loose[c]] != 0:
            mask |= 1 << c
    return mask


@inner
def _change(S: Ptr[Arrangement], rows: Array, i: int, mask: int, t: int, weight: int) -> None:
    """At tick t the row `i` of a table comes or goes so many times; there is room."""
    scalars, words, by_row = v.scalars(S), v.words(S), v.by_row(S)
    if scalars[COMING] != 0:
        new_entry(S, rows, i, mask, t, weight, 0)
        return
    whole = scalars[WHOLE] != 0
    tag, slot, e = i64(0), i64(-1), i64(-1)
    if whole:
        e = first_of_chain(S, rows, i, v.key(S), v.loose(S), 0, 0, 0)
        if e >= 0 and words[e, DIED] != NEVER:
            e = -1
    else:
        tag = row_tag(rows, i, 0, scalars[WIDTH])
        slot = slot_of_row(v.by_row(S), tag, v.halves(S), ROW, rows, i, scalars[WIDTH])
        if slot >= 0:
            e = i64(by_row[slot].number) - 1
    if e >= 0 and words[e, BORN] == t:
        words[e, WEIGHT] += weight
        if words[e, WEIGHT] == 0:  # no join will see it
            if not whole:
                drop_slot(by_row, slot)
            scalars[LIVE] -= 1
            _remove(S, e)
        return
    now = i64(weight)
    if e >= 0:
        now += words[e, WEIGHT]
        end_entry(S, e, t)
        if now == 0 and not whole:
            drop_slot(by_row, slot)
    if now == 0:
        return
    new = new_entry(S, rows, i, mask, t, now, tag)
    if whole:
        return
    if e >= 0:
        by_row[slot].number = new + 1
    else:
        put_slot(by_row, tag, new)


@inner
def end_entry(S: Ptr[Arrangement], e: int, t: int) -> None:
    """An entry dies; it stays in its chains, and leaves them before the next batch."""
    scalars = v.scalars(S)
    v.words(S)[e, DIED] = t
    v.links(S)[e, NEXT] = scalars[DEAD]
    scalars[DEAD] = e
    scalars[LIVE] -= 1
    scalars[SPENT] += 1


@inner
def new_entry(S: Ptr[Arrangement], rows: Array, i: int, mask: int, t: int, weight: int, tag: int) -> int:
    """A new entry, in its chains; there is room."""
    scalars, words, halves = v.scalars(S), v.words(S), v.halves(S)
    e = scalars[FREE]
    if e >= 0:
        scalars[FREE] = i64(v.links(S)[e, NEXT])
        fetch_entry(S, scalars[FREE])
    else:
        e = scalars[TOP]
        scalars[TOP] = e + 1
    words[e, WEIGHT], words[e, BORN], words[e, DIED] = weight, t, NEVER
    halves[e, TAG] = tag
    for c in range(scalars[WIDTH]):
        halves[e, ROW + c] = rows[i, c]
    scalars[LIVE] += 1
    _link_all(S, e, mask)
    return e


# --- chains ------------------------------------------------------------------------------------------


@inner
def first_of_chain(
    S: Ptr[Arrangement], rows: Array, i: int, key: Array, loose: Array, mask: int, subset: int, number: int
) -> int:
    """The newest entry of the chain with this mask and subset that agrees with a row, whose columns to be compared are
    at `key` and `loose`; -1: there is none. number: that of the chain's links."""
    tag = key_tag(rows, i, 0, key, loose, mask, subset)
    slot = _slot_of_chain(S, tag, rows, i, 0, key, loose, mask, subset, number)
    return (i64(v.by_key(S)[slot].number) - 1) >> v.scalars(S)[SHIFT] if slot >= 0 else -1


@inner
def row_of_set(
    S: Ptr[Arrangement], rows: Array, i: int, tag: int, width: int, until: int = NEVER, since: int = NEVER - 1
) -> int:
    """The entry of a row that was born before a tick and died after another, or else that is there; -1: there is none.
    `by_row` has those that have died in this batch, too."""
    slots, halves, words = v.by_row(S), v.halves(S), v.words(S)
    last = slots.shape[0] - 1
    slot = tag & last
    while slots[slot].number != 0:
        if slots[slot].tag == tag:
            e = i64(slots[slot].number) - 1
            there = words[e, BORN] < until and words[e, DIED] > since
            if there and same_rows(halves, e, ROW, rows, i, 0, width):
                return e
        slot = (slot + 1) & last
    return -1


@inner
def length_of_chain(S: Ptr[Arrangement], e: int, number: int) -> int:
    """How many entries the chain has that begins with this one, where chains are counted."""
    return -i64(v.links(S)[e, v.scalars(S)[LINK0] + 2 * number + 1])


@inner
def _slot_of_chain(
    S: Ptr[Arrangement],
    tag: int,
    rows: Array,
    i: int,
    first: int,
    key: Array,
    loose: Array,
    mask: int,
    subset: int,
    number: int,
) -> int:
    """Where in `by_key` a chain with this tag is; below 0: there is none, and -1 - slot is the free one that it would
    get."""
    slots, shift, all_bound = v.by_key(S), v.scalars(S)[SHIFT], v.scalars(S)[COUNTED] != 0
    last = slots.shape[0] - 1
    slot = tag & last
    while slots[slot].number != 0:
        if slots[slot].tag == tag:
            head = i64(slots[slot].number) - 1
            if head & ((1 << shift) - 1) == number:
                e = head >> shift
                same = all_bound or mask_of(v.halves(S), e, ROW, v.loose(S)) == mask
                if same and _agree(S, e, rows, i, first, key, loose, subset):
                    return slot
        slot = (slot + 1) & last
    return -1 - slot


@inner
def _agree(S: Ptr[Arrangement], e: int, rows: Array, i: int, first: int, key: Array, loose: Array, subset: int) -> bool:
    """Whether an entry and a row agree in the key and a subset of the loose columns."""
    halves, my_key, my_loose = v.halves(S), v.key(S), v.loose(S)
    for c in range(my_key.shape[0]):
        if halves[e, ROW + my_key[c]] != rows[i, first + key[c]]:
            return False
    if subset != 0:
        for c in range(my_loose.shape[0]):
            if subset >> c & 1 and halves[e, ROW + my_loose[c]] != rows[i, first + loose[c]]:
                return False
    return True


@inner
def _link_all(S: Ptr[Arrangement], e: int, mask: int) -> None:
    """Make an entry the first of all its chains; there is room."""
    v.seen(S)[mask] += 1
    for number in range(v.asked(S)[mask]):
        _link(S, e, mask, number)


@inner
def _link(S: Ptr[Arrangement], e: int, mask: int, number: int) -> None:
    """Make an entry the first of one of its chains; there is room."""
    scalars, halves, links, slots = v.scalars(S), v.halves(S), v.links(S), v.by_key(S)
    key, loose, shift = v.key(S), v.loose(S), scalars[SHIFT]
    subset, place = v.subsets(S)[mask, number], scalars[LINK0] + 2 * number
    tag = key_tag(halves, e, ROW, key, loose, mask, subset)
    slot = _slot_of_chain(S, tag, halves, e, ROW, key, loose, mask, subset, number)
    links[e, place + 1] = -1
    if slot < 0:
        links[e, place] = -1
        slots[-1 - slot].tag = tag
        slots[-1 - slot].number = (e << shift | number) + 1
        scalars[CHAINS] += 1
        return
    following = (i64(slots[slot].number) - 1) >> shift
    links[e, place] = following
    links[e, place + 1] = links[following, place + 1] - scalars[COUNTED]
    links[following, place + 1] = e
    slots[slot].number = (e << shift | number) + 1


@inner
def _unlink(S: Ptr[Arrangement], e: int, mask: int, number: int) -> None:
    """Take an entry out of one of its chains, which goes when it is empty."""
    scalars, halves, links, slots = v.scalars(S), v.halves(S), v.links(S), v.by_key(S)
    place, shift = scalars[LINK0] + 2 * number, scalars[SHIFT]
    following, previous = i64(links[e, place]), i64(links[e, place + 1])
    key, loose, subset = v.key(S), v.loose(S), v.subsets(S)[mask, number]
    if previous >= 0:
        if following >= 0:
            links[following, place + 1] = previous
        links[previous, place] = following
        if scalars[COUNTED] != 0:
            tag = key_tag(halves, e, ROW, key, loose, mask, subset)
            slot = _slot_of_chain(S, tag, halves, e, ROW, key, loose, mask, subset, number)
            links[(i64(slots[slot].number) - 1) >> shift, place + 1] += 1
        return
    if following >= 0:
        links[following, place + 1] = previous + scalars[COUNTED]
    slot = find_number(slots, key_tag(halves, e, ROW, key, loose, mask, subset), e << shift | number)
    if following >= 0:
        slots[slot].number = (following << shift | number) + 1
    else:
        drop_slot(slots, slot)
        scalars[CHAINS] -= 1


@inner
def _remove(S: Ptr[Arrangement], e: int) -> None:
    """An entry leaves its chains."""
    mask = mask_of(v.halves(S), e, ROW, v.loose(S))
    for number in range(v.asked(S)[mask]):
        _unlink(S, e, mask, number)
    v.seen(S)[mask] -= 1
    _free(S, e)


@inner
def _free(S: Ptr[Arrangement], e: int) -> None:
    """An entry's record will be used again."""
    scalars = v.scalars(S)
    v.words(S)[e, DIED] = FREED
    v.links(S)[e, NEXT] = scalars[FREE]
    scalars[FREE] = e


@inner
def sweep(S: Ptr[Arrangement]) -> None:
    """No join will read ticks of a former batch: what died then leaves."""
    scalars, links, by_row = v.scalars(S), v.links(S), v.by_row(S)
    e, spent, slots = scalars[DEAD], scalars[SPENT], by_row.shape[0] + v.by_key(S).shape[0]
    scalars[DEAD], scalars[SPENT] = -1, 0
    if 2 * spent > scalars[TOP] and _CLEARED * spent > slots:
        while scalars[LIVE] > 0 and e >= 0:
            following = i64(links[e, NEXT])
            _free(S, e)
            e = following
        _link_living(S)
        return
    while e >= 0:
        following = i64(links[e, NEXT])
        fetch_entry(S, following)
        if scalars[COUNTED] != 0:
            drop_slot(by_row, find_number(by_row, i64(v.halves(S)[e, TAG]), e))
        _remove(S, e)
        e = following


@inner
def empty(S: Ptr[Arrangement]) -> bool:
    """Between batches: all entries leave, if that takes less time than one after the other."""
    scalars = v.scalars(S)
    if _CLEARED * scalars[LIVE] <= v.by_row(S).shape[0] + v.by_key(S).shape[0]:
        return False
    scalars[LIVE] = 0
    _link_living(S)
    return True


@inner
def _link_living(S: Ptr[Arrangement]) -> None:
    """Most entries leave: the others are linked anew."""
    scalars, words, halves, seen = v.scalars(S), v.words(S), v.halves(S), v.seen(S)
    by_row, counted = v.by_row(S), scalars[COUNTED] != 0
    begin_again(S)
    clear_slots(v.by_key(S))
    if counted:
        clear_slots(by_row)
    scalars[CHAINS] = 0
    for mask in range(seen.shape[0]):
        seen[mask] = 0
    for e in range(scalars[TOP]):
        if words[e, DIED] != FREED:
            _link_all(S, e, mask_of(halves, e, ROW, v.loose(S)))
            if counted:
                put_slot(by_row, i64(halves[e, TAG]), e)


@kernel
def forget(S: Ptr[Arrangement], now: int) -> None:
    """Between batches: rows that are no longer of use leave, and nothing is emitted: if there may be many, or now."""
    scalars = v.scalars(S)
    if now or is_full(scalars[CLOCK], scalars[LIVE], scalars[KEPT], scalars[LIMIT]):
        sweep(S)
        _let_go(S)


@inner
def _let_go(S: Ptr[Arrangement]) -> None:
    scalars, words, halves = v.scalars(S), v.words(S), v.halves(S)
    before, place = of_use_from(scalars[CLOCK], scalars[LIMIT]), ROW + scalars[BEGINS]
    for e in range(scalars[TOP]):
        if words[e, DIED] == NEVER and time_in(halves, e, place) < before:
            drop(S, e)
    begin_again(S)
    scalars[KEPT] = scalars[LIVE]


@inner
def drop(S: Ptr[Arrangement], e: int) -> None:
    """Between batches: an entry that is there leaves."""
    scalars, by_row = v.scalars(S), v.by_row(S)
    if scalars[WHOLE] == 0 and scalars[COMING] == 0:
        drop_slot(by_row, find_number(by_row, i64(v.halves(S)[e, TAG]), e))
    scalars[LIVE] -= 1
    _remove(S, e)


@inner
def begin_again(S: Ptr[Arrangement]) -> None:
    """With the first entry, if there is none."""
    scalars = v.scalars(S)
    if scalars[LIVE] == 0 and scalars[DEAD] < 0:
        scalars[TOP], scalars[FREE] = 0, -1


@inner
def link_number(S: Ptr[Arrangement], mask: int, subset: int) -> int:
    """The number of the links of the chains of a mask and a subset, which are made if there are none yet. -1: room is
    wanted for them."""
    scalars, asked, subsets = v.scalars(S), v.asked(S), v.subsets(S)
    known = asked[mask]
    for number in range(known):
        if subsets[mask, number] == subset:
            return number
    if known == scalars[LINKS]:
        scalars[LACK] = LINKS_EACH
        return -1
    wanted = scalars[CHAINS] + v.seen(S)[mask]
    if 2 * wanted > v.by_key(S).shape[0]:
        scalars[LACK] = KEYS
        scalars[WANTED] = wanted
        return -1
    subsets[mask, known] = subset
    asked[mask] = known + 1
    words, halves, loose = v.words(S), v.halves(S), v.loose(S)
    for e in range(scalars[TOP]):
        if words[e, DIED] != FREED and mask_of(halves, e, ROW, loose) == mask:
            _link(S, e, mask, known)
    return known


# --- tables made again -------------------------------------------------------------------------------


@kernel
def fill_by_row(S: Ptr[Arrangement]) -> None:
    """Fill an empty table of rows from the entries."""
    scalars, words, slots, halves = v.scalars(S), v.words(S), v.by_row(S), v.halves(S)
    for e in range(scalars[TOP]):
        if words[e, DIED] == NEVER or (scalars[COUNTED] != 0 and words[e, DIED] != FREED):
            put_slot(slots, i64(halves[e, TAG]), e)


@kernel
def fill_by_key(S: Ptr[Arrangement]) -> None:
    """Fill an empty table of chains from the entries' links."""
    scalars, words, halves, links = v.scalars(S), v.words(S), v.halves(S), v.links(S)
    key, loose, slots, shift = v.key(S), v.loose(S), v.by_key(S), scalars[SHIFT]
    for e in range(scalars[TOP]):
        if words[e, DIED] == FREED:
            continue
        mask = mask_of(halves, e, ROW, loose)
        for number in range(v.asked(S)[mask]):
            if links[e, scalars[LINK0] + 2 * number + 1] < 0:
                tag = key_tag(halves, e, ROW, key, loose, mask, v.subsets(S)[mask, number])
                put_slot(slots, tag, e << shift | number)
