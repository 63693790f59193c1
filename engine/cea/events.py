"""What runs of a CEQL query take (run.py, composed.py): marked events, and numbers of the plan for the kernels."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from oxiseq.engine.cea.memory import Capacities
from oxiseq.engine.cea.plan import CeaPlan
from oxiseq.engine.cea.windows import kind_of
from oxiseq.engine.kernels.cea import records as k
from oxiseq.grammar.records import dataclass


@dataclass(frozen=True, slots=True)
class MarkedEvents:
    """n events in merged order, each at a position of its own (consecutive, continuing from the batch before)."""

    symbol: NDArray[np.uint64]
    """u64[n, words]: which atoms each satisfies; words = ceil(len(plan.letters) / 64), at least 1."""
    time: NDArray[np.int64]
    """i64[n]: µs, not falling."""
    partition: NDArray[np.int64]
    """i64[n]: number of its partition (`begin_partitions`; 0 without PARTITION BY); -1: in none."""
    attribute: NDArray[np.float64] | None = None
    """f64[n]: value of the window's attribute (NaN: none), for `WITHIN n [attr]` only; None otherwise."""

    event: NDArray[np.int64] | None = None
    """i64[n]: which event of the batch each is, where it is one for each query that reads it; None: each is one."""
    cut: NDArray[np.int64] | None = None
    """i64[n]: in windows of time, before when nothing is in the query's window."""
    batch: tuple[int, int] | None = None
    """How many events the batch has then, and the time of the last one."""

    def __len__(self) -> int:
        return len(self.time)


def sizes_of(plan: CeaPlan, capacities: Capacities, picks: bool) -> NDArray[np.int64]:
    """The kernels' numbers of a plan; `picks`: whether ORDER BY or SAMPLE chooses."""
    clauses, sizes = plan.clauses, np.zeros(k.SIZES, np.int64)
    sizes[k.DISORDER] = capacities.disorder
    sizes[k.KIND], sizes[k.SIZE] = kind_of(plan.query)
    sizes[k.LIMIT], sizes[k.CONSUME] = clauses.limit, clauses.consumes
    sizes[k.CHOOSES] = clauses.chooses or picks
    sizes[k.WORDS] = plan.runner.words
    return sizes
