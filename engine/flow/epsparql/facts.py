"""Events of complete instants → facts, a piece at a time (kernels/flow/facts.py).

In the flow: events in order of time → **facts**, each at the tick of its instant → rules, the query. A fact is a
row of a plan's source: its interval, subject, predicate, object. It may come several times at an instant: plans take
it once.

The end of an event is its time. It starts then too, unless its graph has a triple with the predicate prov:startedAtTime
(semantics.md 5): of any subject, the earliest if there are several. Such a triple stays in the graph, but for the one
that the API puts there, whose subject is EVENT. An event that says a start which is no time, or is later than its end,
is no interval: it is left out (events/faults.py).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
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
from oxiseq.engine.flow.delta import I64, Buffer, Delta
from oxiseq.engine.flow.operators.distinct import DistinctNode
from oxiseq.engine.flow.plan import Lifetime
from oxiseq.engine.flow.times import LATEST
from oxiseq.engine.kernels.flow import facts as k
from oxiseq.engine.kernels.flow.buffers import DONE, OVER
from oxiseq.engine.kernels.flow.moments import INTERVAL
from oxiseq.engine.kernels.memory.pointers import Array, Pointers, address_of, call
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


FACT: Final = INTERVAL + 3
"""Columns of a fact."""


@dataclass(frozen=True, slots=True)
class Piece:
    """Some instants. facts: how many they bring; tick: of the first; since, until: when the first and the last were."""

    facts: int
    tick: int
    since: int
    until: int


class Arriving:
    """What comes. most: facts from which on a piece has no further instant."""

    def __init__(self, terms: TermDictionary, most: int) -> None:
        self.facts = Buffer(FACT)
        """Of the piece in work."""
        self.facts.raw = tuple(range(INTERVAL))
        self.tick = 1
        """Of the next instant, or of the next round of one."""
        self._scalars, self._columns = np.zeros(k.SCALARS, np.int64), np.zeros(6, np.int64)
        self._scalars[[k.MOST, k.STARTED, k.EVENT]] = most, terms.constant(STARTED_AT), terms.constant(EVENT)
        self._memory = Pointers(k.Arriving(self._scalars, self._columns))

    def pieces(self, events: EventBatch, start: I64) -> Iterator[Piece]:
        """Whole instants of events in order of time, one at least; start: when each event started."""
        arrays: list[Array] = [
            *(np.ascontiguousarray(times, np.int64) for times in (events.time, start, events.offset)),
            *(np.ascontiguousarray(ids, np.uint32) for ids in events.ids),
        ]
        self._columns[:] = [address_of(array) for array in arrays]
        scalars = self._scalars
        scalars[k.FIRST], scalars[k.EVENTS] = 0, len(events)
        while scalars.item(k.FIRST) < len(events):
            tick = scalars[k.TICK] = self.tick
            while call(k.write_facts, self._memory, self.facts) != DONE:
                self.facts.grow()
            self.tick = scalars.item(k.TICK)
            if self.facts:
                yield Piece(len(self.facts), tick, scalars.item(k.SINCE), scalars.item(k.UNTIL))


class Known:
    """The facts of the instant in work, each once: where rules feed each other."""

    def __init__(self) -> None:
        self._come = Buffer(FACT)
        self._come.raw = tuple(range(INTERVAL))
        self._clock = np.full(2, LATEST)
        self._known = DistinctNode(self._come, lifetime=Lifetime(0), clock=self._clock)

    def begin(self) -> None:
        """Another instant."""
        self._clock[OVER] = LATEST
        self._known.forget(now=True)
        self._clock[OVER] = -LATEST

    def new(self, facts: Delta) -> Delta:
        """Those that are not known yet, in memory of their own."""
        self._come.put(facts)
        self._known.out.clear()
        self._known.step()
        return owned(self._known.out.delta)


def merged(batches: Sequence[EventBatch]) -> EventBatch:
    """Events of several streams, each in order of time, as one."""
    some = [batch for batch in batches if len(batch)]
    if len(some) < 2:
        return some[0] if some else EventBatch.empty()
    every = EventBatch.concat(some)
    return every.take(np.argsort(every.time, kind="stable"))


def owned(delta: Delta) -> Delta:
    """The same, in memory of its own."""
    return Delta(delta.at.copy(), delta.weight.copy(), delta.rows.copy())


def at_tick(delta: Delta, tick: int) -> Delta:
    """The same at another tick."""
    return Delta(np.full(len(delta), tick), delta.weight, delta.rows)
