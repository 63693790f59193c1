"""The plain twin of the reader: pyoxigraph line by line, kernels/events/assembly.py over Python objects."""

from __future__ import annotations

from collections import OrderedDict

from event_contents import Content
from pyoxigraph import BlankNode, DefaultGraph, Literal, NamedNode, Quad, RdfFormat, Triple, parse

from oxiseq.engine.errors import EventError, syntax_reason
from oxiseq.engine.events.quads import GENERATED_AT
from oxiseq.engine.events.time import to_microseconds
from oxiseq.engine.terms.normal import normalise, normalise_triple
from oxiseq.engine.terms.texts import Term, term_text

Name = NamedNode | BlankNode
Faults = list[tuple[int | None, str]]


def read_plainly(data: bytes, remembered: int = 65_536) -> tuple[Content, Faults]:
    """The events of an N-Quads file, and its faults: (line, reason) in order."""
    reader = PlainReader(remembered)
    for line, text in enumerate(data.removeprefix(b"\xef\xbb\xbf").split(b"\n"), 1):
        try:
            quads = list(parse(text + b"\n", RdfFormat.N_QUADS))
        except SyntaxError as error:
            reader.faults.append((line, syntax_reason(error).replace("end of file", "end of line")))
        else:
            for quad in quads:
                reader.feed(quad, line)
    reader.finish()
    return reader.content, reader.faults


class _Event:
    def __init__(self, name: Name, time: int | None, again: bool = False) -> None:
        self.name = name
        self.time = time
        self.again = again
        self.triples: list[tuple[Term, Term, Term]] = []


class PlainReader:
    def __init__(self, remembered: int = 65_536) -> None:
        self.content: Content = []
        self.faults: Faults = []
        self._remembered = remembered
        self._open: _Event | None = None
        self._waiting: dict[Name, _Event] = {}
        self._times: dict[Name, int] = {}
        self._completed: OrderedDict[Name, int] = OrderedDict()

    def feed(self, quad: Quad, line: int | None) -> None:
        graph, subject, object_ = quad.graph_name, quad.subject, quad.object
        if isinstance(graph, DefaultGraph):
            if quad.predicate == GENERATED_AT and isinstance(subject, NamedNode | BlankNode):
                self._tell_time(subject, object_, line)
            else:
                what = f"a triple of the default graph that is not an event's time ({GENERATED_AT})"
                self.faults.append((line, f"{what}: {quad.triple}"))
            return
        assert isinstance(graph, Name)
        if self._open is None or self._open.name != graph:
            self._switch(graph, line)
        assert self._open is not None
        if quad.predicate == GENERATED_AT and subject == graph:
            self._tell_time(graph, object_, line)
            return
        try:
            self._open.triples.append((_normal(subject), quad.predicate, _normal(object_)))
        except ValueError as error:
            self.faults.append((line, str(error)))

    def finish(self) -> None:
        self._close()
        for name, event in self._waiting.items():
            what = f"its time is not known; {GENERATED_AT} expected"
            self.faults.append((None, f"event {name} with {len(event.triples)} triples is left out: {what}"))
        for name in self._times:
            self.faults.append((None, f"there is a time for {name}, but no graph of this name"))

    def _switch(self, name: Name, line: int | None) -> None:
        self._close()
        event = self._waiting.pop(name, None)
        if event is None:
            again = name in self._completed
            event = _Event(name, self._times.pop(name, None), again)
            if again:
                self.faults.append((line, f"graph {name} comes again after its event was complete"))
        self._open = event

    def _close(self) -> None:
        event, self._open = self._open, None
        if event is None or event.again:
            return
        if event.time is None:
            self._waiting[event.name] = event
        else:
            self._complete(event, event.time)

    def _complete(self, event: _Event, time: int) -> None:
        labels: dict[Term, str] = {}

        def text(term: Term) -> str:
            if isinstance(term, BlankNode):
                return labels.setdefault(term, f"_:{len(labels)}")
            return term_text(term)

        self.content.append((time, [(text(s), text(p), text(o)) for s, p, o in event.triples]))
        self._completed[event.name] = time
        if len(self._completed) > self._remembered:
            self._completed.popitem(last=False)

    def _tell_time(self, name: Name, object_: Term, line: int | None) -> None:
        try:
            if not isinstance(object_, Literal):
                raise TypeError("not a literal")
            time = to_microseconds(object_)
        except (EventError, TypeError) as error:
            what = "not an xsd:dateTime or xsd:integer of microseconds"
            if "a time outside of the years 1 to 9999" in str(error):
                what = "a time outside of the years 1 to 9999"
            reason = f"the time of event {name} is {what}"
            self.faults.append((line, f"{reason}: {object_}"))
            return
        event = self._waiting.get(name)
        if self._open is not None and self._open.name == name and not self._open.again:
            event = self._open
        known = self._completed.get(name, self._times.get(name)) if event is None else event.time
        if known is not None:
            if known != time:
                self.faults.append((line, f"a second time for event {name}: {object_}"))
        elif event is None:
            self._times[name] = time
        else:
            event.time = time
            if event is not self._open:
                self._complete(self._waiting.pop(name), time)


def _normal(term: Term) -> Term:
    if isinstance(term, Literal):
        return normalise(term)
    if isinstance(term, Triple):
        _refuse_blank_nodes(term)
        return normalise_triple(term)
    return term


def _refuse_blank_nodes(triple: Triple) -> None:
    for part in (triple.subject, triple.object):
        if isinstance(part, BlankNode):
            raise ValueError("a triple term that holds a blank node is not supported")
        if isinstance(part, Triple):
            _refuse_blank_nodes(part)
