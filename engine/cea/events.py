"""What runs of a CEQL query take (run.py, composed.py): marked events, and numbers of the plan for the kernels."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from oxiseq.engine.cea.memory import Capacities
from oxiseq.engine.cea.plan import CeaPlan
from oxiseq.engine.cea.windows import kind_of
from oxiseq.engine.kernels.cea import records as k
from oxiseq.engine.kernels.matches import records as matches
from oxiseq.grammar.algebra import Consumption


@dataclass(frozen=True, slots=True)
class MarkedEvents:
    """n events in merged order, each at a position of its own (consecutive, continuing from the batch before)."""

    symbol: NDArray[np.uint64]
    """u64[n, words]: which atoms each satisfies; words = ceil(len(plan.atoms) / 64), at least 1."""
    time: NDArray[np.int64]
    """i64[n]: µs, not falling."""
    partition: NDArray[np.int64]
    """i64[n]: number of its partition (`begin_partitions`; 0 without PARTITION BY); -1: in none."""
    attribute: NDArray[np.float64] | None = None
    """f64[n]: value of the window's attribute (NaN: none), for `WITHIN n [attr]` only; None otherwise."""

    def __len__(self) -> int:
        return len(self.time)


def sizes_of(plan: CeaPlan, capacities: Capacities, picks: bool) -> NDArray[np.int64]:
    """The kernels' numbers of a plan; `picks`: whether ORDER BY or SAMPLE chooses."""
    query = plan.query
    sizes = np.zeros(k.SIZES, np.int64)
    sizes[k.DISORDER] = capacities.disorder
    sizes[k.KIND], sizes[k.SIZE] = kind_of(query)
    sizes[k.LIMIT] = query.limit.count if query.limit is not None else matches.NO_LIMIT
    sizes[k.CHOOSES] = (query.selection is not None and not plan.strict) or picks
    match query.consumption:
        case None:
            sizes[k.CONSUME] = k.KEEP_ALL
        case Consumption(whole_query):
            sizes[k.CONSUME] = k.FORGET_ALL if whole_query else k.FORGET_PARTITION
    sizes[k.WORDS] = plan.words
    return sizes
