"""Several windows at once: their events merged into instants, each event with its source's clock.

In the flow: event batches by source → **one batch in order of time** → kernels. A source is a window on a stream;
what is known besides streams is one too, whose window holds its last event alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from oxiseq.engine.events.batch import EventBatch
from oxiseq.engine.window import Window
from oxiseq.grammar.records import dataclass

I64s = NDArray[np.int64]
_BEGIN: Final = np.zeros(1, np.int64)


@dataclass(frozen=True, slots=True)
class Merged:
    """Events in order of time, then of source. clock: i64[events]; source: i32[events]; first: i64[instants + 1], where
    each instant begins; time: i64[instants]; low: i64[instants, sources]."""

    batch: EventBatch
    clock: I64s
    source: NDArray[np.int32]
    first: I64s
    time: I64s
    low: I64s


def merged(windows: Sequence[Window], batches: Sequence[EventBatch], counts: I64s) -> Merged:
    """Complete events by source, each in order of time. counts: i64[sources], the instants of each source so far; they
    continue here."""
    if len(windows) == 1 and len(batches[0]):
        return _of_one_source(windows[0], batches[0], counts)
    busy = [number for number, batch in enumerate(batches) if len(batch)]
    if len(busy) == 1 and batches[busy[0]].time[0] == batches[busy[0]].time[-1]:
        return _one_instant(windows, batches[busy[0]], busy[0], counts)
    times = [batch.time for batch in batches]
    instants = _distinct(np.sort(np.concatenate(times), kind="stable"))
    low = np.empty((len(instants), len(windows)), np.int64)
    clocks = []
    for number, (window, time) in enumerate(zip(windows, times, strict=True)):
        clock, now = time, instants
        if window.counted:
            own = _distinct(time)
            clock = counts[number] + 1 + np.searchsorted(own, time)
            now = counts[number] + np.searchsorted(own, instants, "right")
            counts[number] += len(own)
        clocks.append(clock)
        low[:, number] = window.low(now)
    source = np.repeat(np.arange(len(batches), dtype=np.int32), [len(time) for time in times])
    batch, clock = EventBatch.concat(batches), np.concatenate(clocks)
    if sum(len(time) > 0 for time in times) > 1:
        order = np.argsort(batch.time, kind="stable")
        batch, clock, source = batch.take(order), clock[order], source[order]
    first = np.append(np.searchsorted(batch.time, instants), len(batch))
    return Merged(batch, clock.astype(np.int64), source, first.astype(np.int64), instants, low)


def _of_one_source(window: Window, batch: EventBatch, counts: I64s) -> Merged:
    """The same for one window: its events as they are."""
    clock = batch.time
    differs = clock[1:] != clock[:-1]
    alone = differs.all()  # each is an instant of its own
    first = np.arange(len(batch) + 1) if alone else np.concatenate([_BEGIN, differs.nonzero()[0] + 1, [len(batch)]])
    now = time = clock if alone else clock[first[:-1]]
    if window.counted:
        now = np.arange(counts[0] + 1, counts[0] + len(first))
        clock = now if alone else np.repeat(now, np.diff(first))
        counts[0] += len(now)
    return Merged(batch, clock, np.zeros(len(batch), np.int32), first, time, window.low(now)[:, None])


def moved(batches: Sequence[EventBatch], instants: Sequence[I64s], clocks: Sequence[I64s], low: I64s) -> Merged:
    """Events of instants that have been numbered. By source the numbers of their instants, ascending, and their clocks;
    the instants' times are their numbers."""
    busy = [number for number, batch in enumerate(batches) if len(batch)]
    source = np.repeat(np.array(busy, np.int32), [len(batches[number]) for number in busy])
    batch = EventBatch.concat([batches[number] for number in busy])
    none = np.zeros(0, np.int64)
    at = np.concatenate([none, *(instants[number] for number in busy)])
    clock = np.concatenate([none, *(clocks[number] for number in busy)])
    if len(busy) > 1:
        order = np.argsort(at, kind="stable")
        batch, clock, source, at = batch.take(order), clock[order], source[order], at[order]
    first = np.searchsorted(at, np.arange(len(low) + 1))
    return Merged(batch, clock, source, first, np.arange(len(low)), low)


def _distinct(ascending: I64s) -> I64s:
    """Each once."""
    once: I64s = ascending[np.diff(ascending, prepend=ascending[:1] - 1) != 0]
    return once


def _one_instant(windows: Sequence[Window], batch: EventBatch, source: int, counts: I64s) -> Merged:
    """The same for events of one source at one time: what a live stream brings."""
    time, events = int(batch.time[0]), len(batch)
    counts[source] += windows[source].counted
    clocks = [int(count) if window.counted else time for window, count in zip(windows, counts, strict=True)]
    low = [window.low_of(clock) for window, clock in zip(windows, clocks, strict=True)]
    return Merged(
        batch,
        np.full(events, clocks[source]),
        np.full(events, source, np.int32),
        np.array([0, events]),
        batch.time[:1],
        np.array([low]),
    )
