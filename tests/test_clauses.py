"""PARTITION BY, strategies, CONSUME BY and LIMIT on random SPAseq queries: what the reference says about them."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from loaded import load
from pyoxigraph import RdfFormat, Store
from pyoxigraph import parse as parse_rdf
from reference.evaluate import ReferenceResult, evaluate
from strategies import Situation, situations

from oxiseq.grammar import parse, render
from oxiseq.grammar.algebra import Query, Select
from oxiseq.grammar.places import overview, summarises


def by_reference(query: Query, situation: Situation) -> ReferenceResult:
    kb = Store()
    kb.load(situation.kb.encode(), format=RdfFormat.N_QUADS)
    streams = {
        iri: [(time, [q.triple for q in parse_rdf(text.encode(), format=RdfFormat.N_TRIPLES)]) for time, text in events]
        for iri, events in situation.streams.items()
    }
    return evaluate(query, streams, kb, lateness=situation.lateness)


def plain(query: Query) -> Query:
    """The query without a strategy and consumption."""
    form = replace(query.form, selection=None, distinct=False) if isinstance(query.form, Select) else query.form
    return replace(query, form=form, consumption=None, limit=None)


@given(situations(clauses=True))
def test_rendered_query_parses_to_itself(situation: Situation) -> None:
    query = load(situation.text)
    assert parse(render(query)) == query


@given(situations(clauses=True))
def test_strategies_and_consumption_only_take_away(situation: Situation) -> None:
    query = load(situation.text)
    if summarises(overview(query)):  # a group of fewer matches has another row
        return
    everything, found = by_reference(plain(query), situation), by_reference(query, situation)
    assert all(row in everything.rows for row in found.rows)
    assert len(found.rows) <= len(everything.rows)
    if query.consumption is None:
        assert {(r.partition, r.end) for r in found.rows} == {(r.partition, r.end) for r in everything.rows} or (
            isinstance(query.form, Select) and query.form.distinct
        )
