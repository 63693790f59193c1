"""Streams that are given whole, read in order of time: what replays of all languages share."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Any, TypeAlias

from pyoxigraph import NamedNode

from oxiseq.engine.errors import EventError, OxiseqError
from oxiseq.engine.events.batch import EventBatch
from oxiseq.engine.events.encode import GraphLike, encode_events
from oxiseq.engine.events.open import open_events
from oxiseq.engine.events.quads import GENERATED_AT
from oxiseq.engine.events.report import OnError, ReadReport
from oxiseq.engine.events.time import Time
from oxiseq.engine.run.run import Run
from oxiseq.engine.run.watermarks import AFTER_ALL, BEFORE_ALL
from oxiseq.engine.terms.dictionary import TermDictionary
from oxiseq.late import LateBatch, as_graphs
from oxiseq.left_out import ColumnWarning, warn_of
from oxiseq.matches.matches import Matches
from oxiseq.matches.shape import Shape
from oxiseq.unread import warn_unread

Pairs: TypeAlias = Iterable[tuple[Time, GraphLike]]
Events: TypeAlias = str | Path | Pairs
"""A file of events, or (time, graph) pairs in order of arrival."""
Source: TypeAlias = Callable[[TermDictionary], Iterator[EventBatch]]
"""Gives batches that are coded in the dictionary."""
Opener: TypeAlias = Callable[[Any, TermDictionary, OnError, NamedNode, list[ReadReport]], Iterator[LateBatch]]
"""The events that have been given of a stream, as batches that its query's language takes; of a file one more report of
what is read."""

_PAIRS = 4096


class Driver:
    """A query and its streams, read in order of time so that little has to be kept.

    `run`: its running state; `shape`: what its matches have in common; `streams`: name in the query → IRI, in order.
    """

    run: Any
    def __init__(self, run: Run, shape: Shape, streams: Mapping[str, str], opener: Opener | None = None) -> None:
        self.shape = shape
        self.terms = shape.terms
        self.reports: list[ReadReport] = []
        """What was read of each file so far."""
        self.late: list[tuple[str, LateBatch]] = []
        """The late events: (stream IRI, events), in order of arrival."""
        self.run = run
        self._names = streams
        self._opener = opener or opened
        self._sources: dict[str, Iterator[LateBatch]] = {}

    @property
    def streams(self) -> Mapping[str, str]:
        """Name in the query → IRI."""
        return self._names

    def late_batches(self) -> Iterator[EventBatch]:
        """The late events, as RDF."""
        return (as_graphs(batch, self.terms, self.shape.vocab) for _, batch in self.late)

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
        self._sources[iri] = self._opener(events, self.terms, on_error, predicate, self.reports)

    def matches(self, progress: Callable[[], None] | None = None) -> Matches:
        """All matches, in the order of `at`. Warns of events that are left out, and of `notes`."""
        block = self.shape.block(list(self.batches(progress))).ordered()
        faults = self.run.faults
        warn_of(faults, stacklevel=4)
        for note in self.run.notes:
            warnings.warn(note, ColumnWarning, stacklevel=4)
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
            if isinstance(late, EventBatch):
                self.terms.hold(*late.ids)
            self.late.append((iri, late))


def opened(
    events: Any, terms: TermDictionary, on_error: OnError, time_predicate: NamedNode, reports: list[ReadReport]
) -> Iterator[LateBatch]:
    """What most languages take: a source, a file, or (time, graph) pairs."""
    if not isinstance(events, str | Path):
        return events(terms) if callable(events) else _pairs(_iterated(events), terms)
    reader = open_events(events, terms, time_predicate, on_error)
    reports.append(reader.report)
    return iter(reader)


def _pairs(events: Pairs, terms: TermDictionary) -> Iterator[EventBatch]:
    remaining = iter(events)
    while part := list(islice(remaining, _PAIRS)):
        try:
            batch = encode_events(part, terms)
        except (TypeError, ValueError):
            for event in part:
                _check_pair(event)
            raise
        yield batch


def _iterated(events: Any) -> Pairs:
    if not isinstance(events, Iterable):
        raise OxiseqError(f"a stream is a file or (time, graph) pairs, not {events!r}")
    return events


def _check_pair(event: object) -> None:
    """Raise EventError for what is no (time, graph) pair."""
    if not isinstance(event, tuple | list) or len(event) != 2:
        raise EventError(None, None, f"an event is (time, graph), not {event!r}"[:200])
