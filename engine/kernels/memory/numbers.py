"""Numbers as kernels have them, which mypy takes for Python's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from oxiseq.engine.kernels.compiling.as_python import either


def _signed(number: Any) -> Any:
    if isinstance(number, np.ndarray):
        return number.astype(np.int64)
    word = _word(number)
    return word - (1 << 64) if word >> 63 else word


def _unsigned(number: Any) -> np.uint64:
    return np.uint64(_word(number))


def _word(number: Any) -> int:
    """The 64 bits of a number. Raises OverflowError where it is a sum or product of signed ones that has more: compiled
    code takes these to have no more, and does anything where they have."""
    if type(number) is int and not -1 << 63 <= number < 1 << 64:
        raise OverflowError(f"{number} has more than 64 bits")
    return int(number) & 0xFFFFFFFFFFFFFFFF


i64: Final[Callable[[Any], int]] = either(np.int64, _signed)
"""An integer of 64 bits: to Numba np.int64, to mypy an int, as it is where kernels take it."""
u64: Final[Callable[[Any], np.uint64]] = either(np.uint64, _unsigned)
"""One without a sign: to Numba np.uint64. Of a negative number it is that plus 2^64."""
