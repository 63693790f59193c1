"""What workers do with rows: deal them, step a bucket. Reading this module loads the engine.

In the flow: **steps**, called by what Spark calls (processor.py).
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from itertools import count
from typing import Any, Final, NamedTuple

import numpy as np
import pandas as pd
import pyarrow as pa

from oxiseq.engine.events.batch import EventBatch
from oxiseq.engine.order.watermarks import BEFORE_ALL
from oxiseq.journal import pack_events
from oxiseq.spark.answers import arrow_schema, frame, tables
from oxiseq.spark.bucket import Bucket, Packed
from oxiseq.spark.dealing import Dealer
from oxiseq.spark.decoding import Decoder
from oxiseq.spark.garbage import freeze_loaded
from oxiseq.spark.kept import Change, Stored, keep, take
from oxiseq.spark.order import Form, Order
from oxiseq.spark.work import Work, work

_DEALT: Final = pa.schema(
    [
        ("bucket", pa.int32()),
        ("number", pa.int32()),
        ("stream", pa.int32()),
        ("high", pa.int64()),
        ("events", pa.binary()),
        ("home", pa.binary()),
        ("place", pa.int64()),
    ]
)
_PACKED: Final = ("stream", "events", "home", "place")
_LOG: Final = logging.getLogger("oxiseq")
_AT_A_TIME: Final = 1 << 16
"""Events that are dealt together, at most, so that packed rows are few."""


class Stepped(NamedTuple):
    """Rows for Spark, what of the bucket's stored state changes, and the time (ms) from which it wants to be called
    again, None: at rows."""

    frames: list[pd.DataFrame]
    change: Change
    wake: int | None


def deal(
    order: Order, stream: int, keys: tuple[int, ...], partition: int, batches: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """Rows of a partition of a stream's events → packed rows (`processor.DEALT`)."""
    at_work = work(order)
    places = count(partition << 32)
    mapping = at_work.mappings.get(at_work.plan.streams[stream])
    decoder, dealer = Decoder(at_work.terms, order.on_error, mapping), Dealer(at_work, stream)
    waiting: list[EventBatch] = []
    for rows in batches:
        at_work.terms.collect_if_due()
        waiting.append(decoder.decode(rows))
        if sum(map(len, waiting)) >= _AT_A_TIME:
            yield _dealt(at_work, dealer, stream, keys, next(places), EventBatch.concat(waiting))
            waiting = []
    if any(map(len, waiting)):
        yield _dealt(at_work, dealer, stream, keys, next(places), EventBatch.concat(waiting))
    freeze_loaded()


def _dealt(
    at_work: Work, dealer: Dealer, stream: int, keys: tuple[int, ...], place: int, batch: EventBatch
) -> pa.RecordBatch:
    high = int(batch.time.max())  # of all events: also what no pattern matches moves the watermark
    rows: list[tuple[Any, ...]] = [
        (keys[bucket], bucket, stream, high, pack_events(events, at_work.terms), home.tobytes(), place)
        for bucket, events, home in dealer.deal(fit(at_work, stream, batch))
    ]
    columns = zip(*(rows or [(keys[0], 0, stream, high, b"", b"", place)]), strict=True)
    return pa.record_batch([pa.array(c, f.type) for c, f in zip(columns, _DEALT, strict=True)], schema=_DEALT)


def fit(at_work: Work, stream: int, batch: EventBatch) -> EventBatch:
    """Without those events that the query's language cannot take, of which the worker's log tells."""
    wrong = at_work.unfit(stream, batch)
    if wrong is None:
        return batch
    _LOG.warning("ignored, %d events: %s", wrong.count, "; ".join(wrong.named()))
    return batch.take(wrong.fit)


def step(
    order: Order, number: int, stored: Stored, given: Iterator[pd.DataFrame], mark: int, form: Form, late: bool
) -> Stepped:
    """A bucket's rows of a micro-batch under the watermark `mark` (ms; Spark begins with 0).

    As for Spark, events up to the mark itself are complete, and late if they come now.
    """
    at_work = work(order)
    at_work.terms.collect_if_due()
    kept = take(at_work, number, stored)
    rows = [row for part in given for row in packed(*(part[name] for name in _PACKED))]
    watermark = (mark + 1) * 1000 if mark > 0 else BEFORE_ALL
    done = kept.bucket.step(rows, watermark)
    frames = [frame(table) for table in tables(at_work, done, form, late, mark)]
    change = kept.store(rows, watermark)
    keep(at_work, number, kept, mark)
    freeze_loaded()
    # the next ms is always ahead: Spark forgets a timer that is set again while it goes off
    return Stepped(frames, change, None if done.waits_for is None else max(done.waits_for // 1000, mark + 1))


def whole(order: Order, table: pa.Table, form: Form) -> pa.Table:
    """All rows of a bucket, over streams that have ended."""
    at_work = work(order)
    at_work.terms.collect_if_due()
    bucket = Bucket(at_work, table.column("number")[0].as_py())
    rows = list(packed(*(table.column(name).to_pylist() for name in _PACKED)))
    found = list(tables(at_work, bucket.step(rows, BEFORE_ALL, close=True), form, late=False))
    return pa.concat_tables(found) if found else arrow_schema(at_work, form).empty_table()


def packed(streams: Any, events: Any, homes: Any, places: Any) -> Iterator[Packed]:
    """Rows as the dealer has made them; those without events only carry a time."""
    for stream, packed_events, home, place in zip(streams, events, homes, places, strict=True):
        if packed_events:
            yield Packed(int(np.int64(stream)), bytes(packed_events), bytes(home), int(place))
