"""What plans look like: what is one leaf, what is asked, what is told; each test one fact."""

from __future__ import annotations

import pytest
from flow_reference import World, answer
from loaded import load
from pyoxigraph import Literal, NamedNode, Quad, Store, Triple, Variable

from oxiseq.engine.errors import OxiseqError, QueryError
from oxiseq.engine.flow.events import EventRows
from oxiseq.engine.flow.plan import (
    Asked,
    Best,
    Constant,
    FlowPlan,
    Given,
    GraphPlace,
    Group,
    Join,
    Patterns,
    Rank,
    Reach,
    WindowPlace,
    column,
)
from oxiseq.engine.flow.sparql import Around, Lowered, Matched, compile_where
from oxiseq.grammar.algebra import Call, EventName, MatchPattern
from oxiseq.grammar.rsp_algebra import RspQuery

E = "http://e/"
WINDOWS = """FROM NAMED WINDOW :w ON <http://e/S> [RANGE 9]
FROM NAMED WINDOW :v ON <http://e/T> [RANGE 9]"""
NAMED = {NamedNode(f"{E}w"): 0, NamedNode(f"{E}v"): 1}


def read(text: str, language: str = "rspql") -> RspQuery:
    query = load(f"PREFIX : <{E}>\n{text}", language)
    assert isinstance(query, RspQuery)
    return query


def lowered(where: str, head: str = "SELECT *", tail: str = "", *, asks_kb: bool = True) -> Lowered:
    query = read(f"{head}\n{WINDOWS}\nWHERE {{ {where} }}{tail}")
    return compile_where(query, Around(NAMED, (), query.default_graphs, query.named_graphs, asks_kb=asks_kb))


def plan(where: str, head: str = "SELECT *", tail: str = "") -> FlowPlan:
    return lowered(where, head, tail).plan


def forms(whole: FlowPlan, kind: type) -> list[object]:
    return [form for form in whole.forms if isinstance(form, kind)]


def leaf(whole: FlowPlan) -> Patterns:
    (found,) = forms(whole, Patterns)
    assert isinstance(found, Patterns)
    return found


def triple(s: str, p: str, o: str) -> Triple:
    return Triple(NamedNode(E + s), NamedNode(E + p), NamedNode(E + o))


# --- leaves ---------------------------------------------------------------------------------------


def test_windows_and_graphs_side_by_side_are_one_leaf() -> None:
    whole = plan("WINDOW :w { ?x :p ?y } GRAPH :g { ?y :q ?z } ?z :r ?u { WINDOW :v { ?u :p/^:q ?x } }")
    assert tuple(dict.fromkeys(leaf(whole).places)) == (
        WindowPlace(0),
        WindowPlace(1),
        GraphPlace(NamedNode(f"{E}g")),
        GraphPlace(None),
    )
    assert not forms(whole, Join)


def test_a_leaf_takes_the_conditions_on_its_variables() -> None:
    whole = plan("WINDOW :w { ?x :p ?y FILTER(?y > 1) } WINDOW :v { ?x :q ?z } FILTER(?y < ?z)")
    y, z = column(1), column(2)
    assert set(leaf(whole).filters) == {Call(">", (y, Literal(1))), Call("<", (y, z))}
    assert len(whole.forms) == 1


def test_a_condition_between_parts_that_share_nothing_is_the_leaf_s() -> None:
    whole = plan("WINDOW :w { ?x :p ?y } GRAPH :g { ?z :q ?u } FILTER(?y < ?u)")
    assert leaf(whole).filters == (Call("<", (column(1), column(3))),)


def test_names_of_variables_do_not_matter() -> None:
    assert plan("WINDOW :w { ?x :p ?y . ?y :q [] }") == plan("WINDOW :w { ?a :p ?b . ?b :q _:c }")


def test_blank_nodes_of_blocks_stay_apart() -> None:
    whole = plan("WINDOW :w { ?x :p [] } WINDOW :v { ?x :q [] }")
    assert len(leaf(whole).keys) == 3


def test_full_mappings_have_the_blank_nodes_of_where_itself() -> None:
    found = lowered("?x :p _:b . WINDOW :w { ?x :q _:c }", "SELECT ?x")
    assert found.relation.columns == (Variable("x"), Variable("oxiseq_blank_b"))
    assert [(t.name, t.place) for t in found.told] == [("x", 0)]
    assert found.compared == 2


def test_a_query_that_is_not_plain_tells_rows_apart_by_what_it_shows() -> None:
    found = lowered("?x :p _:b . WINDOW :w { ?x :q ?y }", "SELECT ?x", " ORDER BY DESC(?y)")
    assert found.relation.columns == (Variable("x"), Variable("y"))
    assert found.compared == 1
    assert found.order == (Rank(1, descending=True),)


def test_more_patterns_than_one_leaf_holds_are_several_joined() -> None:
    chain = " ".join(f"?x{i} :p ?x{i + 1} ." for i in range(70))
    found = forms(plan(f"WINDOW :w {{ {chain} }}"), Patterns)
    assert [len(each.patterns) for each in found] == [61, 9]  # type: ignore[attr-defined]


def test_what_other_parts_connect_is_leaves_of_its_own() -> None:
    where = "WINDOW :w { ?x :p ?y } VALUES (?y ?z) { (1 2) } WINDOW :v { ?z :q ?u }"
    whole = plan(where)
    assert [len(each.patterns) for each in forms(whole, Patterns)] == [1, 1]  # type: ignore[attr-defined]
    joins = [form for form in whole.forms if isinstance(form, Join)]
    assert all(whole.forms[join.left].key for join in joins)  # type: ignore[union-attr]


def test_a_default_graph_of_several_graphs_holds_each_triple_once() -> None:
    query = read("SELECT ?y FROM STREAM <http://e/S> [RANGE 9] FROM :g WHERE { :a :p ?y }")
    found = compile_where(query, Around({}, (0,), query.default_graphs))
    kb = Store()
    kb.add(Quad(*triple("a", "p", "b"), NamedNode(f"{E}g")))
    bag = answer(found.plan, World([[triple("a", "p", "b"), triple("a", "p", "c")]], kb))
    assert sorted(bag.values()) == [1, 1]


# --- the knowledge base ---------------------------------------------------------------------------


def test_what_is_no_conjunction_is_asked_as_a_whole() -> None:
    whole = plan("WINDOW :w { ?x :p ?y } GRAPH :g { ?y :q ?z OPTIONAL { ?z :r ?u } FILTER(!BOUND(?u)) }")
    (asked,) = forms(whole, Asked)
    assert "OPTIONAL" in asked.text and "FILTER" in asked.text  # type: ignore[attr-defined]


def test_what_is_joined_with_a_path_is_asked_with_it() -> None:
    whole = plan("WINDOW :w { ?x :p ?y } ?y :q+ ?z . GRAPH :g { ?z :r ?u }")
    (asked,) = forms(whole, Asked)
    assert "<http://e/q>+" in asked.text and "GRAPH <http://e/g>" in asked.text  # type: ignore[attr-defined]
    assert tuple(dict.fromkeys(leaf(whole).places)) == (WindowPlace(0),)


def test_a_function_that_answers_otherwise_each_time_is_not_asked() -> None:
    assert not forms(plan("WINDOW :w { ?x :p ?y } OPTIONAL { ?y :q ?z BIND(RAND() AS ?r) }"), Asked)


def test_paths_over_windows_are_operators() -> None:
    whole = plan("WINDOW :w { ?x (:p/:q)+ ?y }")
    assert forms(whole, Reach) and not forms(whole, Asked)


@pytest.mark.parametrize(
    "path, count",
    [
        ("(:p|:q)", 2),
        ("(:p|:p)", 2),
        ("!(:r)", 2),
        ("!(:r|^:r)", 4),
        ("(:p|:q)/:p", 2),
        ("(:p|:q)+", 1),
        ("(:p|:q)?", 1),
        ("^(:p|:q)/^(:p|:q)", 4),
        ("(:p/:q)*", 1),
        ("(:p|:q)/(:p|:q)?", 2),
    ],
)
def test_paths_have_the_multiplicity_that_sparql_says(path: str, count: int) -> None:
    """Alternatives, sequences and negated sets are bags, what repeats is a set."""
    loop = [triple("a", "p", "a"), triple("a", "q", "a")]
    assert answer(plan(f"WINDOW :w {{ :a {path} :a }}"), World([loop])) == {(): count}


def test_a_path_of_no_steps_has_its_constant_ends() -> None:
    assert answer(plan("WINDOW :w { :a :p* ?y }"), World([[]])) == {(NamedNode(f"{E}a"),): 1}
    assert not answer(plan("WINDOW :w { :a :p+ ?y }"), World([[]]))


def test_graph_over_a_variable_is_refused_where_nothing_is_asked() -> None:
    with pytest.raises(OxiseqError, match="GRAPH"):
        lowered("GRAPH ?g { ?x :p ?y }", asks_kb=False)


def test_graphs_that_from_named_leaves_out_are_not_there() -> None:
    query = read(f"SELECT * {WINDOWS} FROM NAMED :h WHERE {{ GRAPH :g {{ ?x :p ?y }} }}")
    found = compile_where(query, Around(NAMED, (), (), query.named_graphs))
    assert forms(found.plan, Constant) and not forms(found.plan, Patterns)
    query = read(f"SELECT * {WINDOWS} FROM NAMED :h WHERE {{ GRAPH ?g {{ ?x :p ?y }} }}")
    (asked,) = forms(compile_where(query, Around(NAMED, (), (), query.named_graphs)).plan, Asked)
    assert "?g IN (<http://e/h>)" in asked.text  # type: ignore[attr-defined]


# --- what is told ---------------------------------------------------------------------------------


def test_ask_is_one_row_of_no_columns() -> None:
    found = lowered("WINDOW :w { ?x :p ?y }", "ASK")
    bag = answer(found.plan, World([[triple("a", "p", "b"), triple("a", "p", "c")], []]))
    assert bag == {(): 1} and found.told == ()


def test_a_limit_is_of_the_rows_by_order_then_by_all_their_columns() -> None:
    whole = plan("WINDOW :w { ?x :p ?y }", "SELECT ?x ?y", " ORDER BY ?y LIMIT 3 OFFSET 1")
    assert forms(whole, Best) == [Best(0, (), (Rank(1),), 1, 4)]


def test_now_is_told_and_no_part_of_the_flow() -> None:
    found = lowered("WINDOW :w { ?x :p ?y }", "SELECT ?x (NOW() AS ?t) (?t > ?y AS ?later)")
    assert len(found.plan.forms) == 1
    assert [t.place for t in found.told] == [0, None, None]
    assert found.told[2].expression == Call(">", (Call("NOW", ()), column(1)))


@pytest.mark.parametrize(
    "where, tail",
    [
        ("WINDOW :w { ?x :p ?y } FILTER(?y < NOW())", ""),
        ("WINDOW :w { ?x :p ?y BIND(NOW() AS ?z) }", ""),
        ("WINDOW :w { ?x :p ?y }", " ORDER BY ?t"),
        ("{ SELECT (NOW() AS ?z) { WINDOW :w { ?x :p ?y } } }", ""),
    ],
)
def test_now_elsewhere_is_refused(where: str, tail: str) -> None:
    with pytest.raises(QueryError, match="NOW"):
        lowered(where, "SELECT ?x (NOW() AS ?t)", tail)


def test_now_beside_a_variable_that_rows_do_not_have_is_refused() -> None:
    with pytest.raises(QueryError, match=r"\?y, which the rows do not have"):
        lowered("WINDOW :w { ?x :p ?y }", "SELECT DISTINCT ?x (NOW() > ?y AS ?late)")
    assert lowered("WINDOW :w { ?x :p ?y }", "SELECT DISTINCT ?x (NOW() > ?x AS ?late)").told[1].place is None


def test_a_match_gives_rows_and_their_times() -> None:
    text = """SELECT ?x FROM NAMED <http://e/S> WIN [RANGE 9 SLIDE 1] AS :w
    EVENT ON :w { ?x :p ?y } AS E1 WHERE { MATCH { E1 } FILTER EXISTS { MATCH { E1 } } }"""
    query = read(text, "rsepql")
    (match,) = (e for e in query.body.where.elements if isinstance(e, MatchPattern))
    x, y = match.variables
    again, timed = Matched(EventName("E1"), (x, y)), Matched(EventName("E1"), (x, y), timed=True)
    rows = EventRows("E1", (x, y), frozenset([x, y]))
    found = compile_where(query, Around(NAMED, (), matches={match: again}, timed=timed, events={"E1": rows}))
    assert forms(found.plan, Given) == [Given("E1", 4, (2, 3))]
    assert found.times == 2 and found.told[0].place == 0


# --- groups and cases -----------------------------------------------------------------------------


def test_aggregates_without_error_or_distinct_are_one_group() -> None:
    whole = plan("WINDOW :w { ?x :p ?y }", "SELECT ?x (COUNT(*) AS ?n) (SUM(?y) AS ?s)", " GROUP BY ?x")
    (group,) = forms(whole, Group)
    assert [s.name for s in group.sums] == ["COUNT", "SUM"]  # type: ignore[attr-defined]
    assert not forms(whole, Join)


def test_exists_whose_variables_are_bound_has_no_cases() -> None:
    where = "WINDOW :w { ?x :p ?y } FILTER EXISTS { WINDOW :v { ?x :q ?z } OPTIONAL { WINDOW :w { ?x :r ?u } } }"
    assert len(forms(plan(where), Patterns)) == 3
    assert len(forms(plan(where), Join)) == 3  # OPTIONAL's pairs, what it finds none for, EXISTS by key


def test_exists_inside_a_group_sees_that_group_alone() -> None:
    """SPARQL's bottom-up evaluation (semantics.md 4); Oxigraph lets ?a in when it joins."""
    where = "WINDOW :w { ?b :p ?a } { WINDOW :v { ?b :p ?c FILTER NOT EXISTS { ?a :q ?m } } }"
    windows = [[triple("x", "p", "y")], [triple("x", "p", "z"), triple("w", "q", "m")]]
    assert not answer(plan(where), World(windows))
