"""The memory of a window's run, saved and restored (terms/saved.py).

Entries are copied as they are, chains included, since the order of rows depends on them; hash tables are made again.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from oxiseq.engine.kernels.memory.growing import filled
from oxiseq.engine.kernels.memory.pointers import Pointers, call
from oxiseq.engine.kernels.memory.slots import SLOT
from oxiseq.engine.kernels.windows import records as k
from oxiseq.engine.kernels.windows.hashing import fill_buckets, fill_pairs
from oxiseq.engine.terms.saved import KnownTerms, SavedTerms, State
from oxiseq.engine.windows.memory import Capacities, allocate, table_size
from oxiseq.engine.windows.plan import WindowPlan

_TERMS: Final = ("s", "p", "o")


def save_memory(memory: k.Memory, terms: SavedTerms) -> State:
    """Between batches. Proportional to the entries in use."""
    entries = memory.entries[: int(memory.scalars[k.TOP])].copy()
    free = entries["of"] < 0
    for name in _TERMS:
        entries[name][free] = 0
        terms.ids(entries[name])
    return {
        "entries": entries,
        "scalars": memory.scalars.copy(),
        "stored": memory.stored.copy(),
        "listed": memory.listed.copy(),
    }


def restore_memory(
    state: State, plan: WindowPlan, tables: Pointers[k.Tables], sizes: Capacities, terms: KnownTerms
) -> k.Memory:
    """Memory that continues from a saved state. Raises ValueError for one of another plan or layout."""
    memory = allocate(plan, sizes)
    same = all(len(state[name]) == len(getattr(memory, name)) for name in ("stored", "listed", "scalars"))
    if not same:
        raise ValueError("the state of another plan")
    entries = filled(memory.entries, state["entries"])
    for name in _TERMS:
        entries[name] = terms.ids(entries[name])
    memory = memory._replace(
        entries=entries,
        pairs=np.zeros(table_size(len(entries)), SLOT),
        buckets=np.zeros(table_size(int(state["scalars"][k.BUCKETS]) + 3), k.BUCKET),
        scalars=filled(memory.scalars, state["scalars"]),
        stored=filled(memory.stored, state["stored"]),
        listed=filled(memory.listed, state["listed"]),
    )
    pointers = Pointers(memory)
    call(fill_pairs, pointers)
    call(fill_buckets, tables, pointers)
    return memory
