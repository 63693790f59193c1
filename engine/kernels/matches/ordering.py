"""The matches of an instant in an order that they themselves fix, however they were found."""

from __future__ import annotations

from oxiseq.engine.kernels.compiling.options import inner, kernel
from oxiseq.engine.kernels.memory.numbers import i64
from oxiseq.engine.kernels.memory.pointers import Array


@kernel
def arrange(rows: Array, ends: Array, order: Array, spare: Array) -> bool:
    """Put `order`, i64[n] of 0, 1, ..., n - 1, into the order of the matches; whether that changed it.

    Match i is rows[ends[i]:ends[i + 1]]. They come by their last row; among those with the same one, the match with the
    later row before it is the first, and so on, and a shorter one before a longer one. `spare`: i64[n].
    """
    count = order.shape[0]
    sorted_ = True
    for m in range(1, count):
        if _before(rows, ends, m, m - 1):
            sorted_ = False
            break
    if sorted_:
        return False
    width = 1
    while width < count:
        for low in range(0, count - width, 2 * width):
            _merge(rows, ends, order, spare, low, low + width, min(low + 2 * width, count))
        width *= 2
    return True


@inner
def _merge(rows: Array, ends: Array, order: Array, spare: Array, low: int, middle: int, high: int) -> None:
    """Make one sorted part of two neighbours; equal matches stay as they are."""
    if not _before(rows, ends, order[middle], order[middle - 1]):
        return
    for i in range(low, middle):
        spare[i] = order[i]
    left, right, at = i64(low), i64(middle), i64(low)
    while left < middle and right < high:
        if _before(rows, ends, order[right], spare[left]):
            order[at] = order[right]
            right += 1
        else:
            order[at] = spare[left]
            left += 1
        at += 1
    while left < middle:
        order[at] = spare[left]
        left += 1
        at += 1


@inner
def _before(rows: Array, ends: Array, a: int, b: int) -> bool:
    """Whether match `a` comes before match `b`."""
    x, y = ends[a + 1] - 1, ends[b + 1] - 1
    if rows[x] != rows[y]:
        return rows[x] < rows[y]
    while x > ends[a] and y > ends[b]:
        x -= 1
        y -= 1
        if rows[x] != rows[y]:
            return rows[x] > rows[y]
    return x == ends[a] and y > ends[b]
