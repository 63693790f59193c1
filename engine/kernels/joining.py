"""Whether a row and a run agree: values, then filters, exactly or not at all.

The stack machine may answer *undecided*; such a question is looked up among the decisions that Python has
made, and asked if it is not there. The instant is then read again (engine.md, section 9, rule 1).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from oxiseq.engine.kernels.groups import mix
from oxiseq.engine.kernels.machine import truth, value
from oxiseq.engine.kernels.records import (
    ASKED,
    COLUMNS,
    HEAP_NUMBER,
    HEAP_TIME,
    LISTED,
    MEMOS,
    NEVER,
    WIDTH,
)

NO, YES, ASK = 0, 1, 2

_TRUE, _UNDECIDED = 1, 3
_INTEGER, _DECIMAL, _DOUBLE, _DATETIME = 6, 7, 9, 10
_ROUNDED, _EXACT, _ZONED = 1, 2, 4


@njit(cache=True)
def order_kind(kind: int, number: float, quality: int) -> int:
    """In which heap a value stands: numbers and zoned times are ordered by a float64 that rounds them
    correctly; errors and NaN never satisfy an inequality; anything else is compared one by one."""
    if kind == 0:
        return NEVER
    if kind == _DOUBLE:
        return NEVER if np.isnan(number) else HEAP_NUMBER
    if kind in (_INTEGER, _DECIMAL):
        return HEAP_NUMBER if quality & _ROUNDED else LISTED
    if kind == _DATETIME and quality & _ZONED and quality & _EXACT:
        return HEAP_TIME
    return LISTED


@njit(cache=True)
def read_key(T: Any, S: Any, keys: Any, at: int) -> None:
    """Copy a key into the value vector."""
    first = 1 + T.sizes[COLUMNS]
    for k in range(T.sizes[WIDTH]):
        S.vector[first + k] = keys[at, k]


@njit(cache=True)
def read_row(T: Any, S: Any, values: Any, r: int) -> None:
    """Copy a row into the value vector."""
    for c in range(T.sizes[COLUMNS]):
        S.vector[1 + c] = values[r, c]


@njit(cache=True)
def joins(T: Any, S: Any, p: int, values: Any, r: int, keys: Any, at: int, C: Any) -> int:
    """Whether row `r` passes all checks of probe `p` with the key `keys[at]`, the bucket's equalities aside.

    YES, NO, or ASK when Python must decide first. `C` are the term columns.
    """
    probe = T.probes[p]
    for i in range(probe.compatible0, probe.compatible1):
        mine, theirs = values[r, T.compatible[i, 1]], keys[at, T.compatible[i, 0]]
        if mine != theirs and mine != 0 and theirs != 0:
            return NO
    if probe.filter0 == probe.filter1:
        return YES
    read_row(T, S, values, r)
    read_key(T, S, keys, at)
    for i in range(probe.either0, probe.either1):
        own = values[r, T.either[i, 1]]
        S.vector[T.either[i, 0]] = own if own != 0 else keys[at, T.either[i, 2]]
    outcome = YES
    for f in range(probe.filter0, probe.filter1):
        filter_ = T.filters[f]
        answer = truth(
            T.code, filter_.code0, filter_.code1, S.vector, C.kind, C.number, C.exact, C.quality
        )
        if answer == _UNDECIDED:
            answer = _decided(T, S, f)
            if answer == _UNDECIDED:
                outcome = ASK
                continue
        if answer != _TRUE:
            return NO
    return outcome


@njit(cache=True)
def _decided(T: Any, S: Any, f: int) -> int:
    """The decision for filter `f` on the value vector, or undecided after having asked for it."""
    i = _memo_place(T, S, f)
    if S.memo[i, 0] != 0:
        return S.memo[i, 1]
    n = S.scalars[ASKED]
    if n < S.asked.shape[0]:
        S.asked[n, 0] = f
        S.asked[n, 1:] = S.vector
        S.scalars[ASKED] = n + 1
    return _UNDECIDED


@njit(cache=True)
def _memo_place(T: Any, S: Any, f: int) -> int:
    memo, vector = S.memo, S.vector
    first, last = T.filters[f].uses0, T.filters[f].uses1
    h = np.uint64(f + 1) * np.uint64(0x9E3779B97F4A7C15)
    for u in range(first, last):
        h = mix(h, vector[T.uses[u]])
    mask = np.uint64(memo.shape[0] - 1)
    i = h & mask
    while True:
        if memo[i, 0] == 0:
            return np.int64(i)
        if memo[i, 0] == f + 1:
            same = True
            for u in range(first, last):
                if memo[i, 2 + u - first] != vector[T.uses[u]]:
                    same = False
                    break
            if same:
                return np.int64(i)
        i = (i + np.uint64(1)) & mask


@njit(cache=True)
def remember(T: Any, S: Any, asked: Any, n: int, answer: int) -> None:
    """Keep Python's answer to question `n`; the memo has room."""
    S.vector[:] = asked[n, 1:]
    f = asked[n, 0]
    i = _memo_place(T, S, f)
    if S.memo[i, 0] == 0:
        S.scalars[MEMOS] += 1
        S.memo[i, 0] = f + 1
        first = T.filters[f].uses0
        for u in range(first, T.filters[f].uses1):
            S.memo[i, 2 + u - first] = S.vector[T.uses[u]]
    S.memo[i, 1] = answer


@njit(cache=True)
def key_order(T: Any, S: Any, p: int, keys: Any, at: int, C: Any) -> tuple[int, float]:
    """(kind, value) by which the key stands in the buckets of probe `p`; smaller values fire first."""
    probe = T.probes[p]
    read_key(T, S, keys, at)
    kind, number, exact, quality = value(
        T.code, probe.key0, probe.key1, S.vector, C.kind, C.number, C.exact, C.quality
    )
    order = order_kind(kind, number, quality)
    if order == HEAP_TIME:
        number = np.float64(exact)
    return order, (number if probe.sign > 0 else -number) + 0.0
