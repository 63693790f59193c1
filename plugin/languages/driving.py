"""Streams that are given whole, read in order of time: what all languages share."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray
from pyoxigraph import NamedNode

from oxiseq.engine.errors import ArgumentValueError, EventError
from oxiseq.engine.events.batch import EventBatch
from oxiseq.engine.events.quads import GENERATED_AT
from oxiseq.engine.events.report import OnError, ReadReport
from oxiseq.engine.events.row_events import RowEvents
from oxiseq.engine.events.time import to_text
from oxiseq.engine.events.tuples import TupleRows
from oxiseq.engine.order.watermarks import AFTER_ALL, BEFORE_ALL
from oxiseq.engine.run.run import Run
from oxiseq.engine.terms.dictionary import TermDictionary
from oxiseq.grammar.arguments import named_node
from oxiseq.matches.matches import Matches
from oxiseq.matches.shape import Shape
from oxiseq.options import Options
from oxiseq.options.kinds import duration_text
from oxiseq.sources.sources import given_batches
from oxiseq.sources.unmet import UnmetWarning, Watch
from oxiseq.sources.warned import ColumnWarning, LateBatch, LateWarning, as_graphs, warn_caller, warn_of, warn_unread

Told: TypeAlias = Callable[[ReadReport], object] | None
"""The receiver of the running report of a file."""
Opener: TypeAlias = Callable[[Any, TermDictionary, OnError, NamedNode, Told], Iterator[LateBatch]]
"""The events that have been given of a stream, as batches that its query's language takes; finite ones in order of
time."""
_USUAL: Final = Options()


class Driver:
    """A query and its streams, read in order of time so that little has to be kept.

    `run`: its running state; `shape`: what its matches have in common; `streams`: name in the query → IRI, in order.
    """

    def __init__(
        self,
        run: Run,
        shape: Shape,
        streams: Mapping[str, str],
        opener: Opener = given_batches,
        options: Options = _USUAL,
        watch: Watch | None = None,
    ) -> None:
        self.shape = shape
        self.terms = shape.terms
        self.reports: list[ReadReport] = []
        """What was read of each file so far."""
        self.late: list[tuple[str, LateBatch]] = []
        """The late events: (stream IRI, events), in order of arrival."""
        self._first_late = ""
        self.time_columns: dict[str, str] = {}
        """The columns of tables that hold the time, by stream IRI."""
        self.run = run
        self._names = streams
        self._opener = opener
        self._options = options
        self._watch = watch
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
        """All matches, in the order of `at`. Warns of events that are left out, of late ones unless those are to be
        ignored, and of `notes`. Raises EventError where late events are errors."""
        block = self.shape.block(list(self.batches(progress)))
        faults = self.run.faults
        warn_of(faults)
        if self.late_note and self._options.late == "warn":
            warn_caller(f"{self.late_note}; lateness= allows disorder, and a list is sorted first", LateWarning)
        for note in self.run.notes:
            warn_caller(note, ColumnWarning)
        for note in self.unmet(len(block)):
            warn_caller(note, UnmetWarning)
        for note in dict.fromkeys(note for report in self.reports for note in report.notes):
            warn_caller(note, UserWarning)
        return Matches(block, self.run.events, self.late, faults, self.run.behind, time_columns=self.time_columns)

    def unmet(self, matches: int) -> list[str]:
        """What the query reads and no event had, and what it cannot compare; `matches`: how many it has found."""
        return [] if self._watch is None else list(self._watch.notes(matches))

    def batches(self, progress: Callable[[], None] | None = None) -> Iterator[Any]:
        """Read on, always the stream that is furthest behind; matches in order of completion.

        Streams that are not given have ended; so have the others when they have been read, unless `end` is open.
        Raises EventError where late events are errors.
        """
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
                if self._options.end == "closed":
                    self.run.punctuate(iri, AFTER_ALL)
            elif len(batch):
                rows = batch.rows if isinstance(batch, RowEvents) else batch
                if isinstance(rows, TupleRows):
                    self.time_columns[iri] = str(rows.naming.time)
                if self._watch is not None:
                    self._watch.see(iri, batch)
                self._keep(iri, self.run.push(iri, batch), batch.time, reached[iri])
                reached[iri] = max(reached[iri], int(batch.time.max()))
            yield from self.run.advance()
            if progress is not None:
                progress()
        yield from self.run.advance()

    @property
    def late_note(self) -> str:
        """How many events were late, the first one's time and the watermark that it was behind; empty if none was."""
        if not self.late:
            return ""
        return f"{self.run.late:,} of {self.run.events:,} events were late, so no match has them; {self._first_late}"

    def _keep(self, iri: str, late: LateBatch | None, times: NDArray[np.int64], reached: int) -> None:
        """Keep the late ones of a batch with these times; `reached`: the newest time of the stream before it."""
        if late is None or not len(late):
            return
        if not self.late:
            self._first_late = _first_late(iri, int(late.time[0]), times, reached, self.run.lateness)
            if self._options.late == "error":
                raise EventError(None, None, f"a late event: {self._first_late}")
        if isinstance(late, RowEvents):
            late = late.rows
        elif isinstance(late, EventBatch):
            self.terms.hold(*late.ids)
        self.late.append((iri, late))


def _first_late(iri: str, time: int, times: NDArray[np.int64], reached: int, lateness: int) -> str:
    """Of the first late event of a stream, at `time`, which is among `times` and behind the newest one before it."""
    newest = np.concatenate([[reached], np.maximum.accumulate(np.maximum(times, reached))[:-1]])
    place = np.flatnonzero((times == time) & (newest - lateness > time))[0]
    watermark = to_text(int(newest[place]) - lateness)
    return (
        f"the first, at {to_text(time)} of <{iri}>, came when the watermark was {watermark} "
        f"(lateness {duration_text(lateness)})"
    )
