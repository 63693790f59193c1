"""CEQL from text and events to complex events, as RDF and as tables, against the reference."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from ceql_answers import answer, as_pairs, check
from ceql_strategies import CeqlSituation, ceql_situations
from ceql_tables import as_table, batches_of
from corpus_cases import CeqlCase, load_ceql_cases
from hypothesis import given
from loaded import load

import oxiseq

CASES = load_ceql_cases()
FORMS: dict[str, Callable[[Sequence[tuple[int, str]]], Any]] = {"RDF": list, "table": batches_of}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_corpus(case: CeqlCase, form: str) -> None:
    query = load(case.query, "ceql")
    iris = {s.name: case.streams.get(s.name, f"{query.vocab}{s.name}") for s in query.streams}
    streams = {
        name: FORMS[form]([(time, graph) for stream, time, graph in case.events if stream == iri])
        for name, iri in iris.items()
    }
    found = oxiseq.run(case.query, streams, language="ceql", stream_names=case.streams)
    assert found.events == len(case.events)
    got = Counter(
        (p.first, p.last, frozenset(p.all), frozenset((v, each) for v, of in p.by.items() for each in of))
        for p in (m.positions for m in found)
        if p is not None
    )
    assert got == case.complex_events


@given(ceql_situations())
def test_random_queries_over_graphs(situation: CeqlSituation) -> None:
    check(situation, answer(situation, as_pairs))


@given(ceql_situations())
def test_random_queries_over_tables(situation: CeqlSituation) -> None:
    check(situation, answer(situation, as_table))


@given(ceql_situations())
def test_one_stream_may_be_a_table_and_another_of_graphs(situation: CeqlSituation) -> None:
    """Values are the same partition wherever they come from."""
    forms = iter([as_table, as_pairs])
    check(situation, answer(situation, lambda events: next(forms)(events)))
