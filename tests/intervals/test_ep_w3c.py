"""A plain SPARQL query over triples of one time answers as SPARQL does: the W3C's evaluation tests.

The default graph's data is one event, named graphs are the knowledge base. What EP-SPARQL leaves out is skipped, with
the reason.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import pytest
from pyoxigraph import NamedNode, Quad, Store, Triple
from w3c_suites import Evaluation, Table, absent, canonical, evaluations, expected, same_rows, suite, triples

import oxiseq
from oxiseq.grammar import parse as parse_query
from oxiseq.grammar import render
from oxiseq.grammar.algebra import Group, TriplePattern

SUITES = ("bind", "exists", "negation", "property-path", "subquery", "aggregates")
MODIFIERS = "grouping and limits have no final value on a stream"
EXISTS = "EXISTS stands alone in a FILTER, not inside another expression"
OXIGRAPH = "inside GRAPH the store answers, and Oxigraph takes the graph's variable for a shared one"
SKIPPED = {
    "subset-02": EXISTS,
    "graph-minus": OXIGRAPH,
    "subquery08": MODIFIERS,
    "subquery11": MODIFIERS,
    "subquery14": MODIFIERS,
}
TICK = NamedNode("urn:tick")
TICKED = frozenset(
    [
        "zero_or_more_set_start",
        "zero_or_more_set_end",
        "zero_or_one_set_start",
        "zero_or_one_set_end",
        "exists03",
        "subquery04",
    ]
)
"""Answers that are made of no triple at all; like those of knowledge alone, they are asked together with a triple that
gives them a time."""


def _collected() -> list[Any]:
    found: list[Any] = []
    for name in SUITES:
        folder = suite(name)
        if folder is None:
            found.append(pytest.param(None, id=f"{name}-absent", marks=pytest.mark.skip(reason=absent(name))))
            continue
        found += [pytest.param(case, id=f"{name}-{case.name}") for case in evaluations(name, folder)]
    return found


@pytest.mark.parametrize("case", _collected())
def test_simultaneous_triples_answer_as_in_sparql(case: Evaluation) -> None:
    if case.name in SKIPPED:
        pytest.skip(SKIPPED[case.name])
    if case.suite == "aggregates":
        pytest.skip(MODIFIERS)
    wanted = expected(case.result)
    kb = Store()
    for iri, path in case.graphs:
        kb.extend(Quad(t.subject, t.predicate, t.object, NamedNode(iri)) for t in triples(path, iri))
    event = [Triple(TICK, TICK, TICK)] if case.data is None or case.name in TICKED else []
    event += [] if case.data is None else triples(case.data)
    query = re.sub(r"(?i)\border\s+by(\s+[?$]\w+)+\s*$", "", case.query)  # answers are compared as bags
    text = f"BASE <{case.base}>\n{query}"
    if case.data is None or case.name in TICKED:
        text = _ticked(text)
    answers = oxiseq.run(text, streams={"urn:s": [(0, event)]}, kb=kb, language="epsparql")
    if isinstance(wanted, bool):
        assert bool(answers) is wanted
    elif isinstance(wanted, Table):
        rows = tuple(tuple(m.get(name) for name in wanted.names) for m in answers)
        assert same_rows(Table(wanted.names, rows), wanted)
    else:
        assert canonical(t for m in answers for t in m.graph) == canonical(wanted or [])


def _ticked(text: str) -> str:
    """The query, its pattern together with a triple that is there."""
    query = parse_query(text, "epsparql")
    return render(replace(query, where=Group((TriplePattern(TICK, TICK, TICK), query.where))))
