"""RDF 1.2: triple terms in events, knowledge base, patterns and CONSTRUCT."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyoxigraph import Literal, NamedNode, QuerySolutions, RdfFormat, Store, Triple

import oxiseq

EVENT = "<urn:a> <urn:said> <<( <urn:x> <urn:p> 1 )>> ."
TERM = Triple(NamedNode("urn:x"), NamedNode("urn:p"), Literal(1))
ONE = '"1"^^<http://www.w3.org/2001/XMLSchema#integer>'


def query(pattern: str, form: str = "SELECT *") -> str:
    return f"{form} FROM STREAM S <urn:s> WHERE {{ SEQ(A) DEFINE GPM A ON S {{ {pattern} }} }}"


def run(text: str, event: str = EVENT, **options: Any) -> list[Any]:
    return list(oxiseq.run(text, {"urn:s": [(1, event)]}, **options))


def test_a_variable_is_bound_to_the_whole_term() -> None:
    (match,) = run(query("?a <urn:said> ?t"))
    assert match["t"] == TERM


def test_terms_that_are_equal_join() -> None:
    text = query("?a <urn:said> ?t . ?b <urn:heard> ?t")
    assert len(run(text, EVENT + EVENT.replace("said", "heard"))) == 1
    assert len(run(text, EVENT + EVENT.replace("said", "heard").replace("1", "2"))) == 0


def test_the_knowledge_base_joins_on_them() -> None:
    text = query("?a <urn:said> ?t GRAPH <urn:g> { ?who <urn:knows> ?t }")
    known = f"<urn:ann> <urn:knows> <<( <urn:x> <urn:p> {ONE} )>> <urn:g> ."
    assert [match["who"] for match in run(text, kb=known)] == [NamedNode("urn:ann")]
    assert run(text, kb=known.replace('"1"', '"2"')) == []


def test_construct_tells_them() -> None:
    (match,) = run(query("?a <urn:said> ?t", "CONSTRUCT { ?a <urn:told> ?t }"))
    assert match.graph == (Triple(NamedNode("urn:a"), NamedNode("urn:told"), TERM),)


def test_reifiers_are_triples() -> None:
    pattern = "?r <http://www.w3.org/1999/02/22-rdf-syntax-ns#reifies> ?t . ?r <urn:by> ?who"
    (match,) = run(query(pattern), "<< <urn:x> <urn:p> 1 >> <urn:by> <urn:ann> .")
    assert (match["t"], match["who"]) == (TERM, NamedNode("urn:ann"))


# --- patterns that look into them: Oxigraph's own answers over the same graph ----------------------------

REIFIES = "<http://www.w3.org/1999/02/22-rdf-syntax-ns#reifies>"
GRAPH = f"""<urn:r> {REIFIES} <<( <urn:a> <urn:p> <urn:b> )>> ; <urn:by> <urn:ann> ; <urn:sure> 0.9 .
<urn:s> {REIFIES} <<( <urn:b> <urn:p> <<( <urn:a> <urn:p> 1 )>> )>> ; <urn:by> <urn:ann> .
<urn:t> {REIFIES} <<( <urn:a> a <urn:a> )>> , <urn:b> ; <urn:on> <urn:r> .
<urn:a> <urn:p> <urn:b> , <<( <urn:a> <urn:p> <urn:a> )>> , "x"@en ;
  <urn:n> <<( <urn:a> <urn:p> <<( <urn:a> <urn:p> <urn:a> )>> )>> ."""
STORE = Store()
STORE.load(GRAPH.encode(), RdfFormat.TURTLE)
PATTERNS = (
    "?r ?q <<( ?s ?p ?o )>>",
    "?r <urn:none> <<( ?s ?p ?o )>>",
    "?r ?q <<( <urn:a> <urn:p> ?o )>>",
    "?r ?q <<( ?s <urn:p> <urn:b> )>>",
    "?r ?q <<( ?s a ?o )>>",
    "?r ?q <<( ?s ?p ?s )>>",
    "?r ?q <<( ?r ?p ?o )>>",
    "?r ?q <<( ?r ?q ?r )>>",
    "?r ?q <<( ?s ?q ?o )>>",
    "?r ?q <<( ?s ?p 1 )>>",
    "?r ?q <<( ?s ?p <<( ?x ?y 1 )>> )>>",
    "?r ?q <<( ?s ?p <<( ?s ?p ?x )>> )>>",
    "?r ?q <<( ?s ?p <<( ?x ?p ?x )>> )>>",
    "?r ?q <<( <urn:a> <urn:p> <urn:b> )>>",
    "<urn:r> ?q <<( ?s ?p ?o )>> . ?s ?p ?o",
    "?r ?q <<( ?s ?p ?o )>> ; <urn:by> ?who",
    "?r ?q <<( ?s ?p ?o )>> , ?other",
    f"?r ({REIFIES}|<urn:p>) <<( ?s ?p ?o )>>",
    f"?r <urn:on>*/{REIFIES} <<( ?s ?p ?o )>>",
    f"?r <urn:by> ?who OPTIONAL {{ ?r {REIFIES} <<( ?s ?p <urn:b> )>> }}",
    "{ ?r ?q <<( ?s ?p 1 )>> } UNION { ?r ?q <<( ?s a ?o )>> }",
    "?r ?q ?t MINUS { ?r ?q <<( ?s ?p ?o )>> }",
    "?r <urn:by> ?who FILTER EXISTS { ?r ?q <<( ?s ?p <urn:b> )>> }",
    "?r <urn:by> ?who FILTER NOT EXISTS { ?r ?q <<( ?s ?p <urn:b> )>> }",
    "?r ?q ?t FILTER(isTRIPLE(?t)) BIND(SUBJECT(?t) AS ?s) BIND(PREDICATE(?t) AS ?p) BIND(OBJECT(?t) AS ?o)",
    "?r ?q ?t FILTER(?t = <<( <urn:a> <urn:p> <urn:b> )>>)",
    "?r <urn:by> ?who . ?s ?p ?o BIND(<<( ?s ?p ?o )>> AS ?t)",
    "?r <urn:by> ?who BIND(TRIPLE(<urn:a>, <urn:p>, <<( ?r <urn:by> ?who )>>) AS ?t)",
    "?r <urn:by> ?who BIND(TRIPLE(1, <urn:p>, ?who) AS ?t)",
)


def answers(solutions: Any, names: Sequence[str]) -> list[tuple[str, ...]]:
    """Terms as texts, in one order."""
    return sorted(tuple(str(row[name]) if name in row else "" for name in names) for row in solutions)


def expected(pattern: str) -> tuple[list[str], list[tuple[str, ...]]]:
    found = STORE.query(f"SELECT * {{ {pattern} }}")
    assert isinstance(found, QuerySolutions)
    names = sorted(v.value for v in found.variables)
    rows = [{name: row[name] for name in names if row[name] is not None} for row in found]
    return names, answers(rows, names)


@pytest.mark.parametrize("pattern", PATTERNS)
def test_patterns_find_what_the_store_finds(pattern: str) -> None:
    """Over one event, in each language that has patterns of events."""
    names, rows = expected(pattern)
    assert answers(run(query(pattern), GRAPH), names) == rows
    listed = " ".join(f"?{name}" for name in names)
    window = f"SELECT {listed} FROM NAMED WINDOW <urn:w> ON <urn:s> [RANGE PT1S STEP PT1S] "
    window += f"WHERE {{ WINDOW <urn:w> {{ {pattern} }} }}"
    assert answers(run(window, GRAPH, language="rspql"), names) == rows
    intervals = f"SELECT {listed} FROM STREAM S <urn:s> WHERE {{ {{ {pattern} }} }}"
    assert answers(run(intervals, GRAPH, language="epsparql"), names) == rows


def test_no_case_is_empty_by_mistake() -> None:
    assert sum(bool(expected(pattern)[1]) for pattern in PATTERNS) == len(PATTERNS) - 2


TERMS = st.sampled_from(["?s", "?o", "<urn:a>", "<urn:b>"])
TRIPLE_TERMS = st.recursive(
    st.builds("<<( {} {} {} )>>".format, TERMS, st.sampled_from(["?p", "<urn:p>", "a"]), TERMS),
    lambda inner: st.builds("<<( {} {} {} )>>".format, TERMS, st.sampled_from(["?p", "<urn:p>"]), inner),
    max_leaves=2,
)


TRIPLES = st.builds("{} {} {}".format, st.sampled_from(["?r", "?s"]), st.sampled_from(["?q", "?p"]), TRIPLE_TERMS)


@given(st.lists(TRIPLES, min_size=1, max_size=2))
def test_any_two_of_them_join_as_in_the_store(triples: list[str]) -> None:
    pattern = " . ".join(triples)
    names, rows = expected(pattern)
    assert answers(run(query(pattern), GRAPH), names) == rows


@pytest.mark.parametrize(
    ("form", "language"),
    [
        ("FROM STREAM S <urn:s> WHERE { SEQ(A) DEFINE GPM A ON S { %s } }", "spaseq"),
        ("FROM STREAM S <urn:s> WHERE { { %s } }", "epsparql"),
        ("FROM NAMED WINDOW <urn:w> ON <urn:s> [RANGE PT1S STEP PT1S] WHERE { WINDOW <urn:w> { %s } }", "rspql"),
    ],
)
def test_templates_make_them(form: str, language: Any) -> None:
    text = "CONSTRUCT { ?a <urn:told> <<( ?who <urn:heard> <<( ?x <urn:p> ?n )>> )>> } "
    text += form % "?a <urn:said> <<( ?x <urn:p> ?n )>> ; <urn:by> ?who"
    (match,) = run(text, EVENT + " <urn:a> <urn:by> <urn:ann> .", language=language)
    made = Triple(NamedNode("urn:ann"), NamedNode("urn:heard"), TERM)
    assert match.graph == (Triple(NamedNode("urn:a"), NamedNode("urn:told"), made),)


def test_the_knowledge_base_is_looked_into() -> None:
    text = query("?a <urn:said> <<( ?x <urn:p> ?n )>> GRAPH <urn:g> { ?who <urn:knows> <<( ?x ?q ?n )>> }")
    known = f"<urn:ann> <urn:knows> <<( <urn:x> <urn:q> {ONE} )>> <urn:g> ."
    assert [match["q"] for match in run(text, kb=known)] == [NamedNode("urn:q")]
    assert run(text, kb=known.replace('"1"', '"2"')) == []


def test_events_follow_each_other_by_the_parts_of_their_terms() -> None:
    text = "SELECT ?x ?y FROM STREAM S <urn:s> WHERE { SEQ(A; B) "
    text += "DEFINE GPM A ON S { ?a <urn:said> <<( ?x <urn:p> ?n )>> } "
    text += "DEFINE GPM B ON S { ?b <urn:said> <<( ?y <urn:p> ?m )>> FILTER(?y != ?x && ?m = ?n) } }"
    stream = [(1, EVENT), (2, EVENT.replace("urn:x", "urn:y")), (3, EVENT.replace("1 )", "2 )"))]
    (match,) = oxiseq.run(text, {"urn:s": stream})
    assert (match["x"], match["y"]) == (NamedNode("urn:x"), NamedNode("urn:y"))


@pytest.mark.parametrize(
    ("pattern", "at", "said"),
    [
        ("[] <urn:said> <<( ?x <urn:p> ?n )>>", "[] <urn:said>", "not a blank node"),
        ("?a <urn:said> <<( ?x <urn:p> _:b )>>", "_:b", "a blank node is not allowed"),
        ("?a <urn:said> ( <<( ?x <urn:p> ?n )>> )", "<<( ?x", "in a collection"),
        ("<<( ?x <urn:p> ?n )>> <urn:said> ?a", "<<( ?x", "a triple term here"),
        ("<< ?x <urn:p> ?n >> <urn:said> ?a", "<< ?x", "a reified triple in a pattern"),
        ("?x <urn:p> ?n {| <urn:said> ?a |}", "| <urn", "an annotation in a pattern"),
        ("?a <urn:said> <<( ?x <urn:p> ?n )", ")", "unexpected"),
        ("?a <urn:said> <<( ?x <urn:p>/<urn:q> ?n )>>", "/", "unexpected"),
    ],
)
@pytest.mark.parametrize("language", ["spaseq", "rspql", "epsparql"])
def test_what_is_not_read_is_named(pattern: str, at: str, said: str, language: Any) -> None:
    text = query(pattern) if language == "spaseq" else f"SELECT * WHERE {{ {pattern} }}"
    if language == "epsparql":
        text = f"SELECT ?x FROM STREAM S <urn:s> WHERE {{ {{ {pattern} }} }}"
    with pytest.raises(oxiseq.QueryError, match=said) as caught:
        run(text, language=language)
    assert text[caught.value.span.start :].startswith(at)


def nested(levels: int, inner: str) -> str:
    return "<<( <urn:a> <urn:p> " * levels + inner + " )>>" * levels


@pytest.mark.parametrize("pattern", ["?a ?q %s", "?a ?q ?x FILTER(?a = %s)", "?a ?q ?x BIND(%s AS ?z)"])
def test_terms_in_terms_have_an_end(pattern: str) -> None:
    assert isinstance(oxiseq.Query(query(pattern % nested(50, "1"))), oxiseq.Query)
    with pytest.raises(oxiseq.QueryError, match="nested deeper than 50"):
        run(query(pattern % nested(51, "1")))


def test_a_term_that_oxigraph_does_not_read_again_is_a_term() -> None:
    """Calls make it: deeper than its parser goes."""
    made = "TRIPLE(<urn:a>, <urn:p>, " * 90 + "?r" + ")" * 90
    rows = expected("?r ?q ?x")[1]
    assert len(run(query(f"?r ?q ?x FILTER(?x != {made})"), GRAPH)) == len(rows)


def test_as_many_of_them_are_joined_in_the_knowledge_base_as_of_other_triples() -> None:
    terms = " . ".join(f"?a ?q <<( ?s{n} ?p ?o )>>" for n in range(101))
    with pytest.raises(oxiseq.QueryError, match="100 are allowed"):
        run(query(f"?a ?q ?x GRAPH <urn:g> {{ {terms} }}"))


NO_VARIABLE = "<urn:a> <urn:said> <<( <urn:x> <urn:p> 1 )>>"


def test_one_without_a_variable_decides_to_which_partition_an_event_belongs() -> None:
    text = "SELECT ?k FROM STREAM S <urn:s> PARTITION BY ?k WHERE { SEQ(A, B) "
    text += f"DEFINE GPM A ON S {{ ?a <urn:k> ?k . {NO_VARIABLE} }} DEFINE GPM B ON S {{ ?b <urn:l> ?k }} }}"
    stream = [(1, f"<urn:b> <urn:k> 1 . {EVENT}"), (2, "<urn:b> <urn:k> 1 ."), (3, "<urn:b> <urn:l> 1 .")]
    assert len(list(oxiseq.run(text, {"urn:s": stream}))) == 1


def test_one_without_a_variable_has_no_interval() -> None:
    text = f"SELECT ?x FROM STREAM S <urn:s> WHERE {{ {{ {NO_VARIABLE} . ?x ?y ?z }} }}"
    with pytest.raises(oxiseq.QueryError, match="needs a variable here") as caught:
        run(text, language="epsparql")
    assert text[caught.value.span.start :].startswith(NO_VARIABLE)


def test_a_template_makes_none_beside_group_by() -> None:
    text = "CONSTRUCT { ?o <urn:told> <<( ?o <urn:n> 1 )>> } FROM NAMED WINDOW <urn:w> ON <urn:s> "
    text += "[RANGE PT1S STEP PT1S] WHERE { WINDOW <urn:w> { ?s <urn:p> ?o } } GROUP BY ?o"
    with pytest.raises(oxiseq.QueryError, match="cannot be made beside GROUP BY") as caught:
        run(text, language="rspql")
    assert text[caught.value.span.start :].startswith("?o <urn:told> <<(")


def test_a_blank_node_in_a_term_is_refused() -> None:
    with pytest.raises(oxiseq.EventError, match="a triple term that holds a blank node is not supported"):
        run(query("?a <urn:said> ?t"), "<urn:a> <urn:said> <<( _:x <urn:p> 1 )>> .")
