"""Leading negations: the last clock at which a negated row was seen, by the values it joins on.

A start asks whether one came since its window opened (semantics.md 2.5).
"""

from __future__ import annotations

from typing import Any

from oxiseq.engine.kernels.compiling.options import inner, kernel
from oxiseq.engine.kernels.memory.numbers import i64
from oxiseq.engine.kernels.memory.pointers import Array, Ptr
from oxiseq.engine.kernels.memory.slots import clear_slots, put_slot
from oxiseq.engine.kernels.sequence import records as v
from oxiseq.engine.kernels.sequence.hashing import hash_key, same_key, tag_in
from oxiseq.engine.kernels.sequence.records import LEADS, READS, Memory, Rows, Tables

NEVER_SEEN = -(1 << 62)


@inner
def _slot_of(S: Ptr[Memory], number: int, width: int, tag: int) -> int:
    """The slot of a lead's values, which are in `v.key(S)`; below 0, and -1 - slot is the free one, where they are
    not."""
    slots, keys = v.lead_table(S), v.lead_keys(S)
    mask = slots.shape[0] - 1
    i = tag & mask
    while slots[i].number != 0:
        at = i64(slots[i].number) - 1
        if slots[i].tag == tag and keys[at, 0] == number and same_key(keys, at, 2, v.key(S), width):
            return i
        i = (i + 1) & mask
    return -1 - i


@inner
def last_lead(T: Ptr[Tables], S: Ptr[Memory], R: Ptr[Rows], r: int, probe: Any, begin: int) -> int:
    """The last clock, `begin` or later, at which a negated row that joins row `r` was seen before this instant."""
    latest = i64(NEVER_SEEN)
    for l in range(probe.lead0, probe.lead1):
        lead = v.leads(T)[l]
        width = lead.equal1 - lead.equal0
        if lead.compatible == 0:
            for i in range(width):
                v.key(S)[i] = v.values(R)[r, v.equal(T)[lead.equal0 + i, 1]]
            slot = _slot_of(S, l, width, tag_in(hash_key(l, v.key(S), width)))
            if slot >= 0:
                latest = max(latest, v.lead_keys(S)[v.lead_table(S)[slot].number - 1, 1])
            continue
        for at in range(v.scalars(S)[LEADS]):
            if v.lead_keys(S)[at, 0] != l or v.lead_keys(S)[at, 1] < begin:
                continue
            v.meter(S)[READS] += 1
            joined = True
            for i in range(width):
                mine, theirs = v.values(R)[r, v.equal(T)[lead.equal0 + i, 1]], v.lead_keys(S)[at, 2 + i]
                if mine != theirs and mine != 0 and theirs != 0:
                    joined = False
                    break
            if joined:
                latest = max(latest, v.lead_keys(S)[at, 1])
    return latest


@inner
def see_lead(T: Ptr[Tables], S: Ptr[Memory], R: Ptr[Rows], r: int, l: int, clock: int) -> None:
    lead = v.leads(T)[l]
    width = lead.equal1 - lead.equal0
    for i in range(width):
        v.key(S)[i] = v.values(R)[r, v.equal(T)[lead.equal0 + i, 0]]
    tag = tag_in(hash_key(l, v.key(S), width))
    slot = _slot_of(S, l, width, tag)
    at = v.scalars(S)[LEADS] if slot < 0 else i64(v.lead_table(S)[slot].number) - 1
    if slot < 0:
        v.scalars(S)[LEADS] = at + 1
        put_slot(v.lead_table(S), tag, at)
        v.lead_keys(S)[at, 0] = l
        for c in range(width):
            v.lead_keys(S)[at, 2 + c] = v.key(S)[c]
    v.lead_keys(S)[at, 1] = clock


@kernel
def rebuild_leads(T: Ptr[Tables], S: Ptr[Memory], keys: Array, count: int, tau: int) -> None:
    """Fill the (new, empty) lead arrays with what is not older than `tau`."""
    clear_slots(v.lead_table(S))
    v.scalars(S)[LEADS] = 0
    for at in range(count):
        if keys[at, 1] < tau:
            continue
        l = keys[at, 0]
        width = v.leads(T)[l].equal1 - v.leads(T)[l].equal0
        for c in range(width):
            v.key(S)[c] = keys[at, 2 + c]
        to = v.scalars(S)[LEADS]
        put_slot(v.lead_table(S), tag_in(hash_key(l, v.key(S), width)), to)
        for c in range(keys.shape[1]):
            v.lead_keys(S)[to, c] = keys[at, c]
        v.scalars(S)[LEADS] = to + 1
