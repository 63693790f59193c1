"""The W3C's query tests as queries that stand over a store: the data comes later, in two updates, and some goes."""

from __future__ import annotations

from typing import Any, Final

import pytest
from pyoxigraph import BlankNode, NamedNode, Quad
from test_lowering_w3c import CASES, LANGUAGES, NO_TERMS
from w3c_suites import Evaluation, Table, canonical, expected, same_rows, triples

import oxiseq

MORE: Final = NamedNode("urn:more")


def quads(case: Evaluation) -> list[Quad]:
    found = [Quad(t.subject, t.predicate, t.object) for t in (triples(case.data) if case.data else [])]
    return [
        *found,
        *(Quad(t.subject, t.predicate, t.object, NamedNode(iri)) for iri, path in case.graphs for t in triples(path)),
    ]


@pytest.mark.parametrize("case", CASES)
def test_an_answer_is_that_of_the_suite(case: Evaluation) -> None:
    store, data = oxiseq.Store(), quads(case)
    query: Any = store.register(f"BASE <{case.base}>\n{case.query}", language="sparql")
    assert query.state == "followed"
    gone = [Quad(MORE, q.predicate, BlankNode("more") if n % 2 else q.object, q.graph_name) for n, q in enumerate(data)]
    store.extend([*data[::2], *gone])
    query.catch_up()
    store.extend(data[1::2])
    for quad in gone:
        store.remove(quad)
    if case.name in (*NO_TERMS, *LANGUAGES):
        pytest.skip("terms of CSV are not told, nor what is a matter of GROUP_CONCAT alone")
    wanted, snapshot = expected(case.result), query.snapshot()
    if isinstance(wanted, bool):
        assert snapshot.answer is wanted
    elif isinstance(wanted, Table):
        rows = tuple(tuple(row.get(name) for name in wanted.names) for row in snapshot.rows)
        assert same_rows(Table(wanted.names, rows), wanted)
    else:
        assert wanted is not None
        assert canonical(snapshot.rows) == canonical(wanted)
