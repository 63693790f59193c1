"""Streams that are given whole, read in order of time: what replays of all languages share."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Protocol, TypeVar

from pyoxigraph import NamedNode

from oxiseq.engine.errors import OxiseqError
from oxiseq.engine.events.batch import EventBatch
from oxiseq.engine.events.encode import encode_events
from oxiseq.engine.events.quads import GENERATED_AT
from oxiseq.engine.events.report import OnError, ReadReport
from oxiseq.engine.events.row_graphs import row_graphs
from oxiseq.engine.run.alone import faults_of
from oxiseq.engine.run.watermarks import AFTER_ALL, BEFORE_ALL
from oxiseq.late import LateBatch
from oxiseq.left_out import ColumnWarning, warn_of
from oxiseq.matches.matches import Matches
from oxiseq.matches.shape import Shape
from oxiseq.sources import batches_of
from oxiseq.unread import warn_unread

B = TypeVar("B")


class Driven(Protocol[B]):
    """The running state of a query, of whatever language."""

    def push(self, stream: str, batch: Any) -> Any:
        """Take events of a stream; returns the late ones, if any."""

    def punctuate(self, stream: str, time: int) -> None:
        """No event of `stream` before `time` (µs) will come."""

    def advance(self) -> list[B]:
        """Work through all that is complete by now."""


class Driver:
    """A query and its streams, read in order of time so that little has to be kept.

    `shape`: what its matches have in common; `streams`: name in the query → IRI, in its order.
    """

    run: Any
    """The running state (a `Driven`)."""

    def __init__(self, run: Driven[Any], shape: Shape, streams: Mapping[str, str]) -> None:
        self.shape = shape
        self.terms = shape.terms
        self.reports: list[ReadReport] = []
        """What was read of each file so far."""
        self.late: list[tuple[str, LateBatch]] = []
        """The late events: (stream IRI, events), in order of arrival."""
        self.run = run
        self._names = streams
        self._sources: dict[str, Iterator[LateBatch]] = {}

    @property
    def streams(self) -> Mapping[str, str]:
        """Name in the query → IRI."""
        return self._names

    def late_batches(self) -> Iterator[EventBatch]:
        """The late events, as RDF."""
        for _, batch in self.late:
            if not isinstance(batch, EventBatch):
                batch = encode_events(row_graphs(batch, self.shape.vocab), self.terms)
            yield batch

    def attach(
        self, name: str, events: Any, on_error: OnError = "stop", time_predicate: str | NamedNode = GENERATED_AT,
    ) -> None:
        """Give the events of a stream, by its IRI or the query's name for it; those of a stream that the query does not
        read are left out, with a warning. Raises EventError, OxiseqError."""
        iri = self._names.get(name, name)
        if iri not in self._names.values():
            warn_unread(name, self._names, 4)
            return
        if iri in self._sources:
            raise OxiseqError(f"the stream {name!r} is given twice")
        predicate = NamedNode(time_predicate) if isinstance(time_predicate, str) else time_predicate
        self._sources[iri] = self._open(events, on_error, predicate)

    def _open(self, events: Any, on_error: OnError, time_predicate: NamedNode) -> Iterator[LateBatch]:
        return batches_of(events, self.terms, on_error, time_predicate, self.reports.append)

    @property
    def notes(self) -> tuple[str, ...]:
        """What cannot be meant in what has been read."""
        return ()

    @property
    def behind(self) -> int:
        """At how many events matches may be missing."""
        return 0

    def matches(self, progress: Callable[[], None] | None = None) -> Matches:
        """All matches, in the order of `at`. Warns of events that are left out, and of `notes`."""
        block = self.shape.block(list(self.batches(progress))).ordered()
        faults = faults_of(self.run)
        warn_of(faults, stacklevel=4)
        for note in self.notes:
            warnings.warn(note, ColumnWarning, stacklevel=4)
        return Matches(block, self.run.events, self.late, faults, self.behind)

    def batches(self, progress: Callable[[], None] | None = None) -> Iterator[Any]:
        """Read on, always the stream that is furthest behind; matches in order of completion."""
        reached: dict[str, int] = {}
        for iri in dict.fromkeys(self._names.values()):
            if iri in self._sources:
                reached[iri] = BEFORE_ALL
            else:
                self.run.punctuate(iri, AFTER_ALL)
        while reached:
            self.terms.collect_if_due()
            iri = min(reached, key=lambda each: reached[each])
            batch = next(self._sources[iri], None)
            if batch is None:
                del reached[iri]
                self.run.punctuate(iri, AFTER_ALL)
            elif len(batch):
                reached[iri] = max(reached[iri], int(batch.time.max()))
                self._keep(iri, self.run.push(iri, batch))
            yield from self.run.advance()
            if progress is not None:
                progress()
        yield from self.run.advance()

    def _keep(self, iri: str, late: LateBatch | None) -> None:
        if late is not None and len(late):
            if isinstance(late, EventBatch):
                self.terms.hold(*late.ids)
            self.late.append((iri, late))
