"""The memory of one query, out of that of several (kernels/sequence/members.py)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from oxiseq.engine.kernels.matches.records import (
    DONE,
    MATCH_SCALARS,
    NEED_LIMBS,
    NEED_NODES,
    NODE_TOP,
    SPINE,
    MatchMemory,
)
from oxiseq.engine.kernels.memory.pointers import Array, Pointers, call
from oxiseq.engine.kernels.sequence import records as k
from oxiseq.engine.kernels.sequence.members import move_begun, move_counts, move_entries, move_groups
from oxiseq.engine.kernels.terms.columns import TermColumns
from oxiseq.engine.matches.memory import M, match_sizes, with_room_for_nodes
from oxiseq.engine.sequence.counts import more_limbs, with_limbs
from oxiseq.engine.sequence.memory import Capacities, allocate, grow
from oxiseq.engine.sequence.tables import SequenceTables

_KEPT = (k.SERIAL, k.ATTEMPT, k.CLOCK, k.FORGOTTEN, k.CONSUMED, k.WAVE)
"""Scalars that are the same for one query."""
_Move = Callable[[Pointers[k.Memory], Array, Array], int]
"""Into memory; `made` and `progress` as of the kernels."""


def counted_for(
    S: k.Memory, family: SequenceTables, alone: SequenceTables, member: int, terms: TermColumns, sizes: Capacities
) -> k.Memory:
    """Memory of the tables `alone` with what `S`, just collected, has counted for a query of the family."""
    own, source = _like(S, alone, sizes), Pointers(S)
    if S.weights.shape[1] > 1:
        own = with_limbs(own, S.weights.shape[1])

    def counts(to: Pointers[k.Memory], made: Array, progress: Array) -> int:
        return int(call(move_counts, source, to, made, progress, member))

    return _moved(S, family, own, alone, counts, member, terms)


def begun_with(
    S: k.Memory, tables: SequenceTables, begins: NDArray[np.uint8], terms: TermColumns, sizes: Capacities
) -> k.Memory:
    """Memory of the same tables with what `S`, just collected, holds of matches that begin with these of its rows."""
    source = Pointers(S)

    def begun(to: Pointers[k.Memory], made: Array, progress: Array) -> int:
        return int(call(move_begun, source, to, made, progress, begins, 0))

    return _moved(S, tables, _like(S, tables, sizes), tables, begun, 0, terms)


def finals_begun_with(S: M, finals: Array, begins: NDArray[np.uint8], base: int) -> tuple[M, Array]:
    """Memory with more nodes, and finals of them: of the matches below these `finals` that begin with rows that
    `begins` has, from row `base` on."""
    top = int(S.scalars[NODE_TOP])
    own = MatchMemory.allocate(**match_sizes(top + 2 * SPINE, 0, 0, 0), scalars=MATCH_SCALARS, queries=0)
    made, progress = np.full(max(top, 1), -1, np.int32), np.zeros(2, np.int64)
    while call(move_begun, Pointers(S), Pointers(own), made, progress, begins, base) != DONE:
        own = with_room_for_nodes(own, again=True)
    nodes = own.nodes[: own.scalars[NODE_TOP]]
    for link in ("left", "right", "leaf"):
        nodes[link][nodes[link] >= 0] += top
    if top + len(nodes) > len(S.nodes):
        S = S.grow("nodes", max(2 * len(S.nodes), top + len(nodes)))
    S.nodes[top : top + len(nodes)] = nodes
    S.scalars[NODE_TOP] += len(nodes)
    kept = finals[made[finals[:, 0]] >= 0]
    kept[:, 0] = made[kept[:, 0]] + top
    return S, kept


def _like(S: k.Memory, alone: SequenceTables, sizes: Capacities) -> k.Memory:
    """Empty memory at the same instant."""
    own = allocate(alone, replace(sizes, nodes=max(sizes.nodes, int(S.scalars[NODE_TOP]) + 2 * SPINE)))
    own = own.restore({"floors": S.floors, "moments": S.moments, "numbers": S.numbers, "origins": S.origins})
    own.scalars[list(_KEPT)] = S.scalars[list(_KEPT)]
    return own


def _moved(
    S: k.Memory,
    tables: SequenceTables,
    own: k.Memory,
    alone: SequenceTables,
    nodes: _Move,
    member: int,
    terms: TermColumns,
) -> k.Memory:
    made = np.full(max(int(S.scalars[NODE_TOP]), 1), -1, np.int32)
    T, source, A, C = Pointers(tables.tables), Pointers(S), Pointers(alone.tables), Pointers(terms)

    def groups(to: Pointers[k.Memory], made: Array, progress: Array) -> int:
        return int(call(move_groups, T, source, A, to, C, made, progress, member))

    def entries(to: Pointers[k.Memory], made: Array, progress: Array) -> int:
        return int(call(move_entries, T, source, A, to, C, made, progress, member))

    steps: list[tuple[int, _Move]] = [(0, nodes), (int(S.scalars[k.QUEUE_FRONT]), groups), (0, entries)]
    for first, move in steps:
        progress = np.array([first, -1], np.int64)
        while True:
            to = Pointers(own)
            need = move(to, made, progress)
            if need == DONE:
                break
            if need == NEED_LIMBS:
                own = more_limbs(own)
            elif need == NEED_NODES:
                own = with_room_for_nodes(own, again=True)
            else:
                own = grow(A, to, own, need, alone)
    return own
