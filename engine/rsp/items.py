"""The events that windows may still hold, and what each window holds at an instant (Def. 3; semantics.md 4 and 6).

In the flow: complete events of one stream, in order → **places**, which grow for ever → what enters and leaves a
window. Every window is a range of places, and neither end of it ever falls.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from copy import copy
from dataclasses import field
from itertools import islice
from operator import itemgetter
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from oxiseq.engine.events.batch import EventBatch
from oxiseq.engine.rsp.schedule import exact
from oxiseq.engine.terms.saved import KnownTerms, SavedTerms, State
from oxiseq.grammar.records import dataclass
from oxiseq.grammar.rsp_algebra import IntervalWindow, LandmarkWindow, RangeWindow, WindowOperator

I64 = NDArray[np.int64]
_FIRST: Final = np.iinfo(np.int64).min
"""No time is before it."""
_LAST: Final = np.iinfo(np.int64).max
_FEW: Final = 256
"""Batches that are put together to one; one of so many events is large."""
_PLACE: Final = itemgetter(0)


@dataclass(frozen=True, slots=True)
class WindowRange:
    """Operators applied one after the other. `floored`: RSEP-QL's windows end at a multiple of their slide (⌊t/b⌋·b);
    those of continuous SPARQL end now and begin at ⌈t/x⌉·x − ω."""

    operators: tuple[WindowOperator, ...]
    floored: bool
    counted: bool = field(init=False, repr=False, compare=False)
    """Whether it counts events, by the numbers of their instants, not their times."""
    end: int | None = field(init=False, repr=False, compare=False)
    """The last time that it ever holds; None if there is none."""

    def __post_init__(self) -> None:
        counted = any(isinstance(o, RangeWindow) and o.events for o in self.operators)
        ends = (o.end for o in self.operators if isinstance(o, IntervalWindow))
        object.__setattr__(self, "counted", counted)
        object.__setattr__(self, "end", None if counted else min(ends, default=None))

    @property
    def moves(self) -> bool:
        """Whether its events leave it."""
        return any(isinstance(o, RangeWindow) for o in self.operators)

    def bounds(self, now: I64) -> tuple[NDArray[Any] | None, NDArray[Any]]:
        """(low, high): it holds the events after `low` (None: all) and not after `high`. `now`: times, or the
        numbers of the newest instants: i64[n]. The bounds may lie outside of i64; they are Python's integers then."""
        exact = self._exact(now)
        low: NDArray[Any] | None = None
        high = exact
        for operator in self.operators:
            after, until = self._bounds(operator, exact)
            low = after if low is None else low if after is None else np.maximum(low, after)
            high = np.minimum(high, until)
        return None if low is None else np.broadcast_to(low, now.shape), high

    def bounds_at(self, now: int) -> tuple[int | None, int]:
        """The same of one time or number."""
        low, high = None, now
        for operator in self.operators:
            after, until = self._bounds(operator, now)
            low = after if low is None else low if after is None else max(low, after)
            high = min(high, until)
        return low, high

    def turns(self, times: I64) -> Iterator[NDArray[Any]]:
        """Of events at these times the times at which an operator takes them in, and at which it lets them go."""
        exact = self._exact(times)
        yield exact
        for operator in self.operators:
            match operator:
                case RangeWindow(size, slide) if self.floored:
                    yield -(-exact // slide) * slide
                    yield -(-(exact + size) // slide) * slide
                case RangeWindow(size, slide):
                    yield (exact + size - 1) // slide * slide + 1

    def _exact(self, numbers: I64) -> NDArray[Any]:
        return exact(numbers, [n for o in self.operators for n in _numbers_of(o)])

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

    def _bounds(self, operator: WindowOperator, now: NDArray[Any] | int) -> tuple[Any, Any]:
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


def _numbers_of(operator: WindowOperator) -> tuple[int, ...]:
    match operator:
        case RangeWindow(size, slide):
            return size, slide
        case LandmarkWindow(start):
            return (start,)
        case IntervalWindow(start, end):
            return start, end
        case _:
            return ()


class Items:
    """The events of one stream from some place on; `keeps`: whether their graphs are needed, of those that have been
    held for a while only the triples with these predicates (`read`, None: all)."""

    def __init__(self, keeps: bool, read: NDArray[np.uint32] | None = None) -> None:
        self.keeps, self._read = keeps, read
        self._whole = 0
        """The place from which on the graphs that are kept are whole."""
        self.first = 0
        """The place of the oldest that is kept."""
        self._count = 0
        self._instants = 0
        self._newest: int | None = None
        self._time = np.zeros(64, np.int64)
        self._number = np.zeros(64, np.int64)
        self._graphs: list[tuple[int, EventBatch]] = []
        self._size = 0
        """Bytes of them."""
        self._small = 0
        """How many of the last batches are to become one: each has few events."""

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
        numbers = self._numbered(batch.time)
        self._instants, self._newest = numbers.item(-1), batch.time.item(-1)
        if self.keeps:
            large = len(batch) >= _FEW
            if large or self._small == _FEW:
                self._put_together()
            kept = self._shortened(batch) if large else batch
            self._graphs.append((self.end, kept))
            self._size += kept.bytes
            self._small += not large
        self._append(batch.time, numbers)

    def _put_together(self) -> None:
        """The last batches become one: so there are few of them, however many pushes the events came in."""
        small, self._small = self._small, 0
        if small > 1:
            last = self._graphs[-small:]
            together = self._shortened(EventBatch.concat([batch for _, batch in last]))
            self._graphs[-small:] = [(last[0][0], together)]
            self._size += together.bytes - _bytes_of(last)

    def _shortened(self, batch: EventBatch) -> EventBatch:
        """With the triples that are read."""
        return batch if self._read is None else batch.only(self._read)

    def keep_whole(self) -> None:
        """From now on keep graphs, with all their triples."""
        if self._read is not None or not self.keeps:
            self.keeps, self._read, self._small, self._whole = True, None, 0, self.end

    def _numbered(self, times: I64) -> I64:
        """The numbers of the instants of further events."""
        if len(times) == 1:
            return np.array([self._instants + (times.item(0) != self._newest)])
        before = [times[0] - 1 if self._newest is None else self._newest]
        numbers: I64 = self._instants + np.cumsum(np.diff(times, prepend=before) != 0)
        return numbers

    def _append(self, time: I64, number: I64) -> None:
        count = self._count + len(time)
        if count > len(self._time):
            size = max(count, 2 * len(self._time))
            self._time, self._number = np.resize(self._time, size), np.resize(self._number, size)
        self._time[self._count : count], self._number[self._count : count] = time, number
        self._count = count

    def places(self, window: WindowRange, times: I64) -> tuple[I64, I64]:
        """[from, to): the places that a window holds at several times: i64[n] each."""
        clock, seen = self.times, self.times.searchsorted(times, "right")
        now = times
        if window.counted:
            clock = self.numbers
            now = clock[np.maximum(seen, 1) - 1] if len(clock) else np.zeros(len(times), np.int64)
        low, high = window.bounds(now)
        stops = np.minimum(clock.searchsorted(_in_range(high), "right"), seen)
        if low is None:
            return np.full(len(times), self.first), self.first + stops
        starts = clock.searchsorted(_in_range(low), "right")
        starts[low < _FIRST] = 0
        starts = np.minimum(starts, seen)
        return self.first + starts, self.first + np.maximum(starts, stops)

    def places_at(self, window: WindowRange, time: int) -> tuple[int, int]:
        """The same at one time."""
        clock, seen, now = self.times, int(self.times.searchsorted(time, "right")), time
        if window.counted:
            clock = self.numbers
            now = clock.item(max(seen, 1) - 1) if len(clock) else 0
        low, high = window.bounds_at(now)
        stop = min(_through(clock, high), seen)
        start = 0 if low is None else min(_through(clock, low), seen)
        return self.first + start, self.first + max(start, stop)

    def turns(self, window: WindowRange, after: int | None, until: int) -> I64:
        """Times after `after` (None: any), up to `until`, at which a window may come to hold something else."""
        if window.counted:
            first = 0 if after is None else int(self.times.searchsorted(after, "right"))
            return self.times[first : int(self.times.searchsorted(until, "right"))]
        edges = np.array([until if after is None else after, until])
        starts, stops = (places - self.first for places in self.places(window, edges))
        if after is None:
            starts[0] = stops[0] = 0
        found = [np.zeros(0, np.int64)]
        for low, high in (starts, stops):
            for turns in window.turns(self.times[low:high]):
                kept = turns <= until
                if after is not None:
                    kept &= turns > after
                found.append(turns[kept].astype(np.int64))
        return np.concatenate(found)

    @property
    def known(self) -> int:
        """The place from which on the graphs of all events are kept whole."""
        return max(self._whole, self.kept_from)

    @property
    def kept_from(self) -> int:
        """The place from which on graphs are kept."""
        return self._graphs[0][0] if self._graphs else self.end

    def like(self, other: Items, count: int) -> bool:
        """Whether the last so many events of both are the same, and count alike in windows of numbers of events."""
        if self._newest != other._newest or min(self._count, other._count) < count:
            return False
        low, there = self._count - count, other._count - count
        mine, others = (each._number[at : at + count] - each._instants for each, at in ((self, low), (other, there)))
        graphs = (EventBatch.concat([*each.graphs(each.end - count, each.end)]) for each in (self, other))
        return np.array_equal(mine, others) and next(graphs).same(next(graphs))

    @property
    def instants(self) -> int:
        """How many it has had."""
        return self._instants

    def marked(self) -> Items:
        """A view of the present content, valid until something is forgotten; later events come behind it."""
        other = copy(self)
        other._graphs = list(self._graphs)
        return other

    def copy(self) -> Items:
        """Goes on by itself."""
        other = copy(self)
        other._time, other._number, other._graphs = self._time.copy(), self._number.copy(), list(self._graphs)
        return other

    @property
    def kept(self) -> Sequence[tuple[int, EventBatch]]:
        """The events whose graphs are kept, each batch with the place of its first."""
        return self._graphs

    def graphs(self, start: int, stop: int) -> Iterator[EventBatch]:
        """The events in the places [start, stop)."""
        first = max(bisect_right(self._graphs, start, key=_PLACE) - 1, 0)
        for place, batch in islice(self._graphs, first, None):
            low, high = max(start - place, 0), min(stop - place, len(batch))
            if low < high:
                yield batch.slice(low, high)
            elif place >= stop:
                return

    def forget(self, before: int, *, now: bool = False) -> None:
        """Nothing before this place is needed: it is freed where it is most of the content, or `now`."""
        gone = min(before - self.first, self._count)
        if 2 * gone <= self._count and not (now and gone > 0):
            return
        kept = self._count - gone
        self._time[:kept], self._number[:kept] = self._time[gone : self._count], self._number[gone : self._count]
        self.first, self._count = self.first + gone, kept

    def forget_graphs(self, before: int) -> None:
        """The graphs of events before this place are not needed."""
        gone = next((n for n, (place, batch) in enumerate(self._graphs) if place + len(batch) > before), None)
        self._size -= _bytes_of(self._graphs[:gone])
        del self._graphs[:gone]
        self._small = min(self._small, len(self._graphs))
        if self._graphs and self._graphs[0][0] < before:
            place, batch = self._graphs[0]
            if 2 * (before - place) > len(batch):
                self._graphs[0] = (before, batch.slice(before - place, len(batch)))
                self._size += self._graphs[0][1].bytes - batch.bytes

    @property
    def bytes(self) -> int:
        """How large its arrays are."""
        return self._time.nbytes + self._number.nbytes + self._size

    def held_ids(self) -> Iterator[NDArray[np.uint32]]:
        """The terms of the graphs kept."""
        for _, batch in self._graphs:
            yield from batch.ids

    def save(self, terms: SavedTerms) -> State:
        """The events kept."""
        place = self._graphs[0][0] if self._graphs else self.end
        graphs = EventBatch.concat([batch for _, batch in self._graphs])
        return {
            "first": self.first,
            "instants": self._instants,
            "newest": self._newest,
            "time": self.times.copy(),
            "number": self.numbers.copy(),
            "place": place,
            "graphs": graphs.save(terms),
        }

    def restore(self, state: State, terms: KnownTerms) -> None:
        """Continue from a saved state."""
        self.first, self._instants, self._count = int(state["first"]), int(state["instants"]), 0
        self._newest = None if state["newest"] is None else int(state["newest"])
        self._append(state["time"], state["number"])
        graphs = EventBatch.restored(state["graphs"], terms)
        self._graphs = [(int(state["place"]), graphs)] if len(graphs) else []
        self._size = _bytes_of(self._graphs)


def _bytes_of(graphs: Sequence[tuple[int, EventBatch]]) -> int:
    return sum(batch.bytes for _, batch in graphs)


def _through(clock: I64, number: int) -> int:
    """How many of a clock's numbers, ascending, are not after one of any size."""
    if number < _FIRST:
        return 0
    return int(clock.searchsorted(min(number, _LAST), "right"))


def _in_range(numbers: NDArray[Any]) -> I64:
    """The nearest i64 of each."""
    if numbers.dtype != object:
        return numbers
    least, most = np.iinfo(np.int64).min, np.iinfo(np.int64).max
    inside: I64 = np.minimum(np.maximum(numbers, least), most).astype(np.int64)
    return inside
