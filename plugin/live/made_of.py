"""What a stored match was made of: its events as the log still has them, and facts of the knowledge base.

journal: the match ─▶ its instants' events ─▶ the query over these alone ─▶ all that it binds ─▶ its facts
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from pyoxigraph import BlankNode, NamedNode, Quad

from oxiseq.engine.events.batch import EventBatch
from oxiseq.engine.events.time import to_text
from oxiseq.engine.terms.dictionary import TermDictionary
from oxiseq.engine.terms.texts import Term
from oxiseq.grammar import load
from oxiseq.grammar.records import dataclass
from oxiseq.journal import LogSource, StoredMatches, UnknownError
from oxiseq.journal.lines import term_of
from oxiseq.languages.reasons.bounds import Bounds
from oxiseq.languages.reasons.provenance import Provenance, Source, to_prov
from oxiseq.languages.reasons.read import History, graph_of, in_order
from oxiseq.languages.registry import language_named
from oxiseq.live.options import options_of
from oxiseq.live.past import asked_once, knows
from oxiseq.live.service import LiveService
from oxiseq.matches.text import json_term
from oxiseq.rights import EVERYTHING, Rights

MATCH: Final = "urn:oxiseq:match:"
"""Before a query's name and a match's id: the IRI of the match."""


@dataclass(frozen=True, slots=True)
class MadeOf:
    """A match, when (µs) it was decided, and what it was made of; `facts_known`: whether facts are known at all (not in
    all languages)."""

    query: str
    number: int
    match: Provenance
    at: int
    facts_known: bool

    def to_json(self) -> dict[str, Any]:
        """Times as xsd:dateTime, terms as SPARQL's JSON results have them; of an event that the stream keeps no longer
        `triples` is empty."""
        return {
            "id": self.number,
            "query": self.query,
            "at": to_text(self.at),
            "end": to_text(self.match.time),
            "bindings": {v: json_term(t) for v, t in self.match.bindings.items() if t is not None},
            "events": [
                {
                    "gpm": event.gpm,
                    "stream": event.stream,
                    "time": to_text(event.time),
                    "triples": [[json_term(part) for part in triple] for triple in event.graph],
                    "matched": None if event.matched is None else list(event.matched),
                }
                for event in self.match.events
            ],
            "facts": [[json_term(part) for part in _parts(fact)] for fact in self.match.facts]
            if self.facts_known
            else None,
        }

    def to_prov(self) -> str:
        """W3C's PROV-O in TriG."""
        return to_prov([self.match], [NamedNode(f"{MATCH}{self.query}:{self.number}")])


def made_of(
    service: LiveService, name: str, number: int, check: Callable[[], None], rights: Rights = EVERYTHING
) -> MadeOf:
    """A match by its id. `check` is called now and then, and may raise; `rights` are those of who looks. Raises
    UnknownError, CursorError, KbError, DeniedError."""
    record = service.queries.get(name).record
    match = _stored(service, name, number)
    places = [(gpm, iri, time) for gpm, events in match.events(0).items() for iri, time in events]
    query, spoken = load(record.text, record.language), language_named(record.language)
    asks = spoken.driver(query, None, options_of(spoken.name, record.options)).run.kb_texts
    rights.demand_reading((iri for _, iri, _ in places), kb=bool(asks))
    history = _moments(service, places, check)
    row = _bindings(match)
    times = {gpm: tuple(time for _, time in found) for gpm, found in match.events(0).items()}
    evidence = spoken.evidence(
        query,
        times,
        row,
        history,
        asked_once(service),
        Bounds(service.settings.past_matches, check),
    )
    matched = {} if evidence is None else evidence.matched
    events = tuple(
        Source(gpm, iri, time, graph_of(history, iri, time), matched=matched.get((gpm, time)))
        for gpm, iri, time in sorted(places, key=lambda place: place[2])
    )
    told = Provenance(match.span(0)[1], row, events, () if evidence is None else evidence.facts)
    return MadeOf(name, number, told, int(match.at[0]), evidence is not None)


def _stored(service: LiveService, name: str, number: int) -> StoredMatches:
    """One match: it may have been emitted before it was stored."""
    for again in (False, True):
        if again:
            with service.worker.lock:
                service.worker.flush()
        if found := service.journal.matches.read(name, number - 1, 1):
            return found[0]
    raise UnknownError(f"the query {name!r} has no match {number}")


def _moments(service: LiveService, places: list[tuple[str, str, int]], check: Callable[[], None]) -> History:
    """The instants of a match, and no others."""
    terms, batches = TermDictionary(), dict[str, EventBatch]()
    for iri in dict.fromkeys(iri for _, iri, _ in places):
        parts: list[EventBatch] = []
        for time in sorted({time for _, of, time in places if of == iri}) if knows(service, iri) else ():
            parts += LogSource(service.journal, iri, time, time + 1)(terms)
            check()
        batches[iri], _ = in_order(parts, 0)
    return History(terms, batches, None, 0)


def _bindings(match: StoredMatches) -> dict[str, Term | None]:
    (row,) = match.rows()
    return {v: None if text is None else term_of(text) for v, text in zip(match.heading.variables, row, strict=True)}


def _parts(fact: Quad) -> tuple[Any, ...]:
    parts = fact.subject, fact.predicate, fact.object
    return (*parts, fact.graph_name) if isinstance(fact.graph_name, NamedNode | BlankNode) else parts
