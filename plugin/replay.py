"""`oxiseq.run`: a query over streams that are given whole, as files or lists."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import datetime, timedelta
from itertools import islice
from pathlib import Path
from typing import TypeAlias

from pyoxigraph import NamedNode
from pyoxigraph import Store as RdfStore

from oxiseq.engine.errors import OxiseqError
from oxiseq.engine.events.batch import EventBatch
from oxiseq.engine.events.encode import GraphLike, encode_events
from oxiseq.engine.events.open import EventReader, open_events
from oxiseq.engine.events.quads import GENERATED_AT
from oxiseq.engine.events.report import OnError, ReadReport
from oxiseq.engine.events.time import to_microseconds
from oxiseq.engine.kb import StoreKb
from oxiseq.engine.output.batch import MatchBatch
from oxiseq.engine.plan.query import QueryPlan, compile_query
from oxiseq.engine.run.clock import AFTER_ALL, BEFORE_ALL
from oxiseq.engine.run.query import QueryRun
from oxiseq.engine.terms.dictionary import TermDictionary
from oxiseq.first_run import prepare
from oxiseq.formats import sorted_batch
from oxiseq.grammar import load
from oxiseq.grammar.algebra import Query
from oxiseq.kb_loader import is_path, load_file, load_text, open_kb
from oxiseq.match import Shape
from oxiseq.matches import Matches
from oxiseq.store import Store

Source: TypeAlias = Callable[[TermDictionary], Iterator[EventBatch]]
"""Gives batches that are coded in the dictionary."""
Events: TypeAlias = str | Path | Iterable[tuple[int | datetime, GraphLike]]
"""A file of events, or (time, graph) pairs in order of arrival."""
Kb: TypeAlias = str | Path | Store | RdfStore | None
"""A file, N-Quads text, a store's folder, or a store."""

_PAIRS = 4096


def run(
    text: str,
    streams: Mapping[str, Events],
    kb: Kb = None,
    start: int | datetime | None = None,
    language: str = "spaseq",
    *,
    lateness: int | timedelta = 0,
    on_error: OnError = "stop",
    time_predicate: str | NamedNode = GENERATED_AT,
) -> Matches:
    """Answer a query over whole streams; when they end they are closed (trailing negations are decided).

    `streams`: IRI (or the name that the query gives it) → file, or (time, graph) pairs, time in microseconds
    or as datetime. `start`: the t of tumbling windows, default the first event's time; events before it are
    not seen. `lateness`: how much a stream may be out of order, in microseconds or as timedelta.
    `on_error="skip"` leaves out malformed events of files. Raises QueryError, EventError, KbError.
    """
    if language != "spaseq":
        raise OxiseqError(f"the language {language!r} is not known; known: spaseq")
    replay = Replay(load(text), kb, start, lateness)
    prepare()
    for name, events in streams.items():
        replay.attach(name, events, on_error, time_predicate)
    return replay.matches()


def kb_store(kb: Kb) -> RdfStore:
    """The pyoxigraph store that `kb` means. Raises KbError."""
    if isinstance(kb, Store):
        return kb.inner
    if isinstance(kb, RdfStore):
        return kb
    store = RdfStore()
    if kb is None:
        return store
    if is_path(kb):
        if Path(kb).is_dir():
            return open_kb(Path(kb))
        load_file(store, kb)
    else:
        load_text(store, str(kb))
    return store


class Replay:
    """A query and its streams, read in order of time so that little has to be kept."""

    def __init__(
        self, query: Query, kb: Kb, start: int | datetime | None = None, lateness: int | timedelta = 0
    ) -> None:
        self.terms = TermDictionary()
        self.plan: QueryPlan = compile_query(query, self.terms)
        delay = lateness if isinstance(lateness, int) else lateness // timedelta(microseconds=1)
        if delay < 0:
            raise OxiseqError(f"lateness must not be negative, but is {lateness}")
        begin = None if start is None else to_microseconds(start)
        self.run = QueryRun(self.plan, self.terms, StoreKb(kb_store(kb)), begin, delay)
        self.shape = Shape(self.plan, self.terms)
        self.reports: list[ReadReport] = []
        """What was read of each file so far."""
        self.late: list[tuple[str, EventBatch]] = []
        """The late events: (stream IRI, events), in order of arrival."""
        self._sources: dict[str, Iterator[EventBatch]] = {}
        self._names = {s.name: s.iri.value for s in query.streams}

    def attach(
        self, name: str, events: Events | Source, on_error: OnError = "stop",
        time_predicate: str | NamedNode = GENERATED_AT,
    ) -> None:
        """Give the events of a stream, by its IRI or the query's name for it. Raises EventError, OxiseqError."""
        iri = self._names.get(name, name)
        if iri not in self.plan.streams:
            declared = ", ".join(f"{short} <{iri}>" for short, iri in self._names.items())
            raise OxiseqError(f"the query reads no stream {name!r}; it declares {declared}")
        if iri in self._sources:
            raise OxiseqError(f"the stream {name!r} is given twice")
        if isinstance(events, str | Path):
            predicate = NamedNode(time_predicate) if isinstance(time_predicate, str) else time_predicate
            reader: EventReader = open_events(events, self.terms, predicate, on_error)
            self.reports.append(reader.report)
            self._sources[iri] = iter(reader)
        elif callable(events):
            self._sources[iri] = events(self.terms)
        else:
            self._sources[iri] = _pairs(events, self.terms)

    def batches(self, progress: Callable[[], None] | None = None) -> Iterator[MatchBatch]:
        """Read on, always the stream that is furthest behind; matches in order of completion."""
        reached: dict[str, int] = {}
        for iri in self.plan.streams:
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
                late = self.run.push(iri, batch)
                if len(late):
                    self.terms.hold(*late.ids)
                    self.late.append((iri, late))
            yield from self.run.advance()
            if progress is not None:
                progress()
        yield from self.run.advance()

    def matches(self, progress: Callable[[], None] | None = None) -> Matches:
        """All matches, in order of end time."""
        batch = sorted_batch(self.shape, self.batches(progress))
        return Matches(self.shape, batch, self.run.events, self.late)


def _pairs(
    events: Iterable[tuple[int | datetime, GraphLike]], terms: TermDictionary
) -> Iterator[EventBatch]:
    remaining = iter(events)
    while part := list(islice(remaining, _PAIRS)):
        yield encode_events(part, terms)
