"""The memory of one query of a family, out of the family's (kernels/sequence/members.py)."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from oxiseq.engine.kernels.matches.records import DONE, NEED_LIMBS, NEED_NODES, NODE_TOP, SPINE
from oxiseq.engine.kernels.memory.pointers import Pointers, call
from oxiseq.engine.kernels.sequence import records as k
from oxiseq.engine.kernels.sequence.members import move_entries, move_groups, move_nodes
from oxiseq.engine.kernels.terms.columns import TermColumns
from oxiseq.engine.matches.memory import with_room_for_nodes
from oxiseq.engine.sequence.counts import more_limbs, with_limbs
from oxiseq.engine.sequence.memory import Capacities, allocate, grow
from oxiseq.engine.sequence.tables import SequenceTables

_KEPT = (k.SERIAL, k.ATTEMPT, k.CLOCK, k.FORGOTTEN, k.CONSUMED, k.WAVE)
"""Scalars that are the same for a query of the family."""


def member_memory(
    S: k.Memory, family: SequenceTables, alone: SequenceTables, member: int, terms: TermColumns, sizes: Capacities
) -> k.Memory:
    """Memory of the tables `alone` with what `S`, just collected, holds for a query of the family."""
    top = int(S.scalars[NODE_TOP])
    M = allocate(alone, replace(sizes, nodes=max(sizes.nodes, top + 2 * SPINE)))
    M = M.restore({"floors": S.floors, "moments": S.moments, "numbers": S.numbers, "origins": S.origins})
    if S.weights.shape[1] > 1:
        M = with_limbs(M, S.weights.shape[1])
    M.scalars[list(_KEPT)] = S.scalars[list(_KEPT)]
    made, progress = np.full(max(top, 1), -1, np.int32), np.zeros(2, np.int64)
    T, from_, A, C = Pointers(family.tables), Pointers(S), Pointers(alone.tables), Pointers(terms)
    for number, move in enumerate((move_nodes, move_groups, move_entries)):
        progress[:] = int(S.scalars[k.QUEUE_FRONT]) if number == 1 else 0, -1
        while True:
            to = Pointers(M)
            need = int(call(move, T, from_, A, to, C, made, progress, member))
            if need == DONE:
                break
            if need == NEED_LIMBS:
                M = more_limbs(M)
            elif need == NEED_NODES:
                M = with_room_for_nodes(M, again=True)
            else:
                M = grow(A, to, M, need, alone)
    return M
