"""A plain SPARQL query over triples of one time answers as SPARQL does: the W3C's evaluation tests.

The default graph's data is one event, named graphs are the knowledge base. What EP-SPARQL leaves out is skipped, with
the reason.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from pyoxigraph import (
    BlankNode,
    DefaultGraph,
    NamedNode,
    Quad,
    QueryBoolean,
    QueryResultsFormat,
    QuerySolutions,
    RdfFormat,
    Store,
    Triple,
    parse,
    parse_query_results,
)
from rdflib import Graph, Namespace, URIRef
from rdflib.collection import Collection

import oxiseq
from oxiseq.grammar import parse as parse_query
from oxiseq.grammar import render
from oxiseq.grammar.algebra import Group, TriplePattern

MF = Namespace("http://www.w3.org/2001/sw/DataAccess/tests/test-manifest#")
QT = Namespace("http://www.w3.org/2001/sw/DataAccess/tests/test-query#")
SUITES = ("bind", "exists", "negation", "property-path", "subquery", "aggregates")
_FORMATS = {".srx": QueryResultsFormat.XML, ".srj": QueryResultsFormat.JSON}

MODIFIERS = "grouping and limits have no answer while the stream goes on"
EXISTS = "EXISTS stands alone in a FILTER, not inside another expression"
OXIGRAPH = "inside GRAPH the store answers, and Oxigraph takes the graph's variable for a shared one"
SKIPPED = {"subset-02": EXISTS, "graph-minus": OXIGRAPH, "subquery08": MODIFIERS, "subquery11": MODIFIERS}
TICK = NamedNode("urn:tick")
TICKED = frozenset(
    ["zero_or_more_set_start", "zero_or_more_set_end", "zero_or_one_set_start", "zero_or_one_set_end", "exists03",
     "subquery04"]
)
"""Answers that are made of no triple at all; like those of knowledge alone, they are asked together with a triple that
gives them a time."""


@dataclass(frozen=True)
class Evaluation:
    """A test: a query, data, named graphs, and the file of its results."""

    suite: str
    name: str
    query: str
    data: Path | None
    graphs: tuple[tuple[str, Path], ...]
    result: Path


def suite(name: str) -> Path | None:
    """A suite's folder, or None when it is not there."""
    given = os.environ.get("OXISEQ_W3C")
    roots = [Path(given)] if given else [parent / "shared" / "w3c" for parent in Path(__file__).resolve().parents]
    return next((root / "sparql11" / name for root in roots if (root / "sparql11" / name).is_dir()), None)


def evaluations(name: str, folder: Path) -> Iterable[Evaluation]:
    """The evaluation tests of a manifest."""
    graph = Graph()
    graph.parse(folder / "manifest.ttl", publicID=folder.as_uri() + "/")
    for manifest in graph.subjects(MF.entries, None):
        for entry in Collection(graph, graph.value(manifest, MF.entries)):
            action, result = graph.value(entry, MF.action), graph.value(entry, MF.result)
            query = graph.value(action, QT.query)
            if query is None or result is None:
                continue
            data = graph.value(action, QT.data)
            named = [g for g in graph.objects(action, QT.graphData) if isinstance(g, URIRef)]
            yield Evaluation(
                name, str(entry).rpartition("#")[2], _path(query).read_text(), None if data is None else _path(data),
                tuple((str(g), _path(g)) for g in named), _path(result),
            )


def _path(iri: Any) -> Path:
    return Path(str(iri).removeprefix("file://"))


def _collected() -> list[Any]:
    found: list[Any] = []
    for name in SUITES:
        folder = suite(name)
        if folder is None:
            reason = f"the W3C suite {name} is not here: set OXISEQ_W3C to its copy"
            found.append(pytest.param(None, id=f"{name}-absent", marks=pytest.mark.skip(reason=reason)))
            continue
        found += [pytest.param(case, id=f"{name}-{case.name}") for case in evaluations(name, folder)]
    return found


@pytest.mark.parametrize("case", _collected())
def test_simultaneous_triples_answer_as_in_sparql(case: Evaluation) -> None:
    if case.name in SKIPPED:
        pytest.skip(SKIPPED[case.name])
    if case.suite == "aggregates":
        pytest.skip(MODIFIERS)
    if case.result.suffix not in _FORMATS:
        pytest.skip(f"results in {case.result.suffix}")
    expected = parse_query_results(case.result.read_bytes(), format=_FORMATS[case.result.suffix])
    kb = Store()
    for iri, path in case.graphs:
        for quad in parse(path.read_bytes(), format=RdfFormat.from_extension(path.suffix[1:]), base_iri=iri):
            kb.add(Quad(quad.subject, quad.predicate, quad.object, NamedNode(iri)))
    event = [Triple(TICK, TICK, TICK)] if case.data is None or case.name in TICKED else []
    if case.data is not None:
        quads = parse(case.data.read_bytes(), format=RdfFormat.from_extension(case.data.suffix[1:]),
                      base_iri=case.data.as_uri())  # fmt: skip
        event += [q.triple for q in quads if q.graph_name == DefaultGraph()]
    query = re.sub(r"(?i)\border\s+by(\s+[?$]\w+)+\s*$", "", case.query)  # answers are compared as bags
    text = f"BASE <{case.result.parent.as_uri()}/>\n{query}"
    if case.data is None or case.name in TICKED:
        text = _ticked(text)
    answers = oxiseq.run(text, streams={"urn:s": [(0, event)]}, kb=kb, language="epsparql")
    if isinstance(expected, QueryBoolean):
        assert bool(answers) is bool(expected)
        return
    assert isinstance(expected, QuerySolutions)
    names = [v.value for v in expected.variables]
    wanted = Counter(tuple(_shown(row[name]) for name in names) for row in expected)
    assert Counter(tuple(_shown(m.bindings.get(name)) for name in names) for m in answers) == wanted


def _ticked(text: str) -> str:
    """The query, its pattern together with a triple that is there."""
    query = parse_query(text, "epsparql")
    return render(replace(query, where=Group((TriplePattern(TICK, TICK, TICK), query.where))))


def _shown(term: Any) -> str:
    """A term; all blank nodes alike."""
    if term is None:
        return ""
    return "_:" if isinstance(term, BlankNode) else str(next(iter(_normal(term))).object)


def _normal(term: Any) -> Store:
    store = Store()
    store.add(Quad(NamedNode("urn:x"), NamedNode("urn:x"), term))
    return store
