"""Events → facts, solutions → answers, or the facts that rules make: the ends of a plan over what happens at some time.

A fact is a row of a delta: its interval (two i64, each in two halves), subject, predicate, object. Each instant is a
tick.
"""

from __future__ import annotations

import numpy as np

from oxiseq.engine.arrays.declared import Arrays, array
from oxiseq.engine.kernels.compiling.options import inner, kernel
from oxiseq.engine.kernels.flow import buffers
from oxiseq.engine.kernels.flow.buffers import DONE, NEED_OUT, Delta
from oxiseq.engine.kernels.flow.moments import END, INTERVAL, START, put_time, time_in
from oxiseq.engine.kernels.memory.numbers import i64
from oxiseq.engine.kernels.memory.pointers import Array, Ptr
from oxiseq.engine.kernels.memory.raw import get, half
from oxiseq.engine.kernels.terms import table as worth
from oxiseq.engine.kernels.terms.table import Terms
from oxiseq.engine.kinds import BLANK, IRI

_FEW = 32
"""Rows that one is moved past at the most."""
(
    FIRST,  # event that comes next
    EVENTS,  # how many there are
    TICK,  # of the next instant
    MOST,  # facts from which on no further instant is begun
    STARTED,  # predicate that says when an event started
    EVENT,  # subject of such a triple that is no fact
    SINCE,  # when the first instant was that has been written
    UNTIL,  # when the last one was
    SCALARS,
) = range(9)


class Arriving(Arrays):
    """Events in order of time, and how far they have been written. Addresses of arrays."""


_scalars = array(Arriving, "scalars", np.int64)
_columns = array(Arriving, "columns", np.int64)
"""i64[6]: addresses of time, start (i64), offset (i64), subject, predicate, object (u32)."""


@kernel
def write_facts(S: Ptr[Arriving], out: Delta) -> int:
    """Write the facts of further instants, each whole. NEED_OUT: nothing has been written."""
    scalars, columns, at = _scalars(S), _columns(S), buffers.at(out)
    time, offset, subjects, predicates = columns[0], columns[2], columns[3], columns[4]
    i, n, tick = scalars[FIRST], i64(0), scalars[TICK] - 1
    first = get(time, i)
    while i < scalars[EVENTS]:
        if i == scalars[FIRST] or get(time, i) != get(time, i - 1):
            if n >= scalars[MOST]:
                break
            tick += 1
        for k in range(get(offset, i), get(offset, i + 1)):
            if half(predicates, k) == scalars[STARTED] and half(subjects, k) == scalars[EVENT]:
                continue
            if n == at.shape[0]:
                return NEED_OUT
            at[n], buffers.weight(out)[n] = tick, 1
            _write(columns, i, k, buffers.rows(out), n)
            n += 1
        i += 1
    buffers.count(out)[0] = n
    scalars[SINCE], scalars[UNTIL] = first, get(time, i - 1)
    scalars[FIRST], scalars[TICK] = i, tick + 1
    return DONE


@inner
def _write(columns: Array, i: int, k: int, made: Array, n: int) -> None:
    put_time(made, n, START, get(columns[1], i))
    put_time(made, n, END, get(columns[0], i))
    for c in range(3):
        made[n, INTERVAL + c] = half(columns[3 + c], k)


class Making(Arrays):
    """A template of triples, to be filled with solutions."""


_next = array(Making, "next", np.int64)  # i64[1]: the row that comes next
_parts = array(Making, "parts", np.int64, 2)  # i64[3 * triples, 2]: the column of a part, or -1; else a term


@kernel
def make_facts(S: Ptr[Making], T: Terms, D: Delta, out: Delta) -> int:
    """Write what a template makes of the rows of a delta, as far as it is triples. T: the dictionary."""
    following, parts, kind, rows = _next(S), _parts(S), worth.kind(T), buffers.rows(D)
    made, at, top, count = buffers.rows(out), buffers.at(out), buffers.count(out), buffers.count(D)[0]
    triples = parts.shape[0] // 3
    while following[0] < count:
        i = following[0]
        if top[0] + triples > at.shape[0]:
            return NEED_OUT
        for triple in range(triples):
            n = top[0]
            for c in range(INTERVAL):
                made[n, c] = rows[i, c]
            for c in range(3):
                place = parts[3 * triple + c, 0]
                made[n, INTERVAL + c] = parts[3 * triple + c, 1] if place < 0 else i64(rows[i, place])
            subject, predicate = kind[made[n, INTERVAL]], kind[made[n, INTERVAL + 1]]
            if (subject == IRI or subject == BLANK) and predicate == IRI and made[n, INTERVAL + 2] != 0:
                at[n], buffers.weight(out)[n] = buffers.at(D)[i], 1
                top[0] = n + 1
        following[0] = i + 1
    following[0] = 0
    return DONE


@kernel
def read_rows(D: Delta, ends: Array, values: Array, times: Array) -> int:
    """Copy the rows of a delta, those of a tick in order of their starts: i64[n], when each ended; u32[n, columns]
    terms; i64[2 * n], both times of each. 1: order is left to be made, or some have one interval; 0: it is done."""
    at, rows = buffers.at(D), buffers.rows(D)
    left = i64(0)
    for i in range(ends.shape[0]):
        start, end = time_in(rows, i, START), time_in(rows, i, END)
        place = i
        while place > 0 and at[place - 1] == at[i] and times[2 * place - 2] > start and i - place < _FEW:
            place -= 1
        for k in range(i, place, -1):
            _move(ends, values, times, k - 1, k)
        ends[place], times[2 * place], times[2 * place + 1] = end, start, end
        for c in range(values.shape[1]):
            values[place, c] = rows[i, INTERVAL + c]
        if place > 0 and at[place - 1] == at[i] and times[2 * place - 2] >= start:
            left = i64(1)
    return left


@inner
def _move(ends: Array, values: Array, times: Array, i: int, to: int) -> None:
    ends[to], times[2 * to], times[2 * to + 1] = ends[i], times[2 * i], times[2 * i + 1]
    for c in range(values.shape[1]):
        values[to, c] = values[i, c]
