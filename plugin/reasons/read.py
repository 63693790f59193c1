"""All events of the streams, in one dictionary, each stream a single batch in order of time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pyoxigraph import NamedNode

from oxiseq.engine.events.batch import EventBatch
from oxiseq.engine.events.encode import encode_events
from oxiseq.engine.events.open import open_events
from oxiseq.engine.events.quads import GENERATED_AT
from oxiseq.engine.events.report import OnError
from oxiseq.engine.terms.dictionary import TermDictionary
from oxiseq.grammar.algebra import Query
from oxiseq.grammar.errors import OxiseqError


@dataclass(frozen=True, slots=True)
class Span:
    """Events from `begin` to before `end` (µs; None: all)."""

    begin: int | None = None
    end: int | None = None


@dataclass(frozen=True, slots=True)
class History:
    """What the query would see: per stream IRI one batch, an event per instant, in order of time; `start` is the t of
    tumbling windows, `late` how many events came too late to be seen."""

    terms: TermDictionary
    batches: Mapping[str, EventBatch]
    start: int | None
    late: int

    @property
    def instants(self) -> NDArray[np.int64]:
        """All times at which something happens, ascending."""
        return np.unique(np.concatenate([np.zeros(0, np.int64), *(batch.time for batch in self.batches.values())]))


def read_history(
    query: Query, streams: Mapping[str, Any], span: Span, start: int | None, lateness: int,
    on_error: OnError = "stop", time_predicate: NamedNode = GENERATED_AT,
) -> History:
    """Read all that the query reads. Raises EventError, OxiseqError for a stream that it does not read."""
    terms, names = TermDictionary(), {s.name: s.iri.value for s in query.streams}
    batches: dict[str, EventBatch] = {}
    late, first = 0, start
    for name, events in streams.items():
        iri = names.get(name, name)
        if iri not in names.values():
            raise OxiseqError(f"the query reads no stream {name!r}; it reads {', '.join(names)}")
        parts = list(_batches(events, terms, on_error, time_predicate))
        for part in parts:
            terms.hold(*part.ids)
        whole, behind = in_order(parts, lateness)
        late += behind
        if start is None and len(whole):
            first = int(whole.time[0]) if first is None else min(first, int(whole.time[0]))
        batches[iri] = within(whole, span)
    empty, _ = in_order([], 0)
    return History(terms, {iri: batches.get(iri, empty) for iri in dict.fromkeys(names.values())}, first, late)


def _batches(
    events: Any, terms: TermDictionary, on_error: OnError, time_predicate: NamedNode
) -> Iterator[EventBatch]:
    if callable(events):
        yield from events(terms)
    elif isinstance(events, str | Path):
        yield from open_events(events, terms, time_predicate, on_error)
    else:
        yield encode_events(events, terms)


def in_order(parts: list[EventBatch], lateness: int) -> tuple[EventBatch, int]:
    """One batch without late events, those of one time merged; and how many were late."""
    times = np.concatenate([np.zeros(0, np.int64), *(part.time for part in parts)])
    sizes = np.concatenate([np.zeros(0, np.int64), *(np.diff(part.offset) for part in parts)]).astype(np.int64)
    starts = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    columns = [
        np.concatenate([np.zeros(0, np.uint32), *(getattr(part, name)[part.offset[0] : part.offset[-1]]
                                                   for part in parts)]).astype(np.uint32)
        for name in ("subject", "predicate", "object")
    ]  # fmt: skip
    newest = np.maximum.accumulate(times) if len(times) else times
    kept = np.flatnonzero(times >= newest - lateness)
    order = kept[np.argsort(times[kept], kind="stable")]
    places = [np.arange(starts[i], starts[i + 1]) for i in order.tolist()]
    flat = np.concatenate([np.zeros(0, np.int64), *places])
    instants, first = np.unique(times[order], return_index=True)
    ends = np.concatenate([[0], np.cumsum(sizes[order])]).astype(np.int64)
    offset = np.append(ends[first], ends[-1])
    return EventBatch(instants, offset, *(column[flat] for column in columns)), len(times) - len(kept)


def within(batch: EventBatch, span: Span) -> EventBatch:
    """The events of a time, of a batch that is in order."""
    low = 0 if span.begin is None else int(np.searchsorted(batch.time, span.begin))
    high = len(batch) if span.end is None else int(np.searchsorted(batch.time, span.end))
    high = max(high, low)
    a, b = int(batch.offset[low]), int(batch.offset[high])
    return EventBatch(batch.time[low:high], batch.offset[low : high + 1] - a, batch.subject[a:b],
                      batch.predicate[a:b], batch.object[a:b])  # fmt: skip
