"""Matches written as keys and measures → entries of groups, by the instant of their end.

In the flow: answers of a run's matches → **entries** → groups (summaries.py).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from oxiseq.engine.expressions.totals import Total
from oxiseq.engine.output.batch import MatchBatch
from oxiseq.engine.terms.saved import Stateful, numbers, value

Key = tuple[int, ...]


class Entry(NamedTuple):
    """So many matches that start at one clock and agree on their keys and on what measures run over: ids, 0 for an
    error."""

    start: int
    key: Key
    values: tuple[int, ...]
    times: int


class Bundle(NamedTuple):
    """All matches of one end that agree on their keys: of each measure how often each value is there; 0: an error."""

    key: Key
    values: tuple[list[tuple[int, int]], ...]
    times: int


class Weighed(NamedTuple):
    """The same with the totals of measures as they are."""

    key: Key
    totals: tuple[Total, ...]
    times: int


class Instant(NamedTuple):
    """The matches that end at one instant; `clock` of it, in the window's unit; `at` (µs): when they are decided, where
    that is later."""

    time: int
    clock: int
    entries: Sequence[Entry | Bundle | Weighed]
    at: int | None = None


class InstantNumbers(Stateful):
    """The numbers of recent instants by their times, for windows that count instants; `most` are kept."""

    made_of = value("_times", numbers), value("_first")

    def __init__(self, most: int) -> None:
        self._most = most
        self._times = np.zeros(0, np.int64)
        self._first = 0

    def see(self, times: NDArray[np.int64], number: int) -> None:
        """Instants in order, the first of this number."""
        known = np.concatenate([self._times, times])[-(self._most + len(times)) :] if len(self._times) else times
        self._first, self._times = number + len(times) - len(known), known

    def follow(self, other: InstantNumbers) -> None:
        """Know those that another knows."""
        self._times, self._first = other._times, other._first

    def of(self, times: NDArray[np.int64]) -> NDArray[np.int64]:
        """The numbers of instants that are known."""
        found: NDArray[np.int64] = self._first + np.searchsorted(self._times, times)
        return found

    def time(self, number: int) -> int:
        """When an instant was that is known."""
        return int(self._times[number - self._first])

    def last(self, number: int) -> int:
        """When the last instant before this number was, of those that are known."""
        return int(self._times[min(number - self._first, len(self._times)) - 1])


def instants_of(
    batches: Sequence[MatchBatch], keys: int, starts: bool, numbers: InstantNumbers | None
) -> Iterator[Instant]:
    """Matches of batches in order of their ends. `keys`: how many columns are; `starts`: whether their starts matter;
    `numbers`: where clocks are not times."""
    for batch in batches:
        if not len(batch):
            continue
        clock = batch.time if numbers is None else numbers.of(batch.time)
        start = np.zeros(len(batch), np.int64)
        if starts:
            first = batch.event_time[batch.ends[:-1]]
            start = first if numbers is None else numbers.of(first)
        cuts = np.flatnonzero(np.diff(batch.time)) + 1
        for low, high in zip([0, *cuts.tolist()], [*cuts.tolist(), len(batch)], strict=True):
            entries = _entries(start[low:high], batch.values[low:high].astype(np.int64), keys)
            yield Instant(int(batch.time[low]), int(clock[low]), entries, int(batch.at[low]))


def _entries(start: NDArray[np.int64], values: NDArray[np.int64], keys: int) -> list[Entry]:
    """Equal ones once, in the order in which they come."""
    rows = np.concatenate([start[:, None], values], axis=1)
    distinct, first, count = np.unique(rows, axis=0, return_index=True, return_counts=True)
    order = np.argsort(first)
    return [
        Entry(row[0], tuple(row[1 : 1 + keys]), tuple(row[1 + keys :]), times)
        for row, times in zip(distinct[order].tolist(), count[order].tolist(), strict=True)
    ]
