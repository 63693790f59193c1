"""The operator inside Spark: packed rows and the watermark in, rows of matches out, a snapshot in the state store.

Where it stands: shuffled rows → **processor** (Spark calls it) → bucket.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

import pandas as pd
import pyarrow as pa
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle

from oxiseq.engine.errors import SnapshotError
from oxiseq.engine.events.batch import EventBatch
from oxiseq.engine.run.clock import BEFORE_ALL
from oxiseq.journal import pack_events
from oxiseq.spark.answers import frame, tables
from oxiseq.spark.bucket import Bucket, Packed
from oxiseq.spark.dealing import Dealer
from oxiseq.spark.decoding import Decoder
from oxiseq.spark.work import Order, work

DEALT: Final = "bucket int, number int, stream int, high bigint, events binary, home binary"
"""What the dealer hands on: the row's bucket as Spark hashes it and its number, the stream's number, the largest time
(µs), packed events and whose home it is."""
_DEALT: Final = pa.schema([
    ("bucket", pa.int32()), ("number", pa.int32()), ("stream", pa.int32()), ("high", pa.int64()),
    ("events", pa.binary()), ("home", pa.binary()),
])  # fmt: skip
_STATE: Final = "snapshot"
_AT_A_TIME: Final = 1 << 16
"""Events that are dealt together, at most, so that packed rows are few."""


@dataclass(frozen=True, slots=True)
class Dealing:
    """For `mapInArrow`: rows of one stream's events → packed rows. `keys`: by bucket the value that Spark hashes."""

    order: Order
    stream: int
    keys: tuple[int, ...]

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Spark calls it with the rows of a partition."""
        at_work = work(self.order)
        decoder, dealer = Decoder(at_work.terms, self.order.on_error), Dealer(at_work, self.stream)
        waiting: list[EventBatch] = []
        count = 0
        for rows in batches:
            at_work.terms.collect_if_due()
            batch = decoder.decode(rows)
            waiting.append(batch)
            count += len(batch)
            if count >= _AT_A_TIME:
                yield from self._dealt(dealer, waiting)
                waiting, count = [], 0
        if count:
            yield from self._dealt(dealer, waiting)

    def _dealt(self, dealer: Dealer, waiting: list[EventBatch]) -> Iterator[pa.RecordBatch]:
        batch, terms = EventBatch.concat(waiting), work(self.order).terms
        rows = [
            (self.keys[bucket], bucket, self.stream, int(events.time.max()), pack_events(events, terms), home.tobytes())
            for bucket, events, home in dealer.deal(batch)
        ]
        if not rows:  # the watermark goes on
            rows = [(self.keys[0], 0, self.stream, int(batch.time.max()), b"", b"")]
        columns = [pa.array(column, field.type) for column, field in zip(zip(*rows, strict=True), _DEALT, strict=True)]
        yield pa.record_batch(columns, schema=_DEALT)


class Buckets(StatefulProcessor):
    """For `transformWithStateInPandas`, grouped by bucket."""

    def __init__(self, order: Order, keys: tuple[int, ...], terms: str, late: bool) -> None:
        self._order = order
        self._numbers = {key: number for number, key in enumerate(keys)}
        self._terms = terms
        self._late = late

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Spark has made the operator for a partition."""
        self._handle = handle
        self._state = handle.getValueState(_STATE, "data binary, buckets int")

    def handleInputRows(self, key: Any, rows: Iterator[pd.DataFrame], timerValues: Any) -> Iterator[pd.DataFrame]:
        """A bucket's rows of a micro-batch."""
        yield from self._step(key, packed(rows), timerValues)

    def handleExpiredTimer(self, key: Any, timerValues: Any, expiredTimerInfo: Any) -> Iterator[pd.DataFrame]:
        """The watermark has come to what a bucket waits for."""
        yield from self._step(key, [], timerValues)

    def close(self) -> None:
        """The partition is done."""

    def _step(self, key: Any, rows: list[Packed], timers: Any) -> Iterator[pd.DataFrame]:
        at_work = work(self._order)
        at_work.terms.collect_if_due()
        bucket = Bucket(at_work, self._numbers[key[0]], self._saved())
        mark = timers.getCurrentWatermarkInMs()
        done = bucket.step(rows, mark * 1000 if mark > 0 else BEFORE_ALL)
        for table in tables(at_work, done, self._terms, self._late):
            yield frame(table)
        self._state.update((bucket.save(), self._order.buckets))
        if done.waits_for is not None:
            # always ahead: Spark forgets a timer that is set anew while it goes off
            self._handle.registerTimer(max(done.waits_for // 1000, mark) + 1)

    def _saved(self) -> bytes | None:
        """The bucket's state. Raises SnapshotError."""
        saved = self._state.get()
        if saved is None:
            return None
        data, buckets = saved
        if buckets != self._order.buckets:
            raise SnapshotError(f"the checkpoint is of {buckets} buckets, not {self._order.buckets}: pass buckets={buckets}")
        return bytes(data)


def packed(rows: Iterator[pd.DataFrame]) -> list[Packed]:
    """Rows as the dealer has made them; those without events only told a time."""
    return [
        Packed(int(stream), bytes(events), bytes(home))
        for frame in rows
        for stream, events, home in zip(frame["stream"], frame["events"], frame["home"], strict=True)
        if events
    ]

