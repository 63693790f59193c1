"""The join of rows that have come with rows that are kept: hash chains over the shared columns.

Where it stands: `intervals/table.py` keeps rows as columns and links those of one hash in a chain, newest first;
`probe` walks the chain of each row that has come and writes the pairs that agree and stand to each other as the mode
asks. It stops when there is no room for more pairs and goes on from its place when called again.

A row without any triple of the stream has the empty interval (EMPTY_START, EMPTY_END): minimum and maximum leave it
out.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from oxiseq.engine.kernels.compiling.options import inner, kernel

EMPTY_START: Final = 1 << 62
EMPTY_END: Final = -(1 << 62)

ANY: Final = 0
"""The hull of both."""
KEPT_FIRST: Final = 1
"""The kept row ends before the one that has come starts."""
COME_FIRST: Final = 2
SAME: Final = 3
"""Equal intervals."""
KEPT_BY: Final = 4
"""The kept row ends no later than the one that has come."""

ROW: Final = 0
CHAIN: Final = 1
"""Places of `at`: the row at work, and where in its chain (−1: at its beginning, −2: chains are not looked at yet)."""


@inner
def _hash(values: Any, row: int, key: Any, mask: int) -> int:
    h = np.uint64(0x51ED270B)
    for c in range(key.shape[0]):
        h = (h ^ np.uint64(values[row, key[c]])) * np.uint64(0x9E3779B97F4A7C15)
        h = h ^ (h >> np.uint64(32))
    return np.int64(h & np.uint64(mask))


@kernel
def link(values: Any, key: Any, heads: Any, chain: Any, low: int, high: int) -> None:
    """Put the rows low, ..., high − 1 into the chains. heads: i64[2^n], −1 where a chain is empty; chain: i64[rows]."""
    mask = heads.shape[0] - 1
    for row in range(low, high):
        at = _hash(values, row, key, mask)
        chain[row] = heads[at]
        heads[at] = row


@inner
def _agree(came: Any, i: int, came_key: Any, kept: Any, j: int, kept_key: Any, loose: Any) -> bool:
    """Whether the key is the same, and the loose columns are where both are bound."""
    for c in range(came_key.shape[0]):
        if came[i, came_key[c]] != kept[j, kept_key[c]]:
            return False
    for c in range(loose.shape[0]):
        a, b = came[i, loose[c, 0]], kept[j, loose[c, 1]]
        if a != 0 and b != 0 and a != b:
            return False
    return True


@inner
def _in_time(mode: int, start: int, end: int, kept_start: int, kept_end: int) -> bool:
    if mode == ANY:
        return True
    if mode == KEPT_FIRST:
        return kept_end < start
    if mode == COME_FIRST:
        return end < kept_start
    if mode == SAME:
        return start == kept_start and end == kept_end
    return kept_end <= end


@kernel
def probe(
    came: Any, came_start: Any, came_end: Any, came_key: Any, kept: Any, kept_start: Any, kept_end: Any,
    kept_key: Any, heads: Any, chain: Any, loose: Any, mode: int, limit: int, at: Any, out: Any,
) -> int:
    """Pairs (row that has come, kept row), at most as many as `out`, i64[room, 2], has room for; how many.

    loose: i64[n, 2], pairs of columns that agree where both are bound. limit: the longest hull of a pair. at: i64[2],
    the place to go on from, (0, −2) at first; done when at[ROW] is the number of rows that have come.
    """
    mask = heads.shape[0] - 1
    found = 0
    i, j = at[0], at[1]
    while i < came.shape[0]:
        if j == -2:
            j = heads[_hash(came, i, came_key, mask)]
        while j >= 0:
            start, end = came_start[i], came_end[i]
            if (
                _in_time(mode, start, end, kept_start[j], kept_end[j])
                and max(end, kept_end[j]) - min(start, kept_start[j]) <= limit
                and _agree(came, i, came_key, kept, j, kept_key, loose)
            ):
                if found == out.shape[0]:
                    at[0], at[1] = i, j
                    return found
                out[found, 0], out[found, 1] = i, j
                found += 1
            j = chain[j]
        i += 1
        j = -2
    at[0], at[1] = i, j
    return found


@kernel
def first_ones(values: Any, start: Any, end: Any, known: int) -> Any:
    """bool[rows]: which rows from number `known` on are equal, interval included, to none before them."""
    rows = values.shape[0]
    size = 16
    while size < 2 * rows:
        size *= 2
    heads = np.full(size, -1, np.int64)
    chain = np.empty(rows, np.int64)
    keep = np.zeros(rows, np.bool_)
    for row in range(rows):
        h = np.uint64(start[row]) * np.uint64(0x9E3779B97F4A7C15) ^ np.uint64(end[row])
        for c in range(values.shape[1]):
            h = (h ^ np.uint64(values[row, c])) * np.uint64(0x9E3779B97F4A7C15)
            h = h ^ (h >> np.uint64(32))
        at = np.int64(h & np.uint64(size - 1))
        other = heads[at]
        while other >= 0:
            same = start[other] == start[row] and end[other] == end[row]
            c = 0
            while same and c < values.shape[1]:
                same = values[other, c] == values[row, c]
                c += 1
            if same:
                break
            other = chain[other]
        if other < 0:
            keep[row] = row >= known
            chain[row] = heads[at]
            heads[at] = row
    return keep
