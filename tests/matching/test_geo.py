"""GeoSPARQL's functions, which Oxigraph has, in filters of every language that has SPARQL's expressions."""

from __future__ import annotations

from typing import Final

import pytest
from pyoxigraph import Store

import oxiseq
from oxiseq.grammar.functions import GEO_FUNCTIONS, GEOSPARQL

P: Final = (
    f"PREFIX : <http://e/> PREFIX geof: <{GEOSPARQL}> PREFIX geo: <http://www.opengis.net/ont/geosparql#> "
    "PREFIX uom: <http://www.opengis.net/def/uom/OGC/1.0/> "
)
S: Final = "http://e/S"
NEAR: Final = '?v :at ?w FILTER(geof:distance(?w, "POINT(10 50)"^^geo:wktLiteral, uom:metre) < 2000)'
WITHIN: Final = (
    '?v :at ?w FILTER(geof:sfWithin(?w, "POLYGON((9.99 49.99, 10.02 49.99, 10.02 50.01, 9.99 50.01, '
    '9.99 49.99))"^^geo:wktLiteral))'
)
LANGUAGES: Final = {
    "spaseq": "SELECT ?v FROM STREAM S <http://e/S> WHERE {{ SEQ(A) DEFINE GPM A ON S {{ {} }} }}",
    "rspql": "SELECT ?v FROM NAMED WINDOW :w ON <http://e/S> [RANGE PT1S STEP PT1S] WHERE {{ WINDOW :w {{ {} }} }}",
    "spectra": "SELECT ?v FROM STREAM <http://e/S> [RANGE 1 SECONDS SLIDE 1 SECONDS] WHERE {{ {} }}",
    "rsepql": "SELECT ?v FROM NAMED <http://e/S> WIN [RANGE 1 SECONDS SLIDE 1 SECONDS] AS :w EVENT ON :w {{ {} }} AS E "
    "WHERE {{ MATCH {{ E }} }}",
    "epsparql": "SELECT ?v FROM STREAM <http://e/S> WHERE {{ {} }}",
}
PLACES: Final = {"a": "POINT(10.01 50)", "b": "POINT(10.5 50)", "c": "POINT(10 50.001)", "d": "POINT(oops"}
WKT: Final = "http://www.opengis.net/ont/geosparql#wktLiteral"
EVENTS: Final = [
    (second * 1_000_000, f'<http://e/{name}> <http://e/at> "{wkt}"^^<{WKT}> .')
    for second, (name, wkt) in enumerate(PLACES.items())
]


@pytest.mark.parametrize("condition", [NEAR, WITHIN])
@pytest.mark.parametrize("language", LANGUAGES)
def test_events_near_a_place(language: str, condition: str) -> None:
    query = oxiseq.Query(P + LANGUAGES[language].format(condition), language)
    found = query.run({S: EVENTS})
    assert sorted({match["v"].value for match in found}) == ["http://e/a", "http://e/c"]


def test_a_place_of_another_event() -> None:
    text = f"""{P} SELECT ?v ?u FROM STREAM S <{S}> WHERE {{ SEQ(A : B) DEFINE GPM A ON S {{ ?v :at ?w }}
        DEFINE GPM B ON S {{ ?u :at ?x FILTER(geof:distance(?w, ?x, uom:metre) < 2000) }} }}"""
    assert [(m["v"].value, m["u"].value) for m in oxiseq.run(text, {S: EVENTS})] == [("http://e/a", "http://e/c")]


@pytest.mark.parametrize("function", sorted(GEO_FUNCTIONS))
def test_the_store_knows_each_function(function: str) -> None:
    list(Store().query(f"SELECT (<{function}>(?x) AS ?r) {{}}"))  # RuntimeError: it does not


def test_a_function_that_there_is_not_is_refused_with_the_nearest() -> None:
    text = P + LANGUAGES["spaseq"].format("?v :at ?w FILTER(geof:sfWithn(?w, ?w))")
    with pytest.raises(oxiseq.QueryError, match=r"there is no function <.*sfWithn>[\s\S]*sfWithin"):
        oxiseq.Query(text).check()
        oxiseq.run(text, {S: EVENTS})
