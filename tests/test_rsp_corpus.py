"""Every case of continuous SPARQL and RSEP-QL, by the reference and by the engine."""

from __future__ import annotations

from collections import Counter

import pytest
from loaded import load
from pyoxigraph import RdfFormat, Store, Triple, parse
from reference.rsp import Answer, _items, evaluate_rsp, window_items
from rsp_cases import RspCase, Told, load_rsp_cases

import oxiseq
from oxiseq.grammar import parse as parse_query
from oxiseq.grammar.render import render
from oxiseq.grammar.rsp_algebra import Report, RspQuery

CASES = load_rsp_cases()
QUERIES = [c for c in CASES if c.query is not None]
WINDOWS = [c for c in CASES if c.window is not None]


def by_name(case: RspCase) -> str:
    return case.name


def triples(text: str) -> list[Triple]:
    return [q.triple for q in parse(text.encode(), format=RdfFormat.N_TRIPLES)]


def told(at: int, start: int | None, end: int | None, row: tuple[tuple[str, str], ...], case: RspCase) -> Told:
    return at, (start, end) if case.timed and start is not None and end is not None else None, row


def compared(found: list[Told], case: RspCase) -> Counter[Told]:
    """Where the case leaves out the times of event mappings, its rows are a set (Eq. 8)."""
    return Counter(found) if case.timed or case.language != "rsepql" else Counter(set(found))


def answered(case: RspCase) -> list[Answer]:
    assert case.query is not None
    kb = Store()
    kb.load(case.kb.encode(), format=RdfFormat.N_QUADS)
    streams = {iri: [(time, triples(text)) for time, text in events] for iri, events in case.streams.items()}
    query = load(case.query, case.language)
    assert isinstance(query, RspQuery)
    return evaluate_rsp(query, streams, kb, case.instants, None, Report(case.report) if case.report else None)


@pytest.mark.parametrize("case", [c for c in QUERIES if c.rows is not None], ids=by_name)
def test_reference_answers_the_case(case: RspCase) -> None:
    found = [told(a.at, a.start, a.end, a.row, case) for a in answered(case)]
    assert compared(found, case) == case.rows


@pytest.mark.parametrize("case", QUERIES, ids=by_name)
def test_query_comes_back(case: RspCase) -> None:
    assert case.query is not None
    query = parse_query(case.query, case.language)
    assert parse_query(render(query), case.language) == query


@pytest.mark.parametrize("case", WINDOWS, ids=by_name)
def test_reference_fills_the_window(case: RspCase) -> None:
    query = load(f"SELECT * FROM NAMED <http://example.org/S> WIN {case.window} AS <urn:w> WHERE {{}}", "rsepql")
    assert isinstance(query, RspQuery) and case.instants is not None
    items = {iri: _items(iri, [(time, triples(text)) for time, text in each]) for iri, each in case.streams.items()}
    found = window_items(query, query.windows[0], items, case.instants[0])
    if case.items is not None:
        assert [i.time for i in found] == case.items
    if case.graph is not None:
        assert sorted({f"{t.subject} {t.predicate} {t.object} ." for i in found for t in i.graph}) == case.graph


@pytest.mark.parametrize("case", [c for c in QUERIES if c.rows is not None], ids=by_name)
def test_engine_answers_the_case(case: RspCase) -> None:
    assert case.query is not None
    answers = oxiseq.run(
        case.query,
        streams=case.streams,
        kb=case.kb or None,
        language=case.language,
        stream_operator=case.report,
        evaluation_times=case.instants,
    )
    found = [
        told(a.at_us, a.start_us, a.end_us, tuple(sorted((v, str(t)) for v, t in a.items() if t is not None)), case)
        for a in answers
    ]
    assert compared(found, case) == case.rows
    assert [a.at_us for a in answers] == sorted(a.at_us for a in answers)


@pytest.mark.parametrize("case", WINDOWS, ids=by_name)
def test_engine_fills_the_window(case: RspCase) -> None:
    windows = f"FROM NAMED <http://example.org/S> WIN {case.window} AS <urn:w>"
    text = f"SELECT * {windows} WHERE {{ WINDOW <urn:w> {{ ?s ?p ?o }} }}"
    assert case.instants is not None
    answers = oxiseq.run(text, streams=case.streams, language="rsepql", evaluation_times=case.instants)
    if case.graph is not None:
        assert sorted(f"{a['s']} {a['p']} {a['o']} ." for a in answers) == case.graph
    if case.items is not None:
        events = case.streams["http://example.org/S"]
        held = {t for time, graph in events if time in case.items for t in triples(graph)}
        assert len(answers) == len(held)
