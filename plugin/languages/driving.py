"""Streams that are given whole, read in order of time: what all languages share."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeAlias

from pyoxigraph import NamedNode

from oxiseq.engine.errors import ArgumentValueError
from oxiseq.engine.events.batch import EventBatch
from oxiseq.engine.events.quads import GENERATED_AT
from oxiseq.engine.events.report import OnError, ReadReport
from oxiseq.engine.events.row_events import RowEvents
from oxiseq.engine.order.watermarks import AFTER_ALL, BEFORE_ALL
from oxiseq.engine.run.run import Run
from oxiseq.engine.terms.dictionary import TermDictionary
from oxiseq.grammar.arguments import named_node
from oxiseq.matches.matches import Matches
from oxiseq.matches.shape import Shape
from oxiseq.sources.late import LateBatch, as_graphs
from oxiseq.sources.left_out import ColumnWarning, warn_of
from oxiseq.sources.sources import batches_of
from oxiseq.sources.unread import warn_unread
from oxiseq.sources.warned import warn_caller

Told: TypeAlias = Callable[[ReadReport], object] | None
"""The receiver of the running report of a file."""
Opener: TypeAlias = Callable[[Any, TermDictionary, OnError, NamedNode, Told], Iterator[LateBatch]]
"""The events that have been given of a stream, as batches that its query's language takes."""


class Driver:
    """A query and its streams, read in order of time so that little has to be kept.

    `run`: its running state; `shape`: what its matches have in common; `streams`: name in the query → IRI, in order.
    """

    def __init__(self, run: Run, shape: Shape, streams: Mapping[str, str], opener: Opener | None = None) -> None:
        self.shape = shape
        self.terms = shape.terms
        self.reports: list[ReadReport] = []
        """What was read of each file so far."""
        self.late: list[tuple[str, LateBatch]] = []
        """The late events: (stream IRI, events), in order of arrival."""
        self.run = run
        self._names = streams
        self._opener = opener or batches_of
        self._sources: dict[str, Iterator[LateBatch]] = {}

    @property
    def streams(self) -> Mapping[str, str]:
        """Name in the query → IRI."""
        return self._names

    def late_batches(self) -> Iterator[EventBatch]:
        """The late events, as RDF."""
        return (as_graphs(batch, self.terms, self.shape.vocab) for _, batch in self.late)

    def attach(
        self,
        name: str,
        events: Any,
        on_error: OnError = "stop",
        time_predicate: str | NamedNode = GENERATED_AT,
    ) -> None:
        """Give the events of a stream, by its IRI or the query's name for it; those of a stream that the query does not
        read are left out, with a warning. Raises EventError, OxiseqError."""
        iri = self._names.get(name, name)
        if iri not in self._names.values():
            warn_unread(name, self._names)
            return
        if iri in self._sources:
            raise ArgumentValueError(f"the stream {name!r} is given twice")
        predicate = named_node(time_predicate, "time_predicate")
        self._sources[iri] = self._opener(events, self.terms, on_error, predicate, self.reports.append)

    def matches(self, progress: Callable[[], None] | None = None) -> Matches:
        """All matches, in the order of `at`. Warns of events that are left out, and of `notes`."""
        block = self.shape.block(list(self.batches(progress)))
        faults = self.run.faults
        warn_of(faults)
        for note in self.run.notes:
            warn_caller(note, ColumnWarning)
        return Matches(block, self.run.events, self.late, faults, self.run.behind)

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
            if isinstance(late, RowEvents):
                late = late.rows
            elif isinstance(late, EventBatch):
                self.terms.hold(*late.ids)
            self.late.append((iri, late))
