"""FILTERs over variables that an event may leave unbound and the KB may bind."""

from __future__ import annotations

import pytest

import oxiseq

QUERY = """
PREFIX : <http://e/>
SELECT ?v FROM STREAM S <http://e/s>
WHERE {{
  SEQ(A)
  DEFINE GPM A ON S {{ ?b :is ?e OPTIONAL {{ ?b :w ?v }} GRAPH :g {{ ?e :limit ?v }} FILTER({condition}) }}
}}"""
EVENT = "<http://e/b> <http://e/is> <http://e/x> ."


@pytest.mark.parametrize(("condition", "count"), [("!(?v > 1)", 1), ("?v > 0", 1), ("?v > 1", 0), ("BOUND(?v)", 1)])
def test_the_filter_sees_what_the_kb_binds(condition: str, count: int) -> None:
    kb = '<http://e/x> <http://e/limit> "1"^^<http://www.w3.org/2001/XMLSchema#integer> <http://e/g> .'
    found = oxiseq.run(QUERY.format(condition=condition), streams={"S": [(1, EVENT)]}, kb=kb)
    assert len(found) == count
