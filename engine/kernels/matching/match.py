"""The match kernel: one pass over a batch's events, from triples to rows (matching.md, section 4).

In the flow: event batch + tables → **rows** by GPM (event, undecided flag, term ids). Per event: put the
triples into slots; instances whose slots are all filled are joined depth first over the slots' hits, filters
run as soon as their variables are bound. One function on purpose: arrays in local variables are what makes it
fast; in parts it took 2 to 17 % longer.

Complexity: O(triples + hits) per event, and the visited hits of the joins; a bound subject or object in a slot of
`hash_from` hits and more is looked up by a hash chain. Comparisons of one variable with many numbers are one search.

Limits: a GPM that is beyond one on an event has no rows there, and is noted; other GPMs and events are not touched. The
GPMs of an instance are joined together. If they are beyond a limit together, the join starts over for each alone, so no
GPM has fewer rows, and none of the instance needs more memory, than the limit of one allows.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from numba import types

from oxiseq.engine import kinds
from oxiseq.engine.kernels.compiling.as_python import intrinsic_or
from oxiseq.engine.kernels.compiling.options import inner, kernel
from oxiseq.engine.kernels.compiling.yielding import STEPS, yield_lock
from oxiseq.engine.kernels.expressions.machine import TRUE, UNDECIDED, truth
from oxiseq.engine.kernels.matching import records as r
from oxiseq.engine.kernels.memory.hashing import SPREAD
from oxiseq.engine.kernels.memory.numbers import i64, u64
from oxiseq.engine.kernels.memory.pointers import Array, Ptr
from oxiseq.engine.kernels.terms import columns as worth
from oxiseq.engine.kernels.terms.columns import Columns

FULL: Final = -1
"""No room for a row: the event is undone; enlarge the output and resume."""
NEED_ROOM: Final = -2
"""An event has more triples than the scratch arrays hold: enlarge them and call again."""
NEED_LIMITS: Final = -3
"""No room to note what is beyond a limit at the next event: enlarge `MatchMemory.limits` and resume."""
TOO_MANY_ROWS: Final = 1
TOO_MANY_VISITS: Final = 2
"""Why a GPM has no rows on an event: see `MatchMemory.limits`."""

_INTEGER: Final = kinds.INTEGER
_DECIMAL: Final = kinds.DECIMAL
_DOUBLE: Final = kinds.DOUBLE
_ROUNDED: Final = kinds.ROUNDED
_LINEAR: Final = 8
"""Up to so many hits of a slot, duplicates are sought one by one."""


@inner
def _mix(a: int, b: int, c: int) -> int:
    """A hash of three ids, not negative."""
    h = u64(a) * SPREAD
    h = (h ^ (h >> u64(29)) ^ u64(b)) * u64(0xBF58476D1CE4E5B9)
    h = (h ^ (h >> u64(32)) ^ u64(c)) * u64(0x94D049BB133111EB)
    return i64((h ^ (h >> u64(31))) & u64(0x7FFFFFFFFFFFFFFF))


@inner
def object_place(key: int, size: int) -> int:
    """Where the search for a (predicate number << 32 | object id) begins; size: a power of two."""
    h = u64(key) * SPREAD
    return i64((h ^ (h >> u64(32))) & u64(size - 1))


@intrinsic_or(lambda mask: (mask & -mask).bit_length() - 1 if mask else 64)
def _trailing_zeros(typing_context: Any, mask: Any) -> tuple[Any, Callable[..., Any]]:
    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.cttz(args[0], context.get_constant(types.boolean, 0))

    return types.int64(types.int64), generate


lowest: Callable[[int], int] = _trailing_zeros
"""The number of the lowest bit of a mask that is not 0."""


@kernel
def fill_objects(objects: Array, keys: Array) -> None:
    """Put the keys (i64[k], distinct) into `MatchTables.objects`, with their numbers; it must be larger."""
    size = objects.shape[0]
    for n in range(keys.shape[0]):
        at = object_place(keys[n], size)
        while objects[at, 0] >= 0:
            at = (at + 1) & (size - 1)
        objects[at, 0] = keys[n]
        objects[at, 1] = n


@kernel
def match_events(
    T: Ptr[r.MatchTables],
    C: Columns,
    M: Ptr[r.MatchMemory],
    resumed: bool,
    offset: Array,
    subject: Array,
    predicate: Array,
    object_: Array,
) -> int:
    """The number of rows, or a status below 0; more is in `MatchMemory.state`.

    T, C, M: addresses of MatchTables, TermColumns, MatchMemory. offset i64[n + 1]; subject, predicate, object_
    u32[m]. `resumed`: begin with the event state[FIRST] and append to the state[ROWS] rows already written. In the
    end the rows are sorted by GPM (`event`, `flag`, `row_values`, `row0`), within one in order of events.
    """
    predicate_number, with_object = r.predicate(T), r.with_object(T)
    slot0, slot_list, slots = r.slot0(T), r.slot(T), r.slots(T)
    objects, object0, object_slot = r.objects(T), r.object0(T), r.object_slot(T)
    instance0, pattern_slot, order0 = r.instance0(T), r.pattern_slot(T), r.order0(T)
    steps, filters, filter_number = r.steps(T), r.filters(T), r.filter_number(T)
    filter_mask, ladders, rung = r.filter_mask(T), r.ladders(T), r.rung(T)
    rung_fails, gpm0, gpm = r.rung_fails(T), r.gpm0(T), r.gpm(T)
    column0, column, program0 = r.column0(T), r.column(T), r.program0(T)
    code, widths, trigger = r.code(T), r.widths(T), r.trigger(T)
    kind, number, exact, quality = worth.kind(C), worth.number(C), worth.exact(C), worth.quality(C)
    state, views, touched = r.state(M), r.views(M), r.touched(M)
    hit, chain, head = r.hits(M), r.chain(M), r.head(M)
    built, candidates, vals = r.built(M), r.candidates(M), r.values(M)
    depths, limits, wanted = r.depths(M), r.limits(M), r.wanted(M)
    numbers, entries, memo = r.numbers(M), r.entries(M), r.memo(M)
    # the rows of a single GPM are written where they will stay
    gpms = r.row0(M).shape[0] - 1
    out, out_values = r.out(M), r.out_values(M) if gpms > 1 else r.row_values(M)

    n_events, n_predicates = offset.shape[0] - 1, predicate_number.shape[0]
    any0, any1 = i64(slot0[1]), i64(slot0[2])
    hash_from, most_rows, most_visits = state[r.HASH_FROM], state[r.MOST_ROWS], state[r.MOST_VISITS]
    heads, room = head.shape[0], out.shape[0]
    if not resumed:
        state[r.FIRST] = state[r.ROWS] = state[r.DOUBTFUL] = state[r.LIMITS] = 0
    most = i64(0)
    for event in range(state[r.FIRST], n_events):
        most = max(most, offset[event + 1] - offset[event])
    if most * widths[3] >= hit.shape[0] or (state[r.GROW_HEADS] != 0 and heads < most):
        state[r.NEEDED] = most * widths[3] + 1
        return NEED_ROOM
    rows, doubtful_rows, noted, stamp = state[r.ROWS], state[r.DOUBTFUL], state[r.LIMITS], state[r.STAMP]

    for event in range(state[r.FIRST], n_events):
        rows_before, doubtful_before, noted_before = rows, doubtful_rows, noted
        if noted + gpms > limits.shape[0]:
            state[r.FIRST], state[r.ROWS], state[r.DOUBTFUL] = event, rows, doubtful_rows
            state[r.LIMITS], state[r.STAMP] = noted, stamp
            return NEED_LIMITS
        stamp += 1
        n_touched, hits = 0, 0
        for t in range(offset[event], offset[event + 1]):
            place = u64(t)  # surely not negative: else Numba tests each index for counting from the end
            p = i64(predicate[place])
            c = i64(predicate_number[p]) if p < n_predicates else i64(0)
            if c == 0 and any0 == any1:
                continue
            s, o = i64(subject[place]), i64(object_[place])
            part = 0
            k, k_end = i64(slot0[c]), i64(slot0[c + 1])
            while True:
                if k == k_end:
                    if part == 0:
                        part = 1
                        if with_object[c] != 0:
                            key = c << 32 | o
                            at = object_place(key, objects.shape[0])
                            while objects[at, 0] >= 0:
                                if objects[at, 0] == key:
                                    k, k_end = i64(object0[objects[at, 1]]), i64(object0[objects[at, 1] + 1])
                                    break
                                at = (at + 1) & (objects.shape[0] - 1)
                        continue
                    if part == 1:
                        part = 2
                        k, k_end = any0, any1
                        continue
                    break
                slot = i64(object_slot[k]) if part == 1 else i64(slot_list[k])
                k += 1
                flags = slots[slot, 2]
                if flags != 0 and (
                    (flags & r.HAS_SUBJECT and slots[slot, 0] != s)
                    or (flags & r.HAS_OBJECT and slots[slot, 1] != o)
                    or (flags & r.SUBJECT_OBJECT and s != o)
                    or (flags & r.SUBJECT_PREDICATE and s != p)
                    or (flags & r.PREDICATE_OBJECT and p != o)
                ):
                    continue
                if views[slot, 0] != stamp:
                    views[slot, 0] = stamp
                    views[slot, 1] = hits
                    views[slot, 3] = 1
                    if slots[slot, 3] != slots[slot, 4]:
                        touched[n_touched] = slot
                        n_touched += 1
                else:  # a graph is a set: the same triple again adds nothing
                    known = False
                    if views[slot, 3] <= _LINEAR:
                        i = views[slot, 1]
                        while i >= 0:
                            if hit[i, 1] == s and hit[i, 3] == o and hit[i, 2] == p:
                                known = True
                                break
                            i = hit[i, 4]
                    if views[slot, 3] >= _LINEAR and not known:
                        i = views[slot, 1] if views[slot, 3] == _LINEAR else hits
                        while i >= 0:  # the hits that are not in their chains yet; the new one comes last
                            a, b, d = (s, p, o) if i == hits else (hit[i, 1], hit[i, 2], hit[i, 3])
                            h = _mix(a + (slot << 32), b, d) & (heads - 1)
                            if head[h, 5] != stamp:
                                head[h, 5] = stamp
                                head[h, 2] = -1
                            if i == hits:
                                j = head[h, 2]
                                while j >= 0:
                                    if hit[j, 0] == slot and hit[j, 1] == s and hit[j, 3] == o:
                                        known = hit[j, 2] == p
                                    if known:
                                        break
                                    j = chain[j, 2]
                                if known:
                                    break
                            chain[i, 2] = head[h, 2]
                            head[h, 2] = i
                            i = -1 if i == hits else hits if hit[i, 4] < 0 else hit[i, 4]
                    if known:
                        continue
                    hit[views[slot, 2], 4] = hits
                    views[slot, 3] += 1
                views[slot, 2] = hits
                hit[hits, 0], hit[hits, 1], hit[hits, 2], hit[hits, 3] = slot, s, p, o
                hit[hits, 4] = -1
                hits += 1

        n_candidates = 0
        for k in range(n_touched):
            slot = touched[k]
            for q in range(slots[slot, 3], slots[slot, 4]):
                b = i64(trigger[q])
                filled = wanted[b] != 0
                for j in range(instance0[b], instance0[b + 1]):
                    if views[pattern_slot[j], 0] != stamp:
                        filled = False
                        break
                if filled:
                    candidates[n_candidates] = b
                    n_candidates += 1

        for k in range(n_candidates):
            b = candidates[k]
            first_pattern, n_steps = i64(instance0[b]), i64(instance0[b + 1] - instance0[b])
            smallest = first_pattern
            for j in range(first_pattern + 1, first_pattern + n_steps):
                if views[pattern_slot[j], 3] < views[pattern_slot[smallest], 3]:
                    smallest = j
            step0 = i64(order0[smallest])
            first_gpm = i64(gpm0[b])
            left, apart = wanted[b], False
            while left != 0:
                joined = left & -left if apart else left
                left ^= joined
                rows_joined, doubtful_joined, beyond = rows, doubtful_rows, 0
                visits, yielded = 0, 0
                d = 0
                depths[0, 0] = views[steps[step0, 0], 1]
                depths[0, 1] = -1
                depths[0, 2] = joined
                depths[0, 3] = 0
                while d >= 0:
                    step = step0 + d
                    slot, bits = i64(steps[step, 0]), steps[step, 4]
                    v_s, v_p, v_o = i64(steps[step, 1]), i64(steps[step, 2]), i64(steps[step, 3])
                    i, by = depths[d, 0], depths[d, 1]
                    while i >= 0:
                        if by >= 0 and hit[i, 0] != slot:  # a hit of another slot
                            i = chain[i, by]
                            continue
                        visits += 1
                        if not (
                            (bits & 1 and hit[i, 1] != vals[v_s])
                            or (bits & 4 and hit[i, 3] != vals[v_o])
                            or (bits & 2 and hit[i, 2] != vals[v_p])
                        ):
                            break
                        i = hit[i, 4] if by < 0 else chain[i, by]
                    if visits > most_visits:
                        beyond = TOO_MANY_VISITS
                        break
                    if visits - yielded >= STEPS:
                        yielded = visits
                        yield_lock()
                    if i < 0:
                        d -= 1
                        while d >= 0 and depths[d, 0] < 0:  # nothing left there: no need to look
                            d -= 1
                        continue
                    depths[d, 0] = hit[i, 4] if by < 0 else chain[i, by]
                    if v_s >= 0:
                        vals[v_s] = hit[i, 1]
                    if v_p >= 0:
                        vals[v_p] = hit[i, 2]
                    if v_o >= 0:
                        vals[v_o] = hit[i, 3]
                    mask, doubt = depths[d, 2], depths[d, 3]
                    f, f_end = i64(steps[step, 5]), i64(steps[step, 6])
                    while f < f_end:
                        ladder = i64(filters[f, 4])
                        if ladder >= 0:  # the filters up to the ladder's end compare one variable with numbers
                            if ladders[ladder, 1] & mask == 0:
                                f = ladders[ladder, 4]
                                continue
                            x = vals[ladders[ladder, 0]]
                            kx, fx = kind[x], number[x]
                            if kx in (_INTEGER, _DECIMAL, _DOUBLE) and quality[x] & _ROUNDED and fx == fx:
                                low, size = ladders[ladder, 2], ladders[ladder, 3]
                                while size > 0:  # the first rung that is not below the value
                                    half = size >> 1
                                    if rung[low + half] < fx:
                                        low += half + 1
                                        size -= half + 1
                                    else:
                                        size = half
                                if rung[low] != fx:
                                    mask &= ~rung_fails[low]
                                    if mask == 0:
                                        break
                                    f = ladders[ladder, 4]
                                    continue
                        concerned = filter_mask[f] & mask
                        if concerned != 0:
                            outcome = UNDECIDED
                            if filters[f, 1] >= 0:
                                x = vals[filters[f, 1]]
                                kx = kind[x]
                                if kx in (_INTEGER, _DECIMAL, _DOUBLE) and quality[x] & _ROUNDED:
                                    if number[x] < filter_number[f]:
                                        outcome = i64(filters[f, 2])
                                    elif number[x] > filter_number[f]:
                                        outcome = i64(filters[f, 3])
                            if outcome == UNDECIDED:
                                program = filters[f, 0]
                                outcome = truth(
                                    code,
                                    program0[program],
                                    program0[program + 1],
                                    vals,
                                    kind,
                                    number,
                                    exact,
                                    quality,
                                    memo,
                                    numbers,
                                    entries,
                                )
                            if outcome == UNDECIDED:
                                doubt |= concerned
                            elif outcome != TRUE:
                                mask &= ~concerned
                                if mask == 0:
                                    break
                        f += 1
                    if mask == 0:
                        while d >= 0 and depths[d, 0] < 0:
                            d -= 1
                        continue
                    if d + 1 < n_steps:
                        d += 1
                        step += 1
                        slot, bits = i64(steps[step, 0]), steps[step, 4]
                        depths[d, 0] = views[slot, 1]
                        depths[d, 1] = -1
                        depths[d, 2] = mask
                        depths[d, 3] = doubt
                        if bits & 5 and views[slot, 3] >= hash_from:
                            by = i64(0) if bits & 1 else i64(1)
                            field = i64(1) if by == 0 else i64(3)
                            if built[slot, by] != stamp:
                                built[slot, by] = stamp
                                j = views[slot, 1]
                                while j >= 0:
                                    h = _mix(hit[j, field], 0, 0) & (heads - 1)
                                    if head[h, 3 + by] != stamp:
                                        head[h, 3 + by] = stamp
                                        head[h, by] = -1
                                    chain[j, by] = head[h, by]
                                    head[h, by] = j
                                    j = hit[j, 4]
                            key = vals[steps[step, 1]] if by == 0 else vals[steps[step, 3]]
                            h = _mix(key, 0, 0) & (heads - 1)
                            depths[d, 1] = by
                            depths[d, 0] = head[h, by] if head[h, 3 + by] == stamp else -1
                        continue
                    while mask != 0:
                        q = first_gpm + lowest(mask)
                        bit = mask & -mask
                        mask ^= bit
                        g = i64(gpm[q])
                        if rows - rows_joined == most_rows:
                            beyond = TOO_MANY_ROWS
                            break
                        if rows == room:
                            state[r.FIRST], state[r.ROWS], state[r.DOUBTFUL] = event, rows_before, doubtful_before
                            state[r.LIMITS], state[r.STAMP] = noted_before, stamp
                            return FULL
                        out[rows, 0], out[rows, 1], out[rows, 2] = event, g, 0
                        if doubt & bit:
                            out[rows, 2] = 1
                            doubtful_rows += 1
                        first_column = column0[g]
                        for j in range(first_column, column0[g + 1]):
                            out_values[rows, j - first_column] = vals[column[j]]
                        rows += 1
                    if beyond != 0:
                        break
                    while d >= 0 and depths[d, 0] < 0:
                        d -= 1
                if beyond != 0:
                    rows, doubtful_rows = rows_joined, doubtful_joined
                    if joined & (joined - 1):
                        left, apart = joined, True
                    else:
                        limits[noted, 0], limits[noted, 1] = event, gpm[first_gpm + lowest(joined)]
                        limits[noted, 2] = beyond
                        noted += 1
    state[r.FIRST], state[r.ROWS], state[r.DOUBTFUL], state[r.STAMP] = n_events, rows, doubtful_rows, stamp
    state[r.LIMITS] = noted
    if rows > 0:
        _sort_rows(M, T, rows)
    return rows


@inner
def _sort_rows(M: Ptr[r.MatchMemory], T: Ptr[r.MatchTables], rows: int) -> None:
    """Put the rows of each GPM together."""
    out, out_values, row0 = r.out(M), r.out_values(M), r.row0(M)
    event, flag, values = r.event(M), r.flag(M), r.row_values(M)
    column0 = r.column0(T)
    if row0.shape[0] == 2:
        row0[0], row0[1] = 0, rows
        for i in range(rows):
            event[i] = out[i, 0]
            flag[i] = out[i, 2]
        return
    for g in range(row0.shape[0]):
        row0[g] = 0
    for i in range(rows):
        row0[out[i, 1] + 1] += 1
    for g in range(1, row0.shape[0]):
        row0[g] += row0[g - 1]
    for i in range(rows):
        g = out[i, 1]
        at = row0[g]
        row0[g] = at + 1
        event[at] = out[i, 0]
        flag[at] = out[i, 2]
        for j in range(column0[g + 1] - column0[g]):
            values[at, j] = out_values[i, j]
    for g in range(row0.shape[0] - 1, 0, -1):
        row0[g] = row0[g - 1]
    row0[0] = 0
