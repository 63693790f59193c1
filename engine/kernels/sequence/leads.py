"""Leading negations: the last clock at which a negated row was seen, by the values it joins on.

A start asks whether one came since its window opened (semantics.md 2.5).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from oxiseq.engine.kernels.compiling.options import inner, kernel
from oxiseq.engine.kernels.memory.numbers import i64, u64
from oxiseq.engine.kernels.memory.pointers import Array, Ptr
from oxiseq.engine.kernels.sequence import records as v
from oxiseq.engine.kernels.sequence.hashing import hash_key, same_key
from oxiseq.engine.kernels.sequence.records import LEADS, READS, Memory, Rows, Tables

NEVER_SEEN = -(1 << 62)


@inner
def _lead_place(S: Ptr[Memory], number: int, width: int, h: np.uint64) -> int:
    """Where the lead's values (in `v.key(S)`) are or belong in the lead table."""
    mask = u64(v.lead_table(S).shape[0] - 1)
    i = h & mask
    while True:
        at = i64(v.lead_table(S)[i])
        if at < 0:
            return i64(i)
        if v.lead_keys(S)[at, 0] == number and same_key(v.lead_keys(S), at, 2, v.key(S), width):
            return i64(i)
        i = (i + u64(1)) & mask


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
            at = i64(v.lead_table(S)[_lead_place(S, l, width, hash_key(l, v.key(S), width))])
            if at >= 0:
                latest = max(latest, v.lead_keys(S)[at, 1])
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
    place = _lead_place(S, l, width, hash_key(l, v.key(S), width))
    at = i64(v.lead_table(S)[place])
    if at < 0:
        at = v.scalars(S)[LEADS]
        v.scalars(S)[LEADS] = at + 1
        v.lead_table(S)[place] = at
        v.lead_keys(S)[at, 0] = l
        for c in range(width):
            v.lead_keys(S)[at, 2 + c] = v.key(S)[c]
    v.lead_keys(S)[at, 1] = clock


@kernel
def rebuild_leads(T: Ptr[Tables], S: Ptr[Memory], keys: Array, count: int, tau: int) -> None:
    """Fill the (new, empty) lead arrays with what is not older than `tau`."""
    for place in range(v.lead_table(S).shape[0]):
        v.lead_table(S)[place] = -1
    v.scalars(S)[LEADS] = 0
    for at in range(count):
        if keys[at, 1] < tau:
            continue
        l = keys[at, 0]
        width = v.leads(T)[l].equal1 - v.leads(T)[l].equal0
        for c in range(width):
            v.key(S)[c] = keys[at, 2 + c]
        to = v.scalars(S)[LEADS]
        v.lead_table(S)[_lead_place(S, l, width, hash_key(l, v.key(S), width))] = to
        for c in range(keys.shape[1]):
            v.lead_keys(S)[to, c] = keys[at, c]
        v.scalars(S)[LEADS] = to + 1
