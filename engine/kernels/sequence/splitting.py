"""PARTITION BY: the partition of each event of a batch, where no event and no instant is in several.

In the flow: GPM rows → **owners of events** → instants of partitions → rows of letters.
"""

from __future__ import annotations

from oxiseq.engine.kernels.compiling.options import kernel
from oxiseq.engine.kernels.memory.hashing import row_tag
from oxiseq.engine.kernels.memory.numbers import i64
from oxiseq.engine.kernels.memory.pointed import i64_at, u32_at
from oxiseq.engine.kernels.memory.pointers import Array
from oxiseq.engine.kernels.memory.slots import slot_of_row

# columns of a source
EVENT, VALUES, WIDTH, WHERE, STREAM, LOW, HIGH = range(7)
"""Addresses of i64 events and u32[*, width] values; the address of i64 instants by event (0: they are the same); the
stream; the rows `low : high`."""

OWNED, SEVERAL, FRESH = range(3)
"""Each event has one partition at most; some has several; some has values that no partition has yet."""


@kernel
def own_events(sources: Array, columns: Array, slots: Array, known: Array, key: Array, owner: Array) -> int:
    """Put the partition of each event into `owner`, i64[streams, instants], -1 to begin with: OWNED, or why not.

    sources: i64[k, 7], of GPMs that put events into partitions; columns: i64[k, width], where their rows have the
    values; slots, known: of a table of partitions; key: u32[1, width], scratch. A row that lacks a value says nothing.
    """
    for i in range(sources.shape[0]):
        high, stream = sources[i, HIGH], sources[i, STREAM]
        events, rows = i64_at(sources[i, EVENT], high), u32_at(sources[i, VALUES], high, sources[i, WIDTH])
        for r in range(sources[i, LOW], high):
            at = events[r]
            if sources[i, WHERE] != 0:
                at = i64_at(sources[i, WHERE], at + 1)[at]
            p = owner[stream, at]
            bound, same = True, p >= 0
            for c in range(columns.shape[1]):
                key[0, c] = rows[r, columns[i, c]]
                bound = bound and key[0, c] != 0
                same = same and key[0, c] == known[p, c]
            if same or not bound:
                continue
            slot = slot_of_row(slots, row_tag(key, 0, 0, columns.shape[1]), known, 0, key, 0, columns.shape[1])
            if slot < 0:
                return FRESH
            if p >= 0:
                return SEVERAL
            owner[stream, at] = i64(slots[slot].number) - 1
    for at in range(owner.shape[1]):
        p = i64(-1)
        for stream in range(owner.shape[0]):
            if p >= 0 and owner[stream, at] >= 0 and owner[stream, at] != p:
                return SEVERAL
            p = max(p, owner[stream, at])
    return OWNED


@kernel
def place_owned(owner: Array, count: Array, instant: Array, partition: Array, number: Array) -> int:
    """Of owned events: how many instants of partitions there are, and of each, i64, which instant it is, its partition,
    its number there. `owner` becomes which of them an event is in; count: i64 by partition, its instants so far."""
    k = i64(0)
    for at in range(owner.shape[1]):
        p = i64(-1)
        for stream in range(owner.shape[0]):
            if owner[stream, at] >= 0:
                p = owner[stream, at]
                owner[stream, at] = k
        if p >= 0:
            instant[k], partition[k], number[k] = at, p, count[p]
            count[p] += 1
            k += 1
    return k


@kernel
def number_instants(partition: Array, count: Array, number: Array) -> None:
    """The number of each instant among those of its partition, and how many each has had then. partition, number: i64
    by instant, in order; count: i64 by partition."""
    for i in range(partition.shape[0]):
        number[i] = count[partition[i]]
        count[partition[i]] += 1
