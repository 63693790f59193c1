"""What a row of WHERE was made of: events in windows, facts of the knowledge base.

Each triple pattern with the row's values is looked up: in its window, or in the knowledge base. So of
OPTIONAL and UNION the part that is there is shown; of property paths and sub-queries nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from pyoxigraph import BlankNode, DefaultGraph, Literal, NamedNode, Quad, Variable

from oxiseq.engine.kb import KnowledgeBase
from oxiseq.engine.terms.dictionary import TermDictionary
from oxiseq.engine.terms.texts import Term
from oxiseq.grammar.algebra import (
    Filter,
    GraphPattern,
    Group,
    MatchPattern,
    Minus,
    PatternElement,
    SubSelect,
    TermOrVariable,
    TriplePattern,
    WindowPattern,
)
from oxiseq.grammar.rsp_algebra import EventDefinition, event_names
from oxiseq.grammar.scope import inner_groups
from oxiseq.languages.reasons.provenance import Provenance, Source
from oxiseq.languages.reasons.where.contents import Contents, Held, Ids, distinct

Row = Mapping[str, int]
"""Variable → id."""


class Origins:
    """Of a query at an instant; `events` are its EVENT definitions. `beside`: the knowledge base's default graph is
    read, too, where streams are (EP-SPARQL)."""

    def __init__(
        self,
        contents: Contents,
        terms: TermDictionary,
        kb: KnowledgeBase,
        events: Sequence[EventDefinition] = (),
        *,
        beside: bool = False,
    ) -> None:
        self._kb_default = beside or not contents.default
        self._contents, self._terms, self._kb = contents, terms, kb
        self._events = {event.name: event for event in events}

    def events(self, where: Group, row: Row) -> list[tuple[str, Held, int]]:
        """(the window's or event's name, the window, the event's number there) of a row, each once."""
        return distinct(self._within(where, self._contents.default, "", row))

    def provenance(self, at: int, where: Group, answer: Mapping[str, Term], rows: Sequence[Row]) -> Provenance:
        """For an answer that rests on these rows."""
        found: dict[tuple[str, str, int], Source] = {}
        for row in rows:
            for name, held, event in self.events(where, row):
                number = held.first + event
                source = Source(name, held.stream, held.time(event), held.graph(event), number)
                found.setdefault((name, held.stream, number), source)
        facts = dict.fromkeys(quad for row in rows for quad in self.facts(where, row))
        ordered = sorted(found.values(), key=lambda each: (each.time, each.number or 0))
        return Provenance(at, answer, tuple(ordered), tuple(facts))

    def times(self, where: Group, row: Row) -> dict[str, tuple[int, ...]]:
        """Name → times (µs) of these events."""
        found: dict[str, list[int]] = {}
        for name, held, event in self.events(where, row):
            found.setdefault(name, []).append(held.time(event))
        return {name: tuple(sorted(set(times))) for name, times in found.items()}

    def _within(self, group: Group, windows: tuple[Held, ...], name: str, row: Row) -> Iterator[tuple[str, Held, int]]:
        for element in group.elements:
            match element:
                case TriplePattern():
                    triple = self._triple(element, row)
                    if triple is not None:
                        yield from (
                            (name or _short(held), held, event)
                            for held in windows
                            for event in held.events_with(triple)
                        )
                case WindowPattern(title, inner):
                    held = self._window(title, row)
                    if held is not None:
                        yield from self._within(inner, (held,), _short(held), row)
                case MatchPattern():
                    for each in event_names(element.events):
                        yield from self._items(self._events[each.name], row)
                case GraphPattern() | Minus() | SubSelect() | Filter():
                    continue
                case _:
                    for inner in inner_groups(element):
                        yield from self._within(inner, windows, name, row)

    def _items(self, event: EventDefinition, row: Row) -> Iterator[tuple[str, Held, int]]:
        """The items of a window that have all triples of an EVENT."""
        held = self._window(event.window, row)
        triples = [self._triple(e, row) for e in event.pattern.elements if isinstance(e, TriplePattern)]
        if held is None or not triples:
            return
        places = [set(held.events_with(t)) if t is not None else set() for t in triples]
        yield from ((event.name, held, number) for number in sorted(set.intersection(*places)))

    def _window(self, name: NamedNode | Variable, row: Row) -> Held | None:
        if isinstance(name, Variable):
            term = self._terms.term(row[name.value]) if name.value in row else None
            return self._contents.named(term) if isinstance(term, NamedNode) else None
        return self._contents.named(name)

    def _triple(self, pattern: TriplePattern, row: Row) -> Ids | None:
        ids = [self._id(t, row) for t in (pattern.subject, pattern.predicate, pattern.object)]
        return None if None in ids else (ids[0] or 0, ids[1] or 0, ids[2] or 0)

    def _id(self, term: TermOrVariable, row: Row) -> int | None:
        if isinstance(term, Variable):
            return row.get(term.value)
        return None if isinstance(term, BlankNode) else self._terms.constant(term)

    # --- the knowledge base -------------------------------------------------------------------------

    def facts(self, where: Group, row: Row) -> Iterator[Quad]:
        """The quads of the knowledge base that a row uses."""
        return self._facts(where, DefaultGraph() if self._kb_default else None, row)

    def _facts(self, group: Group, graph: NamedNode | DefaultGraph | None, row: Row) -> Iterator[Quad]:
        for element in group.elements:
            if isinstance(element, TriplePattern) and graph is not None:
                yield from self._quad(element, graph, row)
            elif isinstance(element, GraphPattern):
                name = self._value(element.name, row)
                if isinstance(name, NamedNode):
                    yield from self._facts(element.pattern, name, row)
            elif not isinstance(element, WindowPattern | Minus | SubSelect | TriplePattern | Filter):
                yield from self._inner_facts(element, graph, row)

    def _inner_facts(self, element: PatternElement, graph: NamedNode | DefaultGraph | None, row: Row) -> Iterator[Quad]:
        for inner in inner_groups(element):
            yield from self._facts(inner, graph, row)

    def _quad(self, pattern: TriplePattern, graph: NamedNode | DefaultGraph, row: Row) -> Iterator[Quad]:
        s, p, o = (self._value(t, row) for t in (pattern.subject, pattern.predicate, pattern.object))
        if isinstance(s, NamedNode) and isinstance(p, NamedNode) and isinstance(o, NamedNode | Literal):
            triple = f"{s} {p} {o}"
            text = triple if isinstance(graph, DefaultGraph) else f"GRAPH {graph} {{ {triple} }}"
            if any(True for _ in self._kb.solutions(f"SELECT * WHERE {{ {text} }} LIMIT 1")):
                yield Quad(s, p, o, graph)

    def _value(self, term: TermOrVariable, row: Row) -> object:
        if isinstance(term, Variable):
            return self._terms.term(row[term.value]) if term.value in row else None
        return term


def _short(held: Held) -> str:
    name = held.window.name or held.window.stream
    return name.value[max(map(name.value.rfind, "/#")) + 1 :]
