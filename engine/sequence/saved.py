"""The memory of a sequence run, saved and restored (terms/saved.py).

Records are copied as they are, shapes of heaps and orders of lists included, since the order of matches depends on
them. What can be made again is not saved: hash tables, chains of `,` waits, decisions, room for work.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from oxiseq.engine.kernels.matches.records import NODE_TOP
from oxiseq.engine.kernels.memory.pointers import Array, Pointers, call
from oxiseq.engine.kernels.sequence import records as k
from oxiseq.engine.kernels.sequence.entries import chain_entries
from oxiseq.engine.kernels.sequence.hashing import rehash_buckets, rehash_groups
from oxiseq.engine.kernels.sequence.leads import rebuild_leads
from oxiseq.engine.kernels.sequence.renaming import rename
from oxiseq.engine.matches.memory import with_saved
from oxiseq.engine.sequence.counts import with_limbs
from oxiseq.engine.sequence.memory import Capacities, allocate, no_waits, table_size
from oxiseq.engine.sequence.states import PARTITION, Value
from oxiseq.engine.sequence.tables import SequenceTables
from oxiseq.engine.terms.saved import KnownTerms, SavedTerms, State


def save_memory(S: k.Memory, compiled: SequenceTables, terms: SavedTerms) -> State:
    """Between batches. Proportional to the records in use."""
    s, probes = S.scalars, int(compiled.tables.sizes[k.PROBES])
    used = {
        "nodes": s[NODE_TOP],
        "weights": s[NODE_TOP] * max(compiled.members, 1),
        "spans": s[NODE_TOP] if compiled.members else 0,
        "groups": s[k.GROUP_TOP],
        "keys": s[k.GROUP_TOP],
        "links": s[k.GROUP_TOP] * probes,
        "buckets": s[k.BUCKET_TOP],
        "bucket_keys": s[k.BUCKET_TOP],
        "closings": s[k.CLOSINGS],
        "lead_keys": s[k.LEADS],
        "aged": s[k.AGED_TOP],
        "lapses": s[k.LAPSES],
    }
    state: State = {name: getattr(S, name)[:count] for name, count in used.items()}
    state |= {name: getattr(S, name) for name in ("scalars", "ages", "floors", "moments", "numbers")}
    slots = _id_slots(compiled)
    _name_keys(state["keys"], state["groups"]["edge"], slots, terms)
    if compiled.tables.sizes[k.STRICTS]:
        entries, keys = S.entries[: s[k.ENTRY_TOP]], S.entry_keys[: s[k.ENTRY_TOP]]
        state |= {"entries": entries, "entry_keys": keys, "waits": S.waits}
        _name_keys(keys, entries["edge"], slots, terms)
    _name_bucket_keys(state, compiled, slots, terms)
    for rows, columns in _leads(state["lead_keys"], compiled):
        terms.ids(state["lead_keys"][np.ix_(rows, columns)])
    return state


def restore_memory(state: State, compiled: SequenceTables, sizes: Capacities, terms: KnownTerms) -> k.Memory:
    """Memory that continues from a saved state."""
    S = allocate(compiled, sizes)
    if compiled.tables.sizes[k.STRICTS]:
        size = table_size(max(len(S.entries), len(state["entries"])))
        S = S._replace(waits=no_waits(len(state["waits"])), chains=np.full(size, -1, np.int32))
    else:
        S = S._replace(waits=no_waits(len(state["floors"])))
    limbs = state["weights"].shape[1]
    if limbs > S.weights.shape[1]:
        S = with_limbs(S, limbs)
    S = with_saved(S, state, [k.PENDING, k.FIRED, k.ASKED, k.MEMOS, k.TALLIES])
    s = S.scalars
    S = S._replace(
        table=np.full(table_size(len(S.groups)), -1, np.int32),
        bucket_table=np.full(table_size(len(S.buckets)), -1, np.int32),
        lead_table=np.full(table_size(len(S.lead_keys)), -1, np.int32),
    )
    tables, memory = Pointers(compiled.tables), Pointers(S)
    call(rename, tables, memory, _id_slots(compiled), terms.numbers)
    call(chain_entries, tables, memory)
    rehash_groups(S.table, S.groups, s[k.GROUP_TOP])
    rehash_buckets(S.bucket_table, S.buckets, s[k.BUCKET_TOP])
    leads = S.lead_keys.copy()
    for rows, columns in _leads(leads[: s[k.LEADS]], compiled):
        leads[np.ix_(rows, columns)] = terms.ids(leads[np.ix_(rows, columns)])
    call(rebuild_leads, tables, memory, leads, int(s[k.LEADS]), k.BEFORE_ALL)
    return S


# --- the arrays that hold ids --------------------------------------------------------------------


def _is_term(value: Value) -> bool:
    """Whether a value of a key is a term; else it is a clock, or the number of a partition."""
    return value.variable is not None and value.variable != PARTITION


def _id_slots(compiled: SequenceTables) -> NDArray[np.uint8]:
    """u8[edges, width]: 1 where keys hold ids."""
    slots = np.zeros((max(len(compiled.keys), 1), int(compiled.tables.sizes[k.WIDTH])), np.uint8)
    for edge, key in enumerate(compiled.keys):
        slots[edge, : len(key)] = [_is_term(value) for value in key]
    return slots


def _name_keys(keys: Array, edges: Array, slots: NDArray[np.uint8], terms: SavedTerms) -> None:
    for edge in np.unique(edges[edges >= 0]).tolist():
        rows, columns = np.flatnonzero(edges == edge), np.flatnonzero(slots[edge])
        terms.ids(keys[np.ix_(rows, columns)])


def _name_bucket_keys(state: State, compiled: SequenceTables, slots: NDArray[np.uint8], terms: SavedTerms) -> None:
    probes, tables = state["buckets"]["probe"], compiled.tables
    for p in np.unique(probes[probes >= 0]).tolist():
        probe = tables.probes[p]
        equal = tables.equal[probe["equal0"] : probe["equal1"], 0]
        rows, columns = np.flatnonzero(probes == p), np.flatnonzero(slots[probe["edge"], equal])
        terms.ids(state["bucket_keys"][np.ix_(rows, columns)])


def _leads(keys: Array, compiled: SequenceTables) -> list[tuple[NDArray[np.int64], NDArray[np.int64]]]:
    """Rows and columns of leading negations that hold ids."""
    found = []
    for number in np.unique(keys[:, 0]).tolist():
        lead = compiled.tables.leads[number]
        places = [i for i in range(lead["equal1"] - lead["equal0"]) if i != lead["part"]]
        found.append((np.flatnonzero(keys[:, 0] == number), np.array([2 + i for i in places], np.int64)))
    return found
