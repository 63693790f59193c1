"""Rows look for those of a table, which does not change while rows come, by how their numbers compare (plan.Lookup)."""

from __future__ import annotations

from typing import Any

import numpy as np

from oxiseq.engine.arrays.declared import Arrays, array
from oxiseq.engine.kernels.compiling.options import inner, kernel
from oxiseq.engine.kernels.flow import buffers
from oxiseq.engine.kernels.flow.buffers import DONE, NEED_OUT, Delta
from oxiseq.engine.kernels.memory.numbers import i64
from oxiseq.engine.kernels.memory.pointers import Array, Ptr
from oxiseq.engine.kernels.terms import table as worth
from oxiseq.engine.kernels.terms.table import Terms
from oxiseq.engine.kinds import DECIMAL, DOUBLE, INTEGER, ROUNDED

BELOW, EQUAL, ABOVE = range(3)
"""How a row's number has to compare: below that of the table's row, or equal to it; equal; above it, or equal."""
AT, MADE, PLACE, SIGN, ALL, BETWEEN_PLACES = range(6)
"""The row that looks next; the table's row that it has been paired with last, -1: none; the column of its number; where
that is to stand; 1: some of the table's numbers are none, and all rows are looked at."""


class Between(Arrays):
    """A table in the order of its numbers."""


_between = array(Between, "places", np.int64)  # i64[BETWEEN_PLACES]
_ascending = array(Between, "number", np.float64)  # f64[n], ascending, each rounded once
_table = array(Between, "rows", np.uint32, 2)  # u32[n, columns]


@kernel
def between(S: Ptr[Between], T: Terms, D: Delta, out: Delta) -> int:
    """Write each row of the delta D with those of the table whose numbers compare with its own as they have to.
    Rounding keeps the order, but for numbers that become equal; so equal ones are written, too. T: the dictionary."""
    places, table, rows, count = _between(S), _table(S), buffers.rows(D), buffers.count(D)[0]
    at, weight, made, top = buffers.at(out), buffers.weight(out), buffers.rows(out), buffers.count(out)
    own, width, room = rows.shape[1], table.shape[1], at.shape[0]
    n = top[0]
    for i in range(places[AT], count):
        low, high = _range(S, T, i64(rows[i, places[PLACE]]))
        for j in range(max(low, places[MADE] + 1), high):
            if n == room:
                places[AT], places[MADE], top[0] = i, j - 1, n
                return NEED_OUT
            at[n], weight[n] = buffers.at(D)[i], buffers.weight(D)[i]
            for c in range(own):
                made[n, c] = rows[i, c]
            for c in range(width):
                made[n, own + c] = table[j, c]
            n += 1
        places[MADE] = -1
    places[AT], top[0] = 0, n
    return DONE


@inner
def _range(S: Ptr[Between], T: Terms, term: int) -> Any:
    """Which rows of the table a term may compare with as it has to. What is no such number is compared with all."""
    places, ascending = _between(S), _ascending(S)
    n, kind, value = ascending.shape[0], worth.kind(T)[term], worth.number(T)[term]
    is_number = (kind == INTEGER or kind == DECIMAL or kind == DOUBLE) and worth.quality(T)[term] & ROUNDED != 0
    if places[ALL] != 0 or not is_number or np.isnan(value):
        return i64(0), i64(n)
    low, high = i64(0), i64(n)
    if places[SIGN] != ABOVE:
        low = _first(ascending, value, False)
    if places[SIGN] != BELOW:
        high = _first(ascending, value, True)
    return low, high


@inner
def _first(ascending: Array, value: float, behind: bool) -> int:
    """The first number that is not below a value; `behind`: that is above it."""
    low, high = i64(0), i64(ascending.shape[0])
    while low < high:
        middle = (low + high) // 2
        if ascending[middle] < value or (behind and ascending[middle] == value):
            low = middle + 1
        else:
            high = middle
    return low
