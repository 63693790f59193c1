"""`Query.explain` of every language: text, JSON, Graphviz, and a picture that is well-formed and shows the plan."""

from __future__ import annotations

from xml.etree import ElementTree

import pytest

import oxiseq
from oxiseq.pictures.drawing import Arrow, Node, draw

SVG = "{http://www.w3.org/2000/svg}"
PREFIX = "PREFIX : <http://e/>\n"
CEQL = """VOCAB <http://e/> SELECT * FROM S
WHERE (SELL AS a ; BUY AS b : (SELL OR BUY AS d)+) FILTER a[price > 3] WITHIN 10 SECONDS"""
RSPQL = (
    PREFIX
    + """SELECT ?a FROM NAMED WINDOW :w ON :s [RANGE PT10S STEP PT5S]
WHERE { WINDOW :w { ?a :p ?b } OPTIONAL { GRAPH :kb { ?a :name ?n } } }"""
)
SPECTRA = PREFIX + """SELECT * FROM STREAM :s [RANGE 10 SLIDE 1] WHERE { ?a :p ?b . ?b :q ?c FILTER(?c > 2) }"""
RSEPQL = (
    PREFIX
    + """SELECT * FROM NAMED :s WIN [RANGE 10 SLIDE 1] AS :w
EVENT ON :w { ?a :p ?b } AS E1 EVENT ON :w { ?a :p ?c } AS E2 WHERE { MATCH { E1 SEQ E2 } }"""
)
EPSPARQL = PREFIX + "SELECT ?a { { ?a :p ?b } SEQ { ?b :q ?c } }"
RULE = PREFIX + "CONSTRUCT { ?a :p ?b } { ?a :r ?b }"


def words(explanation: oxiseq.explaining.Explanation) -> list[str]:  # type: ignore[name-defined]
    root = ElementTree.fromstring(explanation.svg())
    return [each.text or "" for each in root.iter(f"{SVG}text")]


@pytest.mark.parametrize(
    ("language", "text", "shown"),
    [
        ("ceql", CEQL, ["SELL[price > 3]", "a", "b", ":", ";"]),
        ("rspql", RSPQL, ["s", "[RANGE 10 SECONDS SLIDE 5 SECONDS]", "w", "knowledge base", "incremental"]),
        ("spectra", SPECTRA, ["[RANGE 10 SLIDE 1]", "?a :p ?b", "?b :q ?c", "FILTER(?c > 2)", "incremental"]),
        ("rsepql", RSEPQL, ["EVENT E1", "?a ?b", "MATCH E1 SEQ E2", "incremental"]),
        ("epsparql", EPSPARQL, ["triples ?a :p ?b", "SEQ on ?b", "keeps first for ever", "SELECT"]),
    ],
)
def test_the_plan_of_every_language_is_drawn(language: str, text: str, shown: list[str]) -> None:
    explanation = oxiseq.Query(text, language).explain()
    drawn = words(explanation)
    assert [word for word in shown if word not in drawn] == []
    ElementTree.fromstring(explanation._repr_html_())
    assert explanation.dot().startswith("digraph query {")
    assert explanation.json()


def test_rules_are_drawn_beside_the_query() -> None:
    assert "rule 1" in words(oxiseq.Query(EPSPARQL, "epsparql").explain(rules=[RULE]))
    with pytest.raises(oxiseq.OxiseqError, match="rules is for EP-SPARQL"):
        oxiseq.Query(CEQL, "ceql").explain(rules=[RULE])


def test_an_unknown_language_is_refused() -> None:
    with pytest.raises(oxiseq.OxiseqError, match="not known"):
        oxiseq.Query(CEQL, "cypher").explain()


@pytest.mark.parametrize(
    ("pattern", "told"),
    [
        ("?who :paid ?second", "partitioned by ?who"),
        ("?other :paid ?second", "one run has to see all events: no variable joins the first event"),
    ],
)
def test_spaseq_tells_by_which_key_it_could_be_dealt_out(pattern: str, told: str) -> None:
    text = f"""{PREFIX}SELECT * FROM STREAM S <http://e/s> WHERE {{ SEQ(A; B)
        DEFINE GPM A ON S {{ ?who :paid ?first }} DEFINE GPM B ON S {{ {pattern} }} }}"""
    explanation = oxiseq.Query(text).explain()
    assert explanation.correlation.startswith(told)
    assert f"several runs, as on Spark: {told}" in str(explanation)


def test_a_network_stands_behind_what_leads_to_it() -> None:
    nodes = [Node(name, name) for name in "abcdk"]
    arrows = [Arrow("a", "b", ()), Arrow("b", "c", ()), Arrow("a", "d", ()), Arrow("c", "d", ()), Arrow("k", "d", ())]
    root = ElementTree.fromstring(draw(nodes, arrows, "t", network=True))
    x = {each.text: float(each.attrib["x"]) for each in root.iter(f"{SVG}text")}
    assert x["a"] < x["b"] < x["c"] == x["k"] < x["d"]
