"""CEQL from text and events to complex events, as RDF and as tables, against the reference."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from ceql_strategies import VOCAB, CeqlEvent, CeqlSituation, as_tuples, ceql_situations
from ceql_tables import as_table, batches_of
from corpus_cases import CeqlCase, load_ceql_cases
from hypothesis import given
from reference.ceql import ComplexEvent, evaluate_ceql
from reference.choose import is_choice

import oxiseq
from oxiseq.grammar import load

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
        for p in (m.positions for m in found) if p is not None
    )
    assert got == case.complex_events


def answer(
    situation: CeqlSituation, form: Callable[[Sequence[CeqlEvent]], Any], **options: Any
) -> oxiseq.Matches:
    streams = {name: form([e for e in situation.events if e.stream == name]) for name in situation.streams}
    return oxiseq.run(situation.text, streams, language="ceql", **options)


def as_pairs(events: Sequence[CeqlEvent]) -> list[tuple[int, str]]:
    return [(e.time, e.graph) for e in events]


def check(situation: CeqlSituation, found: oxiseq.Matches) -> None:
    """Complex events, what holds them, their streams and times."""
    query = load(situation.text, "ceql")
    expected = evaluate_ceql(query, as_tuples(situation.events))
    got = [(m.positions.first, m.positions.last, frozenset(m.positions.all)) for m in found]
    assert found.events == len(situation.events) and not found.late
    assert [m.positions.last for m in found] == sorted(m.positions.last for m in found)
    if query.limit is None:
        assert Counter(got) == answers(expected)
    else:
        ends = dict.fromkeys(c.end for c in expected)
        assert is_choice(Counter(got), [answers([c for c in expected if c.end == e]) for e in ends], query.limit)
    held = {(c.start, c.end, c.positions): c.valuations for c in expected}
    for key, match in zip(got, found, strict=True):
        assert frozenset((v, p) for v, ps in match.positions.by.items() for p in ps) in held[key]
        assert match.at_us == situation.events[match.positions.last].time
        stood = {v: tuple(stood_at(situation.events[p]) for p in ps) for v, ps in match.positions.by.items()}
        assert match.events == stood


def answers(expected: Sequence[ComplexEvent]) -> Counter[tuple[int, int, frozenset[int]]]:
    return Counter((c.start, c.end, c.positions) for c in expected)


def stood_at(event: CeqlEvent) -> tuple[str, int]:
    return VOCAB + event.stream, event.time


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
