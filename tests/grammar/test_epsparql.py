"""EP-SPARQL's texts: read, rendered, checked, and what is said of wrong ones."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from broken_texts import assert_read_or_refused, broken_texts, pieces
from hypothesis import given
from hypothesis import strategies as st

from oxiseq.grammar import QueryError, check, language_of, load, parse, render
from oxiseq.grammar.algebra import Group, TimedPattern, TimeOp, Union
from oxiseq.grammar.ep_algebra import EpQuery
from oxiseq.grammar.epsparql.rules import strata

sys.path.insert(0, str(Path(__file__).parents[1] / "intervals"))
from ep_strategies import queries, rules

P = "PREFIX : <http://e/> "
TEXTS = [
    P + "SELECT * WHERE { { ?x :p ?a } SEQ { ?x :q ?b } EQUALS { ?x :r ?c } FILTER(getDURATION() < 5) }",
    P + "SELECT DISTINCT ?x (getSTARTTIME() AS ?s) FROM STREAM <http://e/s> FROM STREAM T <http://e/t>"
    " { { ?x :p ?a FILTER(?a > 1) } OPTIONALSEQ { ?x :q+ ?b } UNION { ?x a :C } }",
    P + "CONSTRUCT { ?x :is [ :of ?y ; :for (getDURATION()) ] } WHERE { ?x :p ?y } EQUALSOPTIONAL { ?y :p ?x }",
    P + "ASK { ?x :p ?y MINUS { ?y :p ?x } FILTER NOT EXISTS { ?x :q ?x } GRAPH ?g { ?x :in ?p } }",
    P + "SELECT REDUCED ?x { { ?x :p ?a } SEQ { ?x :q ?b } } VALUES (?a ?b) { (:a UNDEF) (UNDEF 1) } CONSUME RECENT",
    P + "SELECT ?x { ?x :p ?y GRAPH :g { SELECT ?y (COUNT(*) AS ?n) { ?y :q ?z } GROUP BY ?y HAVING (COUNT(*) > 1)"
    " ORDER BY DESC(?n) LIMIT 2 } }",
    P + "CONSTRUCT { ?x :is 1 } INTO STREAM <http://e/t> { ?x :p ?y } CONSUME CHRONOLOGICAL",
    P + "SELECT ?x { { SELECT DISTINCT ?x { ?x :p ?y } } BIND(getENDTIME() AS ?e) VALUES ?x { :a :b } }",
]
WORDS = sorted({p for text in TEXTS for p in pieces(text)})
WRONG = [
    ("SELECT * { ?x <urn:p> ?y SEQ { ?x <urn:q> ?z } }", "write both sides in braces"),
    ("SELECT * { { ?x <urn:p> ?y } SEQ ?z }", "SEQ is followed by a pattern in braces"),
    ("SELECT * { { ?x <urn:p> ?y } SEQQ { } }", "did you mean SEQ?"),
    ("SELECT * { { ?x <urn:p> ?y } THEN { } }", "write SEQ"),
    ("SELECT * FROM <urn:s> { ?x <urn:p> ?y }", "write FROM STREAM <urn:s>"),
    ("SELECT * { ?x <urn:p> ?y } LIMIT 3", "take as many as you need"),
    ("SELECT * { ?x <urn:p> ?y } ORDER BY ?x", "in the order of their ends"),
    ("SELECT (DURATION() AS ?d) { ?x <urn:p> ?y }", "write getDURATION()"),
    ("SELECT * { ?x <urn:p> ?y FILTER(getDURATION(?x) < 1) }", "takes no argument"),
    ("SELECT (COUNT(?x) AS ?n) { ?x <urn:p> ?y }", "no final value, because the stream"),
    ("SELECT * { { SELECT ?x { ?x <urn:p> ?y } LIMIT 1 } }", "inside GRAPH it may"),
    ("SELECT ?x { ?x <urn:p> ?y } GROUP BY ?x", "or over a window in RSP-QL"),
    ("SELECT ?x { ?x <urn:p> ?y } HAVING (COUNT(*) > 1)", "count with CONSTRUCT rules"),
    ("SELECT ?x { ?x <urn:p> ?y } OFFSET 3", "take those that you need"),
    ("SELECT * { GRAPH <urn:g> { ?x <urn:p> ?y BIND(getENDTIME() AS ?e) } }", "no times for getENDTIME()"),
    ("SELECT * { ?x <urn:p>+ ?y } CONSUME RECENT", "write out the steps"),
    ("SELECT * { { SELECT ?x { ?x <urn:p> ?y } } } CONSUME RECENT", "write its pattern in braces"),
    ("SELECT * { ?x <urn:p> ?y } CONSUME SOME", "write CONSUME UNRESTRICTED, CONSUME CHRONOLOGICAL or CONSUME RECENT"),
    ("SELECT * { ?x <urn:p> ?y } CONSUME BY ANY", "write CONSUME UNRESTRICTED"),
    ("SELECT ?x INTO STREAM <urn:t> { ?x <urn:p> ?y }", "write CONSTRUCT { ... } INTO STREAM"),
    ("CONSTRUCT { ?x <urn:p> ?y } INTO <urn:t> { ?x <urn:p> ?y }", "write CONSTRUCT { ... } INTO STREAM"),
    ("SELECT * { ?x <urn:p> ?y FILTER(?y > 1 || EXISTS { ?y <urn:p> ?x }) }", "EXISTS cannot be part of"),
    ("SELECT * { GRAPH <urn:g> { { ?x <urn:p> ?y } SEQ { ?x <urn:q> ?z } } }", "no times for SEQ"),
    ("SELECT * { GRAPH <urn:g> { ?x <urn:p> ?y FILTER(getDURATION() < 1) } }", "no times for getDURATION()"),
    ("SELECT * { SELECT ?x { ?x <urn:p> ?y }", "is not closed"),
    ("SELECT * { ?x <urn:p> ?y FILTER(getDURATION() < PT10M) }", 'write "PT10M"^^xsd:duration'),
]


@given(st.one_of(queries, rules))
def test_rendered_query_parses_to_itself(query: EpQuery) -> None:
    assert parse(render(query), "epsparql") == query


@pytest.mark.parametrize("text", TEXTS)
def test_text_comes_back_and_has_no_error(text: str) -> None:
    query = parse(text, "epsparql")
    assert parse(render(query), "epsparql") == query
    assert not [f for f in check(query, text) if f.severity == "error"]


@given(st.one_of(broken_texts(TEXTS, WORDS), st.text(max_size=30)))
def test_any_text_is_a_query_or_a_query_error(text: str) -> None:
    assert_read_or_refused(text, "epsparql")


@pytest.mark.parametrize(("text", "said"), WRONG)
def test_wrong_text_is_told_what_to_write(text: str, said: str) -> None:
    with pytest.raises(QueryError) as caught:
        load(text, "epsparql")
    assert said in str(caught.value)
    assert caught.value.line == 1 and caught.value.column > 1


def test_operators_of_time_are_left_associative_and_union_binds_tighter() -> None:
    where = parse("SELECT * { { } SEQ { } UNION { } EQUALS { } }", "epsparql").where
    (whole,) = where.elements
    assert isinstance(whole, TimedPattern) and whole.op is TimeOp.EQUALS
    assert isinstance(whole.left, TimedPattern) and isinstance(whole.left.right, Union)
    assert isinstance(whole.left.left, Group)


def test_lints_say_what_is_kept() -> None:
    text = P + "SELECT * { { ?x :p ?a } SEQ { ?y :q ?b FILTER(?c > 1) } }"
    found = {f.code for f in check(parse(text, "epsparql"), text)}
    assert found == {"unbounded", "unjoined", "unbound"}


DURATION = "FILTER(getDURATION() < 5)"


@pytest.mark.parametrize(
    ("where", "found"),
    [
        ("?x :p ?a . ?x :q ?b", "unbounded"),
        (f"?x :p ?a . ?x :q ?b {DURATION}", None),
        ("?x :p ?a . ?x :q ?b FILTER(?a > 1 && 5 >= getDURATION())", None),
        ("?x :p ?a . ?x :q ?b FILTER(getDURATION() > 5)", "unbounded"),
        ("?x :p ?a . ?x :q ?b FILTER(?a > 1 || getDURATION() < 5)", "unbounded"),
        ("{ ?x :p ?a } EQUALS { ?x :q ?b }", None),
        (f"{{ {{ ?x :p ?a }} SEQ {{ ?x :q ?b }} {DURATION} }} SEQ {{ ?x :r ?c }}", "unbounded"),
        (f"{{ ?x :p ?a }} SEQ {{ ?x :q ?b . ?x :r ?c }} {DURATION}", None),
        (f"?x :p ?a OPTIONAL {{ ?x :q ?b }} {DURATION}", "unbounded"),
        (f"?x :p ?a OPTIONAL {{ ?x :q ?b {DURATION} }}", None),
        (f"{{ ?x :p ?a }} OPTIONALSEQ {{ ?x :q ?b }} {DURATION}", "unbounded"),
        (f"{{ ?x :p ?a {DURATION} }} OPTIONALSEQ {{ ?x :q ?b }}", None),
        ("?x :p+ ?a", "unbounded"),
        (f"?x :p ?a . ?y :q ?b {DURATION}", "cross-product"),
        (f"{{ ?x :p ?a . ?y :q ?b FILTER(?b > ?a) }} {DURATION}", None),
        ("?x :p ?a GRAPH :g { ?y :q ?b }", "kb-unjoined"),
        (f"?x :p+ ?a {DURATION}", None),
        ("?x :p|^:q ?a", None),
        ("?x :p ?a GRAPH :g { ?x :q ?b }", None),
        (f"?x :p ?a FILTER EXISTS {{ ?x :q ?b . ?b :r ?c }} {DURATION}", "unbounded"),
        ("?x :p ?a FILTER NOT EXISTS { ?x :q ?b }", None),
        ("?x :p ?a FILTER NOT EXISTS { ?x :q ?b FILTER(?b > ?a) }", "unbounded"),
        (f"?x :p ?a FILTER NOT EXISTS {{ ?x :q ?b FILTER(?b > ?a) {DURATION} }}", None),
        (f"{{ SELECT ?x {{ ?x :p ?a . ?x :q ?b }} }} {DURATION}", None),
        ("OPTIONAL { ?x :p ?a FILTER(getDURATION() < 5) } ?x :q ?b FILTER(getDURATION() < 5)", "timeless"),
        ("VALUES ?x { 1 } MINUS { ?x :p ?a }", "timeless"),
        ("GRAPH :g { ?x :q ?b } OPTIONAL { GRAPH :g { ?x :p ?a } }", None),
    ],
)
def test_what_is_kept_for_ever_or_makes_all_pairs_is_told(where: str, found: str | None) -> None:
    text = f"{P} SELECT * {{ {where} }}"
    assert {f.code for f in check(parse(text, "epsparql"), text)} == ({found} if found else set())


@pytest.mark.parametrize(
    ("template", "where", "made"),
    [
        ("?x :n ?m", "?x :n ?k BIND(?k + 1 AS ?m)", ["?m"]),
        ("?x :n (?k + 1 AS ?m)", "?x :n ?k", None),
        ("?x :n ?m . ?m :of ?x", "?x :n ?k BIND(IRI(CONCAT(STR(?k), 'a')) AS ?m)", ["?m", "?m"]),
        ("?y :p [] ", "?x :p ?y", ["blank nodes"]),
        ("?x :n ?m", "?x :n ?k BIND(?k + 1 AS ?m) FILTER(?m < 9)", []),
        ("?x :n ?m", "?x :n ?k BIND(?k + 1 AS ?m) FILTER(?k < 9)", []),
        ("?x :n ?m", "?x :n ?k BIND(?k AS ?m)", []),
        ("?x :p ?z", "?x :p ?y . ?y :p ?z", []),
        ("?x :m ?m", "?x :n ?k BIND(?k + 1 AS ?m)", []),
        ("?x :n ?m", "{ ?x :n ?k } SEQ { ?x :p ?y } BIND(?k + 1 AS ?m)", []),
    ],
)
def test_rules_that_may_never_end_are_told(template: str, where: str, made: list[str] | None) -> None:
    text = f"{P} CONSTRUCT {{ {template} }} WHERE {{ {where} }}"
    if made is None:
        with pytest.raises(QueryError):
            parse(text, "epsparql")
        return
    found = [f.message for f in check(parse(text, "epsparql"), text) if f.code == "endless"]
    assert found == [f"the rule makes {each} from triples that it derived itself" for each in made]


def test_a_files_ending_tells_the_language() -> None:
    assert language_of("a.epsparql") == "epsparql" and language_of("a.rq") == "spaseq"


def test_strata_are_in_the_order_of_need() -> None:
    texts = [
        "CONSTRUCT { ?x :c ?y } WHERE { ?x :b ?y FILTER NOT EXISTS { ?x :a ?y } }",
        "CONSTRUCT { ?x :b ?y } WHERE { { ?x :b ?y } SEQ { ?x :p ?z } }",
        "CONSTRUCT { ?x :a ?y } WHERE { ?x :p ?y }",
    ]
    found = strata([load(P + text, "epsparql") for text in texts])
    order = [stratum.rules for stratum in found]
    assert order.index((0,)) > max(order.index((1,)), order.index((2,)))
    assert {s.rules: s.recursive for s in found} == {(0,): False, (1,): True, (2,): False}


def test_a_duration_is_compared_with_durations() -> None:
    text = f'{P} SELECT * {{ {{ ?x :p ?a }} SEQ {{ ?x :q ?b }} FILTER(getDURATION() < "10 minutes") }}'
    (found,) = [each for each in check(parse(text, "epsparql"), text) if each.code == "duration"]
    assert found.severity == "lint" and found.hint == 'write "PT10M"^^xsd:duration for 10 minutes'
    assert not [f for f in check(parse(text.replace('"10 minutes"', "5"), "epsparql")) if f.code == "duration"]
