"""What a window of an attribute may forget.

The attribute may fall: then an event that many others have left behind is in the window again, and who wants every
match can never forget one. Where the attribute does not fall, as with a timestamp, that would keep all for nothing.
So what begins a match is forgotten when it was outside the windows of all of the last DISORDER events of its
partition, and an event whose window reaches back behind what has ever been forgotten is counted (BEHIND): matches
that end there may be missing.

What is forgotten is dropped when there is occasion (`tau`), unseen as long as no window reaches back there. When one
does it is dropped at once (`reaches_back`, NEED_PURGE) and nothing is any more until DISORDER events later, so that
what begins there later is kept. Events are counted only while something has begun in the partition: one in which
nothing has is as one that is new, so it may be given up (engine/matches/partitions.py). None of it depends on batches.
"""

from __future__ import annotations

from typing import Any

from oxiseq.engine.kernels.cea import records as v
from oxiseq.engine.kernels.cea.records import BEFORE_ALL, BEHIND, CANNOT_END, DISORDER, EPOCH, Cache, Events, Memory
from oxiseq.engine.kernels.cea.symbols import is_read
from oxiseq.engine.kernels.compiling.options import inner
from oxiseq.engine.kernels.memory.numbers import i64
from oxiseq.engine.kernels.memory.pointers import Ptr


@inner
def reaches_back(A: Ptr[Cache], E: Ptr[Events], part: Any, at: int) -> bool:
    """Whether an event's window holds what the partition has forgotten but may not have dropped yet."""
    return v.cut(E)[at] < part.tau and is_read(A, E, at)


@inner
def age(A: Ptr[Cache], S: Ptr[Memory], E: Ptr[Events], part: Any, at: int) -> None:
    """The partition has had an event, whether a letter reads it or not. No live record is dead afterwards."""
    cut = v.cut(E)[at]
    if cut == CANNOT_END:
        return
    if cut < part.gone and is_read(A, E, at):
        v.scalars(S)[BEHIND] += 1
    if part.count == 0 or part.epoch != v.scalars(S)[EPOCH]:
        return
    part.low = min(i64(part.low), cut)
    part.aged += 1
    if part.aged >= v.sizes(A)[DISORDER]:
        part.tau = max(i64(part.tau), i64(part.low))  # what is forgotten stays so until it is dropped
        part.gone = max(i64(part.gone), i64(part.low))
        part.low = CANNOT_END
        part.aged = 0
        _drop(S, part)


@inner
def begin_anew(part: Any) -> None:
    """Nothing has begun in the partition: nothing of it is forgotten, but for how far it ever was (`gone`)."""
    part.tau = BEFORE_ALL
    part.low = CANNOT_END
    part.aged = 0


@inner
def _drop(S: Ptr[Memory], part: Any) -> None:
    """Live records that start before `tau` go, so that `count` tells whether something has begun."""
    live = v.live(S)
    first, count = i64(part.first), i64(0)
    for i in range(first, first + part.count):
        if live[i].maxs >= part.tau:
            there = live[first + count]
            there.maxs = live[i].maxs
            there.state = live[i].state
            there.node = live[i].node
            count += 1
    part.count = count
    if count == 0:
        part.restless = 0
