"""The shortest decimal digits that give a double or a float back, the nearest to it of those, and upwards from the very
middle of two: what the store writes (Giulietti's Schubfach, 2020)."""

from __future__ import annotations

from typing import Final

import numpy as np

from oxiseq.engine.kernels.compiling.options import inner
from oxiseq.engine.kernels.flow.wide import ONE, ZERO, high_product
from oxiseq.engine.kernels.memory.numbers import i64, u64

_FIRST: Final = -292
_LAST: Final = 324


def _power(exponent: int) -> tuple[int, int]:
    """10^exponent · 2^r with 128 bits, rounded up: both words."""
    number, divisor = 10 ** max(exponent, 0), 10 ** max(-exponent, 0)
    if divisor == 1:
        size = number.bit_length()
        whole = number << (128 - size) if size <= 128 else -(-number >> (size - 128))
    else:
        whole = (1 << (127 + divisor.bit_length())) // divisor + 1
    return whole >> 64, whole & (2**64 - 1)


_POWERS: Final = np.array([_power(k) for k in range(_FIRST, _LAST + 1)], np.uint64)
_TEN: Final = np.uint64(10)
_FOUR: Final = np.uint64(4)


@inner
def shortest(c: np.uint64, e: int, digits: int, lowest: int) -> tuple[np.uint64, int]:
    """(d, k): d · 10^k is the shortest decimal for c · 2^e > 0, where c has `digits` binary digits, or fewer if e is
    `lowest`. d does not end in 0 if k < 0."""
    if 0 <= -e < digits and c & ((ONE << u64(-e)) - ONE) == ZERO:
        return c >> u64(-e), i64(0)
    close = c == ONE << u64(digits - 1) and e > lowest  # the number below is half as far as the one above
    d, k = _searched(c, e, close)
    while k < 0 and d % _TEN == ZERO:
        d //= _TEN
        k += 1
    return d, k


@inner
def _searched(c: np.uint64, e: int, close: bool) -> tuple[np.uint64, int]:
    k = (e * 1262611 - (524031 if close else 0)) >> 22  # floor(log10(2^e)), or of 3/4 of it
    h = u64(e + ((-k * 1741647) >> 19) + 1)
    high, low = _POWERS[-k - _FIRST, 0], _POWERS[-k - _FIRST, 1]
    odd = c & ONE
    middle = _FOUR * c
    lower = _to_odd(high, low, (middle - (ONE if close else ONE + ONE)) << h) + odd
    here = _to_odd(high, low, middle << h)
    upper = _to_odd(high, low, (middle + ONE + ONE) << h) - odd
    s = here // _FOUR
    if s >= _TEN:
        tenth = s // _TEN
        forty = _FOUR * _TEN * tenth
        below, above = lower <= forty, forty + _FOUR * _TEN <= upper
        if below != above:
            return (tenth + ONE if above else tenth), k + 1
    below, above = lower <= _FOUR * s, _FOUR * s + _FOUR <= upper
    if below != above:
        return (s + ONE if above else s), k
    return (s + ONE if here >= _FOUR * s + ONE + ONE else s), k


@inner
def _to_odd(high: np.uint64, low: np.uint64, factor: np.uint64) -> np.uint64:
    """The upper word of a product of three words, odd if what is cut off is not next to nothing."""
    below = high_product(low, factor)
    word = high * factor
    total = word + below
    upper = high_product(high, factor)
    if total < word:
        upper += ONE
    return upper | ONE if total > ONE else upper
