"""One bucket: a run of the query over the events of its keys, as bytes between two steps.

In the flow: packed rows of a micro-batch and its watermark → **bucket** → matches, late events, the next state.
Nothing of Spark is here: a step is a function of state, rows and watermark, so it can be done again.

The run's clock knows no lateness of its own: Spark's watermark alone says what is complete and what is late. All events
of a micro-batch are judged by the same watermark, so the answer does not depend on their order within it.
"""

from __future__ import annotations

from collections.abc import Iterable
from operator import attrgetter
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from oxiseq.engine.events.batch import EventBatch
from oxiseq.engine.order.watermarks import AFTER_ALL
from oxiseq.engine.snapshot.saving import save
from oxiseq.grammar.records import dataclass
from oxiseq.journal import unpack_events
from oxiseq.matches.shape import Block
from oxiseq.spark.dealing import owners
from oxiseq.spark.work import Work


class Packed(NamedTuple):
    """Events of a stream (its number in the plan) for one bucket; `home`: a byte each, 0 where it is elsewhere;
    `place`: where they stand among those of the stream that come in one micro-batch."""

    stream: int
    events: bytes
    home: bytes
    place: int = 0


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a step gave: matches, in order of `at`; (stream, events) that were late; the time (µs) of the oldest
    thing that waits for the watermark, None if nothing does."""

    matches: Block
    late: list[tuple[int, EventBatch]]
    waits_for: int | None


class Bucket:
    """The run of bucket `number`, new or as it was saved. Raises SnapshotError."""

    def __init__(self, work: Work, number: int, state: bytes | None = None) -> None:
        self._work = work
        self._number = number
        if state is not None:
            self._run = work.restored(state)
            return
        self._run = work.new_run()
        for iri in work.plan.streams:
            if iri not in work.order.given:
                self._run.punctuate(iri, AFTER_ALL)

    def step(self, rows: Iterable[Packed], watermark: int, *, close: bool = False) -> Outcome:
        """Take the rows of a micro-batch; `watermark` (µs): what is before it is complete, and late if it comes now.
        `close`: the streams have ended with these rows. Of a stream behind a stateful operator, what that has emitted
        since the last step is not late, though the watermark has passed it in the same micro-batch."""
        late = []
        for stream, blobs, home in _by_stream(rows):
            batch = unpack_events(blobs, self._work.terms)
            is_late = batch.time < self._complete_before(stream, watermark)
            if is_late.any():
                shown = np.flatnonzero(is_late & home)
                if len(shown):
                    late.append((stream, batch.take(shown)))
                batch = batch.take(np.flatnonzero(~is_late))
            if len(batch):
                self._run.push(self._work.plan.streams[stream], batch)
        for iri in self._work.order.given:
            self._run.punctuate(iri, AFTER_ALL if close else watermark)
        matches = self._own(self._work.shape.block(self._run.advance()))
        return Outcome(matches, late, self._waits_for(watermark))

    def _complete_before(self, stream: int, watermark: int) -> int:
        if self._work.plan.streams[stream] in self._work.order.behind:
            return self._run.order.mark(stream).punctuation
        return watermark

    def save(self) -> bytes:
        """The state for the next step, in whatever process."""
        return save(self._run, self._work.terms)

    def _own(self, found: Block) -> Block:
        """Those matches whose key is this bucket's: of others it has seen a part of the events only."""
        if not self._work.keys:
            return found
        keys = np.ascontiguousarray(found.rows.values[:, list(self._work.keys)])
        mine = owners(keys, self._work.order.buckets, self._work.terms) == self._number
        return found if mine.all() else found.take(np.flatnonzero(mine))

    def _waits_for(self, watermark: int) -> int | None:
        oldest = self._run.order.oldest
        if self._run.waits:  # for a window's end, which may be anywhere ahead
            return watermark
        return None if oldest == AFTER_ALL else oldest


def _by_stream(rows: Iterable[Packed]) -> Iterable[tuple[int, list[bytes], NDArray[np.bool_]]]:
    """The rows of each stream together, in their order."""
    found: dict[int, list[Packed]] = {}
    for row in sorted(rows, key=attrgetter("place")):
        found.setdefault(row.stream, []).append(row)
    for stream, packed in found.items():
        home = np.frombuffer(b"".join([row.home for row in packed]), np.bool_)
        yield stream, [row.events for row in packed], home
