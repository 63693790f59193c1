"""The strategies NEXT, LAST and MAX among the complex events that end at one position (semantics.md 3).

They are chosen among all that were found: right, and as slow as there are many. (STRICT is in the automaton.)
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from oxiseq.grammar.algebra import Strategy

_BEYOND = 1 << 62


def chosen(
    ends: NDArray[np.int64], positions: NDArray[np.int64], offsets: NDArray[np.int64], strategy: Strategy, limit: int
) -> NDArray[np.int64]:
    """Numbers of the complex events that the strategy keeps, `limit` of them per end; in their order.

    `ends[i]` is the end of number i, not falling; its D are `positions[offsets[i]:offsets[i + 1]]`.
    """
    everything = [tuple(positions[a:b].tolist()) for a, b in pairwise(offsets.tolist())]
    bounds = [0, *(np.flatnonzero(np.diff(ends)) + 1).tolist(), len(ends)] if len(ends) else []
    kept: list[int] = []
    for low, high in pairwise(bounds):
        best = _best(everything[low:high], strategy)
        kept += [n for n in range(low, high) if everything[n] in best][:limit]
    return np.array(kept, np.int64)


def _best(candidates: Sequence[tuple[int, ...]], strategy: Strategy) -> set[tuple[int, ...]]:
    """The sets D that are kept; each ascending."""
    if strategy is Strategy.NEXT:  # the first difference decides, and to go on is better than to end
        return {min(candidates, key=lambda d: (*d, _BEYOND))}
    if strategy is Strategy.LAST:
        return {max(candidates, key=lambda d: d[::-1])}
    return _maximal(candidates)


def _maximal(candidates: Iterable[tuple[int, ...]]) -> set[tuple[int, ...]]:
    kept: list[frozenset[int]] = []
    for d in sorted(set(candidates), key=len, reverse=True):
        members = frozenset(d)
        if not any(members < other for other in kept):
            kept.append(members)
    return {tuple(sorted(d)) for d in kept}
