"""Every case of the corpus, by the reference and by the engine."""

from __future__ import annotations

from collections import Counter

import pytest
from corpus_cases import Case, CeqlCase, load_at_cases, load_cases, load_ceql_cases, load_clause_cases
from loaded import load
from pyoxigraph import RdfFormat, Store, parse
from reference.ceql import evaluate_ceql
from reference.evaluate import ReferenceResult, evaluate
from reference.permute import read
from reference.tuples import tuple_events
from test_differential import end_of

import oxiseq
from oxiseq.grammar import render
from oxiseq.grammar.parser import parse as parse_query

CASES = load_cases()
ORDERED = [*load_at_cases(), *load_clause_cases()]
"""Of these the reference's answer has the order of the case."""


def by_name(case: Case | CeqlCase) -> str:
    return case.name


def by_reference(case: Case) -> ReferenceResult:
    kb = Store()
    kb.load((case.kb or "").encode(), format=RdfFormat.N_QUADS)
    streams = {
        iri: [(time, [q.triple for q in parse(text.encode(), format=RdfFormat.N_TRIPLES)]) for time, text in events]
        for iri, events in case.streams.items()
    }
    return evaluate(read(case.query), streams, kb, case.start)


@pytest.mark.parametrize("case", CASES, ids=by_name)
def test_reference_answers_the_case(case: Case) -> None:
    result = by_reference(case)
    rows = Counter((r.end, tuple(sorted((v.value, str(t)) for v, t in r.bindings.items()))) for r in result.rows)
    assert rows == case.rows
    assert Counter(tuple(sorted(r.events.items())) for r in result.rows) == case.matches
    assert result.late == 0 and not result.ambiguous


@pytest.mark.parametrize("case", ORDERED, ids=by_name)
def test_reference_answers_the_case_in_order(case: Case) -> None:
    result = by_reference(case)
    rows = [(r.at, r.end, tuple(sorted((v.value, str(t)) for v, t in r.bindings.items()))) for r in result.rows]
    assert rows == case.results
    assert Counter(tuple(sorted(r.events.items())) for r in result.rows) == case.matches


@pytest.mark.parametrize("case", CASES, ids=by_name)
def test_engine_answers_the_case(case: Case) -> None:
    found = list(oxiseq.run(case.query, streams=case.streams, kb=case.kb, origin=case.start))
    rows = Counter((end_of(m), tuple(sorted((v, str(t)) for v, t in m.items() if t is not None))) for m in found)
    assert rows == case.rows
    matches = Counter(
        tuple(sorted((name, tuple(events)) for name, events in m.events.items() if events)) for m in found
    )
    assert matches == case.matches
    assert [m.at_us for m in found] == sorted(m.at_us for m in found)


# --- CEQL -------------------------------------------------------------------------------------------

CEQL = load_ceql_cases()


@pytest.mark.parametrize("case", CEQL, ids=by_name)
def test_reference_answers_the_ceql_case(case: CeqlCase) -> None:
    query = load(case.query, "ceql")
    iris = [case.streams.get(s.name, f"{query.vocab}{s.name}") for s in query.streams]
    assert {stream for stream, _, _ in case.events} <= set(iris)
    arrivals = [
        [
            (time, [q.triple for q in parse(graph.encode(), format=RdfFormat.N_TRIPLES)])
            for stream, time, graph in case.events
            if stream == iri
        ]
        for iri in iris
    ]
    found = evaluate_ceql(query, tuple_events(arrivals))
    assert Counter((c.start, c.end, c.positions, held) for c in found for held in c.valuations) == case.complex_events


@pytest.mark.parametrize("case", CEQL, ids=by_name)
def test_ceql_query_comes_back(case: CeqlCase) -> None:
    query = parse_query(case.query, "ceql")
    assert parse_query(render(query), "ceql") == query
