"""ORDER BY, LIMIT with OFFSET, and SAMPLE on matches that are listed (semantics.md 2.6b).

In the flow: matches of an instant, all of them or those that were picked → **the emitted ones, in order** → rows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from oxiseq.engine.matches.ranking import Ranking
from oxiseq.engine.matches.sampling import sample
from oxiseq.engine.terms.order import sort_by

Keys = Callable[[int], Sequence[Any]]
"""Of a match what ORDER BY's expressions compare."""


class OfEnd(NamedTuple):
    """The matches of one end (of one partition) that are told, in their order, and of how many they were chosen. Where
    the best of a window are told when it closes, these are those that may be among them."""

    told: Sequence[int]
    total: int


def told(
    ranking: Ranking,
    time: NDArray[np.int64],
    partition: NDArray[np.uint32] | None,
    rows: Sequence[NDArray[np.int64]],
    keys: Keys,
) -> list[OfEnd]:
    """Which matches are emitted, of each end (of each partition), where they are adjacent, in the order of enumeration;
    `rows`: of each match its row ids."""
    return [
        OfEnd(_of_one_end(ranking, int(time[low]), range(low, high), rows, keys), high - low)
        for low, high in _ends_of(time, partition)
    ]


def _ends_of(time: NDArray[np.int64], partition: NDArray[np.uint32] | None) -> list[tuple[int, int]]:
    """The matches of each end (of each partition): from which one to before which one."""
    if not len(time):
        return []
    changes = time[1:] != time[:-1]
    if partition is not None:
        changes |= partition[1:] != partition[:-1]
    begins = np.flatnonzero(np.concatenate([[True], changes]))
    return list(zip(begins.tolist(), [*begins[1:].tolist(), len(time)], strict=True))


def _of_one_end(
    ranking: Ranking, time: int, matches: Sequence[int], rows: Sequence[NDArray[np.int64]], keys: Keys
) -> list[int]:
    if ranking.sample is not None:
        drawn = sample(len(matches), ranking.sample.count, f"{ranking.seed} {time}")
        matches = [matches[i] for i in drawn]
    if not ranking.order_by:
        return list(matches)
    compared = {m: keys(m) for m in matches}
    ordered = sorted(matches, key=lambda m: rows[m].tolist())
    sort_by(ordered, compared.__getitem__, [descending for _, descending in ranking.order_by])
    last = None if ranking.limit is None else ranking.offset + ranking.limit
    return ordered[0 if ranking.window is not None else ranking.offset : last]
