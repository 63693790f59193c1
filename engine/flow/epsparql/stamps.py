"""Events → timed triples: an event's start, where it says one (semantics.md 5).

The end of an event is its time. It starts then too, unless its graph has a triple with the predicate
prov:startedAtTime: of any subject, the earliest if there are several. Such a triple stays in the graph, but for the
one that the API puts there, whose subject is EVENT. An event that says a start which is no time, or is later than its
end, is no interval: it is left out (events/faults.py).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import field
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from pyoxigraph import Literal, NamedNode, Triple

from oxiseq.engine.errors import EventError, syntax_reason
from oxiseq.engine.events.batch import EventBatch
from oxiseq.engine.events.encode import GraphLike, graph_triples
from oxiseq.engine.events.faults import Unfit
from oxiseq.engine.events.time import Time, to_literal, to_microseconds, to_text
from oxiseq.engine.flow.epsparql.rows import I64
from oxiseq.engine.terms.dictionary import TermDictionary
from oxiseq.grammar.records import dataclass

STARTED_AT: Final = NamedNode("http://www.w3.org/ns/prov#startedAtTime")
EVENT: Final = NamedNode("urn:oxiseq:event")
_SHOWN: Final = 100
"""Characters of a term that is no time."""


def start_triple(start: int) -> Triple:
    """The triple that says when its event started, in microseconds."""
    return Triple(EVENT, STARTED_AT, to_literal(start))


def spanned(events: Iterable[Any]) -> Iterator[tuple[Time, GraphLike]]:
    """(graph, time) pairs as they are, (start, end, graph) as events that say their start. Raises EventError."""
    for event in events:
        match event:
            case (_, _):
                yield event
            case (start, end, graph):
                yield end, with_start(graph, start)
            case _:
                raise EventError(None, None, f"an event is (graph, time) or (start, end, graph), not {event!r}"[:200])


def with_start(graph: GraphLike, start: Time) -> GraphLike:
    """A graph that says when its event started. Raises EventError."""
    try:
        return [*graph_triples(graph), start_triple(to_microseconds(start))]
    except SyntaxError as error:
        raise EventError(None, error.lineno, syntax_reason(error)) from error


@dataclass(frozen=True, slots=True, eq=False)
class Started:
    """What events say of their starts. start: i64[events]; marks: which triples are the API's, None: none is; wrong:
    events that are no intervals, each with the triple that says so."""

    start: I64
    marks: NDArray[np.bool_] | None = None
    wrong: Mapping[int, int] = field(default_factory=dict)


class Stamps:
    """Finds the starts of events; `event` and `started` are the ids of the names above."""

    def __init__(self, terms: TermDictionary) -> None:
        self._terms = terms
        self._started = terms.constant(STARTED_AT)
        self._event = terms.constant(EVENT)

    @property
    def predicates(self) -> frozenset[int]:
        """Ids of the predicates that it reads."""
        return frozenset((int(self._started),))

    def starts(self, batch: EventBatch) -> Started:
        """When each event started."""
        said = np.flatnonzero(batch.predicate == self._started)
        if not len(said):
            return Started(batch.time)
        start, wrong = batch.time.copy(), dict[int, int]()
        event = np.searchsorted(batch.offset, said, "right") - 1
        for at, number in zip(said.tolist(), event.tolist(), strict=True):
            time = self._time(int(batch.object[at]))
            if isinstance(time, str) or time > int(batch.time[number]):
                wrong.setdefault(number, at)
            else:
                start[number] = min(int(start[number]), time)
        marks = np.zeros(batch.triples, np.bool_)
        marks[said] = batch.subject[said] == self._event
        return Started(start, marks if marks.any() else None, wrong)

    def unfit(self, stream: str, batch: EventBatch, wrong: Mapping[int, int]) -> Unfit | None:
        """The events of a batch that are no intervals."""
        if not wrong:
            return None
        which = np.zeros(len(batch), np.bool_)
        which[list(wrong)] = True
        return Unfit(stream, batch.time, which, lambda event: self._why(int(batch.object[wrong[event]])))

    def _why(self, known: int) -> str:
        time = self._time(known)
        if isinstance(time, str):
            return f"is no interval: its prov:startedAtTime is {time}"
        return f"is no interval: its prov:startedAtTime is {to_text(time)}, but an event cannot start after its time"

    def _time(self, known: int) -> int | str:
        """The time that is stated; as text, why it is no time."""
        term = self._terms.term(known)
        if not isinstance(term, Literal):
            return f"not a time: {str(term)[:_SHOWN]}; xsd:dateTime or xsd:integer (microseconds) expected"
        try:
            return to_microseconds(term)
        except EventError as error:
            return error.reason if len(error.reason) <= 2 * _SHOWN else f"{error.reason[: 2 * _SHOWN]}..."
