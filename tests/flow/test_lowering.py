"""Queries lowered to flow plans mean what SPARQL says: the plan, evaluated plainly, answers as Oxigraph does."""

from __future__ import annotations

from collections import Counter

import pytest
from by_graph import by_graph
from flow_reference import World, answer
from hypothesis import event, given
from hypothesis import strategies as st
from lowering_strategies import GRAPHS, STREAMS, Case, aggregations, cases, existences
from profiles import drawn
from reference.rsp import evaluate_rsp
from reference.values import normal_triple

from oxiseq.engine.errors import OxiseqError
from oxiseq.engine.flow.plan import Asked
from oxiseq.engine.flow.sparql import Around, Lowered, compile_where
from oxiseq.grammar.rsp_algebra import Report, RspQuery

NOW = 50


def around(query: RspQuery, asks_kb: bool = True) -> Around:
    """What is known of a query: each window is a content."""
    named = {w.name: i for i, w in enumerate(query.windows) if w.name is not None}
    default = tuple(i for i, w in enumerate(query.windows) if w.name is None)
    return Around(named, default, query.default_graphs, query.named_graphs, asks_kb=asks_kb)


def told(lowered: Lowered, world: World) -> Counter[tuple[tuple[str, str], ...]]:
    """What is told, as the reference tells it: names and values of what is bound."""
    total: Counter[tuple[tuple[str, str], ...]] = Counter()
    for row, n in answer(lowered.plan, world).items():
        shown = [(t.name, row[t.place]) for t in lowered.told if t.place is not None]
        total[tuple(sorted((name, str(term)) for name, term in shown if term is not None))] += n
    return total


def world_of(case: Case) -> World:
    """Windows hold what their streams have told."""
    windows = [[normal_triple(t) for t in case.streams[w.stream.value]] for w in case.query.windows]
    return World(windows, case.kb)


def expected(case: Case, names: set[str]) -> Counter[tuple[tuple[str, str], ...]]:
    """What the reference tells, by Oxigraph; of CONSTRUCT only what the template has."""
    streams = {iri: [(NOW, case.streams[iri])] for iri in STREAMS}
    query = by_graph(case.query, case.query.named_graphs or GRAPHS)
    rows = evaluate_rsp(query, streams, case.kb, [NOW], report=Report.RSTREAM)
    return Counter(tuple((name, term) for name, term in a.row if name in names) for a in rows)


def check(case: Case, asks_kb: bool = True) -> None:
    """Compare a plan's answer with the reference's."""
    lowered = compile_where(case.query, around(case.query, asks_kb))
    assert asks_kb or not any(isinstance(form, Asked) for form in lowered.plan.forms)
    wanted = expected(case, {t.name for t in lowered.told})
    event("answers" if wanted else "no answers")
    assert told(lowered, world_of(case)) == wanted


@given(cases(), st.booleans())
def test_plans_answer_as_oxigraph(case: Case, asks_kb: bool) -> None:
    if "GRAPH ?n" in case.text and not asks_kb:
        with pytest.raises(OxiseqError, match=r"GRAPH \?n"):
            compile_where(case.query, around(case.query, asks_kb))
        return
    check(case, asks_kb)


@drawn(70)
@given(existences())
def test_exists_looks_at_its_row(case: Case) -> None:
    check(case)


@drawn(70)
@given(aggregations())
def test_groups_and_aggregates(case: Case) -> None:
    check(case)
