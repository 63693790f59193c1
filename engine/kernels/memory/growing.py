"""Room for more: what all arrays do that double when they are full."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from oxiseq.engine.kernels.memory.pointers import Array, address_of

LINE: Final = 64
"""Bytes of a line of the cache."""


def longer(array: Array, size: int) -> Array:
    """A copy with room for `size`, at least as many as before; the new part is zero. The array itself if it has so
    much."""
    if size == len(array):
        return array
    out = np.zeros((size, *array.shape[1:]), array.dtype)
    out[: len(array)] = array
    return out


def flat(lists: Iterable[Sequence[int] | Array], kind: type[np.generic]) -> Array:
    """Their numbers one behind the other."""
    return np.concatenate([np.zeros(0, kind), *(np.asarray(each, kind) for each in lists)])


def filled(array: Array, saved: Array) -> Array:
    """An array with saved records at its beginning, and more room if it needs it. Raises ValueError where they are of
    another layout."""
    if saved.dtype != array.dtype or saved.shape[1:] != array.shape[1:]:
        raise ValueError(f"records of another layout: {saved.dtype} {saved.shape}")
    out = array if len(array) >= len(saved) else longer(array, len(saved))
    out[: len(saved)] = saved
    return out


def lines(rows: int, words: int) -> NDArray[np.int64]:
    """Zeros, i64[rows, words], that begin with a line of the cache: a record of 8 words is in one."""
    raw = np.zeros(rows * words * 8 + LINE, np.uint8)
    start = -address_of(raw) % LINE
    return raw[start : start + rows * words * 8].view(np.int64).reshape(rows, words)
