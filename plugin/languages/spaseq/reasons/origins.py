"""What the matches of a SPAseq query were made of."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from oxiseq.engine.kb import KnowledgeBase
from oxiseq.grammar.algebra import Query
from oxiseq.languages.reasons.facts import facts_of
from oxiseq.languages.reasons.provenance import Provenance, Source
from oxiseq.languages.reasons.read import History, graph_of
from oxiseq.languages.reasons.why import Answer


def provenances(query: Query, found: Sequence[Answer], history: History, kb: KnowledgeBase) -> Iterator[Provenance]:
    """One per match."""
    iris = {s.name: s.iri.value for s in query.streams}
    gpms = {g.name: g for g in query.gpms}
    for each in found:
        sources = tuple(
            Source(gpm, iri, time, graph_of(history, iri, time))
            for gpm, times in each.found
            for time in times
            for iri in (iris[gpms[gpm].stream],)
        )
        facts = dict.fromkeys(
            q for gpm, _ in each.found for q in facts_of(gpms[gpm].pattern, each.values, kb, default=False)
        )
        yield Provenance(max(s.time for s in sources), each.values, sources, tuple(facts))
