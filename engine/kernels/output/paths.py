"""From the rows of a match to what its variables mean.

After a repeat only the last iteration's variables are visible (semantics.md 2.4). Each row of a match comes
with its place, which says the position that it took and whether a new iteration begins there.
"""

from __future__ import annotations

import numpy as np

from oxiseq.engine.kernels.compiling.options import kernel
from oxiseq.engine.kernels.memory.numbers import i64
from oxiseq.engine.kernels.memory.pointers import Array


@kernel
def visible(places: Array, ends: Array, again: Array, inside: Array, out: Array) -> None:
    """Which rows of each match are visible outside all repeats.

    places: i32[f], the matches' places one after the other; ends: i64[n + 1]; again: i32[p], the repeat that
    begins again at a place, or -1; inside: bool[p, repeats] whether a place lies in a repeat; out: bool[f].
    """
    begun = np.zeros(inside.shape[1], np.bool_)
    for m in range(ends.shape[0] - 1):
        begun[:] = False
        for i in range(ends[m + 1] - 1, ends[m] - 1, -1):
            here = places[i]
            hidden = False
            for repeat in range(begun.shape[0]):
                hidden = hidden or (begun[repeat] and inside[here, repeat])
            out[i] = not hidden
            if again[here] >= 0:
                begun[again[here]] = True


@kernel
def resolve(values: Array, shown: Array, ends: Array, out: Array) -> None:
    """The value of each variable in each match: its last visible binding. values: u32[f, v]; out: u32[n, v]."""
    for m in range(ends.shape[0] - 1):
        for i in range(ends[m], ends[m + 1]):
            if shown[i]:
                for v in range(values.shape[1]):
                    if values[i, v] != 0:
                        out[m, v] = values[i, v]


@kernel
def count_products(counts: Array, ends: Array, out: Array) -> None:
    """Per match the number of ways to choose one of `counts[i, g]` for each row i and late GPM g."""
    for m in range(ends.shape[0] - 1):
        ways = i64(1)
        for i in range(ends[m], ends[m + 1]):
            for g in range(counts.shape[1]):
                ways *= counts[i, g]
        out[m] = ways


@kernel
def choose(counts: Array, ends: Array, ways: Array, source: Array, choice: Array, new_ends: Array) -> None:
    """Repeat each match once per way. source: i64[f'] old row of each new one; choice: i64[f', g]."""
    at = 0
    n = 0
    for m in range(ends.shape[0] - 1):
        for way in range(ways[m]):
            rest = way
            for i in range(ends[m], ends[m + 1]):
                source[at] = i
                for g in range(counts.shape[1]):
                    choice[at, g] = rest % counts[i, g]
                    rest //= counts[i, g]
                at += 1
            n += 1
            new_ends[n] = at
