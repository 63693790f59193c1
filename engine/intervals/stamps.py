"""Events → timed triples: an event's start, where it says one (semantics.md 5).

The end of an event is its time. It starts then too, unless its graph has a triple with the predicate
prov:startedAtTime: of any subject, the earliest if there are several. Such a triple stays in the graph, but for the
one that the API puts there, whose subject is EVENT.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from pyoxigraph import Literal, NamedNode, Triple

from oxiseq.engine.errors import EventError, syntax_reason
from oxiseq.engine.events.batch import EventBatch
from oxiseq.engine.events.encode import GraphLike, graph_triples
from oxiseq.engine.events.time import to_literal, to_microseconds, to_text
from oxiseq.engine.intervals.rows import I64
from oxiseq.engine.terms.dictionary import TermDictionary

STARTED_AT: Final = NamedNode("http://www.w3.org/ns/prov#startedAtTime")
EVENT: Final = NamedNode("urn:oxiseq:event")


def start_triple(start: int) -> Triple:
    """The triple that says when its event started, in microseconds."""
    return Triple(EVENT, STARTED_AT, to_literal(start))


def spanned(events: Iterable[Any]) -> Iterator[tuple[int | datetime, GraphLike]]:
    """(time, graph) pairs as they are, (start, end, graph) as events that say their start. Raises EventError."""
    for event in events:
        match event:
            case (_, _):
                yield event
            case (start, end, graph):
                yield end, with_start(graph, start)
            case _:
                raise EventError(None, None, f"an event is (time, graph) or (start, end, graph), not {event!r}"[:200])


def with_start(graph: GraphLike, start: int | datetime) -> GraphLike:
    """A graph that says when its event started. Raises EventError."""
    try:
        return [*graph_triples(graph), start_triple(to_microseconds(start))]
    except SyntaxError as error:
        raise EventError(None, error.lineno, syntax_reason(error)) from error


class Stamps:
    """Finds the starts of events; `event` and `started` are the ids of the names above."""

    def __init__(self, terms: TermDictionary) -> None:
        self._terms = terms
        self._started = terms.constant(STARTED_AT)
        self._event = terms.constant(EVENT)

    def starts(self, batch: EventBatch) -> tuple[I64, NDArray[np.bool_] | None]:
        """i64[events], when each started; and which triples are the API's, None for none. Raises EventError."""
        said = np.flatnonzero(batch.predicate == self._started)
        if not len(said):
            return batch.time, None
        start = batch.time.copy()
        event = np.searchsorted(batch.offset, said, "right") - 1
        for at, number in zip(said.tolist(), event.tolist(), strict=True):
            time = self._time(int(batch.object[at]))
            if time > int(batch.time[number]):
                reason = f"an event that ends at {to_text(int(batch.time[number]))} starts at {to_text(time)}"
                raise EventError(None, None, reason)
            start[number] = min(int(start[number]), time)
        marks = np.zeros(batch.triples, np.bool_)
        marks[said] = batch.subject[said] == self._event
        return start, marks if marks.any() else None

    def _time(self, known: int) -> int:
        term = self._terms.term(known)
        if not isinstance(term, Literal):
            raise EventError(None, None, f"prov:startedAtTime is not a time: {term}")
        return to_microseconds(term)
