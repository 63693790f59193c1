"""PARTITION BY, strategies, CONSUME BY and LIMIT on random SPAseq queries: what the reference says about them, and
that the engine refuses what it does not have."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from pyoxigraph import RdfFormat, Store
from pyoxigraph import parse as parse_rdf
from reference.evaluate import ReferenceResult, evaluate
from strategies import Situation, situations

import oxiseq
from oxiseq.grammar import QueryError, load, parse, render
from oxiseq.grammar.algebra import Query, Select, Strategy


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
    everything, found = by_reference(plain(query), situation), by_reference(query, situation)
    assert all(row in everything.rows for row in found.rows)
    assert len(found.rows) <= len(everything.rows)
    if query.consumption is None:
        assert {(r.partition, r.time) for r in found.rows} == {(r.partition, r.time) for r in everything.rows} or (
            isinstance(query.form, Select) and query.form.distinct
        )


@given(situations(clauses=True))
def test_engine_refuses_at_the_place_what_it_does_not_have_yet(situation: Situation) -> None:
    query = load(situation.text)
    clauses = (query.partition, query.selection, query.consumption, query.limit)
    first = min((c.span for c in clauses if c is not None), key=lambda s: s.start, default=None)
    if first is None:
        return
    with pytest.raises(QueryError, match="is not supported yet by the engine") as refusal:
        oxiseq.run(situation.text, situation.streams)
    assert refusal.value.span == first
    assert str(refusal.value).count("^") == first.end - first.start


@pytest.mark.parametrize("strategy", [s for s in Strategy if s is not Strategy.STRICT])
def test_engine_refuses_every_strategy(strategy: Strategy) -> None:
    text = f"SELECT {strategy.value} * FROM STREAM S <http://e/s> WHERE {{ SEQ(A) DEFINE GPM A ON S {{ ?s ?p ?o }} }}"
    with pytest.raises(QueryError) as refusal:
        oxiseq.run(text, {})
    assert refusal.value.message == f"SELECT {strategy.value} is not supported yet by the engine"
    assert (refusal.value.code, refusal.value.column) == ("unsupported", 8)
    with pytest.raises(QueryError, match="is not supported yet by the engine"):
        oxiseq.Store().register(text)
