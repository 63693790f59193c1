"""Late events, handed out as they came (semantics.md 2.7)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from pyoxigraph import Triple

from oxiseq.engine.events.batch import EventBatch
from oxiseq.engine.events.encode import decode_events
from oxiseq.engine.terms.dictionary import TermDictionary


class LateEvent(NamedTuple):
    """An event that was older than its stream's watermark: the stream's IRI, microseconds, its graph."""

    stream: str
    time: int
    graph: tuple[Triple, ...]


def late_events(late: Iterable[tuple[str, EventBatch]], terms: TermDictionary) -> list[LateEvent]:
    """Batches of late events, one by one."""
    return [LateEvent(iri, time, graph) for iri, batch in late for time, graph in decode_events(batch, terms)]
