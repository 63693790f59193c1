"""Numbers of more than 64 bits, and the bits of doubles.

What is wide is a magnitude in words of 64 bits, highest first, and a sign, or two's complement. Kernels mix no signed
and unsigned integers: Numba would make doubles of them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np
from llvmlite import ir
from numba import types

from oxiseq.engine.kernels.compiling.as_python import intrinsic_or
from oxiseq.engine.kernels.compiling.options import inner
from oxiseq.engine.kernels.memory.numbers import i64, u64


@intrinsic_or(lambda a, b: np.uint64(int(a) * int(b) >> 64))
def _high_product(typing_context: Any, a: Any, b: Any) -> tuple[Any, Callable[..., Any]]:
    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        double = ir.IntType(128)
        product = builder.mul(builder.zext(args[0], double), builder.zext(args[1], double))
        return builder.trunc(builder.lshr(product, double(64)), ir.IntType(64))

    return types.uint64(types.uint64, types.uint64), generate


@intrinsic_or(lambda a: 64 - int(a).bit_length())
def _leading_zeros(typing_context: Any, a: Any) -> tuple[Any, Callable[..., Any]]:
    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.ctlz(args[0], ir.IntType(1)(0))

    return types.int64(types.uint64), generate


@intrinsic_or(lambda number: int(np.float64(number).view(np.int64)))
def _bits(typing_context: Any, number: Any) -> tuple[Any, Callable[..., Any]]:
    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.bitcast(args[0], ir.IntType(64))

    return types.int64(types.float64), generate


@intrinsic_or(lambda bits: np.int64(bits).view(np.float64))
def _from_bits(typing_context: Any, bits: Any) -> tuple[Any, Callable[..., Any]]:
    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.bitcast(args[0], ir.DoubleType())

    return types.float64(types.int64), generate


high_product: Callable[[np.uint64, np.uint64], np.uint64] = _high_product
"""The upper 64 bits of a product of two u64; the lower ones are a * b."""
leading_zeros: Callable[[np.uint64], int] = _leading_zeros
"""Of a u64; of 0: 64."""
bits: Callable[[float], int] = _bits
"""The 64 bits of a double."""
from_bits: Callable[[int], float] = _from_bits
"""The double with these bits."""

ZERO: Final = np.uint64(0)
ONE: Final = np.uint64(1)
BILLION: Final = np.uint64(10**9)
_HALF: Final = np.uint64(32)
_LOW_HALF: Final = np.uint64(0xFFFFFFFF)
_MANTISSA: Final = (1 << 52) - 1


@inner
def magnitude(number: int) -> np.uint64:
    """|number| of an i64."""
    word = u64(number)
    return ZERO - word if number < 0 else word


@inner
def divided(rest: np.uint64, word: np.uint64, by: np.uint64) -> tuple[np.uint64, np.uint64]:
    """(quotient, rest) of rest · 2^64 + word by a number below 2^32 that is larger than `rest`."""
    upper = (rest << _HALF) | (word >> _HALF)
    high = upper // by
    lower = ((upper - high * by) << _HALF) | (word & _LOW_HALF)
    low = lower // by
    return (high << _HALF) | low, lower - low * by


# --- doubles ----------------------------------------------------------------------------------------

DOUBLE_DIGITS: Final = 53
FLOAT_DIGITS: Final = 24
DOUBLE_LOWEST: Final = -1074
FLOAT_LOWEST: Final = -149
"""The exponents of their last binary digits, at the least."""
DOUBLE_HIGHEST: Final = 971
FLOAT_HIGHEST: Final = 104


@inner
def rounded(window: np.uint64, rest: bool, top: int, digits: int, lowest: int) -> tuple[np.uint64, int, bool]:
    """(c, e, exact): c · 2^e is nearest to a number, of two the even one. The number's first digit is at 2^top, its
    first 64 are `window`, and `rest` says whether others are not 0. c has at most so many digits, and e ≥ lowest."""
    e = max(top - digits + 1, lowest)
    kept = top - e + 1
    if kept < 0:
        return ZERO, e, False
    c = ZERO if kept == 0 else window >> u64(64 - kept)
    below = window << u64(kept)
    half = ONE << u64(63)
    if below > half or (below == half and (rest or c & ONE != ZERO)):
        c += ONE
        if c == ONE << u64(digits):
            c >>= ONE
            e += 1
    return c, e, below == ZERO and not rest


@inner
def made_double(negative: bool, c: np.uint64, e: int, highest: int) -> float:
    """±c · 2^e, which is a double; infinite if e is above `highest`."""
    sign = i64(-1) << 63 if negative else i64(0)
    if c == ZERO:
        return from_bits(sign)
    if e > highest:
        return -np.inf if negative else np.inf
    shift = min(leading_zeros(c) - 11, e - DOUBLE_LOWEST)
    if shift > 0:
        c <<= u64(shift)
        e -= shift
    if leading_zeros(c) > 11:  # subnormal
        return from_bits(sign | i64(c))
    return from_bits(sign | ((e - DOUBLE_LOWEST + 1) << 52) | (i64(c) & _MANTISSA))


@inner
def taken_apart(number: float) -> tuple[np.uint64, int]:
    """(c, e) with |number| = c · 2^e, of a finite double."""
    word = bits(number)
    exponent = (word >> 52) & 0x7FF
    mantissa = word & _MANTISSA
    if exponent == 0:
        return u64(mantissa), i64(DOUBLE_LOWEST)
    return u64(mantissa | 1 << 52), exponent + DOUBLE_LOWEST - 1
