"""Looking back: what the events that are kept say of a registered query.

    journal ─(a range of time, bounded)─▶ why, comparison

The query is run again, with the present knowledge base, over the events that the log holds: also those from before it
was registered, and none that retention has deleted. Queries at work are not touched.

What a stored match was made of: its events as the log still has them, and facts of the knowledge base.

journal: the match ─▶ its instants' events ─▶ the query over these alone ─▶ all that it binds ─▶ its facts
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import Any, Final, TypeAlias

from pyoxigraph import BlankNode, NamedNode, Quad

from oxiseq.api.comparison import Comparison, compared
from oxiseq.engine.errors import OxiseqError
from oxiseq.engine.events.batch import EventBatch
from oxiseq.engine.events.time import to_text
from oxiseq.engine.kb import KnowledgeBase, Solution
from oxiseq.engine.matches.paging import Page
from oxiseq.engine.terms.dictionary import TermDictionary
from oxiseq.engine.terms.texts import Term
from oxiseq.grammar import load
from oxiseq.grammar.languages import STANDING, AnyQuery
from oxiseq.grammar.over_store import load_over_store
from oxiseq.grammar.records import dataclass
from oxiseq.journal import LogSource, QueryRecord, StoredMatches, UnknownError
from oxiseq.journal.lines import term_of
from oxiseq.languages.reasons.read import Bounds, History, Point, Span, graph_of, in_order, reading_of
from oxiseq.languages.reasons.report import Provenance, Source, Why, WhyRequest, to_prov
from oxiseq.languages.reasons.where.subject import why_over_store
from oxiseq.languages.registry import language_for, language_named
from oxiseq.live.remote import RemoteKnowledge
from oxiseq.live.service import LiveService
from oxiseq.live.settings import BoundError, options_of
from oxiseq.matches.matches import Matches
from oxiseq.matches.text import json_term
from oxiseq.options import Options, fitting
from oxiseq.rights import EVERYTHING, Rights
from oxiseq.sources.knowledge import Kb, knowledge_of

# --- past ------------------------------------------------------------------------------------------------

Batches: TypeAlias = Callable[[TermDictionary], Iterator[EventBatch]]
"""The events of a stream, as often as they are read."""


@dataclass(frozen=True, slots=True)
class Told:
    """The report of why, and its extent: how many events were read, from the first to the last (µs; None: there were
    none)."""

    why: Why
    events: int
    first: int | None
    last: int | None


@dataclass(slots=True)
class _Looked:
    """The events that were read: how many, the first and the last time."""

    events: int = 0
    first: int | None = None
    last: int | None = None

    def add(self, batch: EventBatch) -> None:
        """More of them."""
        if len(batch):
            low, high = int(batch.time.min()), int(batch.time.max())
            self.events += len(batch)
            self.first = low if self.first is None else min(self.first, low)
            self.last = high if self.last is None else max(self.last, high)


class Past:
    """The events of a range of time. `check` is called now and then, and may raise; `rights` are those of who looks."""

    def __init__(
        self, service: LiveService, span: Span, check: Callable[[], None], rights: Rights = EVERYTHING
    ) -> None:
        self._service, self._span, self._rights = service, span, rights
        self._looked = _Looked()
        self._bounds = Bounds(service.settings.past_matches, check)

    def why(self, name: str, provenance: int) -> Told:
        """Why a query matches there, and why not. Raises UnknownError, BoundError, KbError, LimitError."""
        record = self._service.queries.get(name).record
        if record.language == STANDING:
            return Told(self._why_over_store(record.text, provenance), 0, None, None)
        query, options = self._registered(record)
        language = language_for(query)
        request = WhyRequest(reading_of(options, Span()), provenance, self._bounds)
        why = language.why(query, *self._readable(query, options), options, request)
        looked = self._looked
        return Told(why, looked.events, looked.first, looked.last)

    def _why_over_store(self, text: str, provenance: int) -> Why:
        self._rights.demand_reading((), kb=True)
        if self._span != Span():
            raise OxiseqError("since and until choose events, and a query over the store reads none: leave them out")
        return why_over_store(load_over_store(text), asked_once(self._service), provenance, self._bounds)

    def states(self, name: str, points: int) -> tuple[Point, ...]:
        """How many partial matches waited at each edge of a query's automaton, at `points` instants there at most.
        Raises UnknownError, BoundError, KbError, LimitError; OxiseqError for a language without such an automaton."""
        query, options = self._registered(self._service.queries.get(name).record)
        request = WhyRequest(reading_of(options, Span()), 0, self._bounds)
        return language_for(query).states(query, *self._readable(query, options), options, request, points)

    def matches_at(self, name: str, page: Page) -> Matches:
        """Some of the matches that end at one instant. Raises UnknownError, BoundError, KbError, LimitError;
        OxiseqError for a language that has none."""
        query, options = self._registered(self._service.queries.get(name).record)
        language = language_for(query)
        reach = language.reach(query, page.at, options)
        since = [each for each in (self._span.since, reach.since) if each is not None]
        self._span = Span(max(since, default=None), reach.until)
        request = WhyRequest(reading_of(options, Span()), 0, self._bounds)
        page = replace(page, check=self._bounds.check)
        return language.matches_at(query, *self._readable(query, options), options, request, page)

    def compare(self, name: str, draft: AnyQuery) -> Comparison:
        """A draft against a registered query, under the options of that one. Raises UnknownError, BoundError,
        LimitError, QueryError, KbError; OxiseqError where the answers have nothing in common."""
        record = self._service.queries.get(name).record
        query = load(record.text, record.language)
        languages = language_for(query), language_for(draft)
        for language in languages:
            language.prepare()
        may = self._rights.may
        streams = tuple(each.iri for each in self._service.streams.all() if may("read", "stream", each.iri))
        options = replace(options_of(languages[0].name, record.options), reads=streams)
        options = self._on_its_grid(name, options)
        mine = fitting(languages[1].name, options)
        for language, asked, said in zip(languages, (query, draft), (options, mine), strict=True):
            driver = language.driver(asked, None, said)
            self._rights.demand_reading(driver.streams.values(), kb=bool(driver.run.kb_texts))
        kb: Kb = self._service.kb_of_now if all(language.asks_kb for language in languages) else None
        return compared(draft, query, self._sources(streams), kb, options, mine, self._bounds)

    # --- what they read -----------------------------------------------------------------------------

    def _registered(self, record: QueryRecord) -> tuple[AnyQuery, Options]:
        """A registered query, ready to run, and its options."""
        query = load(record.text, record.language)
        language = language_for(query)
        language.prepare()
        return query, self._on_its_grid(record.name, options_of(language.name, record.options))

    def _readable(self, query: AnyQuery, options: Options) -> tuple[dict[str, Batches], Kb]:
        """The events and the knowledge base that a query reads, where the rights allow that."""
        language = language_for(query)
        driver = language.driver(query, None, options)
        self._rights.demand_reading(driver.streams.values(), kb=bool(driver.run.kb_texts))
        return self._sources(driver.streams.values()), asked_once(self._service) if language.asks_kb else None

    def _on_its_grid(self, name: str, options: Options) -> Options:
        """With tumbling windows as the query at work has them."""
        live = self._service.worker.find(name)
        if options.origin is not None or live is None:
            return options
        return replace(options, origin=live.language.origin(live.run))

    def _source(self, iri: str) -> LogSource:
        return LogSource(self._service.journal, iri, self._span.since, self._span.until)

    def _sources(self, iris: Iterable[str]) -> dict[str, Batches]:
        """Stream IRI → its events, of streams that there are."""
        return {iri: self._bounded(iri) for iri in dict.fromkeys(iris) if knows(self._service, iri)}

    def _bounded(self, iri: str) -> Batches:
        most = self._service.settings.past

        def batches(terms: TermDictionary) -> Iterator[EventBatch]:
            triples = 0
            for batch in self._source(iri)(terms):
                self._bounds.check()
                triples += batch.triples
                self._looked.add(batch)
                if triples > most:
                    raise BoundError(
                        f"the events of <{iri}> of that time have more than {most:,} triples, which is "
                        "the limit: choose a shorter time"
                    )
                yield batch

        return batches


class _Remembered:
    """A KB that answers each query once."""

    version = 1

    def __init__(self, kb: KnowledgeBase) -> None:
        self._kb = kb
        self._known: dict[str, list[Solution]] = {}

    def solutions(self, query_text: str) -> Iterable[Solution]:
        """Raises KbError."""
        if query_text not in self._known:
            self._known[query_text] = list(self._kb.solutions(query_text))
        return self._known[query_text]


def asked_once(service: LiveService) -> KnowledgeBase:
    """The present knowledge base, for one look at the past: a remote endpoint gets the same query only once."""
    kb = knowledge_of(service.kb_of_now)
    return _Remembered(kb) if isinstance(service.store, RemoteKnowledge) else kb


def knows(service: LiveService, iri: str) -> bool:
    """Whether there is such a stream."""
    try:
        service.streams.get(iri)
    except UnknownError:
        return False
    return True


# --- made of ---------------------------------------------------------------------------------------------

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
