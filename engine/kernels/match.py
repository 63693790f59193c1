"""The match kernel: one pass over a batch's events, from triples to rows (matching.md, section 4).

Where it stands: event batch + tables → **rows** (event, GPM, undecided flag, term ids). Per event: put the
triples into slots; instances whose slots are all filled are joined depth first over the slots' views, filters
run as soon as their variables are bound. One function on purpose: arrays in local variables are what makes it
fast (pitfall 1 there).

Complexity: O(triples + hits) per event, and the visited entries of the joins; a bound subject or object in a
view of `hash_from` triples and more is looked up by a hash chain.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from oxiseq.engine import kinds
from oxiseq.engine.kernels.machine import (
    ABOVE,
    AT_LEAST,
    AT_MOST,
    BELOW,
    TRUE,
    UNDECIDED,
    UNEQUAL,
    entry_truth,
    run,
)
from oxiseq.engine.kernels.options import inner, kernel

DONE: Final = 0
FULL: Final = 1
"""No room for a row: the event is undone; enlarge the output and call again from it."""
TOO_MANY_ROWS: Final = 2
TOO_MANY_VISITS: Final = 3

_INTEGER: Final = kinds.INTEGER
_DECIMAL: Final = kinds.DECIMAL
_DOUBLE: Final = kinds.DOUBLE
_ROUNDED: Final = kinds.ROUNDED
_LINEAR: Final = 8
"""Up to so many hits of a slot, duplicates are sought one by one."""


@inner
def _quick_outcome(op: int, x: float, c: float) -> int:
    """`x op c` where the doubles decide it; UNDECIDED when they are equal or one is NaN."""
    if x < c:
        return 1 if op in (BELOW, AT_MOST, UNEQUAL) else 0
    if x > c:
        return 1 if op in (ABOVE, AT_LEAST, UNEQUAL) else 0
    return UNDECIDED


@inner
def _mix(a: int, b: int, c: int) -> int:
    """A hash of three ids, not negative."""
    h = np.uint64(a) * np.uint64(0x9E3779B97F4A7C15)
    h = (h ^ (h >> np.uint64(29)) ^ np.uint64(b)) * np.uint64(0xBF58476D1CE4E5B9)
    h = (h ^ (h >> np.uint64(32)) ^ np.uint64(c)) * np.uint64(0x94D049BB133111EB)
    return np.int64((h ^ (h >> np.uint64(31))) & np.uint64(0x7FFFFFFFFFFFFFFF))


@kernel
def match_events(
    T: Any,
    offset: Any,
    subject: Any,
    predicate: Any,
    object_: Any,
    C: Any,
    memo: Any,
    sizes: Any,
    out_event: Any,
    out_gpm: Any,
    out_flag: Any,
    out_values: Any,
) -> tuple[int, int, int, int, int]:
    """(status, rows, event, GPM, rows with a flag). T: MatchTables. C: TermColumns. memo: u8[tables, terms].

    sizes: int64 (first event, rows already written, 1 to grow the hash tables with the events, their heads (a
    power of two), hash_from, most rows per event and GPM, most visited entries per event and instance). Rows
    are written behind those already there; `out_flag` is 1 when a filter was undecided. On FULL `event` is
    the event to go on with, on TOO_MANY_* the event and GPM in question.
    """
    (predicate_number, by_predicate0, by_predicate, any_predicate, slots, trigger0, trigger) = (
        T.predicate, T.by_predicate0, T.by_predicate, T.any_predicate, T.slots, T.trigger0, T.trigger,
    )  # fmt: skip
    instance0, pattern_slot, order0, steps = T.instance0, T.pattern_slot, T.order0, T.steps
    filter0, filter_program, filter_mask = T.filter0, T.filter_program, T.filter_mask
    gpm0, gpm, column0, column = T.gpm0, T.gpm, T.column0, T.column
    program0, code, quick, quick_number = T.program0, T.code, T.quick, T.quick_number
    kind, number, exact, quality = C.kind, C.number, C.exact, C.quality
    first, rows, heads = sizes[0], sizes[1], sizes[3]
    hash_from, most_rows, most_visits = sizes[4], sizes[5], sizes[6]

    n_slots, n_predicates = slots.shape[0], predicate_number.shape[0]
    most_triples = 0
    for event in range(first, offset.shape[0] - 1):
        most_triples = max(most_triples, offset[event + 1] - offset[event])
    while sizes[2] != 0 and heads < most_triples:
        heads *= 2
    most_hits = most_triples * T.widths[3] + 1
    count = np.zeros(n_slots, np.int64)
    base = np.zeros(n_slots, np.int64)
    touched = np.empty(n_slots, np.int64)
    hit_slot = np.empty(most_hits, np.int64)
    hit_triple = np.empty(most_hits, np.int64)
    view_s = np.empty(most_hits, np.int64)
    view_p = np.empty(most_hits, np.int64)
    view_o = np.empty(most_hits, np.int64)
    # hash chains: 0 by subject, 1 by object, 2 for finding duplicates; heads are valid for one stamp
    chain = np.empty((3, most_hits), np.int64)
    head = np.empty((3, heads), np.int64)
    head_stamp = np.zeros((3, heads), np.int64)
    built = np.zeros((2, n_slots), np.int64)
    stamp, doubtful_rows = 0, 0
    candidates = np.empty(instance0.shape[0], np.int64)
    vals = np.zeros(T.widths[0], np.int64)
    at_entry = np.empty(T.widths[1], np.int64)
    mode = np.empty(T.widths[1], np.int64)
    alive = np.zeros(T.widths[1] + 1, np.int64)
    doubtful = np.zeros(T.widths[1] + 1, np.int64)
    written = np.zeros(column0.shape[0], np.int64)
    numbers = np.empty((T.widths[2], 2), np.float64)
    entries = np.empty((T.widths[2], 4), np.int64)

    for event in range(first, offset.shape[0] - 1):
        rows_before, doubtful_before = rows, doubtful_rows
        n_touched = 0
        hits = 0
        for t in range(offset[event], offset[event + 1]):
            s, p, o = np.int64(subject[t]), np.int64(predicate[t]), np.int64(object_[t])
            c = np.int64(predicate_number[p]) if p < n_predicates else 0
            k, k_end = by_predicate0[c], by_predicate0[c + 1]
            n_any = 0
            while True:
                if k < k_end:
                    slot = np.int64(by_predicate[k])
                    k += 1
                elif n_any < any_predicate.shape[0]:
                    slot = np.int64(any_predicate[n_any])
                    n_any += 1
                else:
                    break
                if slots[slot, 0] != 0 and slots[slot, 0] != s:
                    continue
                if slots[slot, 2] != 0 and slots[slot, 2] != o:
                    continue
                equal = slots[slot, 3]
                if equal != 0:
                    if (equal & 1 and s != o) or (equal & 2 and s != p) or (equal & 4 and p != o):
                        continue
                if count[slot] == 0:
                    touched[n_touched] = slot
                    n_touched += 1
                count[slot] += 1
                hit_slot[hits] = slot
                hit_triple[hits] = t
                hits += 1

        n_candidates = 0
        for k in range(n_touched):
            slot = touched[k]
            for q in range(trigger0[slot], trigger0[slot + 1]):
                b = trigger[q]
                filled = True
                for j in range(instance0[b], instance0[b + 1]):
                    if count[pattern_slot[j]] == 0:
                        filled = False
                        break
                if filled:
                    candidates[n_candidates] = b
                    n_candidates += 1
        if n_candidates == 0:
            for k in range(n_touched):
                count[touched[k]] = 0
            continue

        # the views: the hits of each slot, contiguous, without duplicate triples
        start = 0
        for k in range(n_touched):
            slot = touched[k]
            base[slot] = start
            start += count[slot]
            if count[slot] <= _LINEAR:
                count[slot] = 0
            else:
                count[slot] = -1  # so far empty, and duplicates are sought by hash
        for k in range(hits):
            slot, t = hit_slot[k], hit_triple[k]
            s, p, o = np.int64(subject[t]), np.int64(predicate[t]), np.int64(object_[t])
            first_entry = base[slot]
            known = False
            if count[slot] >= 0:
                end = first_entry + count[slot]
                for i in range(first_entry, end):
                    if view_s[i] == s and view_o[i] == o and view_p[i] == p:
                        known = True
                        break
            else:
                end = first_entry - count[slot] - 1
                h = _mix(s + (slot << 32), p, o) & (heads - 1)
                if head_stamp[2, h] != event + 1:
                    head_stamp[2, h] = event + 1
                    head[2, h] = -1
                i = head[2, h]
                while i >= 0:
                    if first_entry <= i < end and view_s[i] == s and view_o[i] == o and view_p[i] == p:
                        known = True
                        break
                    i = chain[2, i]
                if not known:
                    chain[2, end] = head[2, h]
                    head[2, h] = end
            if not known:
                view_s[end], view_p[end], view_o[end] = s, p, o
                count[slot] += 1 if count[slot] >= 0 else -1
        for k in range(n_touched):
            slot = touched[k]
            if count[slot] < 0:
                count[slot] = -count[slot] - 1
        stamp += 1

        for k in range(n_candidates):
            b = candidates[k]
            first_pattern, n_steps = instance0[b], instance0[b + 1] - instance0[b]
            smallest = first_pattern
            for j in range(first_pattern + 1, instance0[b + 1]):
                if count[pattern_slot[j]] < count[pattern_slot[smallest]]:
                    smallest = j
            step0 = np.int64(order0[smallest])
            for q in range(gpm0[b], gpm0[b + 1]):
                written[gpm[q]] = 0
            alive[0] = (np.int64(1) << np.int64(gpm0[b + 1] - gpm0[b])) - 1
            doubtful[0] = 0
            visits = 0
            d = 0
            mode[0] = -1
            at_entry[0] = base[steps[step0, 0]]
            while d >= 0:
                step = step0 + d
                slot, bits = np.int64(steps[step, 0]), steps[step, 4]
                v_s, v_p, v_o = steps[step, 1], steps[step, 2], steps[step, 3]
                i, by = at_entry[d], mode[d]
                first_entry, end = base[slot], base[slot] + count[slot]
                found = False
                while True:
                    if by < 0:
                        if i >= end:
                            break
                    else:
                        if i < 0:
                            break
                        if i < first_entry or i >= end:  # an entry of another view
                            i = chain[by, i]
                            continue
                    visits += 1
                    if not (
                        (bits & 1 and view_s[i] != vals[v_s])
                        or (bits & 4 and view_o[i] != vals[v_o])
                        or (bits & 2 and view_p[i] != vals[v_p])
                    ):
                        found = True
                        break
                    i = i + 1 if by < 0 else chain[by, i]
                if visits > most_visits:
                    return TOO_MANY_VISITS, rows_before, event, np.int64(gpm[gpm0[b]]), doubtful_before
                if not found:
                    d -= 1
                    continue
                at_entry[d] = i + 1 if by < 0 else chain[by, i]
                if v_s >= 0:
                    vals[v_s] = view_s[i]
                if v_p >= 0:
                    vals[v_p] = view_p[i]
                if v_o >= 0:
                    vals[v_o] = view_o[i]
                mask, doubt = alive[d], doubtful[d]
                for f in range(filter0[step], filter0[step + 1]):
                    concerned = filter_mask[f] & mask
                    if concerned == 0:
                        continue
                    program = filter_program[f]
                    outcome = UNDECIDED
                    if quick[program, 2] != 0:
                        x = vals[quick[program, 1]]
                        kx = kind[x]
                        if kx in (_INTEGER, _DECIMAL, _DOUBLE) and quality[x] & _ROUNDED:
                            outcome = _quick_outcome(quick[program, 0], number[x], quick_number[program])
                    if outcome == UNDECIDED:
                        run(
                            code, program0[program], program0[program + 1], vals,
                            kind, number, exact, quality, memo, numbers, entries,
                        )  # fmt: skip
                        outcome = entry_truth(0, numbers, entries)
                    if outcome == UNDECIDED:
                        doubt |= concerned
                    elif outcome != TRUE:
                        mask &= ~concerned
                if mask == 0:
                    continue
                if d + 1 < n_steps:
                    d += 1
                    alive[d] = mask
                    doubtful[d] = doubt
                    step += 1
                    slot, bits = np.int64(steps[step, 0]), steps[step, 4]
                    mode[d] = -1
                    at_entry[d] = base[slot]
                    if bits & 5 and count[slot] >= hash_from:
                        by = 0 if bits & 1 else 1
                        key = vals[steps[step, 1]] if by == 0 else vals[steps[step, 3]]
                        if built[by, slot] != stamp:
                            built[by, slot] = stamp
                            for i in range(base[slot] + count[slot] - 1, base[slot] - 1, -1):
                                h = _mix(view_s[i] if by == 0 else view_o[i], 0, 0) & (heads - 1)
                                if head_stamp[by, h] != stamp:
                                    head_stamp[by, h] = stamp
                                    head[by, h] = -1
                                chain[by, i] = head[by, h]
                                head[by, h] = i
                        h = _mix(key, 0, 0) & (heads - 1)
                        mode[d] = by
                        at_entry[d] = head[by, h] if head_stamp[by, h] == stamp else -1
                    continue
                for q in range(gpm0[b], gpm0[b + 1]):
                    bit = np.int64(1) << np.int64(q - gpm0[b])
                    if mask & bit == 0:
                        continue
                    g = np.int64(gpm[q])
                    if rows == out_event.shape[0]:
                        return FULL, rows_before, event, g, doubtful_before
                    written[g] += 1
                    if written[g] > most_rows:
                        return TOO_MANY_ROWS, rows_before, event, g, doubtful_before
                    out_event[rows] = event
                    out_gpm[rows] = g
                    out_flag[rows] = 1 if doubt & bit else 0
                    doubtful_rows += 1 if doubt & bit else 0
                    first_column = column0[g]
                    for j in range(first_column, column0[g + 1]):
                        out_values[rows, j - first_column] = vals[column[j]]
                    rows += 1
        for k in range(n_touched):
            count[touched[k]] = 0
    return DONE, rows, np.int64(offset.shape[0] - 1), np.int64(-1), doubtful_rows
