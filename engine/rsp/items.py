"""The events that windows may still hold, and what each window holds at an instant (Def. 3; semantics.md 4 and 6).

Where it stands: complete events of one stream, in order → **places**, which grow for ever → what enters and leaves a
window. Every window is a range of places, and neither end of it ever falls.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from oxiseq.engine.events.batch import EventBatch
from oxiseq.engine.rsp.schedule import Filled
from oxiseq.engine.terms.saved import KnownTerms, SavedTerms, State
from oxiseq.grammar.rsp_algebra import IntervalWindow, LandmarkWindow, RangeWindow, WindowOperator

I64 = NDArray[np.int64]
_FIRST = np.iinfo(np.int64).min
"""No time is before it."""


@dataclass(frozen=True, slots=True)
class WindowRange:
    """Operators applied one after the other. `floored`: RSEP-QL's windows end at a multiple of their slide (⌊t/b⌋·b);
    those of continuous SPARQL end now and begin at ⌈t/x⌉·x − ω."""

    operators: tuple[WindowOperator, ...]
    floored: bool

    @property
    def counted(self) -> bool:
        """Whether it counts events, by the numbers of their instants, not their times."""
        return any(isinstance(o, RangeWindow) and o.events for o in self.operators)

    def bounds(self, now: int) -> tuple[int | None, int]:
        """(low, high): it holds what is after `low` (None: everything) and not after `high`. `now`: the time, or the
        number of the newest instant."""
        low: int | None = None
        high = now
        for operator in self.operators:
            after, until = self._bounds(operator, now)
            low = after if low is None else low if after is None else max(low, after)
            high = min(high, until)
        return low, high

    def closes(self, time: int) -> int | None:
        """The last time at which it may hold an event of a time; None if that time never comes: a landmark, an interval
        and a number of events do not close, and not all times are in them."""
        ends = []
        for operator in self.operators:
            match operator:
                case RangeWindow(_, _, True):
                    return None
                case RangeWindow(size, slide) if self.floored:
                    ends.append(((time + size - 1) // slide + 1) * slide - 1)
                case RangeWindow(size, slide):
                    ends.append((time + size - 1) // slide * slide)
                case LandmarkWindow(start) | IntervalWindow(start) if time < start:
                    return None
                case IntervalWindow(_, end) if time > end:
                    return None
        return min(ends, default=None)

    def _bounds(self, operator: WindowOperator, now: int) -> tuple[int | None, int]:
        match operator:
            case RangeWindow(size, slide) if self.floored:
                end = now // slide * slide
                return end - size, end
            case RangeWindow(size, slide):
                return -(-now // slide) * slide - size, now
            case LandmarkWindow(start):
                return start - 1, now
            case IntervalWindow(start, end):
                return start - 1, end
            case _:
                return None, now


class Items:
    """The events of one stream from some place on; `keeps`: whether their graphs are needed."""

    def __init__(self, keeps: bool) -> None:
        self.keeps = keeps
        self.first = 0
        """The place of the oldest that is kept."""
        self._count = 0
        self._instants = 0
        self._newest: int | None = None
        self._time = np.zeros(64, np.int64)
        self._number = np.zeros(64, np.int64)
        self._graphs: list[tuple[int, EventBatch]] = []

    @property
    def end(self) -> int:
        """The place of the next."""
        return self.first + self._count

    @property
    def times(self) -> I64:
        """Of those kept."""
        return self._time[: self._count]

    @property
    def numbers(self) -> I64:
        """Of their instants, from 1 on."""
        return self._number[: self._count]

    def add(self, batch: EventBatch) -> None:
        """More events, in order of time."""
        if not len(batch):
            return
        before = [batch.time[0] - 1 if self._newest is None else self._newest]
        new = np.diff(batch.time, prepend=before) != 0
        numbers = self._instants + np.cumsum(new)
        self._instants, self._newest = int(numbers[-1]), int(batch.time[-1])
        if self.keeps:
            self._graphs.append((self.end, batch))
        self._append(batch.time, numbers)

    def _append(self, time: I64, number: I64) -> None:
        count = self._count + len(time)
        if count > len(self._time):
            size = max(count, 2 * len(self._time))
            self._time, self._number = np.resize(self._time, size), np.resize(self._number, size)
        self._time[self._count : count], self._number[self._count : count] = time, number
        self._count = count

    def places(self, window: WindowRange, at: int) -> tuple[int, int]:
        """[from, to): the places that a window holds at a time."""
        seen = int(np.searchsorted(self.times, at, "right"))
        clock = self.times[:seen]
        now = at
        if window.counted:
            clock = self.numbers[:seen]
            if not seen:
                return self.first, self.first
            now = int(clock[-1])
        low, high = window.bounds(now)
        start = 0 if low is None else int(np.searchsorted(clock, low, "right"))
        stop = int(np.searchsorted(clock, high, "right"))
        return self.first + start, self.first + max(start, stop)

    def places_at(self, window: WindowRange, times: I64) -> tuple[I64, I64]:
        """The same at several times: i64[n] each."""
        if window.counted:
            each = np.array([self.places(window, at) for at in times.tolist()], np.int64)
            return each[:, 0], each[:, 1]
        bounds = [window.bounds(at) for at in times.tolist()]
        lows = np.array([_FIRST if low is None else max(low, _FIRST) for low, _ in bounds], np.int64)
        highs = np.array([max(high, _FIRST) for _, high in bounds], np.int64)
        starts = self.times.searchsorted(lows, "right")
        starts[[low is None or low < _FIRST for low, _ in bounds]] = 0
        return self.first + starts, self.first + np.maximum(starts, self.times.searchsorted(highs, "right"))

    def graphs(self, start: int, stop: int) -> Iterator[EventBatch]:
        """The events in the places [start, stop)."""
        for place, batch in self._graphs:
            low, high = max(start - place, 0), min(stop - place, len(batch))
            if low < high:
                yield batch.slice(low, high)

    def forget(self, before: int) -> None:
        """Nobody asks for what is before this place."""
        gone = min(before - self.first, self._count)
        if 2 * gone <= self._count:
            return
        kept = self._count - gone
        self._time[:kept], self._number[:kept] = self._time[gone : self._count], self._number[gone : self._count]
        self.first, self._count = self.first + gone, kept

    def forget_graphs(self, before: int) -> None:
        """Nobody asks for the graphs of events before this place."""
        self._graphs = [(place, batch) for place, batch in self._graphs if place + len(batch) > before]
        if self._graphs and self._graphs[0][0] < before:
            place, batch = self._graphs[0]
            if 2 * (before - place) > len(batch):
                self._graphs[0] = (before, batch.slice(before - place, len(batch)))

    @property
    def bytes(self) -> int:
        """How large its arrays are."""
        graphs = sum(column.nbytes for _, batch in self._graphs for column in (*batch.ids, batch.offset, batch.time))
        return self._time.nbytes + self._number.nbytes + graphs

    def held_ids(self) -> Iterator[NDArray[np.uint32]]:
        """The terms of the graphs kept."""
        for _, batch in self._graphs:
            yield from batch.ids

    def save(self, terms: SavedTerms) -> State:
        """The events kept."""
        place = self._graphs[0][0] if self._graphs else self.end
        graphs = EventBatch.concat([batch for _, batch in self._graphs])
        for ids in graphs.ids:
            terms.ids(ids)
        return {"first": self.first, "instants": self._instants, "newest": self._newest, "time": self.times.copy(),
                "number": self.numbers.copy(), "place": place, "graphs": graphs.save()}  # fmt: skip

    def restore(self, state: State, terms: KnownTerms) -> None:
        """Go on from a saved state."""
        self.first, self._instants, self._count = int(state["first"]), int(state["instants"]), 0
        self._newest = None if state["newest"] is None else int(state["newest"])
        self._append(state["time"], state["number"])
        graphs = EventBatch.restored(state["graphs"], terms)
        self._graphs = [(int(state["place"]), graphs)] if len(graphs) else []


@dataclass(slots=True)
class Content:
    """What a window holds now: the places [start, stop) of a stream."""

    stream: int
    window: WindowRange
    start: int = 0
    stop: int = 0

    def move(self, items: Items, at: int) -> tuple[int, int]:
        """Go on to a time; returns the places [from, to) that enter."""
        start, stop = items.places(self.window, at)
        start, stop = max(start, self.start), max(stop, self.stop)
        entered = max(self.stop, start)
        self.start, self.stop = start, max(stop, start)
        return entered, max(entered, stop)

    def through(self, items: Items, times: I64) -> tuple[I64, I64]:
        """Go on through several times, ascending: `start` and `stop` at each, i64[n]."""
        places = items.places_at(self.window, times)
        starts = np.maximum(np.maximum.accumulate(places[0]), self.start)
        stops = np.maximum(np.maximum.accumulate(places[1]), self.stop)
        stops = np.maximum(stops, starts)
        self.start, self.stop = int(starts[-1]), int(stops[-1])
        return starts, stops


class Held:
    """What windows hold of the events that have come: a schedule asks for it (`Windows`)."""

    def __init__(self, items: Sequence[Items], contents: Sequence[Content]) -> None:
        self._items = items
        self._contents = contents

    def places(self, at: int) -> list[tuple[int, int]]:
        """[from, to) of each window at a time."""
        return [self._items[c.stream].places(c.window, at) for c in self._contents]

    def filled(self, at: int, most: int, step: int) -> Filled:
        """Whether a window holds something at a time, may later, and until when (by a gallop) they hold the same."""
        held = self.places(at)
        later = any(stop < self._items[c.stream].end for c, (_, stop) in zip(self._contents, held, strict=True))
        low, leap = at, step
        while low + leap <= most and self.places(low + leap) == held:
            low, leap = low + leap, 2 * leap
        while leap > step:
            leap //= 2
            if low + leap <= most and self.places(low + leap) == held:
                low += leap
        return Filled(any(start < stop for start, stop in held), later, low)

    @property
    def closed(self) -> int | None:
        """The last time at which a window that closes holds an event: that of the newest event that it ever holds."""
        return max((end for c in self._contents if (end := self._closed(c)) is not None), default=None)

    def _closed(self, content: Content) -> int | None:
        items = self._items[content.stream]
        for time in reversed(np.unique(items.times).tolist()):
            end = content.window.closes(time)
            if end is not None:
                start, stop = items.places(content.window, end)
                if start < stop:
                    return end
        return None


def oldest(contents: Sequence[Content], stream: int, end: int) -> int:
    """The first place of a stream that a window may still ask for."""
    return min((c.start for c in contents if c.stream == stream), default=end)
