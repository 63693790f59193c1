"""Quads, in the order of a file → events.

Where it stands: parser's quads → **events** → batches (quads.py feeds it). What is accepted:

- An event is a named graph. Its time is the object of `GRAPH time-predicate TIME`, in the default graph or
  inside the event's own graph; there the triple does not count as part of the graph. TIME is an xsd:dateTime
  (no zone means UTC) or an integer of microseconds since 1970.
- The time may stand before the graph's quads, among them, or after them.
- The graph of the last quad is open. It is **complete** when a quad of another named graph comes, or the
  input ends, and its time is known. If its time is not known then, it waits (in memory): more of its quads
  may come, and its time completes it. Events are handed out in the order of completion, so for a stream in
  time order each event should be contiguous and have its time beside it.
- An event with an empty graph is written with its time inside its own graph.
- Faults: an event without a time at the end of the input; a time in the default graph for a graph that never
  comes; two different times; a time that is not one; any other triple of the default graph; a graph that
  comes again after completion. The last is noticed for the 65,536 events that completed last, so that
  memory stays bounded; after that a name may be used again for another event.

Names of events and times are never interned: they occur once.
"""

from __future__ import annotations

from array import array
from collections import OrderedDict
from collections.abc import Callable, Iterable
from typing import Final, TypeAlias

import numpy as np
from pyoxigraph import BlankNode, DefaultGraph, Literal, NamedNode, Quad

from oxiseq.engine.errors import EventError
from oxiseq.engine.events.batch import EventBatch, offsets
from oxiseq.engine.events.time import to_microseconds
from oxiseq.engine.terms.dictionary import TermDictionary
from oxiseq.engine.terms.texts import Term

GraphName: TypeAlias = NamedNode | BlankNode
Fault: TypeAlias = Callable[[int | None, str], None]
"""Called with the number of the quad in the current feed (None: none in particular) and the reason; it
raises, or returns so that the quad or the event is left out."""

REMEMBERED: Final = 65_536


class _Event:
    """An event that is not complete yet. `ids`: s, p, o, s, p, o...; `again`: its name came back too late."""

    __slots__ = ("again", "blanks", "ids", "name", "time")

    def __init__(self, name: GraphName, time: int | None, again: bool = False) -> None:
        self.name = name
        self.time = time
        self.again = again
        self.ids: list[int] = []
        self.blanks: dict[Term, int] = {}


class EventAssembler:
    """Running state of one file's reading: the open event, the waiting ones, and those ready to be taken."""

    def __init__(self, terms: TermDictionary, time_predicate: NamedNode, fault: Fault) -> None:
        self._terms = terms
        self._time_predicate = time_predicate
        self._time_id = terms.intern(time_predicate)
        self._fault = fault
        self._open: _Event | None = None
        self._waiting: dict[GraphName, _Event] = {}
        self._times: dict[GraphName, int] = {}
        self._completed: OrderedDict[GraphName, int] = OrderedDict()
        self._ready_times: list[int] = []
        self._ready_sizes: list[int] = []
        self._ready_ids = array("I")

    @property
    def ready(self) -> int:
        """The number of complete events that `take` would hand out."""
        return len(self._ready_times)

    def take(self, limit: int) -> EventBatch:
        """The first complete events, at most `limit`, in the order of completion; they are forgotten here."""
        times = np.array(self._ready_times[:limit], np.int64)
        offset = offsets(np.array(self._ready_sizes[:limit], np.int64))
        cut = 3 * int(offset[-1])
        table = np.array(self._ready_ids[:cut], np.uint32).reshape(-1, 3)
        subject, predicate, object_ = (np.ascontiguousarray(table[:, column]) for column in range(3))
        del self._ready_times[:limit], self._ready_sizes[:limit], self._ready_ids[:cut]
        return EventBatch(times, offset, subject, predicate, object_)

    def feed(self, quads: Iterable[Quad]) -> None:
        """Take quads in; faults are told with the quad's number within this call."""
        lookup, intern, time_id = self._terms.lookup, self._terms.intern, self._time_id
        event = self._open or _Event(self._time_predicate, None)  # the latter is never looked at
        name = None if self._open is None else event.name
        for number, quad in enumerate(quads):
            graph = quad.graph_name
            if graph != name:
                if isinstance(graph, DefaultGraph):
                    self._default_triple(quad, number)
                    continue
                event = self._switch(graph, number)
                name = graph
            predicate = lookup(quad.predicate) or intern(quad.predicate)
            subject, object_ = quad.subject, quad.object
            if predicate == time_id and subject == graph:
                self._tell_time(event.name, object_, number)
                continue
            try:
                blank = event.blanks.get
                subject_id = lookup(subject) or blank(subject) or self._encode(subject, event)
                object_id = lookup(object_) or blank(object_) or self._encode(object_, event)
            except ValueError as error:
                self._fault(number, str(error))
                continue
            event.ids += (subject_id, predicate, object_id)

    def finish(self) -> None:
        """The input has ended: complete the open event, tell what is left over."""
        self._close_open()
        for name, event in self._waiting.items():
            what = f"its time is not known; {self._time_predicate} expected"
            self._fault(None, f"event {name} with {len(event.ids) // 3} triples is left out: {what}")
        for name in self._times:
            self._fault(None, f"there is a time for {name}, but no graph of this name")
        self._waiting.clear()
        self._times.clear()

    # --- steps ------------------------------------------------------------------------------------

    def _encode(self, term: Term, event: _Event) -> int:
        """The id of a term that is new: to the dictionary, or a blank node that is new to the event."""
        if not isinstance(term, BlankNode):
            return self._terms.intern(term)
        fresh = event.blanks[term] = self._terms.blank()
        return fresh

    def _switch(self, name: GraphName, number: int) -> _Event:
        """Another graph begins, or goes on."""
        self._close_open()
        event = self._waiting.pop(name, None)
        if event is None:
            again = name in self._completed
            event = _Event(name, self._times.pop(name, None), again)
            if again:
                self._fault(number, f"graph {name} comes again after its event was complete")
        self._open = event
        return event

    def _close_open(self) -> None:
        event, self._open = self._open, None
        if event is None or event.again:
            return
        if event.time is None:
            self._waiting[event.name] = event
        else:
            self._complete(event, event.time)

    def _complete(self, event: _Event, time: int) -> None:
        self._ready_times.append(time)
        self._ready_sizes.append(len(event.ids) // 3)
        self._ready_ids.extend(event.ids)
        self._completed[event.name] = time
        if len(self._completed) > REMEMBERED:
            self._completed.popitem(last=False)

    def _default_triple(self, quad: Quad, number: int) -> None:
        subject = quad.subject
        if quad.predicate != self._time_predicate or not isinstance(subject, NamedNode | BlankNode):
            reason = f"a triple of the default graph that is not an event's time ({self._time_predicate})"
            self._fault(number, f"{reason}: {quad.triple}")
            return
        self._tell_time(subject, quad.object, number)

    def _tell_time(self, name: GraphName, object_: Term, number: int) -> None:
        try:
            if not isinstance(object_, Literal):
                raise TypeError("not a literal")
            time = to_microseconds(object_)
        except (EventError, TypeError):
            reason = f"the time of event {name} is not an xsd:dateTime or xsd:integer of microseconds"
            self._fault(number, f"{reason}: {object_}")
            return
        event = self._waiting.get(name)
        if self._open is not None and self._open.name == name and not self._open.again:
            event = self._open
        known = self._completed.get(name, self._times.get(name)) if event is None else event.time
        if known is not None:
            if known != time:
                self._fault(number, f"a second time for event {name}: {object_}")
        elif event is None:
            self._times[name] = time
        else:
            event.time = time
            if event is not self._open:
                self._complete(self._waiting.pop(name), time)
