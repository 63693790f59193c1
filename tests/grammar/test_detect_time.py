"""DETECTTIME(): where it may stand (semantics.md 2.6a)."""

from __future__ import annotations

import pytest

from oxiseq.engine.errors import OxiseqError
from oxiseq.grammar import load, render
from oxiseq.grammar.parser import parse

WHERE = "FROM STREAM S <http://e/S> WHERE { SEQ(A; N! WITHIN 5 SECONDS)%s DEFINE GPM A ON S { ?a <http://e/v> ?v%s } "
WHERE += "DEFINE GPM N ON S { ?n <http://e/w> ?w } }"
PLAIN = WHERE % ("", "")
TAKEN = [
    f"SELECT ?a (DETECTTIME() AS ?at) {PLAIN}",
    f"SELECT ?a (DETECTTIME() - ENDTIME() AS ?waited) {PLAIN}",
    f"SELECT ?v (COUNT(*) AS ?n) (DETECTTIME() AS ?at) {PLAIN} GROUP BY ?v",
    f"CONSTRUCT {{ ?a <http://e/known> (DETECTTIME()) }} {PLAIN}",
]
REFUSED = {
    f"SELECT ?a {WHERE % (' FILTER(DETECTTIME() > 5)', '')}": "FILTER",
    f"SELECT ?a {WHERE % ('', ' FILTER(DETECTTIME() > 5)')}": "a GPM",
    f"SELECT (COUNT(*) AS ?n) {PLAIN} GROUP BY (DETECTTIME())": "GROUP BY",
    f"SELECT ?v (COUNT(*) AS ?n) {PLAIN} GROUP BY ?v HAVING (DETECTTIME() > 5)": "HAVING",
    f"SELECT ?a {PLAIN} ORDER BY DETECTTIME() LIMIT 1": "ORDER BY",
    f"SELECT ?a (DETECTTIME() AS ?at) {PLAIN} ORDER BY ?at LIMIT 1": "ORDER BY",
    f"SELECT (MAX(DETECTTIME()) AS ?last) {PLAIN}": "MAX",
}


@pytest.mark.parametrize("text", TAKEN)
def test_it_is_shown(text: str) -> None:
    query = parse(text)
    assert parse(render(query)) == query
    load(text)


@pytest.mark.parametrize(("text", "place"), REFUSED.items(), ids=list(REFUSED.values()))
def test_it_is_refused_where_it_is_not_known_yet(text: str, place: str) -> None:
    with pytest.raises(OxiseqError, match=r"DETECTTIME\(\)") as caught:
        load(text)
    assert place in str(caught.value) and "^" in str(caught.value)
