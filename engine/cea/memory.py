"""The running state of an automaton: allocation, growth and reclamation of the kernel's arrays.

Everything starts small and doubles on demand; nothing is sized by the window or the stream.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from oxiseq.engine.kernels.cea import records as k
from oxiseq.engine.kernels.cea.collect import collect, pack
from oxiseq.engine.kernels.matches.records import NEED_STACK, SPINE
from oxiseq.engine.kernels.memory.pointers import Array, Pointers, call
from oxiseq.engine.matches.memory import match_sizes, with_room_for_nodes
from oxiseq.grammar.records import dataclass

BUSY_NODES: Final = 1 << 11
"""Room for nodes to which each time that it is full leads: 64 KiB."""
WEIGHED_NODES: Final = 1 << 14
"""The same where nodes are weighed, for which each collection is a batch."""


@dataclass(frozen=True, slots=True)
class Capacities:
    """Numbers of records to begin with, few, since most of a thousand queries have no partial match; how many `moves`
    the automaton's table is to hold; `disorder`: ageing.py."""

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
    """Partitions are not to forget anything for now (kernels/cea/ageing.py)."""
    parts["tau"], parts["low"], parts["aged"] = *k.KEEP_ALL.values(), 0


def _pack(S: k.Memory) -> k.Memory:
    """Blocks of live records moved together; twice the room that they take, and more for the one that grows."""
    none = np.zeros(0, k.LIVE)
    used = int(call(pack, Pointers(S), none))
    live = np.zeros(max(2 * used, len(S.live)) + 2 * len(S.fresh) + 2, k.LIVE)
    call(pack, Pointers(S), live)
    return S._replace(live=live)


def free_nodes(A: Pointers[k.Cache], S: k.Memory, tau: int, again: bool, *, busy: int) -> tuple[k.Memory, int]:
    """Collect dead nodes; double the room if more than half is still in use, or if that did not help before, or if it
    is less than `busy`: a query that makes nodes all the time would collect them all the time.

    Returns the memory and the smallest position that a node still refers to (1 << 62: none does). There is room
    for as many nodes as partitions, since the kernel visits all of those.
    """
    marks, floors = np.zeros(len(S.nodes), np.int32), np.zeros(len(S.parts), np.int64)
    oldest = int(call(collect, A, Pointers(S), marks, floors, tau))
    return with_room_for_nodes(S, again, least=max(len(S.parts), busy)), oldest
