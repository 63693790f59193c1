"""Timed triples in the order of their ends (semantics.md 2.7): what waits until its instant is complete.

Where it stands: events of each stream, in order of arrival → **timed triples of complete instants** → rules, query.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from oxiseq.engine.events.batch import EventBatch
from oxiseq.engine.intervals.rows import I64, Rows, concat
from oxiseq.engine.intervals.stamps import Stamps
from oxiseq.engine.run.clock import AFTER_ALL, BEFORE_ALL, late_ones
from oxiseq.engine.terms.dictionary import TermDictionary
from oxiseq.engine.terms.saved import KnownTerms, SavedTerms, State


@dataclass(slots=True)
class _Stream:
    largest: int = BEFORE_ALL
    punctuation: int = BEFORE_ALL

    def mark(self, lateness: int) -> int:
        return max(self.largest - lateness, self.punctuation) if self.largest != BEFORE_ALL else self.punctuation


@dataclass(slots=True)
class _Pieces:
    """Triples that wait, of all streams."""

    rows: list[Rows] = field(default_factory=list)
    oldest: int = AFTER_ALL


class Waiting:
    """Orders the events of streams. Counters: `events` taken, `late` refused."""

    def __init__(self, streams: int, terms: TermDictionary, lateness: int = 0, start: int | None = None) -> None:
        self._streams = [_Stream() for _ in range(streams)]
        self._stamps = Stamps(terms)
        self._pieces = _Pieces()
        self.lateness = lateness
        """How much a stream may be out of order, in microseconds."""
        self._start = start
        self.events = self.late = 0

    def push(self, stream: int, batch: EventBatch) -> NDArray[np.int64] | None:
        """Take events of a stream in order of arrival; the numbers of those that are late, None if none is.

        Raises EventError where one starts after it ends; then none is taken.
        """
        if not len(batch):
            return None
        starts, marks = self._stamps.starts(batch)
        self.events += len(batch)
        clock = self._streams[stream]
        late, clock.largest = late_ones(batch.time, clock.largest, clock.punctuation, self.lateness)
        kept = ~late
        if self._start is not None:  # the query is registered then: what was before, it does not see
            kept &= batch.time >= self._start
        self._take(batch, starts, marks, kept)
        if not late.any():
            return None
        self.late += int(late.sum())
        return np.flatnonzero(late)

    def _take(
        self, batch: EventBatch, starts: I64, marks: NDArray[np.bool_] | None, kept: NDArray[np.bool_]
    ) -> None:
        sizes = np.diff(batch.offset)
        values = np.stack([batch.subject, batch.predicate, batch.object], axis=1)
        rows = Rows(values, np.repeat(starts, sizes), np.repeat(batch.time, sizes))
        if marks is not None or not kept.all():
            keep = np.repeat(kept, sizes)
            rows = rows.take(keep if marks is None else keep & ~marks)
        if len(rows):
            self._pieces.rows.append(rows)
            self._pieces.oldest = min(self._pieces.oldest, int(rows.end.min()))

    def advance(self, stream: int, time: int) -> None:
        """Punctuation: no event of `stream` before `time` will come (if one does, it is late)."""
        clock = self._streams[stream]
        clock.punctuation = max(clock.punctuation, time)

    def settle(self) -> None:
        """Take every instant seen so far as complete: what comes for it from now on is late."""
        newest = self.newest
        if newest > BEFORE_ALL:
            for stream in range(len(self._streams)):
                self.advance(stream, newest + 1)

    def close(self) -> None:
        """The streams have ended."""
        for stream in range(len(self._streams)):
            self.advance(stream, AFTER_ALL)

    @property
    def passed(self) -> int:
        """Everything before this time is complete."""
        return min(clock.mark(self.lateness) for clock in self._streams)

    @property
    def newest(self) -> int:
        """The largest time seen on any stream."""
        return max(clock.largest for clock in self._streams)

    @property
    def open(self) -> bool:
        """Whether events wait for their instant to be complete."""
        return bool(self._pieces.rows)

    def take(self, before: int = AFTER_ALL) -> Rows:
        """The triples of the instants that are complete by now and lie before a time, in the order of their ends."""
        passed = min(self.passed, before)
        if self._pieces.oldest >= passed:
            return concat([], 3)
        every = concat(self._pieces.rows, 3)
        done = every.end < passed
        complete, rest = every.take(done), every.take(~done)
        self._pieces = _Pieces([rest], int(rest.end.min())) if len(rest) else _Pieces()
        if len(complete) > 1 and (complete.end[1:] < complete.end[:-1]).any():
            complete = complete.take(np.argsort(complete.end, kind="stable"))
        return complete

    def held_ids(self) -> Iterator[NDArray[np.uint32]]:
        """The terms of what waits."""
        for rows in self._pieces.rows:
            yield rows.values

    def save(self, terms: SavedTerms) -> State:
        """Its state, with what waits."""
        rows = concat(self._pieces.rows, 3)
        return {
            "values": terms.ids(rows.values), "start": rows.start, "end": rows.end, "lateness": self.lateness,
            "from": self._start, "events": self.events, "late": self.late,
            "streams": [{"largest": s.largest, "punctuation": s.punctuation} for s in self._streams],
        }  # fmt: skip

    def restore(self, state: State, terms: KnownTerms) -> None:
        """Go on from a saved state."""
        self.lateness = int(state["lateness"])
        self._start = None if state["from"] is None else int(state["from"])
        self.events, self.late = int(state["events"]), int(state["late"])
        self._streams = [_Stream(int(s["largest"]), int(s["punctuation"])) for s in state["streams"]]
        count = len(state["start"])
        if count:
            values = np.ascontiguousarray(terms.ids(state["values"]).reshape(count, 3))
            rows = Rows(values, state["start"].astype(np.int64), state["end"].astype(np.int64))
            self._pieces = _Pieces([rows], int(rows.end.min()))
