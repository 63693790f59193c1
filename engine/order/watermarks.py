"""Watermarks: up to when each stream is complete, and which events are late (semantics.md 2.7).

A stream's watermark is the largest time seen minus the lateness, advanced also by explicit punctuation. An
event older than it is late; events before the watermarks of all streams are complete. Those that wait until then are in
waiting.py.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from typing import ClassVar, Final, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from oxiseq.engine.terms.saved import MadeOf, Stateful, maybe, value
from oxiseq.grammar.records import dataclass

BEFORE_ALL: Final = -(1 << 62)
AFTER_ALL: Final = 1 << 62


REMEMBERED: Final = 256
"""Of a stream's events, the times of as many that came last tell which of its instants have begun."""


@dataclass(frozen=True, slots=True)
class Passed:
    """How far a stream had come when a query was registered (times in µs): the largest time of an event, the largest
    punctuation, and the times of the events that came last (see REMEMBERED)."""

    largest: int = BEFORE_ALL
    punctuation: int = BEFORE_ALL
    lately: tuple[int, ...] = ()

    @property
    def instants(self) -> tuple[int, ...]:
        """Those that are known to have begun."""
        return self.lately if self.largest == BEFORE_ALL else (*self.lately, self.largest)


@dataclass(slots=True)
class Watermark:
    """One stream's, before lateness is known; times in µs."""

    largest: int = BEFORE_ALL
    """The largest time ever seen."""
    punctuation: int = BEFORE_ALL
    """No event before this time will come."""

    def at(self, lateness: int) -> int:
        """No event before this time is taken any more."""
        seen, told = self.largest - lateness, self.punctuation  # `max` takes twice as long
        return seen if seen > told else told


S = TypeVar("S", bound=Watermark)


class Watermarks(Stateful, ABC, Generic[S]):
    """Of all streams of a query. Counters: `events` taken, `late` refused."""

    made_of: ClassVar[MadeOf] = (
        value("lateness"),
        value("_start", maybe),
        value("events"),
        value("late"),
        value("accepted"),
    )

    def __init__(self, streams: Iterable[S], lateness: int = 0, start: int | None = None) -> None:
        self._streams = list(streams)
        self.lateness = lateness
        """How much a stream may be out of order, in microseconds."""
        self._start = start
        """When the query is registered: what was before, it does not see."""
        self.events = self.late = 0
        self.reached = BEFORE_ALL
        """Of streams that have ended, the greatest time that one had come to, by an event or by punctuation."""
        self.accepted = BEFORE_ALL
        """The newest instant of which an event has been accepted: one that was not late and is seen."""
        self._begun: tuple[int, ...] = ()
        """Instants that had begun when the query was registered, ascending: it does not see their events."""
        self._told = [BEFORE_ALL] * len(self._streams)
        """The punctuations of then."""

    def take_over(self, streams: Sequence[Passed]) -> None:
        """Called when nothing has come: the streams have come so far already (semantics.md 2.7). The query sees the
        instants that begin from now on."""
        for mark, passed in zip(self._streams, streams, strict=True):
            mark.largest, mark.punctuation = passed.largest, passed.punctuation
        self._told = [passed.punctuation for passed in streams]
        open_ = self.passed
        self._begun = tuple(sorted({time for passed in streams for time in passed.instants if time >= open_}))

    @property
    def begun(self) -> tuple[int, ...]:
        """Those of these instants to which events may still come."""
        if self._begun and self.passed > self._begun[-1]:
            self._begun = ()
        return self._begun

    def advance(self, stream: int, time: int) -> None:
        """Punctuation: no event of `stream` before `time` will come (if one does, it is late)."""
        mark = self._streams[stream]
        if time >= AFTER_ALL > mark.punctuation:
            self.reached = max(self.reached, mark.largest, mark.punctuation)
        mark.punctuation = max(mark.punctuation, time)

    def mark(self, stream: int) -> S:
        """How far a stream has come."""
        return self._streams[stream]

    def pass_by(self, stream: int, events: int, last: int) -> None:
        """Events that came in order, none of them late or before the start, the last one at `last` (µs): they count,
        and nothing is kept of them."""
        mark = self._streams[stream]
        self.events += events
        mark.largest, self.accepted = max(mark.largest, last), max(self.accepted, last)

    def takes(self, stream: int, time: int) -> bool:
        """Whether events from this time (µs) on would be neither late nor before the start, nor of an instant that had
        begun before."""
        if self._begun and time <= self._begun[-1]:
            return False
        return time >= self._streams[stream].at(self.lateness) and (self._start is None or time >= self._start)

    def settle(self, until: int = BEFORE_ALL) -> None:
        """Take everything seen so far as complete, and all before `until`: later events of it are late."""
        newest = self.newest
        if newest > BEFORE_ALL:
            for stream in range(len(self._streams)):
                self.advance(stream, max(newest + 1, until))

    def close(self) -> None:
        """The streams have ended."""
        for stream in range(len(self._streams)):
            self.advance(stream, AFTER_ALL)

    @property
    def start(self) -> int | None:
        """What was before, the query does not see."""
        return self._start

    @property
    def fresh(self) -> bool:
        """Whether nothing has come since it was registered, not even a punctuation."""
        return not self.events and [mark.punctuation for mark in self._streams] == self._told

    @property
    @abstractmethod
    def open(self) -> bool:
        """Whether events wait."""

    @property
    def passed(self) -> int:
        """Everything before this time is complete."""
        if len(self._streams) == 1:
            return self._streams[0].at(self.lateness)
        return min([mark.at(self.lateness) for mark in self._streams])

    @property
    def newest(self) -> int:
        """The largest time seen on any stream."""
        return max([mark.largest for mark in self._streams])

    @property
    def unfinished(self) -> int | None:
        """The newest instant of which an event has been accepted, as long as it is not complete: instants up to this
        one may still be processed. None: there are none."""
        return self.accepted if self.accepted > BEFORE_ALL and self.accepted >= self.passed else None

    def _sort_out(self, mark: S, time: NDArray[np.int64]) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        """Of a stream's next events, one at least: which are late, bool[n], and which are to be kept."""
        late, mark.largest = late_ones(time, mark.largest, mark.punctuation, self.lateness)
        self.late += int(np.count_nonzero(late))
        kept = ~late
        if self._start is not None:
            kept &= time >= self._start
        if self._begun:
            kept &= ~np.isin(time, self._begun)
        if kept.any():
            self.accepted = max(self.accepted, int(time[kept].max()))
        return late, kept


def late_ones(time: NDArray[np.int64], largest: int, punctuation: int, lateness: int) -> tuple[NDArray[np.bool_], int]:
    """Which of a stream's next events (one at least, in order of arrival) are late, and the largest time then."""
    peaks = np.maximum.accumulate(np.maximum(time, largest))
    before = np.concatenate([[largest], peaks[:-1]])
    marks = np.where(before == BEFORE_ALL, BEFORE_ALL, before - lateness)
    return time < np.maximum(marks, punctuation), int(peaks[-1])
