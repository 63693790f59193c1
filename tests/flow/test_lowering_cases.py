"""Patterns evaluated case by case, for values from outside or graph by graph; each test one fact, by SPARQL's text."""

from __future__ import annotations

from collections import Counter

from flow_reference import World, answer
from loaded import load
from pyoxigraph import RdfFormat, Store, Triple, parse

from oxiseq.engine.flow.sparql import Around, compile_where
from oxiseq.grammar.rsp_algebra import RspQuery

E = "http://e/"
HEAD = f"""PREFIX : <{E}>
SELECT *
FROM NAMED WINDOW :w ON <{E}S> [RANGE 9]
FROM NAMED WINDOW :v ON <{E}T> [RANGE 9]
"""


def triples(facts: str) -> list[Triple]:
    """Of "s p o. s p o"; all are IRIs but numbers."""
    return [q.triple for q in parse(f"PREFIX : <{E}> {facts} {'.' if facts else ''}".encode(), format=RdfFormat.TURTLE)]


def answers(where: str, first: str = "", second: str = "", kb: str = "") -> Counter[tuple[str, ...]]:
    """Values by column, without their namespace, of what is bound."""
    query = load(f"{HEAD}WHERE {{ {where} }}", "rspql")
    assert isinstance(query, RspQuery)
    around = Around({w.name: i for i, w in enumerate(query.windows) if w.name is not None})
    lowered, store = compile_where(query, around), Store()
    store.extend(parse(f"PREFIX : <{E}> {kb}".encode(), format=RdfFormat.TRIG))
    total: Counter[tuple[str, ...]] = Counter()
    for row, n in answer(lowered.plan, World([triples(first), triples(second)], store)).items():
        shown = [(t.name, row[t.place]) for t in lowered.told if t.place is not None]
        total[tuple(f"{name}={term.value.removeprefix(E)}" for name, term in shown if term is not None)] += n
    return total


# --- values from outside --------------------------------------------------------------------------


def test_a_slice_inside_exists_is_of_one_row() -> None:
    where = "WINDOW :w { ?x :p ?y } FILTER EXISTS { SELECT ?x { WINDOW :v { ?x :q ?z } } ORDER BY ?x LIMIT 1 }"
    assert answers(where, ":a :p :b . :c :p :b", ":a :q :m . :c :q :m") == {("x=a", "y=b"): 1, ("x=c", "y=b"): 1}


def test_minus_inside_exists_shares_what_both_its_sides_name() -> None:
    """Not what the row has: Oxigraph counts that as shared, too."""
    apart = "{ WINDOW :v { ?z :q ?u } MINUS { WINDOW :v { ?k :r ?l } FILTER(?l = ?y) } }"
    shared = "{ WINDOW :v { ?z :q ?u } MINUS { WINDOW :v { ?z :r ?l } FILTER(?l = ?y) } }"
    facts = ":c :q :d . :c :r :b"
    assert len(answers(f"WINDOW :w {{ ?x :p ?y }} FILTER EXISTS {apart}", ":a :p :b", facts)) == 1
    assert len(answers(f"WINDOW :w {{ ?x :p ?y }} FILTER EXISTS {shared}", ":a :p :b", facts)) == 0
    assert len(answers(f"WINDOW :w {{ ?x :p ?y }} FILTER EXISTS {shared}", ":a :p :c", facts)) == 1


def test_a_variable_that_the_row_leaves_unbound_is_free_inside() -> None:
    where = """WINDOW :w { ?x :p ?y } OPTIONAL { WINDOW :w { ?x :s ?z } }
    FILTER EXISTS { WINDOW :v { ?x :q ?u } OPTIONAL { WINDOW :v { ?u :r ?z } } FILTER(?z = :m) }"""
    facts = ":a :q :n . :b :q :n . :c :q :n . :n :r :m"
    found = answers(where, ":a :p 1 . :b :p 1 ; :s :m . :c :p 1 ; :s :k", facts)
    assert found == {("x=a", "y=1"): 1, ("x=b", "y=1", "z=m"): 1}


def test_exists_inside_exists_sees_both_rows() -> None:
    where = """WINDOW :w { ?x :p ?y }
    FILTER NOT EXISTS { WINDOW :v { ?z :q ?u } FILTER NOT EXISTS { WINDOW :v { ?z :r ?k } FILTER(?k = ?x) } }"""
    assert answers(where, ":a :p 1 . :b :p 1", ":c :q 1 ; :r :a . :d :q 1 ; :r :a, :b") == {("x=a", "y=1"): 1}


def test_exists_may_be_nested_deeply() -> None:
    """A pattern is compiled once, however deep it stands; so this ends."""
    last = "FILTER EXISTS { WINDOW :v { ?u :r ?k } FILTER(?k = ?x) }"
    inner = "{ WINDOW :v { ?z :q ?u } }"
    for _ in range(18):
        inner = f"{{ {{ WINDOW :v {{ ?z :q ?u FILTER EXISTS {inner} }} }} {last} }}"
    assert len(answers(f"WINDOW :w {{ ?x :p ?y }} FILTER EXISTS {inner}", ":a :p 1", ":c :q :d . :d :r :a")) == 1


def test_what_bind_makes_inside_exists_must_agree_with_the_row() -> None:
    where = "WINDOW :w { ?x :p ?y } FILTER EXISTS { WINDOW :v { ?z :q ?u } BIND(?u AS ?y) FILTER(?x = :a) }"
    assert answers(where, ":a :p 1, 2 . :b :p 1", ":c :q 1") == {("x=a", "y=1"): 1}


def test_what_a_sub_query_makes_inside_exists_must_agree_with_the_row() -> None:
    made = "{ SELECT ?y { WINDOW :v { ?z :q ?u } BIND(?u AS ?y) OPTIONAL { WINDOW :v { ?z :r ?x } } } }"
    assert answers(f"WINDOW :w {{ ?x :p ?y }} FILTER EXISTS {made}", ":a :p 1, 2", ":c :q 1") == {("x=a", "y=1"): 1}
    made = "{ SELECT ?y (COUNT(*) AS ?n) { WINDOW :v { ?z :q ?u } } GROUP BY (?u AS ?y) }"
    assert answers(f"WINDOW :w {{ ?x :p ?y }} FILTER EXISTS {made}", ":a :p 1, 2", ":c :q 1") == {("x=a", "y=1"): 1}


def test_an_optional_condition_with_exists_is_of_each_pair() -> None:
    where = """{ WINDOW :w { ?x :p ?y } } UNION { WINDOW :w { ?x :p ?y . ?y :s ?z } }
    OPTIONAL { WINDOW :v { ?y :q ?z } FILTER EXISTS { WINDOW :v { ?z :r ?x } } }"""
    first, second = ":a :p :b . :b :s :d", ":b :q :d"
    assert answers(where, first, f"{second} . :d :r :a") == {("x=a", "y=b", "z=d"): 2}
    assert answers(where, first, second) == {("x=a", "y=b"): 1, ("x=a", "y=b", "z=d"): 1}


# --- graph by graph -------------------------------------------------------------------------------

GRAPHS = ":g { :a :p 1 . :b :q :g } :h { :a :p 2 . :b :q :g }"


def test_a_count_in_each_graph_is_there_without_rows() -> None:
    where = "GRAPH ?g { SELECT (COUNT(*) AS ?n) { ?x :none ?y } }"
    assert answers(where, kb=GRAPHS) == {("g=g", "n=0"): 1, ("g=h", "n=0"): 1}
    where = "GRAPH ?g { SELECT (COUNT(*) AS ?n) (MIN(?y) AS ?m) { ?x :p ?y FILTER(?y > 1) } }"
    assert answers(where, kb=GRAPHS) == {("g=g", "n=0"): 1, ("g=h", "n=1", "m=2"): 1}


def test_minus_in_each_graph_is_of_that_graph() -> None:
    where = "GRAPH ?g { VALUES ?k { 1 2 } MINUS { ?x :p ?k } }"
    assert answers(where, kb=GRAPHS) == {("g=g", "k=2"): 1, ("g=h", "k=1"): 1}


def test_a_graph_whose_pattern_binds_its_name_is_of_that_name() -> None:
    where = "GRAPH ?g { ?x :q ?g MINUS { ?x :p ?k } }"
    assert answers(where, kb=GRAPHS) == {("g=g", "x=b"): 1}


def test_a_slice_in_each_graph_is_of_that_graph() -> None:
    where = "GRAPH ?g { SELECT ?k { ?x :p ?k } ORDER BY ?k LIMIT 1 }"
    assert answers(where, kb=GRAPHS) == {("g=g", "k=1"): 1, ("g=h", "k=2"): 1}


def test_a_window_inside_each_graph_is_joined_with_each() -> None:
    where = "GRAPH ?g { ?x :p ?k WINDOW :w { ?x :p ?k } }"
    assert answers(where, ":a :p 2", kb=GRAPHS) == {("g=h", "x=a", "k=2"): 1}


def test_a_graph_that_is_not_there_has_no_empty_solution() -> None:
    assert answers("GRAPH :none { OPTIONAL { ?x :p ?k WINDOW :w { ?x :p ?k } } }", ":a :p 2", kb=GRAPHS) == {}
    assert answers("GRAPH :g { OPTIONAL { ?x :q ?k WINDOW :w { ?x :p ?k } } }", ":a :p 2", kb=GRAPHS) == {(): 1}
