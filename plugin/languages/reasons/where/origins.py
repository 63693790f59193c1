"""What a row of WHERE was made of: events in windows, facts of the knowledge base.

Each triple pattern with the row's values is looked up: in its window, or in the knowledge base. So of OPTIONAL and
UNION the part that is there is shown; of property paths and sub-queries nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, Final, TypeAlias

import numpy as np
from pyoxigraph import BlankNode, DefaultGraph, Literal, NamedNode, Quad, Triple, Variable

from oxiseq.engine.events.batch import EventBatch
from oxiseq.engine.events.encode import decode_events
from oxiseq.engine.kb import KnowledgeBase
from oxiseq.engine.rsp.items import Items, WindowRange
from oxiseq.engine.terms.dictionary import TermDictionary
from oxiseq.engine.terms.texts import Term
from oxiseq.grammar.algebra import (
    Filter,
    GraphPattern,
    Group,
    MatchPattern,
    Minus,
    SubSelect,
    TermOrVariable,
    TriplePattern,
    Values,
)
from oxiseq.grammar.parts import changed, parts
from oxiseq.grammar.render import render_group
from oxiseq.grammar.rsp_algebra import EventDefinition, RspQuery, event_names
from oxiseq.grammar.scope import visible_variables
from oxiseq.languages.reasons.read import History, Span, within
from oxiseq.languages.reasons.report import Provenance, Source
from oxiseq.languages.reasons.where.parts import asked_alone
from oxiseq.languages.reasons.why import FoundRow

# --- origins -----------------------------------------------------------------------------------------


Row = Mapping[str, int]
"""Variable → id."""
Ids = tuple[int, int, int]


class HeldEvents:
    """The events that a window holds. `name`: None where it is the default graph; `first`: the number of its first
    event among the stream's."""

    def __init__(
        self, name: NamedNode | None, stream: str, first: int, batch: EventBatch, terms: TermDictionary
    ) -> None:
        self.name, self.stream, self.first, self.batch, self._terms = name, stream, first, batch, terms
        iri = stream if name is None else name.value
        self.label = iri[max(map(iri.rfind, "/#")) + 1 :]

    def source(self, label: str, event: int) -> Source:
        """An event by its number in the window."""
        return Source(label, self.stream, int(self.batch.time[event]), self._graph(event), self.first + event)

    def _graph(self, event: int) -> tuple[Triple, ...]:
        one = self.batch.slice(event, event + 1)
        return next((tuple(graph) for _, graph in decode_events(one, self._terms)), ())

    @cached_property
    def places(self) -> Mapping[Ids, list[int]]:
        """Triple → the events that have it, by their number in the window."""
        found: dict[Ids, list[int]] = {}
        event = np.repeat(np.arange(len(self.batch)), np.diff(self.batch.offset))
        for number, *triple in zip(event.tolist(), *(column.tolist() for column in self.batch.ids), strict=True):
            places = found.setdefault((triple[0], triple[1], triple[2]), [])
            if not places or places[-1] != number:
                places.append(number)
        return found


def held_at(query: RspQuery, history: History, at: int) -> list[HeldEvents]:
    """What the windows of a query hold at an instant."""
    found = []
    for window in query.windows:
        batch, items = history.batches[window.stream.value], Items(False)
        items.add(batch)
        bounds = items.places(WindowRange(window.operators, query.language == "rsepql"), np.array([at]))
        start, stop = (int(places[0]) for places in bounds)
        found.append(HeldEvents(window.name, window.stream.value, start, batch.slice(start, stop), history.terms))
    return found


def held_within(history: History, span: Span) -> list[HeldEvents]:
    """The events of all streams in a span of time, as the default graph."""
    found = []
    for iri, batch in history.batches.items():
        first = 0 if span.since is None else int(np.searchsorted(batch.time, span.since))
        found.append(HeldEvents(None, iri, first, within(batch, span), history.terms))
    return found


class Origins:
    """Of rows over these windows; `events` are EVENT definitions. `beside`: the knowledge base's default graph is
    read, too, where streams are (EP-SPARQL)."""

    def __init__(
        self,
        windows: Sequence[HeldEvents],
        terms: TermDictionary,
        kb: KnowledgeBase,
        events: Sequence[EventDefinition] = (),
        *,
        beside: bool = False,
    ) -> None:
        self._kb_default = beside or all(held.name is not None for held in windows)
        self._windows, self._terms, self._kb = windows, terms, kb
        self._events = {event.name: event for event in events}

    def provenance(
        self, at: int, where: Group, answer: Mapping[str, Term | None], rows: Sequence[FoundRow]
    ) -> Provenance:
        """For an answer that rests on these rows."""
        found: dict[tuple[str, str, int], tuple[HeldEvents, int]] = {}
        for row in rows:
            for label, held, event in self._sources(where, row.found):
                found.setdefault((label, held.stream, held.first + event), (held, event))
        sources = [held.source(label, event) for (label, _, _), (held, event) in found.items()]
        default = self._kb_default
        facts = dict.fromkeys(q for row in rows for q in facts_of(where, row.values, self._kb, default=default))
        bound = {name: term for name, term in answer.items() if term is not None}
        return Provenance(at, bound, tuple(sorted(sources, key=lambda s: (s.time, s.number or 0))), tuple(facts))

    def times(self, where: Group, row: Row) -> dict[str, tuple[int, ...]]:
        """Name of a window or event → times (µs) of its events in a row."""
        found: dict[str, set[int]] = {}
        for label, held, event in self._sources(where, row):
            found.setdefault(label, set()).add(int(held.batch.time[event]))
        return {label: tuple(sorted(times)) for label, times in found.items()}

    def _sources(self, where: Group, row: Row) -> Iterator[tuple[str, HeldEvents, int]]:
        """(the name of the window or event, the window, the event's number there)."""
        for holder, element in asked_alone(where, HIDDEN):
            if isinstance(element, TriplePattern) and not isinstance(holder, GraphPattern):
                triple = self._triple(element, row)
                for held in self._held(None if holder is None else holder.name, row):
                    yield from ((held.label, held, event) for event in held.places.get(triple, ()))
        for match in parts(where, MatchPattern, HIDDEN):
            for each in event_names(match.events):
                yield from self._items(self._events[each.name], row)

    def _items(self, event: EventDefinition, row: Row) -> Iterator[tuple[str, HeldEvents, int]]:
        """The items of a window that have all triples of an EVENT."""
        triples = [self._triple(e, row) for e in event.pattern.elements if isinstance(e, TriplePattern)]
        for held in self._held(event.window, row) if triples else ():
            places = set.intersection(*(set(held.places.get(triple, ())) for triple in triples))
            yield from ((event.name, held, number) for number in sorted(places))

    def _held(self, name: NamedNode | Variable | None, row: Row) -> list[HeldEvents]:
        """The windows of a name; None: that are the default graph."""
        if isinstance(name, Variable):
            term = self._terms.term(row[name.value]) if name.value in row else None
            return [held for held in self._windows if held.name is not None and held.name == term]
        return [held for held in self._windows if held.name == name]

    def _triple(self, pattern: TriplePattern, row: Row) -> Ids:
        """Its ids with a row's values; 0, which no triple has, for what the row does not bind."""
        return self._id(pattern.subject, row), self._id(pattern.predicate, row), self._id(pattern.object, row)

    def _id(self, term: TermOrVariable, row: Row) -> int:
        if isinstance(term, Variable):
            return row.get(term.value, 0)
        return 0 if isinstance(term, BlankNode) else self._terms.constant(term)


# --- facts -------------------------------------------------------------------------------------------


Graph: TypeAlias = NamedNode | Variable | DefaultGraph
HIDDEN: Final = (Minus, SubSelect, Filter)
"""What an answer does not rest on, or whose variables are its own."""


def facts_of(where: Group, values: Mapping[str, Term | None], kb: KnowledgeBase, *, default: bool) -> Iterator[Quad]:
    """The quads that the triple patterns of a WHERE match with these values (None: unbound): so of OPTIONAL and UNION
    the part that is there is found; of property paths nothing. `default`: patterns outside GRAPH read the knowledge
    base, too. Raises KbError."""
    joint: dict[tuple[object, ...], tuple[Graph, list[TriplePattern]]] = {}
    for holder, element in asked_alone(where, HIDDEN):
        graph = (
            DefaultGraph() if holder is None and default else holder.name if isinstance(holder, GraphPattern) else None
        )
        if graph is None or not isinstance(element, TriplePattern):
            continue
        variables = {v.value for v in visible_variables(element)}
        if all(values.get(name, graph) is not None for name in variables):
            loose = not variables <= values.keys() or any(parts(element, BlankNode))  # such patterns hold together
            joint.setdefault((holder, None if loose else element), (graph, []))[1].append(element)
    for graph, patterns in joint.values():
        yield from _quads(tuple(patterns), values, kb, graph)


def _quads(
    patterns: tuple[TriplePattern, ...], values: Mapping[str, Term | None], kb: KnowledgeBase, graph: Graph
) -> Iterator[Quad]:
    asked = changed(patterns, as_variable("blank"))
    group = Group(asked)
    given = {Variable(v): t for v, t in values.items() if isinstance(t, NamedNode | Literal)}
    before = (Values(tuple(given), (tuple(given.values()),)),) if given else ()
    element = group if isinstance(graph, DefaultGraph) else GraphPattern(graph, group)
    for row in kb.solutions(f"SELECT * WHERE {render_group(Group((*before, element)))}"):
        name: Any = row[graph] if isinstance(graph, Variable) else graph
        for pattern in asked:
            s, p, o = (
                row[t] if isinstance(t, Variable) else t for t in (pattern.subject, pattern.predicate, pattern.object)
            )
            yield Quad(s, p, o, name)  # type: ignore[arg-type]  # terms, each at its place


def as_variable(name: str) -> Callable[[Any], Any]:
    """A change of terms by which a pattern's blank node becomes a variable: the answer has what it stands for."""
    names: dict[BlankNode, Variable] = {}

    def change(node: Any) -> Any:
        if not isinstance(node, BlankNode):
            return node
        return names.setdefault(node, Variable(f"{name}_{len(names)}"))

    return change
