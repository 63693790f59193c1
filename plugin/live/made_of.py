"""What a stored match was made of: its events as the log still has them, and facts of the knowledge base.

    journal: the match ─▶ its instants' events ─▶ the query over these alone ─▶ all that it binds ─▶ its facts
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from pyoxigraph import BlankNode, NamedNode, Quad

from oxiseq.engine.errors import OxiseqError
from oxiseq.engine.events.batch import EventBatch
from oxiseq.engine.events.time import to_text
from oxiseq.engine.terms.dictionary import TermDictionary
from oxiseq.engine.terms.texts import Term
from oxiseq.grammar import load
from oxiseq.grammar.algebra import Query
from oxiseq.journal import LogSource, StoredMatches, UnknownError
from oxiseq.languages.reasons.bounds import Bounds
from oxiseq.languages.reasons.provenance import Provenance, Source, to_prov
from oxiseq.languages.reasons.read import History, in_order
from oxiseq.languages.spaseq.reasons.origins import graph_of, provenances
from oxiseq.languages.spaseq.reasons.replaying import Found, answered
from oxiseq.live.past import asked_once, knows
from oxiseq.live.service import LiveService
from oxiseq.live.texts import term_of
from oxiseq.matches.rows import cell_key
from oxiseq.matches.text import json_term

MATCH: Final = "urn:oxiseq:match:"
"""Before a query's name and a match's id: the IRI of the match."""


@dataclass(frozen=True, slots=True)
class MadeOf:
    """A match and what it was made of; `facts_known`: whether facts could be told at all (of SPAseq only)."""

    query: str
    number: int
    match: Provenance
    facts_known: bool

    def to_json(self) -> dict[str, Any]:
        """Times as xsd:dateTime, terms as SPARQL's JSON results have them; of an event that the stream keeps no longer
        `triples` is empty."""
        return {
            "id": self.number, "query": self.query, "at": to_text(self.match.time),
            "bindings": {v: json_term(t) for v, t in self.match.bindings.items() if t is not None},
            "events": [
                {"gpm": event.gpm, "stream": event.stream, "time": to_text(event.time),
                 "triples": [[json_term(part) for part in triple] for triple in event.graph]}
                for event in self.match.events
            ],
            "facts": [[json_term(part) for part in _parts(fact)] for fact in self.match.facts]
            if self.facts_known else None,
        }  # fmt: skip

    def to_prov(self) -> str:
        """W3C's PROV-O in TriG."""
        return to_prov([self.match], [NamedNode(f"{MATCH}{self.query}:{self.number}")])


def made_of(service: LiveService, name: str, number: int, check: Callable[[], None]) -> MadeOf:
    """A match by its id. `check` is called now and then, and may raise. Raises UnknownError, CursorError, KbError."""
    record = service.queries.get(name).record
    match = _stored(service, name, number)
    places = [(gpm, iri, time) for gpm, events in match.events(0).items() for iri, time in events]
    history = _moments(service, places, check)
    events = tuple(
        Source(gpm, iri, time, graph_of(history, iri, time))
        for gpm, iri, time in sorted(places, key=lambda place: place[2])
    )
    query = load(record.text, record.language)
    bounds = Bounds(service.settings.past_matches, check)
    facts = _facts(service, query, match, history, bounds) if isinstance(query, Query) else ()
    told = Provenance(int(match.time[0]), _bindings(match), events, facts)
    return MadeOf(name, number, told, isinstance(query, Query))


def _stored(service: LiveService, name: str, number: int) -> StoredMatches:
    """One match: it may have been told before it was stored."""
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


def _facts(
    service: LiveService, query: Query, match: StoredMatches, history: History, bounds: Bounds
) -> tuple[Quad, ...]:
    """The query over the match's events alone tells all that the match binds. Where that does not find it (the query
    has been replaced, events are gone), there is only what its row binds."""
    of = {gpm: tuple(time for _, time in events) for gpm, events in match.events(0).items()}
    streams = {s.iri.value for s in query.streams}
    if not of or not set(of) <= {gpm.name for gpm in query.gpms}:
        return ()
    empty, _ = in_order([], 0)
    whole = History(history.terms, {**dict.fromkeys(streams, empty), **history.batches}, None, 0)
    kb, key, row = asked_once(service), tuple(sorted(of.items())), _bindings(match)
    try:
        candidates = answered(query, whole, kb, bounds).found
    except OxiseqError:
        candidates = ()
    found = [each for each in candidates if each.events == key and _agree(each.bindings, row)]
    (told,) = provenances(query, found[:1] or (Found(row, key),), whole, kb)
    return told.facts


def _agree(one: Mapping[str, Term | None], other: Mapping[str, Term | None]) -> bool:
    return all(cell_key(one[v]) == cell_key(term) for v, term in other.items() if v in one)


def _bindings(match: StoredMatches) -> dict[str, Term | None]:
    (row,) = match.rows()
    return {v: None if text is None else term_of(text) for v, text in zip(match.heading.variables, row, strict=True)}


def _parts(fact: Quad) -> tuple[Any, ...]:
    parts = fact.subject, fact.predicate, fact.object
    return (*parts, fact.graph_name) if isinstance(fact.graph_name, NamedNode | BlankNode) else parts
