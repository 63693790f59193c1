"""The running state of an automaton: allocation, growth and reclamation of the kernel's arrays; saving and restoring
(terms/saved.py), and taking over what another one remembers. It holds no terms.

Everything starts small and doubles on demand; nothing is sized by the window or the stream. States are saved as sets of
letters, and numbered again: only those in which some prefix waits. The steps between them are computed again when they
are needed.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import numpy as np
from numpy.typing import NDArray

from oxiseq.engine.cea.cache import StepCache
from oxiseq.engine.cea.events import kind_of
from oxiseq.engine.cea.plan import CeaPlan
from oxiseq.engine.kernels.cea import records as k
from oxiseq.engine.kernels.cea.collect import collect, pack
from oxiseq.engine.kernels.matches.records import NEED_STACK, NODE_TOP, PLACE_BITS, SPINE
from oxiseq.engine.kernels.memory.pointers import Array, Pointers, call
from oxiseq.engine.matches.memory import EMPTY_BETWEEN_BATCHES, append_nodes, match_sizes, with_room_for_nodes
from oxiseq.engine.terms.saved import State
from oxiseq.grammar.records import dataclass

BUSY_NODES: Final = 1 << 11
"""Room for nodes to which each time that it is full leads: 64 KiB."""
WEIGHED_NODES: Final = 1 << 14
"""The same where nodes are weighed, for which each collection is a batch."""


@dataclass(frozen=True, slots=True)
class Capacities:
    """Numbers of records to begin with, few, since most of a thousand queries have no partial match; how many `moves`
    the automaton's table is to hold; `disorder`: kernels/cea/moving.py."""

    nodes: int = 8
    live: int = 64
    fresh: int = 16
    parts: int = 4
    out: int = 16
    stack: int = 32
    moves: int = 1 << 18
    disorder: int = 1 << 12
    """A window of an attribute keeps what one of so many events of the partition could still reach."""

    @classmethod
    def smallest(cls) -> Capacities:
        """So small that every array has to grow at once."""
        return cls(nodes=SPINE + 2, live=1, fresh=1, parts=1, out=2, stack=3, moves=1)


def sizes_of(plan: CeaPlan, capacities: Capacities, picks: bool) -> NDArray[np.int64]:
    """The kernels' numbers of a plan; `picks`: whether ORDER BY or SAMPLE chooses."""
    clauses, sizes = plan.clauses, np.zeros(k.SIZES, np.int64)
    sizes[k.DISORDER] = capacities.disorder
    sizes[k.KIND], sizes[k.SIZE] = kind_of(plan.query)
    sizes[k.LIMIT], sizes[k.CONSUME] = clauses.limit, clauses.consumes
    sizes[k.CHOOSES] = clauses.chooses or picks
    sizes[k.WORDS] = plan.runner.words
    return sizes


def allocate(sizes: Capacities) -> k.Memory:
    """Empty memory for one run."""
    return k.Memory.allocate(
        **match_sizes(sizes.nodes, sizes.fresh, sizes.stack, sizes.out),
        queries=1,
        scalars=k.SCALARS,
        parts=sizes.parts,
        live=sizes.live,
        fresh=sizes.fresh,
    )


def grow(S: k.Memory, need: int) -> k.Memory:
    """Grows the arrays that the kernel reported full."""
    if need == k.NEED_LIVE:
        return _pack(S)
    if need == k.NEED_FRESH:
        return S.grow("fresh").grow("finals")
    assert need == NEED_STACK
    return S.grow("stack")


def begin_parts(S: k.Memory, fresh: Array, count: int) -> k.Memory:
    """Memory for so many partitions, of which those `fresh` have not seen anything."""
    if count > len(S.parts):
        S = S.grow("parts", count)
    S.parts[fresh] = S.declared["parts"].make(len(fresh))
    return S


def keep_all(parts: Array) -> None:
    """Partitions are not to forget anything for now (kernels/cea/moving.py)."""
    parts["tau"], parts["low"], parts["aged"] = *k.KEEP_ALL.values(), 0


def _pack(S: k.Memory) -> k.Memory:
    """Blocks of live records moved together; twice the room that they take, and more for the one that grows."""
    none = np.zeros(0, k.LIVE)
    used = int(call(pack, Pointers(S), none))
    live = np.zeros(max(2 * used, len(S.live)) + 2 * len(S.fresh) + 2, k.LIVE)
    call(pack, Pointers(S), live)
    return S._replace(live=live)


def free_nodes(A: Pointers[k.Cache], S: k.Memory, now: int, again: bool, *, busy: int) -> tuple[k.Memory, int]:
    """Collect dead nodes; double the room if more than half is still in use, or if that did not help before, or if it
    is less than `busy`: a query that makes nodes all the time would collect them all the time.

    Returns the memory and the smallest position that a node still refers to (1 << 62: none does). There is room
    for as many nodes as partitions, since the kernel visits all of those.
    """
    marks, floors = np.zeros(len(S.nodes), np.int32), np.zeros(len(S.parts), np.int64)
    oldest = int(call(collect, A, Pointers(S), marks, floors, now))
    return with_room_for_nodes(S, again, least=max(len(S.parts), busy)), oldest


# --- from memory to memory --------------------------------------------------------------------------


def save_memory(S: k.Memory, cache: StepCache) -> State:
    """Between batches, after a collection."""
    state = S.save()
    there = _places(S.parts[S.parts["epoch"] == S.scalars[k.EPOCH]])
    used = np.unique(S.live["state"][there])
    live = state["live"].copy()
    live["state"][:] = 0
    live["state"][there] = 1 + np.searchsorted(used, S.live["state"][there])
    return {**state, "live": live, "states": cache.save(used.tolist())}


def _places(parts: Array) -> Array:
    """Where the live records of partitions are."""
    first, count = parts["first"].astype(np.int64), parts["count"].astype(np.int64)
    ends = np.cumsum(count)
    places: Array = np.repeat(first - ends + count, count) + np.arange(int(count.sum()))
    return places


def restore_memory(state: State, cache: StepCache, sizes: Capacities) -> k.Memory:
    """Memory that continues from a saved state; the cache has its states then."""
    S = allocate(sizes)
    cache.restore(state["states"])
    S = S.restore({**state, "weights": S.weights[:0]})  # earlier versions had some
    S.scalars[[*EMPTY_BETWEEN_BATCHES, k.AT]] = 0
    return S


def put_memory(
    S: k.Memory, cache: StepCache, M: k.Memory, other: StepCache, places: Mapping[int, int], shift: int
) -> k.Memory:
    """Memory with partitions of `M`, which has just been collected, in the place of its own ones. `places`: their
    numbers there and here; positions are more by `shift` here; `cache`, `other`: the states of both."""
    nodes, live, blocks = M.nodes[: M.scalars[NODE_TOP]].copy(), int(S.scalars[k.LIVE_TOP]), int(M.scalars[k.LIVE_TOP])
    nodes["pos"] += np.where(nodes["leaf"] < 0, shift << PLACE_BITS, 0)
    S, first = append_nodes(S.grow("live", max(len(S.live), live + blocks)), nodes)
    moved = S.live[live : live + blocks]
    moved[:] = M.live[:blocks]
    moved["node"] += first
    mine, own = M.parts[[*places]], [*places.values()]
    mine["count"] *= mine["epoch"] == M.scalars[k.EPOCH]
    mine["epoch"] = S.scalars[k.EPOCH]
    there = _places(mine)
    states = np.zeros(other.states, np.int32)
    for state in np.unique(M.live["state"][there]).tolist():
        states[state] = cache.number_of(other.state(state))
    mine["first"] += live
    S.parts[own], S.live["state"][live + there] = mine, states[M.live["state"][there]]
    S.scalars[k.LIVE_TOP] = live + blocks
    return S
