"""Whether a row and a run agree: values, then filters, exactly or not at all.

The stack machine may answer *undecided*; such a question is looked up among the decisions that Python has
made, and asked if it is not there. The instant is then read again (engine.md, section 9, rule 1).
"""

from __future__ import annotations

import numpy as np

from oxiseq.engine.kernels.compiling.options import inner, kernel
from oxiseq.engine.kernels.expressions.machine import VARIABLE, truth, value
from oxiseq.engine.kernels.memory.hashing import SPREAD, mix
from oxiseq.engine.kernels.memory.numbers import i64, u64
from oxiseq.engine.kernels.memory.pointers import Array, Ptr
from oxiseq.engine.kernels.sequence import records as v
from oxiseq.engine.kernels.sequence.records import (
    ASKED,
    COLUMN,
    COLUMNS,
    FOR_QUESTION,
    HEAP_NUMBER,
    HEAP_TIME,
    KEY,
    LISTED,
    MEMOS,
    NEVER,
    READS,
    STRIDE,
    WIDTH,
    WORDS_BITS,
    Memory,
    Tables,
)
from oxiseq.engine.kernels.terms import columns
from oxiseq.engine.kernels.terms.columns import Columns

NO, YES, ASK = 0, 1, 2
UNKNOWN = -1
"""Python has not answered yet."""

_TRUE, _UNDECIDED = 1, 3
_INTEGER, _DECIMAL, _DOUBLE, _DATETIME = 6, 7, 9, 10
_ROUNDED, _EXACT, _ZONED = 1, 2, 4


@inner
def order_kind(kind: int, number: float, quality: int) -> int:
    """Which heap a value is in: numbers and zoned times are ordered by a float64 that rounds them
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


@inner
def read_key(T: Ptr[Tables], S: Ptr[Memory], keys: Array, at: int) -> None:
    """Copy a key into the value vector."""
    vector = v.vector(S)
    for k in range(v.sizes(T)[WIDTH]):
        vector[KEY + STRIDE * k] = keys[at, k]


@inner
def read_row(T: Ptr[Tables], S: Ptr[Memory], values: Array, r: int) -> None:
    """Copy a row into the value vector."""
    vector, count = v.vector(S), v.sizes(T)[COLUMNS]
    for c in range(count):
        vector[COLUMN + STRIDE * c] = values[r, c]


@inner
def joins(T: Ptr[Tables], S: Ptr[Memory], p: int, values: Array, r: int, keys: Array, at: int, C: Columns) -> int:
    """Whether row `r` passes all checks of probe `p` with the key `keys[at]`, the bucket's equalities aside.

    YES, NO, or ASK when Python must decide first. `C` are the term columns.
    """
    probe = v.probes(T)[p]
    for i in range(probe.compatible0, probe.compatible1):
        mine, theirs = values[r, v.compatible(T)[i, 1]], keys[at, v.compatible(T)[i, 0]]
        if mine != theirs and mine != 0 and theirs != 0:
            return NO
    if probe.filter0 == probe.filter1:
        return YES
    read_row(T, S, values, r)
    read_key(T, S, keys, at)
    for i in range(probe.either0, probe.either1):
        own = values[r, v.either(T)[i, 1]]
        v.vector(S)[v.either(T)[i, 0]] = own if own != 0 else keys[at, v.either(T)[i, 2]]
    outcome = YES
    for f in range(probe.filter0, probe.filter1):
        filter_ = v.filters(T)[f]
        worth = columns.kind(C), columns.number(C), columns.exact(C), columns.quality(C)
        room = v.no_memo(S), v.scratch(S), v.scratch_entries(S)
        v.meter(S)[READS] += (filter_.code1 - filter_.code0) >> WORDS_BITS
        answer = truth(v.code(T), filter_.code0, filter_.code1, v.vector(S), *worth, *room)
        if answer == _UNDECIDED:
            answer = _decided(T, S, f)
            if answer == UNKNOWN:
                outcome = ASK
                continue
        if answer != _TRUE:
            return NO
    return outcome


@inner
def folded(T: Ptr[Tables], S: Ptr[Memory], values: Array, r: int, keys: Array, at: int, f: int) -> int:
    """The id that row `r` makes of the key `keys[at]` by fold `f`; at a start (`at` -1) and for a first iteration only
    the row counts. UNKNOWN when Python must make it first."""
    read_row(T, S, values, r)
    if at >= 0:
        read_key(T, S, keys, at)
    return _decided(T, S, f)


@inner
def _decided(T: Ptr[Tables], S: Ptr[Memory], f: int) -> int:
    """Python's answer for filter `f` on the value vector, or UNKNOWN, and the question is listed."""
    v.meter(S)[READS] += FOR_QUESTION
    i = _memo_place(T, S, f)
    if v.memo(S)[i, 0] != 0:
        return v.memo(S)[i, 1]
    n = v.scalars(S)[ASKED]
    if n < v.asked(S).shape[0]:
        v.asked(S)[n, 0] = f
        for i in range(v.vector(S).shape[0]):  # a slice would compile its error's text: three seconds
            v.asked(S)[n, 1 + i] = v.vector(S)[i]
        v.scalars(S)[ASKED] = n + 1
    return UNKNOWN


@inner
def _memo_place(T: Ptr[Tables], S: Ptr[Memory], f: int) -> int:
    memo, vector = v.memo(S), v.vector(S)
    first, last = v.filters(T)[f].uses0, v.filters(T)[f].uses1
    h = u64(f + 1) * SPREAD
    for u in range(first, last):
        h = mix(h, vector[v.uses(T)[u]])
    mask = u64(memo.shape[0] - 1)
    i = h & mask
    while True:
        if memo[i, 0] == 0:
            return i64(i)
        if memo[i, 0] == f + 1:
            same = True
            for u in range(first, last):
                if memo[i, 2 + u - first] != vector[v.uses(T)[u]]:
                    same = False
                    break
            if same:
                return i64(i)
        i = (i + u64(1)) & mask


@kernel
def remember(T: Ptr[Tables], S: Ptr[Memory], asked: Array, n: int, answer: int) -> None:
    """Keep Python's answer to question `n`; the memo has room."""
    for i in range(v.vector(S).shape[0]):
        v.vector(S)[i] = asked[n, 1 + i]
    f = asked[n, 0]
    i = _memo_place(T, S, f)
    if v.memo(S)[i, 0] == 0:
        v.scalars(S)[MEMOS] += 1
        v.memo(S)[i, 0] = f + 1
        first = v.filters(T)[f].uses0
        for u in range(first, v.filters(T)[f].uses1):
            v.memo(S)[i, 2 + u - first] = v.vector(S)[v.uses(T)[u]]
    v.memo(S)[i, 1] = answer


@inner
def measured(T: Ptr[Tables], S: Ptr[Memory], C: Columns, code0: int, code1: int) -> tuple[int, float, int, int]:
    """(kind, number, exact, quality) of one side of an inequality of the value vector; a bare variable needs no
    machine."""
    code, vector = v.code(T), v.vector(S)
    if code1 - code0 == 2 and code[code0] == VARIABLE:
        t = vector[code[code0 + 1]]
        return i64(columns.kind(C)[t]), columns.number(C)[t], columns.exact(C)[t], i64(columns.quality(C)[t])
    worth = columns.kind(C), columns.number(C), columns.exact(C), columns.quality(C)
    room = v.no_memo(S), v.scratch(S), v.scratch_entries(S)
    return value(code, code0, code1, vector, *worth, *room)


@inner
def key_order(T: Ptr[Tables], S: Ptr[Memory], p: int, keys: Array, at: int, C: Columns) -> tuple[int, float]:
    """(kind, value) by which the key is ordered in the buckets of probe `p`; smaller values fire first."""
    probe = v.probes(T)[p]
    read_key(T, S, keys, at)
    kind, number, exact, quality = measured(T, S, C, probe.key0, probe.key1)
    order = order_kind(kind, number, quality)
    if order == HEAP_TIME:
        number = np.float64(exact)
    return order, (number if probe.sign > 0 else -number) + 0.0
