"""CEQL's conditions on the knowledge base, `y[GRAPH <kb> (k) { ... }]`, against the reference; live, saved, refused."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import fields, is_dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from ceql_answers import answer, as_pairs, check
from ceql_strategies import VOCAB, CeqlOptions, CeqlSituation, ceql_events
from ceql_tables import as_table
from hypothesis import given
from hypothesis import strategies as st
from loaded import load
from pyoxigraph import Literal, NamedNode, Quad, Variable
from strategies import Dice

import oxiseq
from oxiseq.engine.errors import OxiseqError
from oxiseq.engine.events.encode import encode_events
from oxiseq.engine.plan.joined import compile_joined
from oxiseq.engine.run.joined import JoinedRun
from oxiseq.engine.snapshot.saving import restore, save
from oxiseq.engine.terms.dictionary import TermDictionary
from oxiseq.grammar.algebra import Call, Expression
from oxiseq.grammar.ceql.joins import condition_of, first_graph
from oxiseq.grammar.errors import QueryError
from oxiseq.grammar.parts import parts
from oxiseq.grammar.render import render
from oxiseq.sources.knowledge import knowledge_of

KB = "http://e/kb"
DECIMAL = NamedNode("http://www.w3.org/2001/XMLSchema#decimal")
TERMS = [
    Literal(1),
    Literal(2),
    Literal(3),
    Literal(2.0),
    Literal("2"),
    Literal(True),
    Literal("x"),
    Literal("y"),
    Literal("2.5", datatype=DECIMAL),
]
CONDITIONS = [
    "G1",
    "NOT G1",
    "v > 1 AND G1",
    "v = 2 OR G1",
    "NOT (w = 1 OR G1)",
    "G1 AND NOT G1k",
    "G2",
    "NOT G2",
    "v >= {0}.v OR G2",
    "G2 AND v != {0}.v",
]
GRAPHS = {
    "G1k": f"GRAPH <{KB}> (k) {{ ?n :rival ?k }}",
    "G1": f"GRAPH <{KB}> (v) {{ ?n :rival ?v }}",
    "G2": f"GRAPH <{KB}> (v, {{0}}.v AS other) {{ ?n :name ?other ; :rival ?v . FILTER(isIRI(?n)) }}",
}
FORMULAS = [
    "A AS x; B AS y",
    "A AS x; B+ AS y",
    "A AS x : (B OR C) AS y",
    "A AS x; (B AS y; C)+",
    "A AS x; C AS z; B AS y",
]
Rows = list[tuple[Literal, Literal]]


def situation(seed: int) -> tuple[CeqlSituation, Rows]:
    dice = Dice(seed)
    condition = dice.pick(CONDITIONS)
    for name, text in GRAPHS.items():
        condition = condition.replace(name, text)
    who = dice.pick(["y", "y", "y", "x"]) if "{0}" not in condition else "y"
    lines = [f"VOCAB <{VOCAB}> SELECT {dice.pick(['', '', 'NEXT ', 'LAST ', 'MAX '])}* FROM S"]
    lines += [f"WHERE {dice.pick(FORMULAS)} FILTER {who}[{condition.replace('{0}', 'x')}]"]
    if dice.chance(30):
        lines.append("PARTITION BY [k]")
    if dice.chance(50):
        lines.append(f"WITHIN {dice.pick(['3 EVENTS', '5 EVENTS', '0.000004 SECONDS'])}")
    if dice.chance(30):
        lines.append(f"CONSUME BY {dice.pick(['ANY', 'PARTITION', 'NONE'])}")
    if dice.chance(15):
        lines.append("LIMIT 1")
    text = "\n".join(lines)
    if "PARTITION BY [" not in text:
        text = text.replace("CONSUME BY PARTITION", "CONSUME BY ANY")
    rows = [(dice.pick(TERMS), dice.pick(TERMS)) for _ in range(dice.pick([0, 2, 4, 8]))]
    return CeqlSituation(text, ("S",), ceql_events(dice, ("S",), CeqlOptions(most=12))), rows


def knowledge(rows: Rows, store: oxiseq.Store | None = None) -> oxiseq.Store:
    """Each row is a node with a name and a rival."""
    store = oxiseq.Store() if store is None else store  # an empty one is false
    for number, row in enumerate(rows):
        for predicate, term in zip(("name", "rival"), row, strict=True):
            node = NamedNode(f"http://e/n{number}")
            store.add(Quad(node, NamedNode(VOCAB + predicate), term, NamedNode(KB)))
    return store


def decided(value: Any, rows: Rows) -> Any:
    """A query whose conditions on the knowledge base are comparisons with what is in it."""
    if isinstance(value, Call) and (condition := condition_of(value)) is not None:
        first, *other = (each for _, each in condition.given)
        bound, found = same(first, first), [same(first, rival) for _, rival in rows]
        if other:
            bound = Call("&&", (bound, same(other[0], other[0])))
            found = [Call("&&", (each, same(other[0], name))) for each, (name, _) in zip(found, rows, strict=True)]
        any_: Expression = Literal(False)
        for each in found:
            any_ = Call("||", (any_, each))
        return Call("IF", (bound, any_, Literal(False)))
    if isinstance(value, tuple):
        return tuple(decided(each, rows) for each in value)
    if is_dataclass(value) and not isinstance(value, type):
        return replace(value, **{f.name: decided(getattr(value, f.name), rows) for f in fields(value) if f.init})
    return value


def same(a: Expression, b: Expression) -> Call:
    return Call("SAMETERM", (a, b))


@given(st.integers(0, 2**62))
def test_random_conditions(seed: int) -> None:
    """Over graphs and over tables, as the reference with each condition spelled out."""
    case, rows = situation(seed)
    try:
        query = load(case.text, "ceql")
    except QueryError as refused:  # x may hold no single event, or y may stand in several places
        assert "join" in str(refused) or "holds" in str(refused) or "GRAPH" in str(refused)
        return
    assert load(render(query), "ceql") == query
    spelled, kb = decided(query, rows), knowledge(rows)
    for form in (as_pairs, as_table) if Dice(seed).chance(30) else (as_pairs,):
        check(case, answer(case, form, kb=kb), spelled)
    kb.close()


PATTERNS = {
    "k": [
        "?n :name ?k . FILTER(?k != 'z')",
        "{ ?n :name ?k } { ?m :rival ?r FILTER(?k = 'y') }",
        "?n :rival ?k . { ?m :name ?r } UNION { ?m :rival ?r FILTER(?k = 'x') }",
        "?n :name ?k . _:b :rival ?r",
    ],
    "v": [
        "VALUES ?v { UNDEF 1 2 }",
        "VALUES ?v { 1 2 }",
        "?n :name ?r OPTIONAL { ?n :rival ?v }",
        "OPTIONAL { ?n :rival ?v }",
        "{ ?n :rival ?v } UNION { ?n :name ?w FILTER(?w > ?v) }",
        "?n :rival ?w . BIND(?w + 1 AS ?v)",
    ],
}


def test_a_condition_holds_alone_where_it_holds_under_or() -> None:
    """Alone it is joined if it can be, under OR it is asked of each event: with the event's value put into it."""
    rows = [(Literal("x"), Literal(1)), (Literal("y"), Literal(2)), (Literal("z"), Literal("x"))]
    kb = knowledge(rows)
    events = [(i, f"_:e a <{VOCAB}B> ; <{VOCAB}k> '{k}' ; <{VOCAB}v> {i} .") for i, k in enumerate("xyzw")]
    found = {}
    for attribute, patterns in PATTERNS.items():
        for pattern in patterns:
            graph = f"GRAPH <{KB}> ({attribute}) {{ {pattern} }}"
            texts = [
                f"VOCAB <{VOCAB}> SELECT * FROM S WHERE B AS y FILTER y[{each}]"
                for each in (graph, f"{graph} OR 1 = 2")
            ]
            alone, asked = (spans(oxiseq.run(text, {"S": events}, language="ceql", kb=kb)) for text in texts)
            assert alone == asked, pattern
            found[pattern] = len(alone)
    assert found["VALUES ?v { UNDEF 1 2 }"] == 4 and found["OPTIONAL { ?n :rival ?v }"] == 4
    kb.close()


@pytest.mark.parametrize(
    ("pattern", "joined"),
    [
        ("?a :name ?k ; :rival ?v", True),
        ("?a :name ?k . _:b :of ?a ; :rival ?v", True),
        ("VALUES (?k ?v) { ('x' 1) } ?a :name ?k . ?b :name ?v", True),
        ("?a :rival/:name ?k . ?v :of ?a . FILTER(?k != ?v) :x :y :z", True),
        ("?a :name ?k . ?b :name ?v", False),
        ("?a :name ?k . ?b :name ?v FILTER(?k = ?v)", False),
        ("?a :name ?k ; :rival ?v . ?b :rival ?c", False),
        ("_:a :name ?k . _:b :name ?v", False),
    ],
)
def test_parts_that_share_no_variable_are_not_fetched_as_their_product(pattern: str, joined: bool) -> None:
    text = f"VOCAB <{VOCAB}> SELECT * FROM S WHERE B AS y FILTER y[GRAPH <{KB}> (k, v) {{ {pattern} }}]"
    found = first_graph(load(text, "ceql").formula)  # type: ignore[union-attr]
    assert found is not None and found[1].joinable is joined


def test_conditions_may_name_the_same_blank_node() -> None:
    one, other = (f"GRAPH <{KB}> (k) {{ _:b :{p} ?k }}" for p in ("name", "rival"))
    events = [(i, event("B", k)) for i, k in enumerate("xyz")]
    for condition, expected in ((f"{one} AND {other}", []), (f"{one} OR {other}", [(0, 0), (1, 1)])):
        text = f"VOCAB <{VOCAB}> SELECT * FROM S WHERE B AS y FILTER y[{condition}]"
        assert spans(oxiseq.run(text, {"S": events}, language="ceql", kb=knowledge(X_Y))) == expected


# --- live, saved, explained ------------------------------------------------------------------------------

RIVALS = (
    f"VOCAB <{VOCAB}> SELECT * FROM S WHERE A AS x; B AS y "
    f"FILTER y[GRAPH <{KB}> (k, x.k AS j) {{ ?n :name ?j ; :rival ?k }}] WITHIN 10 SECONDS"
)
X_Y = [(Literal("x"), Literal("y"))]


def event(kind: str, k: str) -> str:
    return f"_:e a <{VOCAB}{kind}> ; <{VOCAB}k> '{k}' ."


def spans(matches: Iterable[oxiseq.Match]) -> list[tuple[int, int]]:
    return [(m.positions.first, m.positions.last) for m in matches]


def test_a_change_of_the_knowledge_base_holds_for_later_events() -> None:
    store = knowledge([])
    query = store.register(RIVALS, language="ceql")
    stream = store.stream(f"{VOCAB}S")
    stream.push(event("A", "x"), 1)
    stream.push(event("B", "y"), 2)
    assert spans(query.poll("0s")) == []
    knowledge(X_Y, store)
    stream.push(event("B", "y"), 3)
    stream.push(event("B", "z"), 4)
    assert spans(query.poll("0s")) == [(0, 2)]
    store.update(f"DROP GRAPH <{KB}>")
    stream.push(event("B", "y"), 5)
    assert spans(query.poll("0s")) == [] and query.events == 5
    store.close()


def test_attributes_are_those_of_events_alone() -> None:
    """`rival` is a predicate of the knowledge base: an event with two of them is a tuple event all the same."""
    kb, rivals = knowledge(X_Y), f" ; <{VOCAB}rival> 1, 2 ."
    events = [(1, event("A", "x").replace(" .", rivals)), (2, event("B", "y").replace(" .", rivals))]
    assert spans(oxiseq.run(RIVALS, {"S": events}, language="ceql", kb=kb)) == [(0, 1)]


def test_a_saved_run_asks_again() -> None:
    query, kb, terms = load(RIVALS, "ceql"), knowledge(X_Y), TermDictionary()
    run = JoinedRun(compile_joined(query, terms), terms, knowledge_of(kb))
    assert run.reads_kb
    run.push(f"{VOCAB}S", encode_events([(1, event("A", "x"))], terms))
    run.advance()
    data, terms = save(run, terms), TermDictionary()
    run = restore(data, compile_joined(query, terms), terms, knowledge_of(kb))
    run.push(f"{VOCAB}S", encode_events([(2, event("B", "y")), (3, event("B", "x"))], terms))
    run.close()
    assert [b.end.tolist() for b in run.advance()] == [[1]]


def test_explain_why_and_translate() -> None:
    query, kb = oxiseq.Query(RIVALS, language="ceql"), knowledge(X_Y)
    assert "runner: live keys, since y[GRAPH" in str(query.explain())
    alone = oxiseq.Query(RIVALS.replace("(k, x.k AS j) { ?n :name ?j ; ", "(k) { ?n "), language="ceql")
    assert "asks the knowledge base" in str(alone.explain(kb=kb))
    events = [(1, event("A", "x")), (2, event("B", "y")), (3, event("B", "z"))]
    reasons = query.why({"S": events}, kb=kb)
    assert reasons.found == 1 and "EXISTS { GRAPH" in str(reasons)
    translated = query.translate("spaseq").text
    assert [m.at_us for m in oxiseq.run(translated, {"S": events}, kb=kb)] == [2]
    with pytest.warns(oxiseq.MissingGraphWarning, match=KB):
        assert not oxiseq.run(RIVALS, {"S": events}, language="ceql", kb=oxiseq.Store())


def test_an_attribute_may_be_called_graph() -> None:
    query = load(f"VOCAB <{VOCAB}> SELECT * FROM S WHERE A AS x FILTER x[graph < 5 AND NOT GRAPH = 3]", "ceql")
    assert set(parts(query.formula, Variable)) == {Variable("graph"), Variable("GRAPH")}


ONE = f"SELECT * FROM S WHERE A AS x; B AS y FILTER y[GRAPH <{KB}> (k) {{ ?n :rival ?k }}]"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (ONE.replace("(k)", "(w)"), "the pattern has no ?w"),
        (ONE.replace("(k)", "(k, x.k)"), "two values are given as ?k"),
        (ONE.replace("(k)", "()"), "expected"),
        (ONE.replace("(k)", "(k, x.k j)"), "expected"),
        (ONE.replace("?n :rival ?k", "?n :rival ?k MINUS { ?n :name ?k }"), "MINUS cannot be used in a condition"),
        (ONE.replace("?n :rival ?k", "{ SELECT ?k { ?n :rival ?k } }"), "a sub-query cannot be used"),
        (ONE.replace("?n :rival ?k", f"GRAPH <{KB}> {{ ?n :rival ?k }}"), "GRAPH cannot be used inside GRAPH"),
        (ONE.replace("?n :rival ?k", "SERVICE <http://e/> { ?n :rival ?k }"), "SERVICE is not supported"),
        (ONE.replace("?n :rival ?k", "?n :rival ?k FILTER(COUNT(?k) > 1)"), "COUNT cannot be used inside GRAPH"),
        (ONE.replace("?n :rival ?k", "?n :rival ?k FILTER(PREV(?k) > 1)"), "PREV cannot be used inside GRAPH"),
        (ONE.replace("?n :rival ?k", "?n :rival ?k FILTER(ENDTIME() > 1)"), "ENDTIME cannot be used inside GRAPH"),
        (ONE.replace("?n :rival ?k", "{ ?n :rival ?k }" + "?n :rival ?k ." * 100), "101 triple patterns"),
        (ONE.replace("(k)", "(k, z.k AS j)").replace("?n :", "?n :name ?j ; :"), "has no variable z"),
        (ONE + " WITHIN 3 [t]", "a query with GRAPH has no window over an attribute"),
        (ONE + " WITHIN 0 EVENTS", "a window of size 0"),
        (ONE + " ORDER BY START", "a query with GRAPH returns all complex events"),
        (ONE + " SAMPLE 1", "a query with GRAPH returns all complex events"),
        (ONE.replace("*", "COUNT(*) AS n", 1), "a query with GRAPH returns single complex events"),
        (ONE.replace("*", "x", 1), "with GRAPH, SELECT has to show every event"),
        (ONE.replace("A AS x", "A AS x; B+; B+"), "with GRAPH, an event B can match here and at another B"),
    ],
)
def test_what_is_refused(text: str, reason: str) -> None:
    with pytest.raises(QueryError) as refused:
        load(f"VOCAB <{VOCAB}> {text}", "ceql")
    assert reason in str(refused.value) and "^" in str(refused.value)


def test_a_condition_needs_no_knowledge_base_to_be_given(tmp_path: Path) -> None:
    with pytest.raises(OxiseqError, match="a knowledge base is a file"):
        oxiseq.run(ONE.replace("SELECT", f"VOCAB <{VOCAB}> SELECT"), {"S": []}, language="ceql", kb=5)  # type: ignore[arg-type]
    file = tmp_path / "kb.trig"
    file.write_text(f"<{KB}> {{ <http://e/n> <{VOCAB}name> 'x' ; <{VOCAB}rival> 'y' }}")
    events = [(1, event("A", "x")), (2, event("B", "y"))]
    assert spans(oxiseq.run(RIVALS, {"S": events}, language="ceql", kb=file)) == [(0, 1)]
