"""Facts of the knowledge base that one match of a SPAseq query was made of."""

from __future__ import annotations

from collections.abc import Mapping

from pyoxigraph import Quad

from oxiseq.engine.errors import OxiseqError
from oxiseq.engine.kb import KnowledgeBase
from oxiseq.engine.terms.texts import Term
from oxiseq.grammar.algebra import Query
from oxiseq.languages.reasons.bounds import Bounds
from oxiseq.languages.reasons.read import History, in_order
from oxiseq.languages.spaseq.reasons.origins import provenances
from oxiseq.languages.spaseq.reasons.replaying import Found, answered
from oxiseq.matches.rows import cell_key


def facts_of(
    query: Query, events: Mapping[str, tuple[int, ...]], row: Mapping[str, Term | None], history: History,
    kb: KnowledgeBase, bounds: Bounds,
) -> tuple[Quad, ...]:  # fmt: skip
    """The query over the match's events alone tells all that the match binds. Where that does not find it (the query
    has been replaced, events are gone), there is only what its row binds."""
    if not events or not set(events) <= {gpm.name for gpm in query.gpms}:
        return ()
    empty, _ = in_order([], 0)
    streams = {s.iri.value for s in query.streams}
    whole = History(history.terms, {**dict.fromkeys(streams, empty), **history.batches}, None, 0)
    key = tuple(sorted(events.items()))
    try:
        candidates = answered(query, whole, kb, bounds).found
    except OxiseqError:
        candidates = ()
    found = [each for each in candidates if each.events == key and _agree(each.bindings, row)]
    (told,) = provenances(query, found[:1] or (Found(row, key),), whole, kb)
    return told.facts


def _agree(one: Mapping[str, Term | None], other: Mapping[str, Term | None]) -> bool:
    return all(cell_key(one[v]) == cell_key(term) for v, term in other.items() if v in one)
