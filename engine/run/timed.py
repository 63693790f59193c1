"""Timed triples in the order of their ends (semantics.md 2.7): what waits until its instant is complete.

Where it stands: events of each stream, in order of arrival → **timed triples of complete instants** → rules, query.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from oxiseq.engine.events.batch import EventBatch
from oxiseq.engine.flow.epsparql.rows import I64, Rows, concat
from oxiseq.engine.flow.epsparql.stamps import Started
from oxiseq.engine.run.watermarks import AFTER_ALL, Watermark, Watermarks
from oxiseq.engine.terms.saved import KnownTerms, SavedTerms, State


@dataclass(slots=True)
class _Pieces:
    """Triples that wait, of all streams."""

    rows: list[Rows] = field(default_factory=list)
    oldest: int = AFTER_ALL


class Waiting(Watermarks[Watermark]):
    """Orders the events of streams."""

    def __init__(self, streams: int, lateness: int = 0, start: int | None = None) -> None:
        super().__init__((Watermark() for _ in range(streams)), lateness, start)
        self._pieces = _Pieces()

    def push(self, stream: int, batch: EventBatch, started: Started) -> NDArray[np.int64] | None:
        """Take events of a stream, all of them intervals, in order of arrival; the numbers of those that are late, None
        if none is."""
        if not len(batch):
            return None
        self.events += len(batch)
        late, kept = self._sort_out(self._streams[stream], batch.time)
        self._take(batch, started.start, started.marks, kept)
        return np.flatnonzero(late) if late.any() else None

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

    @property
    def open(self) -> bool:
        """Whether events wait for their instant to be complete."""
        return bool(self._pieces.rows)

    def complete(self, before: int) -> bool:
        """Whether something is complete and lies before a time."""
        return self._pieces.oldest < min(self.passed, before)

    def take(self, before: int = AFTER_ALL) -> Rows:
        """The triples of the instants that are complete by now and lie before a time, in the order of their ends."""
        if not self.complete(before):
            return concat([], 3)
        passed = min(self.passed, before)
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
            **self._save(), "streams": [{"largest": s.largest, "punctuation": s.punctuation} for s in self._streams],
            "values": terms.ids(rows.values), "from": rows.start, "to": rows.end,
        }  # fmt: skip

    def restore(self, state: State, terms: KnownTerms) -> None:
        """Go on from a saved state."""
        self._restore(state)
        self._streams = [Watermark(int(s["largest"]), int(s["punctuation"])) for s in state["streams"]]
        count = len(state["from"])
        if count:
            values = np.ascontiguousarray(terms.ids(state["values"]).reshape(count, 3))
            rows = Rows(values, state["from"].astype(np.int64), state["to"].astype(np.int64))
            self._pieces = _Pieces([rows], int(rows.end.min()))
