"""What a query over windows asks besides triples: graphs that hold nothing, EXISTS in any clause, ASK's modifiers."""

from __future__ import annotations

from typing import Any

import pytest
from loaded import load
from pyoxigraph import NamedNode, Quad, Store
from rsp_lives import Life
from rsp_strategies import Setting

import oxiseq
from oxiseq.engine.events.encode import encode_events
from oxiseq.engine.kb import StoreKb
from oxiseq.engine.run.rsp import RspRun
from oxiseq.grammar import parse, render
from oxiseq.grammar.rsp_algebra import RspQuery

E = "http://e/"
S, T = f"{E}S", f"{E}T"
W = f"FROM NAMED WINDOW :w ON <{S}> [RANGE 3]"
V = f"FROM NAMED WINDOW :v ON <{T}> [RANGE 3]"
EVENTS = [(1, ":a :p :b"), (9, ":a :q :c"), (10, ":a :p :d . :b :p :d")]


def short(term: Any) -> str:
    """Without what all terms share."""
    return "" if term is None else term.value.removeprefix(E)


def graph(text: str) -> str:
    return f"@prefix : <{E}> . {text} ."


def run(text: str, other: Any = (), kb: Any = None, language: str = "rspql", **options: Any) -> Any:
    streams = {S: [(time, graph(each)) for time, each in EVENTS], T: [(time, graph(each)) for time, each in other]}
    reads = load(f"PREFIX : <{E}> {text}", language).streams
    return oxiseq.run(
        f"PREFIX : <{E}> {text}",
        {iri: events for iri, events in streams.items() if iri in reads},
        kb=kb,
        language=language,
        **options,
    )  # type: ignore[call-overload]


def rows(answers: Any) -> list[tuple[Any, ...]]:
    return [(a.at_us, *(short(t) for t in map(a.get, answers.variables))) for a in answers]


# --- graphs that hold nothing --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("inside", "shown", "expected"),
    [
        ("SELECT (COUNT(*) AS ?n) { ?x :p ?y }", "?n", [(0, "0"), (1, "1"), (9, "0"), (10, "2"), (20, "0")]),
        ("OPTIONAL { ?x :p :b }", "?x", [(0, ""), (1, "a"), (9, ""), (10, ""), (20, "")]),
        ("FILTER NOT EXISTS { ?x :p ?y }", "(1 AS ?one)", [(0, "1"), (9, "1"), (20, "1")]),
        ("BIND(1 AS ?one)", "?one", [(0, "1"), (1, "1"), (9, "1"), (10, "1"), (20, "1")]),
    ],
)
def test_a_window_that_holds_nothing_is_a_graph(inside: str, shown: str, expected: list[Any]) -> None:
    where = f"{{ WINDOW :w {{ {inside} }} OPTIONAL {{ WINDOW :v {{ ?s ?p ?o }} }} }}"
    found = run(f"SELECT {shown} {W} {V} WHERE {where}", [(0, ":a :q :b"), (20, ":a :q :b")], stream_operator="RSTREAM")
    assert rows(found) == expected


def test_the_windows_of_a_variable_are_all_windows() -> None:
    where = "{ WINDOW ?n { SELECT (COUNT(*) AS ?c) { ?x :p [] } } }"
    found = run(
        f"SELECT ?n ?c {W} {V} WHERE {where}", [(10, ":a :p 1 ; :p 2")], stream_operator="RSTREAM", language="spectra"
    )
    assert sorted(rows(found)) == [
        (1, "v", "0"),
        (1, "w", "1"),
        (9, "v", "0"),
        (9, "w", "0"),
        (10, "v", "2"),
        (10, "w", "2"),
    ]


def test_conditions_inside_see_the_windows_name() -> None:
    where = "{ WINDOW ?n { ?x :p ?y FILTER(?n = :w) MINUS { ?n :p ?z } } }"
    assert rows(run(f"SELECT ?x {W} {V} WHERE {where}", [(1, ":z :p :z")], stream_operator="RSTREAM"))[:1] == [(1, "a")]


def known(*graphs: str) -> Store:
    store = Store()
    for name in graphs:
        store.add(Quad(NamedNode(f"{E}a"), NamedNode(f"{E}r"), NamedNode(f"{E}x"), NamedNode(E + name)))
    return store


@pytest.mark.parametrize("inside", ["OPTIONAL { ?x :q ?z }", "MINUS { ?x :q ?z }"])
def test_a_graph_of_the_kb_counts_without_the_triples_asked_for(inside: str) -> None:
    head, where = f"SELECT DISTINCT ?g {W}", f"WINDOW :w {{ ?x :p ?y }} GRAPH ?g {{ {inside} }}"
    assert rows(run(f"{head} WHERE {{ {where} }}", kb=known("g", "h"))) == [(1, "g"), (1, "h"), (10, "g"), (10, "h")]
    by_name = where.replace("?g", ":g")
    asked = f"SELECT ?x {W} WHERE {{ {by_name} OPTIONAL {{ ?x :p :none }} }}"
    assert len(run(asked, kb=known("g"), stream_operator="RSTREAM")) == 3
    assert len(run(asked, kb=known("h"), stream_operator="RSTREAM")) == 0


def test_graphs_of_the_kb_come_and_go() -> None:
    where = "{ WINDOW :w { ?x :p ?y } GRAPH ?g { OPTIONAL { ?x :q ?z } } }"
    text = f"PREFIX : <{E}> SELECT ?g {W} WHERE {where}"
    life = Life(Setting(text, "rspql", {}, "", None, "RSTREAM", None))
    kb = StoreKb(known("g"))
    life.run = RspRun(life.plan, life.terms, kb)
    for time, names in [(1, "g"), (2, "gh"), (3, "h")]:
        kb._store.clear()
        kb._store.extend(known(*names))
        kb.touch()
        life.push(S, time, f"<{E}a> <{E}p> <{E}b> .")
        life.run.settle()
        life.advance()
    assert [(at, row[0][1]) for at, _, _, row in life.found] == [
        (1, f"<{E}g>"),
        (2, f"<{E}g>"),
        (2, f"<{E}h>"),
        (3, f"<{E}h>"),
    ]


# --- clauses -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("tail", "instants"),
    [
        ("", [1, 10]),
        (" VALUES ?x { :b }", [10]),
        (" VALUES ?x { :none }", []),
        (" HAVING(COUNT(*) > 1)", [10]),
        (" GROUP BY ?y HAVING(COUNT(*) > 1)", [10]),
        (" LIMIT 0", []),
        (" OFFSET 1", [10]),
    ],
)
def test_ask_with_modifiers(tail: str, instants: list[int]) -> None:
    found = run(f"ASK {W} WHERE {{ WINDOW :w {{ ?x :p ?y }} }}{tail}", stream_operator="RSTREAM")
    assert [a.at_us for a in found] == instants


@pytest.mark.parametrize(
    ("head", "tail", "last"),
    [
        ("SELECT ?x", "ORDER BY DESC(EXISTS { WINDOW :w { ?x :q :c } }) LIMIT 1", "a"),
        ("SELECT (EXISTS { WINDOW :w { ?x :q :c } } AS ?q)", "ORDER BY DESC(?x) LIMIT 1", "false"),
        ("SELECT ?q", "GROUP BY (EXISTS { WINDOW :w { ?x :q :c } } AS ?q) HAVING(?q)", "true"),
        ("SELECT ?x", "GROUP BY ?x HAVING(EXISTS { WINDOW :w { ?x :q :c } })", "a"),
    ],
)
def test_exists_in_any_clause_finds_its_triples(head: str, tail: str, last: str) -> None:
    found = run(f"{head} {W} WHERE {{ WINDOW :w {{ ?x :p :d }} }} {tail}", stream_operator="RSTREAM")
    assert rows(found)[-1] == (10, last)


def test_construct_where() -> None:
    text = f"PREFIX : <{E}>\nCONSTRUCT {W} WHERE {{ WINDOW :w {{ ?x :p ?y ; :q [] }} }}"
    query = load(text, "rspql")
    assert isinstance(query, RspQuery) and len(query.template) == 2 and parse(render(query), "rspql") == query
    found = run(f"CONSTRUCT {W} WHERE {{ WINDOW :w {{ ?x :p ?y }} }}", stream_operator="ISTREAM")
    made = [(a.at_us, *(short(t) for triple in a.graph for t in (triple.subject, triple.object))) for a in found]
    assert sorted(made) == [(1, "a", "b"), (10, "a", "d"), (10, "b", "d")]


def test_construct_of_groups() -> None:
    text = f"CONSTRUCT {{ ?y :of ?y }} {W} WHERE {{ WINDOW :w {{ ?x :p ?y }} }} GROUP BY ?y HAVING(COUNT(*) > 1)"
    assert rows(run(text, stream_operator="RSTREAM")) == [(10, "d")]


def test_a_query_that_selects_with_exists_is_translated_as_it_stands() -> None:
    text = f"PREFIX : <{E}> SELECT ?x (EXISTS {{ ?x :q ?y }} AS ?q) FROM STREAM <{S}> [RANGE 3] WHERE {{ ?x :p ?z }}"
    assert "WINDOW" not in oxiseq.Query(text, "spectra").translate("rspql").text


# --- events --------------------------------------------------------------------------------------------

MATCHED = f"""SELECT * FROM NAMED <{S}> WIN [LND 0] AS :w EVENT ON :w {{ ?x :p ?y }} AS A
WHERE {{ {{}} MATCH {{ A }} }} REPORT ON CONTENT CHANGE"""


@pytest.mark.parametrize("below", ["OPTIONAL { MATCH { A } }", "FILTER EXISTS { MATCH { A } }"])
def test_an_equal_match_further_down_has_no_times(below: str) -> None:
    answers = run(MATCHED.replace("{}", "").replace("MATCH { A }", f"{below} MATCH {{ A }}"), language="rsepql")
    assert [(a.at_us, a.start_us) for a in answers] == [(1, 1), (9, 1), (10, 1), (10, 10), (10, 10)]
    assert {*answers[-1]} == {"x", "y"}


def test_instants_are_not_told_again_after_a_reset() -> None:
    window = f"FROM NAMED <{S}> WIN [LND 0] AS :w"
    text = f"PREFIX : <{E}> SELECT (COUNT(*) AS ?c) {window} WHERE {{ WINDOW :w {{ ?x :p ?y }} }}"
    life = Life(Setting(text, "rsepql", {}, "", [2, 5], None, None))
    life.run.push(S, encode_events([(1, []), (3, [])], life.terms))
    life.advance()
    life.run.forget(0)
    life.push(S, 8, f"<{E}a> <{E}p> <{E}b> .")
    assert [row[0] for row in life.found] == [2, 5]
