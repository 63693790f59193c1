"""Late events, returned as they came (semantics.md 2.7)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import NamedTuple, TypeAlias

from pyoxigraph import Triple

from oxiseq.engine.events.batch import EventBatch
from oxiseq.engine.events.encode import decode_events, encode_events
from oxiseq.engine.events.row_graphs import row_graphs
from oxiseq.engine.events.time import to_datetime
from oxiseq.engine.events.tuples import TupleRows
from oxiseq.engine.terms.dictionary import TermDictionary

LateBatch: TypeAlias = EventBatch | TupleRows


class LateEvent(NamedTuple):
    """An event that was older than its stream's watermark: the stream's IRI, its time in microseconds, its graph."""

    stream: str
    time_us: int
    graph: tuple[Triple, ...]

    @property
    def time(self) -> datetime:
        """Its time, in UTC."""
        return to_datetime(self.time_us)


def late_events(late: Iterable[tuple[str, LateBatch]], terms: TermDictionary, vocab: str = "") -> list[LateEvent]:
    """Batches of late events, one by one; `vocab`: the namespace of the names in tables."""
    return [LateEvent(iri, time, graph) for iri, batch in late for time, graph in graphs(batch, terms, vocab)]


def graphs(batch: LateBatch, terms: TermDictionary, vocab: str = "") -> Iterator[tuple[int, tuple[Triple, ...]]]:
    """(time in µs, triples) of each event."""
    return decode_events(batch, terms) if isinstance(batch, EventBatch) else row_graphs(batch, vocab)


def as_graphs(batch: LateBatch, terms: TermDictionary, vocab: str = "") -> EventBatch:
    """The same events as RDF."""
    return batch if isinstance(batch, EventBatch) else encode_events(row_graphs(batch, vocab), terms)
