"""The memory of an automaton's run, saved and restored (terms/saved.py). It holds no terms.

States are saved as sets of letters, and numbered again: only those in which some prefix waits. The
steps between them are computed again when they are needed.
"""

from __future__ import annotations

import numpy as np

from oxiseq.engine.cea.cache import StepCache
from oxiseq.engine.cea.memory import Capacities, allocate
from oxiseq.engine.cea.subsets import State as Letters
from oxiseq.engine.kernels.cea import records as k
from oxiseq.engine.kernels.memory.pointers import Array
from oxiseq.engine.matches.memory import EMPTY_BETWEEN_BATCHES
from oxiseq.engine.terms.saved import State


def save_memory(S: k.Memory, cache: StepCache) -> State:
    """Between batches, after a collection."""
    state = S.save()
    there = in_use(S)
    used = np.unique(S.live["state"][there])
    live = state["live"].copy()
    live["state"][:] = 0
    live["state"][there] = 1 + np.searchsorted(used, S.live["state"][there])
    states = [cache.state(number) for number in used.tolist()]
    return {**state, "live": live, "states": [[hex(s.at_once), hex(s.later), s.strict] for s in states]}


def in_use(S: k.Memory) -> Array:
    """The places of live records."""
    parts = S.parts[S.parts["epoch"] == S.scalars[k.EPOCH]]
    first, count = parts["first"].astype(np.int64), parts["count"].astype(np.int64)
    ends = np.cumsum(count)
    places: Array = np.repeat(first - ends + count, count) + np.arange(int(count.sum()))
    return places


def restore_memory(state: State, cache: StepCache, sizes: Capacities) -> k.Memory:
    """Memory that continues from a saved state; the cache has its states then."""
    S = allocate(sizes)
    cache.begin([Letters(int(at_once, 16), int(later, 16), strict) for at_once, later, strict in state["states"]])
    S = S.restore({**state, "weights": S.weights[:0]})  # earlier versions had some
    S.scalars[[*EMPTY_BETWEEN_BATCHES, k.AT]] = 0
    return S
