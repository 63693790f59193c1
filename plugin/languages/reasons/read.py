"""All events of the streams, in one dictionary, each stream a single batch in order of time (then of arrival)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pyoxigraph import NamedNode, Triple

from oxiseq.engine.events.batch import EventBatch
from oxiseq.engine.events.encode import decode_events
from oxiseq.engine.events.quads import GENERATED_AT
from oxiseq.engine.events.report import OnError
from oxiseq.engine.terms.dictionary import TermDictionary
from oxiseq.grammar.algebra import Query
from oxiseq.grammar.records import dataclass
from oxiseq.languages.driving import Opener
from oxiseq.options import Options
from oxiseq.sources.sources import given_batches
from oxiseq.sources.warned import as_graphs, warn_unread


@dataclass(frozen=True, slots=True)
class Span:
    """Events from `since` to before `until` (µs; None: all)."""

    since: int | None = None
    until: int | None = None


@dataclass(frozen=True, slots=True)
class History:
    """What the query would see: per stream IRI one batch, in order of time; `start` is the t of tumbling windows,
    `late` how many events came too late and were not seen."""

    terms: TermDictionary
    batches: Mapping[str, EventBatch]
    start: int | None
    late: int

    @property
    def instants(self) -> NDArray[np.int64]:
        """All times at which something happens, ascending."""
        return np.unique(np.concatenate([np.zeros(0, np.int64), *(batch.time for batch in self.batches.values())]))


@dataclass(frozen=True, slots=True)
class Reading:
    """How streams are read, times in µs: only a span of time, from `origin` on, with so much disorder."""

    span: Span = Span()
    origin: int | None = None
    lateness: int = 0
    on_error: OnError = "stop"
    time_predicate: NamedNode = GENERATED_AT


def reading_of(options: Options, span: Span | None = None) -> Reading:
    """How the options say it; `span`: where the events are given by it already."""
    chosen = Span(options.since, options.until) if span is None else span
    predicate = NamedNode(options.time_predicate)
    return Reading(chosen, options.origin, options.lateness, options.on_error, predicate)


def read_history(
    query: Query, streams: Mapping[str, Any], reading: Reading, opener: Opener = given_batches, vocab: str = ""
) -> History:
    """Read all that a SPAseq query reads, an event per instant. Raises EventError."""
    names = {s.name: s.iri.value for s in query.streams}
    return read_streams(names, streams, reading, merged=True, opener=opener, vocab=vocab)


def read_streams(
    names: Mapping[str, str],
    streams: Mapping[str, Any],
    reading: Reading,
    *,
    merged: bool = False,
    opener: Opener = given_batches,
    vocab: str = "",
) -> History:
    """Read all streams; `names`: name in the query → IRI. `merged`: simultaneous events of a stream are one; else they
    are in order of arrival, and events before `origin` are not seen. A stream that the query does not read is left
    out, with a warning. Tables become the graphs that their rows stand for (semantics.md 3), so that all events are
    treated alike; `vocab`: the namespace of their names. Raises EventError."""
    terms = TermDictionary()
    batches: dict[str, EventBatch] = {}
    late, first = 0, reading.origin
    for name, events in streams.items():
        iri = names.get(name, name)
        if iri not in names.values():
            warn_unread(name, names)
            continue
        given = opener(events, terms, reading.on_error, reading.time_predicate, None)
        parts = [as_graphs(batch, terms, vocab) for batch in given]
        for part in parts:
            terms.hold(*part.ids)
        whole, behind = (in_order if merged else ordered)(parts, reading.lateness)
        late += behind
        if not merged and reading.origin is not None:
            whole = within(whole, Span(reading.origin, None))
        if reading.origin is None and len(whole):
            first = int(whole.time[0]) if first is None else min(first, int(whole.time[0]))
        batches[iri] = within(whole, reading.span)
    empty = EventBatch.empty()
    return History(terms, {iri: batches.get(iri, empty) for iri in dict.fromkeys(names.values())}, first, late)


def in_order(parts: Sequence[EventBatch], lateness: int) -> tuple[EventBatch, int]:
    """One batch without late events, those of one time merged; and how many were late."""
    batch, late = ordered(parts, lateness)
    instants, first = np.unique(batch.time, return_index=True)
    return EventBatch(instants, np.append(batch.offset[first], batch.offset[-1]), *batch.ids), late


def ordered(parts: Sequence[EventBatch], lateness: int) -> tuple[EventBatch, int]:
    """The same, but that events of one time are in order of arrival."""
    whole = EventBatch.concat(list(parts))
    newest = np.maximum.accumulate(whole.time) if len(whole) else whole.time
    kept = np.flatnonzero(whole.time >= newest - lateness)
    return whole.take(kept[np.argsort(whole.time[kept], kind="stable")]), len(whole) - len(kept)


def spans(history: History, instants: int) -> Iterator[Span]:
    """So many instants each, one after the other; the last one is open."""
    begin = None
    for end in (*history.instants[instants::instants].tolist(), None):
        yield Span(begin, end)
        begin = end


def within(batch: EventBatch, span: Span) -> EventBatch:
    """The events of a span of time, of a batch in order of time."""
    low = 0 if span.since is None else int(np.searchsorted(batch.time, span.since))
    high = len(batch) if span.until is None else int(np.searchsorted(batch.time, span.until))
    high = max(high, low)
    return batch.slice(low, high)


def graph_of(history: History, stream: str, time: int) -> tuple[Triple, ...]:
    """The triples of a stream at a time; none where it has no event then."""
    batch = within(history.batches[stream], Span(time, time + 1))
    return tuple(t for _, graph in decode_events(batch, history.terms) for t in graph) if np.size(batch.time) else ()
