"""Sums of parts at several powers of two → the nearest doubles, rounded once.

In the flow: sums of weights (weights.py) → **doubles** → terms.
"""

from __future__ import annotations

import math

import numpy as np

from oxiseq.engine.kernels.compiling.options import inner, kernel
from oxiseq.engine.kernels.memory.numbers import i64, u64
from oxiseq.engine.kernels.memory.pointers import Array

_WORD = 64
_LOWEST, _HIGHEST = -1022, 1022
"""Exponents between which doubles have all their bits."""


@kernel
def nearest(weights: Array, first: Array, shift: Array, limbs: int, exponent: int, room: Array, found: Array) -> None:
    """Into `found` (f64[n]) the nearest double of each line of `weights` (u64[n, words]): of the sum of its numbers of
    `limbs` words, two's complement, from the words `first` (i64[c]) on, each times 2^(exponent + shift), `shift`
    (i64[c]) from 0 on. NaN where it is no normal number and not 0. `room`: u64[words that the sum has]."""
    for i in range(weights.shape[0]):
        for w in range(room.shape[0]):
            room[w] = u64(0)
        for c in range(first.shape[0]):
            _add(room, weights, i, first[c], limbs, shift[c])
        found[i] = _rounded(room, exponent)


@inner
def _add(room: Array, weights: Array, i: int, first: int, limbs: int, shift: int) -> None:
    """Add a number times 2^shift."""
    words, bits, carry = shift // _WORD, u64(shift % _WORD), u64(0)
    fill = u64(0) if weights[i, first + limbs - 1] >> u64(_WORD - 1) == u64(0) else ~u64(0)
    below = u64(0)
    for w in range(words, room.shape[0]):
        here = weights[i, first + w - words] if w - words < limbs else fill
        more = here
        if bits:
            more = here << bits | below >> (u64(_WORD) - bits)
        below = here
        total = room[w] + more
        over = u64(1) if total < more else u64(0)
        total += carry
        if total < carry:
            over = u64(1)
        room[w] = total
        carry = over


@inner
def _rounded(room: Array, exponent: int) -> float:
    """The nearest double of a number times 2^exponent."""
    count = room.shape[0]
    negative = room[count - 1] >> u64(_WORD - 1) != u64(0)
    if negative:
        carry = u64(1)
        for w in range(count):
            room[w] = ~room[w] + carry
            if room[w]:
                carry = u64(0)
    top = i64(count - 1)
    while top >= 0 and room[top] == u64(0):
        top -= 1
    if top < 0:
        return 0.0
    high, up = room[top], i64(0)
    while high >> u64(_WORD - 1) == u64(0):
        high <<= u64(1)
        up += 1
    rest = u64(0)
    for w in range(top):
        rest |= room[w]
    if top > 0 and up > 0:
        high |= room[top - 1] >> u64(_WORD - up)
        rest = room[top - 1] << u64(up)
        for w in range(top - 1):
            rest |= room[w]
    if rest:
        high |= u64(1)  # what is further down decides only where the rest is half of the last bit
    power = exponent + _WORD * top - up
    if power + _WORD > _HIGHEST or power + _WORD - 1 < _LOWEST:
        return np.nan
    value = math.ldexp(np.float64(high), power)
    return -value if negative else value
