"""A query's memory of its streams: the events that windows may still hold, its windows' positions, the instants at
which it is answered.

In the flow: complete events in order → **windows through the instants that are due** → events that enter and
leave them. All operators behind it can be rebuilt from the contents of the windows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from copy import copy
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from oxiseq.engine.events.batch import EventBatch
from oxiseq.engine.flow.delta import Ids
from oxiseq.engine.rsp.items import I64, Items, WindowRange
from oxiseq.engine.rsp.plan import ContentPlan
from oxiseq.engine.rsp.schedule import Schedule, Stretches
from oxiseq.engine.terms.saved import KnownTerms, SavedTerms, State, Stateful, part, value
from oxiseq.grammar.rsp_algebra import RangeWindow

_NO_TIMES = np.zeros(0, np.int64)


class Content(Stateful):
    """A window's present content: the places [start, stop) of a stream."""

    made_of = value("start"), value("stop"), value("settled", bool)

    def __init__(self, stream: int, window: WindowRange) -> None:
        self.stream, self.window = stream, window
        self.start = self.stop = 0
        self.settled = False
        """Whether that never changes any more: its last time has passed, and nothing leaves it."""

    def through(self, items: Items, times: I64) -> tuple[I64, I64]:
        """Continue through several times, ascending: `start` and `stop` at each, i64[n]."""
        starts, stops = self.at(items, times)
        end, window = self.window.end, self.window
        self.start, self.stop = int(starts[-1]), int(stops[-1])
        passed = end is not None and bool(times[-1] >= end)
        self.settled = self.settled or (passed and (not window.moves or self.start == self.stop))
        return starts, stops

    def at(self, items: Items, times: I64) -> tuple[I64, I64]:
        """The same, without continuing."""
        if self.settled:
            return np.full(len(times), self.start), np.full(len(times), self.stop)
        if len(times) == 1:
            start, stop = items.places_at(self.window, times.item(0))
            start = max(start, self.start)
            return np.array([start]), np.array([max(start, stop, self.stop)])
        places = items.places(self.window, times)
        starts = np.maximum(np.maximum.accumulate(places[0]), self.start)
        stops = np.maximum(np.maximum.accumulate(places[1]), self.stop)
        return starts, np.maximum(stops, starts)

    def turns(self, items: Items, after: int | None, until: int) -> I64:
        """Times after `after` (None: any), up to `until`, at which it may come to hold something else."""
        return np.zeros(0, np.int64) if self.settled else items.turns(self.window, after, until)

    @property
    def places(self) -> tuple[int, int, bool]:
        """Where it is."""
        return self.start, self.stop, self.settled


class Added(NamedTuple):
    """Events that have been taken in, and the place of the first."""

    place: int
    events: EventBatch


class _Mark(NamedTuple):
    """Where all of it was."""

    items: list[Items]
    contents: list[Content]
    schedule: Schedule
    newest: int | None
    begun: bool


class Held(Stateful):
    """All of it, for windows of some streams. A schedule reads from it what windows hold."""

    made_of = part("items"), part("contents")

    def __init__(self, contents: Sequence[ContentPlan], read: Sequence[Ids | None], schedule: Schedule) -> None:
        self.schedule = schedule
        self.items = [Items(any(c.stream == s and c.stored for c in contents), each) for s, each in enumerate(read)]
        self._stored = [content.stored for content in contents]
        self.contents = [Content(c.stream, c.window) for c in contents]
        self.newest: int | None = None
        """The time of the newest event."""
        self.begun = False
        """Whether an instant has been answered."""
        self._remembers = False

    # --- events, instants ---------------------------------------------------------------------------

    def add(self, stream: int, batch: EventBatch) -> Added:
        """Further events of a stream, in order of time; those that come after all windows have ended are left out."""
        if len(batch):
            last = batch.time.item(-1)
            self.newest = last if self.newest is None else max(self.newest, last)
        end, items = self._last(stream), self.items[stream]
        kept = batch if end is None else batch.slice(0, int(batch.time.searchsorted(end, "right")))
        added = Added(items.end, kept)
        items.add(kept)
        return added

    def _last(self, stream: int) -> int | None:
        """The last time of which a window on a stream wants events; None: there is none."""
        ends = [c.window.end for c in self.contents if c.stream == stream]
        return None if None in ends else max((end for end in ends if end is not None), default=None)

    def due(self, batches: Sequence[EventBatch], passed: int, *, ended: bool) -> Stretches:
        """The instants to answer now that these have been added: everything before `passed` is complete. ended: the
        streams have."""
        each = [batch.time for batch in batches if len(batch)]
        times = each[0] if len(each) == 1 else np.concatenate([_NO_TIMES, *each])
        return self.schedule.due(times, passed, self.newest, ended, self)

    def through(self, times: I64) -> list[tuple[I64, I64]]:
        """Have windows continue through several instants: by content the places [start, stop) at each."""
        self.begun = True
        return [content.through(self.items[content.stream], times) for content in self.contents]

    def forget(self) -> None:
        """Frees what no window needs."""
        for stream, items in enumerate(self.items):
            items.forget(oldest(self.contents, stream, items.end))
            if items.keeps:
                items.forget_graphs(self._needed(stream, items.end))

    def _needed(self, stream: int, end: int) -> int:
        """The first place whose graph is in a window, or may come to be."""
        each = zip(self.contents, self._stored, strict=True)
        mine = (c for c, stored in each if c.stream == stream and (stored or self._remembers))
        return min((c.start for c in mine if not c.settled), default=end)

    @property
    def rebuilds(self) -> bool:
        """Whether the graphs of all events that windows hold are kept, as far as they are read: not of a window that
        holds the same for ever."""
        contents = zip(self.contents, self._stored, strict=True)
        if any(stored and c.settled and c.start < c.stop for c, stored in contents):
            return False
        each = enumerate(self.items)
        return all(not items.keeps or items.kept_from <= self._needed(s, items.end) for s, items in each)

    def collect(self) -> None:
        """Frees the events that no window needs, however few they are."""
        for stream, items in enumerate(self.items):
            items.forget(oldest(self.contents, stream, items.end), now=True)

    # --- other states -------------------------------------------------------------------------------

    def remember(self) -> None:
        """Keep the whole graphs of all events that are in windows from now on."""
        self._remembers = True
        for items in self.items:
            items.keep_whole()

    @property
    def complete(self) -> bool:
        """Whether the graphs of all events that windows hold, or will hold, are kept."""
        firsts = (oldest(self.contents, stream, items.end) for stream, items in enumerate(self.items))
        return self._remembers and all(items.known <= first for items, first in zip(self.items, firsts, strict=True))

    def same(self, other: Held) -> bool:
        """Whether the same events, from now on, will do the same to both. They are of the same windows and rhythm."""
        if self.newest != other.newest or self.begun != other.begun or not self.schedule.same(other.schedule):
            return False
        if self._phases != other._phases:
            return False
        places = [[each.places for each in held._relative()] for held in (self, other)]
        if places[0] != places[1]:
            return False
        counts = (items.end - oldest(self.contents, stream, items.end) for stream, items in enumerate(self.items))
        return all(one.like(two, count) for one, two, count in zip(self.items, other.items, counts, strict=True))

    @property
    def _phases(self) -> list[int]:
        """Where windows that count events are between two of their slides."""
        each = ((self.items[c.stream].instants, o) for c in self.contents for o in c.window.operators)
        return [count % o.slide for count, o in each if isinstance(o, RangeWindow) and o.events]

    def _relative(self) -> Iterator[Content]:
        """Where windows are before the end of their streams."""
        for content in self.contents:
            moved, end = copy(content), self.items[content.stream].end
            moved.start, moved.stop = content.start - end, content.stop - end
            yield moved

    def copy(self) -> Held:
        """Goes on by itself."""
        other = copy(self)
        other.items, other.contents = [items.copy() for items in self.items], [copy(c) for c in self.contents]
        other.schedule = copy(self.schedule)
        return other

    def mark(self) -> _Mark:
        """Where it is, for `back_to`, as long as nothing is forgotten."""
        items = [items.marked() for items in self.items]
        return _Mark(items, [copy(c) for c in self.contents], copy(self.schedule), self.newest, self.begun)

    @property
    def places(self) -> list[tuple[int, int, bool]]:
        """Where windows are, for `put_back`."""
        return [content.places for content in self.contents]

    def put_back(self, places: Sequence[tuple[int, int, bool]]) -> None:
        """Windows are there again, as long as nothing is forgotten."""
        for content, each in zip(self.contents, places, strict=True):
            content.start, content.stop, content.settled = each

    def back_to(self, mark: _Mark) -> None:
        """As if nothing had come since."""
        self.items, self.contents, self.schedule, self.newest, self.begun = mark

    @property
    def last(self) -> int | None:
        """The time of the newest event; None: there was none."""
        return self.newest

    def __len__(self) -> int:
        """How many events are kept."""
        return sum(items.end - items.first for items in self.items)

    # --- what windows hold --------------------------------------------------------------------------

    def turns(self, after: int | None, until: int) -> I64:
        """Times after `after` (None: any), up to `until`, at which one may come to hold something else; in no order."""
        found = [c.turns(self.items[c.stream], after, until) for c in self.contents]
        return np.concatenate([np.zeros(0, np.int64), *found])

    def filled(self, times: I64) -> NDArray[np.bool_]:
        """Whether one holds something at each of some times, ascending."""
        found = np.zeros(len(times), np.bool_)
        for content in self.contents:
            starts, stops = content.at(self.items[content.stream], times)
            found |= starts < stops
        return found

    @property
    def closed(self) -> int | None:
        """The last time at which a window that closes holds an event: that of the newest event that it ever holds."""
        return max((end for c in self.contents if (end := self._closed(c)) is not None), default=None)

    def _closed(self, content: Content) -> int | None:
        items = self.items[content.stream]
        for time in reversed(np.unique(items.times).tolist()):
            end = content.window.closes(time)
            if end is not None:
                starts, stops = content.at(items, np.array([end]))
                if starts[0] < stops[0]:
                    return end
        return None

    # --- its memory ----------------------------------------------------------------------------------

    def save_whole(self, terms: SavedTerms) -> State:
        """The same, where all else is made of it."""
        return {**self.save(terms), "begun": self.begun, "newest": self.newest}

    def restore_whole(self, state: State, terms: KnownTerms) -> None:
        """Continue from such a state."""
        self.remember()
        self.restore(state, terms)
        self.begun, self.newest = bool(state["begun"]), state["newest"]


def oldest(contents: Sequence[Content], stream: int, end: int) -> int:
    """The first place of a stream that a window may still ask for."""
    return min((c.start for c in contents if c.stream == stream and not c.settled), default=end)
