"""What one match of a SPAseq query rests on: facts of the knowledge base, and the triples that its patterns matched."""

from __future__ import annotations

from collections.abc import Mapping

from oxiseq.engine.errors import OxiseqError
from oxiseq.engine.kb import KnowledgeBase
from oxiseq.engine.terms.texts import Term
from oxiseq.grammar.algebra import Query
from oxiseq.languages.reasons.bounds import Bounds
from oxiseq.languages.reasons.provenance import Evidence, Provenance
from oxiseq.languages.reasons.read import History, in_order
from oxiseq.languages.reasons.why import FoundRow, FoundRows
from oxiseq.languages.spaseq.reasons.matched import matched_triples, values_in_all
from oxiseq.languages.spaseq.reasons.subject import SequenceSubject
from oxiseq.matches.rows import cell_key


def evidence_of(
    query: Query,
    events: Mapping[str, tuple[int, ...]],
    row: Mapping[str, Term | None],
    history: History,
    kb: KnowledgeBase,
    bounds: Bounds,
) -> Evidence:
    """The query over the match's events alone gives all that the match binds. Where that does not find it (the query
    has been replaced, events are gone), there is only what its row binds."""
    if not events or not set(events) <= {gpm.name for gpm in query.gpms}:
        return Evidence()
    empty, _ = in_order([], 0)
    streams = {s.iri.value for s in query.streams}
    whole = History(history.terms, {**dict.fromkeys(streams, empty), **history.batches}, None, 0)
    key = tuple(sorted(events.items()))
    subject = SequenceSubject(query, whole, kb, bounds)
    try:
        candidates = subject.begun(query).all
    except OxiseqError:
        candidates = ()
    found = [each for each in candidates if each.found == key and _agree(each.values, row)]
    match = found[0] if found else FoundRow(key, row, (), key)
    (told,) = subject.provenances(FoundRows((match,)), 1)
    return Evidence(told.facts, _matched(query, match, told))


def _matched(query: Query, match: FoundRow, told: Provenance) -> dict[tuple[str, int], tuple[int, ...]]:
    gpms = {gpm.name: gpm for gpm in query.gpms}
    marked: dict[tuple[str, int], tuple[int, ...]] = {}
    for event in told.events:
        gpm = gpms[event.gpm]
        others = [other for name, other in gpms.items() if name != event.gpm]
        once = len(dict(match.found)[event.gpm]) == 1
        bound = match.values if once else values_in_all(gpm, others, match.values)
        marked[event.gpm, event.time] = matched_triples(gpm, event.graph, bound)
    return marked


def _agree(one: Mapping[str, Term | None], other: Mapping[str, Term | None]) -> bool:
    return all(cell_key(one[v]) == cell_key(term) for v, term in other.items() if v in one)
