"""The memory of a sequence run, saved and restored (terms/saved.py).

Records are copied as they are. What can be made again is not saved: buckets, hash tables, chains of `,` waits,
decisions, room for work.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Final

import numpy as np
from numpy.typing import NDArray

from oxiseq.engine.kernels.memory.pointers import Array, Pointers, call
from oxiseq.engine.kernels.sequence import records as k
from oxiseq.engine.kernels.sequence.entries import chain_entries
from oxiseq.engine.kernels.sequence.hashing import hash_again, rehash_groups
from oxiseq.engine.kernels.sequence.indexes import index_groups
from oxiseq.engine.kernels.sequence.leads import rebuild_leads
from oxiseq.engine.kernels.terms.columns import TermColumns
from oxiseq.engine.matches.memory import EMPTY_BETWEEN_BATCHES
from oxiseq.engine.sequence.counts import with_limbs
from oxiseq.engine.sequence.memory import Capacities, allocate
from oxiseq.engine.sequence.states import PARTITION, Value
from oxiseq.engine.sequence.tables import SequenceTables
from oxiseq.engine.terms.saved import KnownTerms, SavedTerms, State

_OF_STRICTS: Final = ("entries", "entry_keys", "waits")
"""What only sequences with a `,` have something in."""


def save_memory(S: k.Memory, compiled: SequenceTables, terms: SavedTerms) -> State:
    """Between batches, when what is killed has gone. Proportional to the records in use."""
    state: State = S.save(terms.ids, partial(_id_places, compiled))
    if not compiled.tables.sizes[k.STRICTS]:
        state = {name: array for name, array in state.items() if name not in _OF_STRICTS}
    return state


def restore_memory(
    state: State, compiled: SequenceTables, sizes: Capacities, terms: KnownTerms, columns: TermColumns
) -> k.Memory:
    """Memory that continues from a saved state; `columns` are those of all terms."""
    S = allocate(compiled, sizes)
    limbs = state["weights"].shape[1]
    if limbs > S.weights.shape[1]:
        S = with_limbs(S, limbs)
    S = S.restore(state, terms.ids, partial(_id_places, compiled))
    S.scalars[[*EMPTY_BETWEEN_BATCHES, k.PENDING, k.FIRED, k.ASKED, k.MEMOS, k.TALLIES]] = 0
    tables, memory = Pointers(compiled.tables), Pointers(S)
    call(hash_again, tables, memory)
    call(chain_entries, tables, memory)
    rehash_groups(S.table, S.groups, S.scalars[k.GROUP_TOP])
    while call(index_groups, tables, memory, Pointers(columns)) == k.NEED_BUCKETS:
        S = S.grow("buckets")
        memory = Pointers(S)
    call(rebuild_leads, tables, memory, S.lead_keys.copy(), int(S.scalars[k.LEADS]), k.BEFORE_ALL)
    return S


# --- the arrays that hold ids --------------------------------------------------------------------


def _is_term(value: Value) -> bool:
    """Whether a value of a key is a term; else it is a clock, or the number of a partition."""
    return value.variable is not None and value.variable != PARTITION


def _id_places(compiled: SequenceTables, state: Mapping[str, Array]) -> dict[str, NDArray[np.bool_]]:
    """Which values of a state's keys are ids: that depends on the edge or leading negation of each."""
    tables = compiled.tables
    edges = np.zeros((max(len(compiled.keys), 1), int(tables.sizes[k.WIDTH])), np.bool_)
    for edge, key in enumerate(compiled.keys):
        edges[edge, : len(key)] = [_is_term(value) for value in key]
    leads = np.zeros((len(tables.leads), state["lead_keys"].shape[1]), np.bool_)
    for number, lead in enumerate(tables.leads):
        leads[number, 2 : 2 + lead["equal1"] - lead["equal0"]] = True
        if lead["part"] >= 0:
            leads[number, 2 + lead["part"]] = False
    owners = {
        "keys": (state["groups"]["edge"], edges),
        "lead_keys": (state["lead_keys"][:, 0], leads),
    }
    if "entries" in state:
        owners["entry_keys"] = state["entries"]["edge"], edges
    return {name: places[of] & (of >= 0)[:, None] for name, (of, places) in owners.items()}
