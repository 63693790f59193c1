"""What a match was made of: events with their triples, and facts of the knowledge base; also as PROV-O."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import Any
from urllib.parse import quote

from pyoxigraph import BlankNode, NamedNode, Quad, RdfFormat, Triple, serialize

from oxiseq.engine.events.time import to_literal
from oxiseq.engine.terms.texts import Term
from oxiseq.grammar.records import dataclass

PROV = "http://www.w3.org/ns/prov#"
_A = NamedNode("http://www.w3.org/1999/02/22-rdf-syntax-ns#type")


@dataclass(frozen=True, slots=True)
class Source:
    """An event of a match: its GPM (or variables, window, pattern), stream IRI, time (µs) and graph; `number` tells it
    from others of its time, where they are not one event. `matched`: the numbers of the triples that the pattern
    matched; None where the language cannot say."""

    gpm: str
    stream: str
    time: int
    graph: tuple[Triple, ...]
    number: int | None = None
    matched: tuple[int, ...] | None = None

    @property
    def iri(self) -> NamedNode:
        """A name of its own."""
        number = "" if self.number is None else f":{self.number}"
        return NamedNode(f"urn:oxiseq:event:{quote(self.stream, safe='')}:{self.time}{number}")


@dataclass(frozen=True, slots=True)
class Evidence:
    """What a match rests on: facts of the knowledge base, and per (pattern, time in µs) of its events the numbers of
    the triples that the pattern matched in the event's graph."""

    facts: tuple[Quad, ...] = ()
    matched: Mapping[tuple[str, int], tuple[int, ...]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Provenance:
    """A match: its end (µs), all that it binds, its events, and the facts of the knowledge base that it used (those of
    plain triple patterns in GRAPH; of a GPM that came several times, those of the last)."""

    time: int
    bindings: Mapping[str, Term | None]
    events: tuple[Source, ...]
    facts: tuple[Quad, ...]


def to_prov(matches: Sequence[Provenance], names: Sequence[NamedNode] | None = None) -> str:
    """TriG: what each match was derived from in the default graph, events as named graphs, facts in theirs. `names`:
    of the matches, which are blank nodes else."""
    quads: dict[Quad, None] = {}

    def add(*parts: Any) -> None:
        quads[Quad(*parts)] = None

    for number, match in enumerate(matches):
        entity = BlankNode(f"match{number}") if names is None else names[number]
        add(entity, _A, NamedNode(PROV + "Entity"))
        add(entity, NamedNode(PROV + "generatedAtTime"), to_literal(match.time))
        for source in match.events:
            event = source.iri
            add(entity, NamedNode(PROV + "wasDerivedFrom"), event)
            add(event, _A, NamedNode(PROV + "Entity"))
            add(event, NamedNode(PROV + "generatedAtTime"), to_literal(source.time))
            add(event, NamedNode(PROV + "wasAttributedTo"), NamedNode(source.stream))
            for triple in source.graph:
                add(*triple, event)
        for fact in match.facts:
            if isinstance(fact.graph_name, NamedNode):
                add(entity, NamedNode(PROV + "wasDerivedFrom"), fact.graph_name)
            quads[fact] = None
    text = serialize(quads, format=RdfFormat.TRIG, prefixes={"prov": PROV})
    assert text is not None  # it is only when a file is given
    return text.decode()
