"""Queries lowered to flow plans mean what SPARQL says: the plan, evaluated plainly, answers as Oxigraph does."""

from __future__ import annotations

from collections import Counter

from flow_reference import World, answer
from hypothesis import event, given
from lowering_strategies import STREAMS, Case, cases
from profiles import thorough
from reference.rsp import evaluate_rsp
from reference.values import normal_triple

from oxiseq.engine.flow.sparql import Around, Lowered, compile_where
from oxiseq.grammar.rsp_algebra import Report, RspQuery

NOW = 50


def around(query: RspQuery) -> Around:
    """What is known of a query: each window is a content."""
    named = {w.name: i for i, w in enumerate(query.windows) if w.name is not None}
    default = tuple(i for i, w in enumerate(query.windows) if w.name is None)
    return Around(named, default, query.default_graphs, query.named_graphs)


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


@thorough()
@given(cases())
def test_plans_answer_as_oxigraph(case: Case) -> None:
    lowered = compile_where(case.query, around(case.query))
    streams = {iri: [(NOW, case.streams[iri])] for iri in STREAMS}
    names = {t.name for t in lowered.told}
    expected = Counter(
        tuple((name, term) for name, term in a.row if name in names)  # of CONSTRUCT the reference tells all
        for a in evaluate_rsp(case.query, streams, case.kb, [NOW], report=Report.RSTREAM)
    )
    event("answers" if expected else "no answers")
    assert told(lowered, world_of(case)) == expected
