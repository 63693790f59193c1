"""Looking for bytes, eight at a time.

Searches read up to seven bytes beyond their end: a buffer needs PADDING bytes behind its content.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np
from llvmlite import ir
from numba import types

from oxiseq.engine.kernels.compiling.as_python import intrinsic_or
from oxiseq.engine.kernels.compiling.options import inner
from oxiseq.engine.kernels.memory.raw import word

PADDING: Final = 16
"""Bytes that must be readable behind whatever is searched or compared."""

_ONES: Final = np.uint64(0x0101010101010101)
_HIGHS: Final = np.uint64(0x8080808080808080)
_NONE: Final = np.uint64(0)


def every(byte: int) -> np.uint64:
    """A byte, eight times: what the searches take."""
    return np.uint64(byte * 0x0101010101010101)


@intrinsic_or(lambda value: (int(value) & -int(value)).bit_length() - 1)
def _trailing_zeros(typing_context: Any, value: Any) -> tuple[Any, Callable[..., Any]]:
    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.cttz(args[0], ir.Constant(ir.IntType(1), 1))

    return types.int64(types.uint64), generate


_zeros_below: Callable[[np.uint64], int] = _trailing_zeros


@inner
def find_byte(at: int, end: int, wanted: np.uint64) -> int:
    """Where the byte of `every` first occurs in at..end; `end` if nowhere."""
    while at < end:
        x = word(at) ^ wanted
        hit = (x - _ONES) & ~x & _HIGHS
        if hit != _NONE:
            return min(at + (_zeros_below(hit) >> 3), end)
        at += 8
    return end


@inner
def find_either(at: int, end: int, one: np.uint64, other: np.uint64) -> int:
    """Where one of two bytes first occurs in at..end; `end` if nowhere."""
    while at < end:
        x, y = word(at) ^ one, word(at) ^ other
        hit = (((x - _ONES) & ~x) | ((y - _ONES) & ~y)) & _HIGHS
        if hit != _NONE:
            return min(at + (_zeros_below(hit) >> 3), end)
        at += 8
    return end


_SPACES: Final = every(0x20)
_BACKSLASHES: Final = every(0x5C)
_DELETES: Final = every(0x7F)


@inner
def find_special(at: int, end: int) -> int:
    """The first place in at..end with a byte that is not printable ASCII, or a backslash; `end` if nowhere."""
    while at < end:
        w = word(at)
        x, y = w ^ _BACKSLASHES, w ^ _DELETES
        hit = (((x - _ONES) & ~x) | ((y - _ONES) & ~y) | ((w - _SPACES) & ~w) | w) & _HIGHS
        if hit != _NONE:
            return min(at + (_zeros_below(hit) >> 3), end)
        at += 8
    return end
