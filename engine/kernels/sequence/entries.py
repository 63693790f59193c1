"""`,`: runs that wait for the very next instant of their partition; without PARTITION BY there is one partition.

An entry is in the list of its partition, with which it goes when the partition's next instant has been read. Where the
list is longer than FEW, all of it are in the chains of their hashes, too, where a row finds them: chains hold entries
of many partitions. Either way a row meets them the newest first.
"""

from __future__ import annotations

from typing import Any, Final

from oxiseq.engine.kernels.compiling.options import inner, kernel
from oxiseq.engine.kernels.matches.records import DONE
from oxiseq.engine.kernels.memory.numbers import i64, u64
from oxiseq.engine.kernels.memory.pointers import Array, Ptr
from oxiseq.engine.kernels.sequence import records as v
from oxiseq.engine.kernels.sequence.hashing import hash_key
from oxiseq.engine.kernels.sequence.records import ENTRY_FREE, ENTRY_TOP, NEED_ENTRIES, PARTITIONED, Memory, Tables
from oxiseq.engine.kernels.sequence.windows import cut_in

FEW: Final = 4
"""Entries of a partition that a row looks through without asking for their hash."""


@inner
def owner_of(T: Ptr[Tables], edge: int, keys: Array, at: int) -> int:
    """The partition of a run that waits at `edge` with the key `keys[at]`."""
    return i64(0) if v.sizes(T)[PARTITIONED] == 0 else keys[at, v.edges(T)[edge].part] - 1


@inner
def first_entry(S: Ptr[Memory], edge: int, key: Array, chained: int) -> int:
    """The first one of the chain of the entries of `edge` with these equality values, or -1; others are in it, too."""
    return i64(v.chains(S)[_chain(S, edge, key, chained)])


@inner
def next_entry(S: Ptr[Memory], at: int) -> int:
    """The one behind entry `at`, or -1: of its chain, or of its partition if that has few."""
    entry = v.entries(S)[at]
    return i64(entry.before if entry.chain < 0 else entry.next)


@inner
def put_entry(T: Ptr[Tables], S: Ptr[Memory], i: int, edge: int, instant: int, time: int) -> int:
    """Pending prefix `i` waits; entries of earlier instants of its partition have gone."""
    scalars, entries = v.scalars(S), v.entries(S)
    at = scalars[ENTRY_FREE]
    if at < 0 and scalars[ENTRY_TOP] == entries.shape[0]:
        return NEED_ENTRIES
    if at >= 0:
        scalars[ENTRY_FREE] = entries[at].next
    else:
        at = scalars[ENTRY_TOP]
        scalars[ENTRY_TOP] = at + 1
    entry = entries[at]
    entry.edge = edge
    entry.node = v.pending(S)[i, 1]
    entry.maxs = v.nodes(S)[entry.node].maxs
    own, pending, width = v.entry_keys(S), v.pending_keys(S), v.edges(T)[edge].width
    for c in range(width):
        own[at, c] = pending[i, c]
    wait = v.waits(S)[owner_of(T, edge, v.pending_keys(S), i)]
    wait.instant = instant
    wait.time = time
    _append(T, S, wait, at)
    return DONE


@inner
def clear_entries(S: Ptr[Memory], p: int) -> None:
    """What waits in partition `p` goes."""
    wait = v.waits(S)[p]
    at = i64(wait.first)
    while at >= 0:
        following = i64(v.entries(S)[at].sister)
        _free(S, at)
        at = following
    wait.first = -1
    wait.last = -1


@inner
def drop_entries(T: Ptr[Tables], S: Ptr[Memory], p: int) -> None:
    """Of what waits in partition `p`, what is dead goes."""
    entries, wait = v.entries(S), v.waits(S)[p]
    at, kept = i64(wait.first), i64(-1)
    wait.first = -1
    while at >= 0:
        following = i64(entries[at].sister)
        if entries[at].maxs < cut_in(T, S, i64(v.edges(T)[entries[at].edge].query), p):
            _free(S, at)
        else:
            if kept < 0:
                wait.first = at
            else:
                entries[kept].sister = at
            entries[at].sister = -1
            if entries[at].chain < 0:
                entries[at].before = kept
            kept = at
        at = following
    wait.last = kept


@kernel
def chain_entries(T: Ptr[Tables], S: Ptr[Memory]) -> None:
    """Make all chains again: their number, or keys, are others now."""
    chains, waits = v.chains(S), v.waits(S)
    for h in range(chains.shape[0]):
        chains[h] = -1
    for p in range(waits.shape[0]):
        at = i64(waits[p].first)
        waits[p].first = waits[p].last = -1
        while at >= 0:
            following = i64(v.entries(S)[at].sister)
            _append(T, S, waits[p], at)
            at = following


@inner
def _chain(S: Ptr[Memory], edge: int, key: Array, chained: int) -> int:
    return i64(hash_key(edge, key, chained) & u64(v.chains(S).shape[0] - 1))


@inner
def _append(T: Ptr[Tables], S: Ptr[Memory], wait: Any, at: int) -> None:
    """The last one of a partition's list. `chain` of those that are in none counts down from -1."""
    entries, last = v.entries(S), i64(wait.last)
    entry = entries[at]
    entry.sister = -1
    entry.before = last
    entry.chain = -1
    wait.last = at
    if last < 0:
        wait.first = at
        return
    entries[last].sister = at
    if -FEW < entries[last].chain < 0:
        entry.chain = entries[last].chain - 1
        return
    first = at if entries[last].chain >= 0 else i64(wait.first)
    while first >= 0:
        _enchain(T, S, first)
        first = i64(entries[first].sister)


@inner
def _enchain(T: Ptr[Tables], S: Ptr[Memory], at: int) -> None:
    """In front of its chain."""
    entries, chains = v.entries(S), v.chains(S)
    entry = entries[at]
    edge = v.edges(T)[entry.edge]
    for c in range(edge.chained):
        v.key(S)[c] = v.entry_keys(S)[at, v.chain(T)[edge.chain0 + c]]
    h = _chain(S, i64(entry.edge), v.key(S), edge.chained)
    entry.chain = h
    entry.before = -1
    entry.next = chains[h]
    if entry.next >= 0:
        entries[entry.next].before = at
    chains[h] = at


@inner
def _free(S: Ptr[Memory], at: int) -> None:
    entries = v.entries(S)
    entry = entries[at]
    if entry.chain >= 0:
        if entry.before >= 0:
            entries[entry.before].next = entry.next
        else:
            v.chains(S)[entry.chain] = entry.next
        if entry.next >= 0:
            entries[entry.next].before = entry.before
    entry.edge = -1
    entry.next = v.scalars(S)[ENTRY_FREE]
    v.scalars(S)[ENTRY_FREE] = at
