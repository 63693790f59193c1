"""Streams: how events get into the log and out again."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import lru_cache, partial
from typing import Final

import numpy as np

from oxiseq.engine.errors import OxiseqError
from oxiseq.engine.events.batch import EventBatch
from oxiseq.engine.events.messages.announced import MessageFormat
from oxiseq.engine.events.messages.writing import events_text, head
from oxiseq.engine.events.quads import QuadFormat
from oxiseq.engine.events.time import to_microseconds, to_text
from oxiseq.engine.events.write import quads_text
from oxiseq.engine.order.watermarks import BEFORE_ALL, late_ones
from oxiseq.engine.terms.dictionary import TermDictionary
from oxiseq.grammar.records import dataclass
from oxiseq.journal import (
    Appended,
    Appends,
    ConflictError,
    DamagedBatchError,
    Journal,
    Retention,
    Session,
    StreamRecord,
    UnknownError,
    pack_events,
    unpack_events,
)
from oxiseq.journal.journal import microseconds
from oxiseq.live.intake import Reading, Reason, RejectedError, SharedTerms
from oxiseq.live.metrics import Metrics
from oxiseq.live.portions import Portion
from oxiseq.live.settings import BoundError, BusyError, LiveSettings
from oxiseq.live.worker import Worker
from oxiseq.options.kinds import duration_text

_REASONS: Final = 10
_NO_TIMES: Final = np.zeros(0, np.int64)
LATE: Final = "older than the stream's watermark: stored, but queries do not match it"


@dataclass(frozen=True, slots=True, eq=False)
class Push:
    """A batch that is to be stored: `append` for the log, and what is needed to say afterwards what became of it."""

    append: Appends
    reading: Reading
    begun: float
    duplicates: int = 0
    """Items that were stored before, and are skipped."""


@dataclass(frozen=True, slots=True)
class Pushed:
    """What became of a batch: its events have the offsets first, ..., first + accepted - 1.

    late: how many of them are older than the watermark; ignored: how many a query that reads the stream ignores,
    because its language cannot take them (both None for a batch that was stored before: the first answer said so);
    rejected: lines and events left out; reasons: the first of them; duplicates: the events of a batch that was stored
    before. time: what an event was stamped with on arrival (µs).
    """

    first: int
    accepted: int
    late: int | None
    rejected: int
    reasons: tuple[Reason, ...]
    duplicates: int = 0
    time: int | None = None
    ignored: int | None = None


class Streams:
    """Create, list, delete, push, read. Safe for many threads."""

    def __init__(self, journal: Journal, worker: Worker, settings: LiveSettings, metrics: Metrics) -> None:
        self._terms = SharedTerms()  # to set up a dictionary for each push takes longer than a small push
        self._journal, self._worker = journal, worker
        self._settings, self._metrics = settings, metrics
        counters = (metrics.events, metrics.late, metrics.rejected, metrics.rejected_lines)
        self._counters = lru_cache(1024)(lambda iri: tuple(counter.labels(iri) for counter in counters))

    def create(self, iri: str, keep: Retention | None = None, mapping: str | None = None) -> StreamRecord:
        """The stream, made if there is none; `keep` and `mapping` (as JSON text; empty: none) replace what was set.
        Raises BoundError."""
        try:
            known = self._journal.streams.get(iri)
        except UnknownError:
            if len(self._journal.streams.all()) >= self._settings.streams:
                raise BoundError(
                    f"there are {self._settings.streams} streams, the limit (--max-streams of `oxiseq serve`)"
                ) from None
            return self._journal.streams.create(iri, keep or Retention(self._settings.retention), mapping)
        return known if keep is None and mapping is None else self._journal.streams.create(iri, keep, mapping)

    def get(self, iri: str) -> StreamRecord:
        """Raises UnknownError."""
        return self._journal.streams.get(iri)

    def all(self) -> list[StreamRecord]:
        """In the order of their creation."""
        return self._journal.streams.all()

    def delete(self, iri: str) -> None:
        """Forget a stream and its events. Raises UnknownError, and ConflictError while a query reads or feeds it."""
        with self._worker.between_turns() as at_once, self._worker.names:
            if (feeder := self._worker.feeder(iri)) is not None:
                raise ConflictError(f"the stream <{iri}> is fed by {feeder!r}")
            self._journal.streams.delete(iri)
            self._worker.change(partial(self._worker.forget, iri), at_once=at_once)

    def admit(self) -> None:
        """Raises BusyError when too many events wait: to be called before a body is read."""
        if self._worker.waiting >= self._settings.waiting:
            self._metrics.backpressure.inc()
            raise BusyError(f"{self._worker.waiting} events wait to be processed: try again later")

    def push(
        self,
        iri: str,
        read: Callable[[], Reading],
        body: bytes,
        batch_id: str | None = None,
        advance: int | None = None,
        *,
        on_arrival: bool = False,
    ) -> Pushed:
        """Put a batch into the log, and with `advance` a punctuation (µs) after it; returns when it is durable. `body`
        is what `read` reads, under `batch_id` always the same. `on_arrival`: one event, whose time becomes that of its
        arrival. Raises BusyError, RejectedError, UnknownError, ConflictError, FullError."""
        push = self.begin(iri, read, body, batch_id, advance, on_arrival=on_arrival)
        return self.end(push, self._journal.log.store(push.append))

    def begin(
        self,
        iri: str,
        read: Callable[[], Reading],
        body: bytes,
        batch_id: str | None = None,
        advance: int | None = None,
        *,
        on_arrival: bool = False,
        former_id: str | None = None,
    ) -> Push:
        """`push` up to where its `append` is to be stored. `former_id`: if this body is stored under it, it is known.
        Raises BusyError, RejectedError."""
        begun = time.perf_counter()
        self.admit()
        self.check_watermark(advance)
        reading = self._not_ahead(read(), on_arrival=on_arrival)
        digest = None if batch_id is None else hashlib.blake2b(body, digest_size=16).digest()
        if former_id is not None and digest is not None and self._journal.log.knows(iri, former_id, digest):
            batch_id = former_id
        append = Appends.of(iri, reading.blob, batch_id, digest, advance, on_arrival=on_arrival)
        return Push(append, reading, begun)

    def begin_portion(self, iri: str, session: Session, portion: Portion) -> Push:
        """`begin` for a portion of a long push."""
        begun, advance = time.perf_counter(), portion.advance
        try:
            reading = self._not_ahead(portion.reading, on_arrival=portion.stamped)
        except RejectedError as error:
            nothing = pack_events(EventBatch.empty(), TermDictionary())
            reading = Reading(nothing, _NO_TIMES, error.rejected, error.reasons)
        if advance is not None and (reason := self._ahead(advance)):
            told = (*reading.reasons, Reason(f"advance: {reason}"))[:_REASONS]
            advance, reading = None, replace(reading, rejected=reading.rejected + 1, reasons=told)
        append = Appends.of(iri, reading.blob, advance=advance, on_arrival=portion.stamped, session=session)
        return Push(append, reading, begun, portion.duplicates)

    def check_watermark(self, time: int | None) -> None:
        """Raises OxiseqError for a punctuation (µs) from the network that is too far ahead of the clock."""
        if time is not None and (reason := self._ahead(time)):
            raise OxiseqError(f"watermark: {reason}")

    def _latest(self) -> int | None:
        """The latest time (µs) that is taken; None: any."""
        most = self._settings.ahead
        return None if most is None else max(self._journal.now, microseconds()) + most

    def _ahead(self, time: int) -> str:
        """Why a time is too far ahead of the clock; empty if it is not."""
        latest = self._latest()
        if latest is None or time <= latest:
            return ""
        assert self._settings.ahead is not None
        allowed = duration_text(self._settings.ahead)
        return f"{to_text(time)} is further ahead of the server's clock than --max-ahead allows ({allowed})"

    def _not_ahead(self, reading: Reading, *, on_arrival: bool) -> Reading:
        """Without events too far ahead of the clock: one of them would make all later ones late. Raises RejectedError
        where no other is left."""
        if on_arrival or not len(reading.time) or (latest := self._latest()) is None:
            return reading
        if (last := int(reading.time.max())) <= latest:
            return reading
        kept = reading.time <= latest
        rejected = reading.rejected + int(np.count_nonzero(~kept))
        reasons = (*reading.reasons[: _REASONS - 1], Reason(self._ahead(last)))
        if not kept.any():
            raise RejectedError(f"no event is taken: {self._ahead(last)}", rejected, reasons)
        with self._terms.borrowed() as terms:
            batch = unpack_events([reading.blob], terms).take(np.flatnonzero(kept))
            return Reading(pack_events(batch, terms), batch.time, rejected, reasons, reading.lines)

    @property
    def crowded(self) -> bool:
        """Whether as many events wait as may: nothing more should be read for now."""
        return self._worker.waiting >= self._settings.waiting

    def end(self, push: Push, appended: Appended) -> Pushed:
        """`push` from there on."""
        metrics, reading, iri = self._metrics, push.reading, push.append.stream
        if appended.repeated:
            metrics.duplicates.labels(iri).inc()
            return Pushed(appended.first, appended.count, None, reading.rejected, reading.reasons, appended.count)
        late = 0 if push.append.on_arrival else self._late(iri, appended, reading)
        amounts = (appended.count, late, reading.rejected - reading.lines, reading.lines)
        for counter, amount in zip(self._counters(iri), amounts, strict=True):
            if amount:
                counter.inc(amount)
        metrics.push_seconds.observe(time.perf_counter() - push.begun)
        reasons = reading.reasons + ((Reason(f"{late} late: {LATE}"),) if late else ())
        ignored, why = self._ignored(iri, reading)
        return Pushed(
            appended.first, appended.count, late, reading.rejected, reasons + why, time=appended.time, ignored=ignored
        )

    def advance(self, iri: str, time: int) -> int:
        """Punctuation: no event before `time` (µs) will come. Returns the offset of the event after it. Raises
        EventError outside of the years 1 to 9999, UnknownError."""
        return self._journal.log.advance(iri, to_microseconds(time))

    def text(self, iri: str, since: int | None, limit: int, format: QuadFormat | MessageFormat) -> tuple[bytes, int]:
        """The kept events with offsets from `since` on, at most `limit`, as RDF; and the offset that comes next. What
        can be read ends before a damaged batch.

        Raises UnknownError, CursorError; DamagedBatchError where the first of them cannot be read.
        """
        record = self._journal.streams.get(iri)
        first = record.first if since is None else since
        terms = TermDictionary()
        pieces = [head(format)]
        try:
            batches = (logged.batch for logged in self._journal.log.read(iri, terms, since=first, until=first + limit))
            pieces += events_text(batches, terms, format=format)  # numbered through, so that each has its own name
        except DamagedBatchError as error:
            if error.first <= first:
                raise
            return "".join(pieces).encode(), error.first
        return "".join(pieces).encode(), max(first, min(first + limit, record.next))

    def named(self, iri: str, since: int, until: int, named: Callable[[int], str]) -> Iterator[str]:
        """The events with offsets from `since` to `until` - 1, each as TriG under the IRI that `named` has for its
        offset, read as they are asked for. Raises UnknownError, CursorError, DamagedBatchError."""
        terms = TermDictionary()
        batches = (logged.batch for logged in self._journal.log.read(iri, terms, since=since, until=until))
        return quads_text(batches, terms, format="trig", named=lambda number: named(since + number))

    def _ignored(self, iri: str, reading: Reading) -> tuple[int, tuple[Reason, ...]]:
        """How many events some query that reads the stream ignores, and why."""
        alike = self._worker.readers(iri).fits.values()
        if not alike or not len(reading.time):
            return 0, ()
        with self._terms.borrowed() as terms:
            batch = unpack_events([reading.blob], terms)
            faulty = np.zeros(len(batch), np.bool_)
            told: list[Reason] = []
            for queries in alike:
                unfit = queries[0].run.unfit(iri, batch, terms)
                if unfit is not None:
                    faulty |= unfit.wrong
                    named = [*unfit.named()]
                    told += [Reason(f"skipped by the query {q.name}: {each}") for q in queries for each in named]
        return int(np.count_nonzero(faulty)), tuple(told[:_REASONS])

    def _late(self, iri: str, appended: Appended, reading: Reading) -> int:
        """Of the events how many are older than the watermark, for all queries that read the stream."""
        if not len(reading.time):
            return 0
        allowed = self._worker.readers(iri).lateness
        largest = BEFORE_ALL if appended.largest is None else appended.largest
        punctuation = BEFORE_ALL if appended.punctuation is None else appended.punctuation
        if len(reading.time) == 1:  # the same, without arrays
            mark = BEFORE_ALL if largest == BEFORE_ALL else largest - allowed
            return int(int(reading.time[0]) < max(mark, punctuation))
        late, _ = late_ones(reading.time, largest, punctuation, allowed)
        return int(np.count_nonzero(late))
