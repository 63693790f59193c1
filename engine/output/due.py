"""When the groups of an extent are reported: when a tumbling window closes, or every so often (semantics.md 2.6b).

In the flow: instants and the clock's progress → **reports that are due** → rows of groups.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from oxiseq.engine.bounds import REPORTS, InstantBound
from oxiseq.engine.errors import LimitError
from oxiseq.engine.omissions import LeftOut
from oxiseq.engine.terms.saved import KnownTerms, SavedTerms, State, Stateful, value
from oxiseq.engine.window import closed_at, end_of, number_of
from oxiseq.grammar.algebra import Every, OnClose, When, Window

I64 = NDArray[np.int64]
MOST_TICKS: Final = 1_000_000
"""Moments of REPORT EVERY between two instants, past which they are left out."""
_NEVER: Final = 1 << 62
_NONE: Final = np.zeros(0, np.int64)


class Report(NamedTuple):
    """`time`: of its rows (µs); `clock`: what comes at this clock or later is not in it, of a moment of REPORT EVERY
    what comes later than it; `window`: the number of the window that closes, -1: none does."""

    time: int
    clock: int
    window: int


class DueReports(Stateful):
    """Of one query; nothing where groups are reported with the instants at which matches end."""

    made_of = value("_last"), value("_tick")

    def __init__(self, report: When, window: Window | None, *, instantly: bool) -> None:
        self._period = report.period if isinstance(report, Every) else 0
        self._window = window
        self._closes = isinstance(report, OnClose) and window is not None and not instantly
        self._closing: deque[tuple[int, int]] = deque()
        """Windows in which an instant lies and that have not closed: number, time of the last such instant."""
        self._last = -_NEVER
        """The time of the last instant seen."""
        self._reached = -_NEVER
        """The greatest time that a stream has come to, when the streams have ended."""
        self._tick = _NEVER
        """The next moment of REPORT EVERY."""
        self._seen = _NONE
        """The times of the instants seen last."""
        self._left_out: dict[int, tuple[InstantBound, LimitError]] = {}
        """The last one of moments of REPORT EVERY that were too many; none between batches."""

    @property
    def counts_instants(self) -> bool:
        """Whether instants without matches may make a report due, too."""
        return self._closes or bool(self._period)

    @property
    def waits(self) -> bool:
        """Whether the clock alone may make a report due."""
        return bool(self._closing) or self._tick != _NEVER

    def deadline(self, start: int) -> int | None:
        """The time (µs) that has to have passed for the next report that waits for time alone; `start`: the window's
        t. Not for windows that count instants."""
        due = [self._tick] if self._tick != _NEVER else []
        if self._closing and self._window is not None:
            due.append(end_of(self._window, self._closing[0][0], start) - 1)
        return min(due, default=None)

    def see(self, times: I64, clocks: I64, start: int) -> None:
        """Instants of the query's streams, with matches or not, in order. `start`: the window's t."""
        if not len(times):
            return
        self._last, self._seen = int(times[-1]), times
        if self._period and self._tick == _NEVER:
            self._tick = start + max(1, -(-(int(times[0]) - start) // self._period)) * self._period
        if self._closes and self._window is not None:
            numbers = number_of(self._window, clocks, start)
            ends = np.flatnonzero(numbers[1:] != numbers[:-1]) if len(numbers) > 1 else _NONE
            for at in (*ends.tolist(), -1):
                number, time = int(numbers[at]), int(times[at])
                if self._closing and self._closing[-1][0] == number:
                    self._closing.pop()
                self._closing.append((number, time))

    def end(self, reached: int) -> None:
        """The streams have ended, and one had come to `reached` (µs), by an event or by punctuation: so far go the
        moments of REPORT EVERY."""
        self._reached = reached

    def due(self, clock: int, time: int, start: int, *, over: bool = False) -> Sequence[Report]:
        """Windows that have closed before `clock`, and moments before `time`, in order, each once. `over`: nothing
        before these may still come."""
        found: list[Report] = []
        window = self._window
        while self._closing and window is not None:
            number, last = self._closing[0]
            end = end_of(window, number, start)
            if end > clock:
                break
            self._closing.popleft()
            found.append(Report(last if window.events else end - 1, end, number))
        if self._tick != _NEVER and self._tick < time:
            far = (time - self._tick) // self._period >= MOST_TICKS
            between = self._seen[(self._seen > self._tick) & (self._seen < time)].tolist() if far else []
            for each in (*between, time):  # however instants come in batches, moments between two are counted
                self._skip(each, start)
                end = self._end_of_ticks(each, start, over)
                ticks = range(self._tick, end, self._period)
                found += [Report(tick, tick, -1) for tick in ticks]
                self._tick += len(ticks) * self._period
            if end < time:
                self._tick = _NEVER
        return found

    def take_left_out(self) -> LeftOut:
        """Where there were too many moments between two instants, since the last call."""
        left_out, self._left_out = self._left_out, {}
        return left_out

    def _skip(self, time: int, start: int) -> None:
        """Where an instant is very far from the one before, the moments between are left out, and reported."""
        end = time if time < _NEVER else self._last_tick(start) + self._period
        count = -((self._tick - end) // self._period)
        if count > MOST_TICKS:
            self._tick += count * self._period
            self._left_out[self._tick - self._period] = REPORTS, LimitError(count, MOST_TICKS, REPORTS.what)

    def _end_of_ticks(self, time: int, start: int, over: bool) -> int:
        """Before which moments are still due."""
        if over and time >= _NEVER:
            return min(time, self._last_tick(start) + self._period)
        return time

    def _last_tick(self, start: int) -> int:
        """Where the last instant's window ends, or else the instant itself, and at least what ended streams had come
        to: no tick comes a period after it. What comes at the very start is emitted at the first tick, a period
        later."""
        window = self._window
        if window is None or window.sliding:
            return max(self._last, self._reached, start + 1)
        return max(closed_at(window, self._last, start) - 1, self._reached)

    # --- its saved state --------------------------------------------------------------------------------

    def save(self, terms: SavedTerms) -> State:
        return {**super().save(terms), "closing": np.array(self._closing, np.int64).reshape(len(self._closing), 2)}

    def restore(self, state: State, terms: KnownTerms) -> None:
        super().restore(state, terms)
        closing = state["closing"].tolist() if self._closes else []  # earlier versions kept them all the same
        self._closing = deque((number, time) for number, time in closing)
