"""ORDER BY, LIMIT with OFFSET, and SAMPLE on matches that are listed (semantics.md 2.6b).

In the flow: matches of an instant, all of them or those that were picked → **the emitted ones, in order** → rows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from oxiseq.engine.errors import LimitError
from oxiseq.engine.matches.sampling import sample
from oxiseq.engine.plan.ranking import LISTED, MOST_LISTED, Ranking

Keys = Callable[[int], Sequence[Any]]
"""Of a match what ORDER BY's expressions compare."""


def told(
    ranking: Ranking,
    time: NDArray[np.int64],
    partition: NDArray[np.uint32] | None,
    rows: Sequence[NDArray[np.int64]],
    keys: Keys,
) -> NDArray[np.int64]:
    """Which matches are emitted, in their order. Those of one end (of one partition) are adjacent, in the order of
    enumeration; `rows`: of each match its row ids. Raises LimitError."""
    if not len(time):
        return np.zeros(0, np.int64)
    changes = time[1:] != time[:-1]
    if partition is not None:
        changes |= partition[1:] != partition[:-1]
    begins = np.flatnonzero(np.concatenate([[True], changes]))
    chosen: list[int] = []
    for low, high in zip(begins.tolist(), [*begins[1:].tolist(), len(time)], strict=True):
        if high - low > MOST_LISTED:
            raise LimitError(high - low, MOST_LISTED, LISTED)
        chosen += _of_one_end(ranking, int(time[low]), range(low, high), rows, keys)
    return np.array(chosen, np.int64)


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
    for place in range(len(ranking.order_by) - 1, -1, -1):
        ordered.sort(key=lambda m: compared[m][place], reverse=ranking.order_by[place][1])
    last = None if ranking.limit is None else ranking.offset + ranking.limit
    return ordered[ranking.offset : last]
