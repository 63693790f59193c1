"""Where the engine and the reference are easily of two minds: each case once, with what both must answer."""

from __future__ import annotations

import pytest
from ep_runs import engine_bag, reference_bag
from loaded import load
from pyoxigraph import DefaultGraph, Literal, NamedNode, Quad, Store, Triple

import oxiseq
from oxiseq.engine.errors import QueryError

P = "PREFIX : <http://e/> PREFIX xsd: <http://www.w3.org/2001/XMLSchema#> "


def facts(text: str) -> list[Triple]:
    """`x p y; x q 1` → triples."""
    parts = [fact.split() for fact in text.split("; ")]
    return [Triple(_node(s), _node(p), Literal(int(o)) if o.isdigit() else _node(o)) for s, p, o in parts]


def _node(name: str) -> NamedNode:
    return NamedNode(f"http://e/{name}")


def intervals(
    where: str, events: list[tuple[int, int, str]], kb: str = "", rules: tuple[str, ...] = ()
) -> list[tuple[int, int]]:
    """(start, end) of the answers, on which engine and reference agree."""
    query, made = load(f"{P} SELECT * {{ {where} }}", "epsparql"), [load(P + rule, "epsparql") for rule in rules]
    stream = [(start, end, facts(text)) for start, end, text in events]
    store = Store()
    store.extend(Quad(*triple, DefaultGraph()) for triple in (facts(kb) if kb else []))
    expected = reference_bag(query, stream, store, made)
    for size in (1, 100):
        assert engine_bag(query, stream, store, made, size) == expected
    return sorted((start, end) for start, end, _ in expected.elements())


@pytest.mark.parametrize("mark", "+*")
def test_a_path_of_knowledge_leads_back_to_where_it_began(mark: str) -> None:
    assert intervals(f"?x :q{mark} ?x . ?x :p ?v", [(1, 1, "x p 1")], "x q x") != []


LOOKING = {
    "MINUS": "?x :p ?y MINUS { ?x :r ?y }",
    "NOT EXISTS": "?x :p ?y FILTER NOT EXISTS { ?x :r ?y }",
    "OPTIONAL": "?x :p ?y OPTIONAL { ?x :r ?w } FILTER(!BOUND(?w))",
}


@pytest.mark.parametrize("name", LOOKING)
@pytest.mark.parametrize("seq", ["{{ {} }} SEQ {{ ?x :q ?z }}", "{{ {{ {} }} }} OPTIONALSEQ {{ ?x :q ?z }}"])
def test_what_a_recursive_rule_looks_at_in_the_past_is_complete(name: str, seq: str) -> None:
    """The p of 5 is not without an r: the rule derives one at 5, from the p of 1."""
    rule = f"CONSTRUCT {{ ?x :r ?y }} WHERE {{ {seq.format(LOOKING[name])} FILTER(BOUND(?y)) }}"
    events = [(1, 1, "x p y"), (5, 5, "x p y; x q z"), (7, 7, "x q z")]
    assert intervals("?x :r ?y", events, rules=(rule,)) == [(1, 5), (1, 7)]


def test_a_rule_cannot_wait_for_itself_behind_optionalseq() -> None:
    """Filters of an optional part are asked of the pair, that is now."""
    rule = "CONSTRUCT { ?x :r ?y } WHERE { { ?x :p ?y FILTER NOT EXISTS { ?x :r ?w } } OPTIONALSEQ { ?x :q ?z } }"
    with pytest.raises(QueryError, match="triples that it derives"):
        intervals("?x :r ?y", [], rules=(rule,))


@pytest.mark.parametrize(
    ("condition", "found"),
    [
        ('getDURATION() < "P999999999D"^^xsd:duration', 1),
        ('getDURATION() > "P999999999D"^^xsd:duration', 0),
        ('getDURATION() > "-P999999999D"^^xsd:duration', 1),
        ('getDURATION() < "-P999999999D"^^xsd:duration', 0),
        ("getDURATION() < 9999999999999999999999", 1),
        ("-9999999999999999999999 > getDURATION()", 0),
        ("getDURATION() < 1" + 400 * "0", 1),
        ("getDURATION() < 1e300", 1),
        ('getDURATION() < "INF"^^xsd:double', 1),
        ('getDURATION() < "NaN"^^xsd:double', 0),
        ('getDURATION() = "16777217"^^xsd:float', 0),
        ('getDURATION() = "1"^^xsd:float', 1),
    ],
)
def test_a_length_is_compared_with_any_number(condition: str, found: int) -> None:
    events = [(1, 1, "x p 1"), (2, 2, "x q 1")]
    assert len(intervals(f"{{ ?x :p ?y }} SEQ {{ ?x :q ?z }} FILTER({condition})", events)) == found


@pytest.mark.parametrize("op", ["=", "<=", "!=", "<"])
def test_a_duration_is_a_length_whatever_its_type(op: str) -> None:
    """Whether it stands there or is bound to a variable."""
    size = '"PT0.000002S"^^xsd:duration'
    found = intervals(f"?x :p ?y FILTER({size} {op} getDURATION())", [(0, 2, "x p y")])
    assert found == intervals(f"?x :p ?y BIND({size} AS ?d) FILTER(?d {op} getDURATION())", [(0, 2, "x p y")])
    assert found == ([(0, 2)] if "=" in op and op != "!=" else [])


@pytest.mark.parametrize("what", ["MINUS { ?x :q ?y }", "FILTER NOT EXISTS { ?x :q ?y }"])
def test_what_has_come_is_not_forgotten_with_a_fact_that_said_the_same(what: str) -> None:
    store = oxiseq.Store()
    text = f"{P} SELECT ?x ?y FROM STREAM <urn:s> {{ ?x :p ?y {what} }}"
    query, stream = store.register(text, language="epsparql"), store.stream("urn:s")
    fact = Quad(_node("x"), _node("q"), _node("y"), DefaultGraph())
    store.add(fact)
    stream.push("<http://e/x> <http://e/q> <http://e/y> .", 1)
    stream.advance(2)
    store.remove(fact)
    stream.push("<http://e/x> <http://e/p> <http://e/y> .", 3)
    stream.push("<http://e/z> <http://e/p> <http://e/y> .", 4)
    stream.advance(5)
    assert [(m.start_us, m.end_us) for m in query.poll("0s")] == [(4, 4)]
