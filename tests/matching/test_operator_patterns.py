"""Patterns beyond basic ones against the reference, which asks Oxigraph event by event."""

from __future__ import annotations

import random
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from deviations import stands_apart
from graph_patterns import (
    as_mappings,
    assert_as_expected,
    batch_of,
    parsed,
    random_condition,
    random_event,
    request,
)
from hypothesis import given
from hypothesis import strategies as st
from pyoxigraph import BlankNode, DefaultGraph, Literal, NamedNode, Quad, RdfFormat, Store, Triple, Variable, parse
from reference.patterns import answer_kb, match_event, take_apart

from oxiseq.engine.kb import StoreKb
from oxiseq.engine.patterns.matcher import DEFAULT_LIMITS, StreamMatcher
from oxiseq.engine.patterns.plan import compile_stream
from oxiseq.engine.terms.dictionary import TermDictionary
from oxiseq.grammar.scope import split_gpm

NAMES = ["?x", "?y", "?z", "?u"]


def triple(dice: random.Random) -> str:
    object_ = dice.choice([*NAMES, *NAMES, "1", ":a", "[]"])
    return f"{dice.choice(NAMES)} {dice.choice([':p', ':q', ':r', ':p', ':q'])} {object_} ."


def element(dice: random.Random, depth: int) -> str:
    inner = " ".join(element(dice, depth - 1) for _ in range(dice.randint(1, 2))) if depth else triple(dice)
    kinds = {
        "triple": lambda: triple(dice),
        "optional": lambda: f"OPTIONAL {{ {inner} }}",
        "minus": lambda: f"MINUS {{ {inner} }}",
        "union": lambda: f"{{ {inner} }} UNION {{ {element(dice, max(depth - 1, 0))} }}",
        "group": lambda: f"{{ {inner} }}",
        "values": lambda: f"VALUES {dice.choice(NAMES)} {{ {dice.choice(['1 2', ':a', ':a :b 1'])} }}",
        "path": lambda: f"{dice.choice(NAMES)} {path(dice)} {dice.choice([*NAMES, ':a'])} .",
        "exists": lambda: f"FILTER {dice.choice(['', 'NOT '])}EXISTS {{ {inner} }}",
        "filter": lambda: f"FILTER({random_condition(dice, NAMES, functions=False)})",
        "select": lambda: select(dice, inner),
    }
    weights = [6, 3, 2, 2, 1, 1, 2, 2, 1, 1]
    return dice.choices(list(kinds.values()), weights)[0]()


def path(dice: random.Random) -> str:
    return dice.choice([":p/:q", ":p|:q", "^:p", ":p+", ":p*", "(:p/:q)?", "!:p", "!(:p|^:q)", ":p/:q*"])


def select(dice: random.Random, inner: str) -> str:
    form = dice.choice(["SELECT DISTINCT ?x", "SELECT ?x ?y", "SELECT ?x (COUNT(?y) AS ?n)", "SELECT (COUNT(*) AS ?n)"])
    end = dice.choice(["", " LIMIT 1", " ORDER BY ?x"]) if "COUNT" not in form else ""
    return f"{{ {form} {{ {inner} }}{' GROUP BY ?x' if 'x (' in form else ''}{end} }}"


def body(dice: random.Random) -> str:
    parts = [triple(dice)] if dice.random() < 0.8 else []
    parts += [element(dice, dice.choice([0, 1, 1, 2])) for _ in range(dice.randint(1, 3))]
    if dice.random() < 0.3:
        parts.append(f"BIND(STR({dice.choice(NAMES)}) AS ?w)")
    if dice.random() < 0.4:
        parts.append(f"FILTER({random_condition(dice, NAMES)})")
    return " ".join(parts)


@given(st.integers(0, 2**62))
def test_rows_are_those_of_the_reference(seed: int) -> None:
    dice = random.Random(seed)
    try:
        gpms = [parsed(body(dice), f"G{i}") for i in range(2)]
    except ValueError:  # a BIND of a variable in scope, for instance
        return
    # which row LIMIT takes is not fixed
    gpms = [gpm for gpm in gpms if not split_gpm(gpm).stateful and "limit=1" not in str(gpm)]
    wanted = [request(gpm) for gpm in gpms]
    terms = TermDictionary()
    matcher = StreamMatcher(compile_stream(wanted, terms), terms)
    for _ in range(2):  # nothing is left of a batch
        events = [random_event(dice, dice.choice([0, 6, 12]), odd=False) for _ in range(4)]
        comparable = [not any(stands_apart(gpm, event) for event in events) for gpm in gpms]
        assert_as_expected(gpms, matcher, wanted, events, terms, comparable)


GRAPHS = [NamedNode(f"http://e/{name}") for name in ("kb", "other")]


def random_kb(dice: random.Random) -> Store:
    """Facts about the nodes and values of events."""
    store = Store()
    for graph in (*GRAPHS, DefaultGraph()):
        facts = [each for each in random_event(dice, 6, odd=False) if "_:" not in str(each)]
        store.extend(Quad(each.subject, each.predicate, each.object, graph) for each in facts)
    return store


def with_graphs(dice: random.Random, text: str) -> str:
    """Some of its groups read the knowledge base."""
    parts = text.split("{ ")
    return parts[0] + "".join(
        f"{{ GRAPH {dice.choice([':kb', ':kb', ':other', ':none', '?g'])} {{ {triple(dice)} }} {part}"
        if dice.random() < 0.5 and not part.startswith(("SELECT", "GRAPH")) and "VALUES" not in before[-12:]
        else f"{{ {part}"
        for before, part in pairwise(parts)
    )


@given(st.integers(0, 2**62))
def test_graphs_inside_patterns_are_the_knowledge_base(seed: int) -> None:
    """Also after it has changed."""
    dice = random.Random(seed)
    try:
        gpms = [parsed(with_graphs(dice, body(dice)), f"G{i}") for i in range(2)]
    except ValueError:
        return
    gpms = [gpm for gpm in gpms if not split_gpm(gpm).stateful and "limit=1" not in str(gpm)]
    gpms = [gpm for gpm in gpms if split_gpm(gpm).in_place]
    wanted = [request(gpm) for gpm in gpms]
    terms = TermDictionary()
    store = random_kb(dice)
    kb = StoreKb(store)
    matcher = StreamMatcher(compile_stream(wanted, terms), terms, kb)
    for _ in range(2):
        events = [random_event(dice, dice.choice([0, 6, 12]), odd=False) for _ in range(3)]
        comparable = [not any(stands_apart(gpm, event) for event in events) for gpm in gpms]
        assert_as_expected(gpms, matcher, wanted, events, terms, comparable, store)
        store.clear()
        store.extend(random_kb(dice))
        kb.touch()


@given(st.integers(0, 2**62))
def test_small_chunks_give_the_same_rows_in_the_same_order(seed: int) -> None:
    dice = random.Random(seed)
    try:
        gpm = parsed(body(dice))
    except ValueError:
        return
    if "BNODE" in str(gpm) or "limit=1" in str(gpm):
        return
    parts = split_gpm(gpm)
    if parts.stateful:
        return
    terms = TermDictionary()
    events = [random_event(dice, 10, odd=True) for _ in range(5)]
    batch, _ = batch_of(events, terms)
    stream = compile_stream([request(gpm)], terms)
    (found,) = StreamMatcher(stream, terms).match(batch)
    (cut,) = StreamMatcher(stream, terms, limits=replace(DEFAULT_LIMITS, chunk=2)).match(batch)
    assert found.event.tolist() == cut.event.tolist()
    assert found.values.tolist() == cut.values.tolist()


KB = """
<http://e/a> <http://e/owner> "ann" <http://e/kb> .
<http://e/b> <http://e/owner> _:x <http://e/kb> .
_:x <http://e/name> "bob" <http://e/kb> .
<http://e/a> <http://e/owner> "eve" <http://e/other> .
<http://e/a> <http://e/owner> "nobody" .
"""
IN_PLACE = [
    "?x :p ?y OPTIONAL { GRAPH :kb { ?x :owner ?o } }",
    "?x :p ?y OPTIONAL { GRAPH ?g { ?x :owner ?o } }",
    "?x :p ?y BIND(STRLEN(?o) AS ?n) GRAPH :kb { ?x :owner ?o }",
    "?x :p ?y MINUS { GRAPH :kb { ?x :owner ?o } }",
    "?x :p ?y FILTER NOT EXISTS { GRAPH :missing { ?x :owner ?o } }",
    "{ ?x :p ?y } UNION { GRAPH :kb { ?x :owner ?y } }",
]


@pytest.mark.parametrize("text", IN_PLACE)
def test_graph_inside_a_pattern_reads_the_kb(text: str) -> None:
    store = Store()
    store.extend(parse(KB, RdfFormat.N_QUADS))
    kb = StoreKb(store)
    gpm = parsed(text)
    one = request(gpm)
    assert one.parts.in_place
    terms = TermDictionary()
    matcher = StreamMatcher(compile_stream([one], terms), terms, kb)
    a, b, p = (NamedNode(f"http://e/{n}") for n in "abp")
    events = [[Triple(a, p, Literal("1")), Triple(b, p, Literal("2"))], [Triple(b, p, a)], []]
    batch, labels = batch_of(events, terms)
    for _ in range(2):
        found = as_mappings(matcher.match(batch)[0], one, labels, terms)
        parts = take_apart(gpm)
        expected = [set(match_event(parts, event, answer_kb(parts, store), store)) for event in events]
        assert [len(rows) for rows in found] == [len(rows) for rows in expected]
        if "kb" not in text or "OPTIONAL" not in text:  # blank nodes of the KB have other labels here
            continue
        literal = [{m for m in rows if "BlankNode" not in str(m)} for rows in map(set, found)]
        assert literal == [{m for m in rows if "BlankNode" not in str(m)} for rows in expected]
        store.add(Quad(b, NamedNode("http://e/owner"), Literal("cid"), NamedNode("http://e/kb")))
        kb.touch()


def test_blank_nodes_are_in_order_of_arrival_whatever_was_freed() -> None:
    """Ids are given again, those freed last first."""
    terms = TermDictionary()
    one = request(parsed("?x :p ?y OPTIONAL { ?x :q ?z }"))
    matcher = StreamMatcher(compile_stream([one], terms), terms)
    terms.blanks(4)
    held = terms.blanks(4)
    terms.hold(held)
    terms.collect()
    del held
    terms.collect()
    nodes = [BlankNode(name) for name in "stuv"]
    event = [Triple(node, NamedNode("http://e/p"), Literal(str(i))) for i, node in enumerate(nodes)]
    batch, _ = batch_of([event], terms)
    assert sorted(batch.subject) != batch.subject.tolist(), "the case needs ids out of order"
    found = matcher.match(batch)[0]
    column = one.keep.index(Variable("x"))
    assert found.values[:, column].tolist() == batch.subject.tolist()


@pytest.mark.parametrize(
    ("text", "counts"),
    [
        ("{ SELECT (COUNT(*) AS ?n) { ?x :p ?y } }", [1, 1, 1]),
        ("VALUES ?x { 1 2 } OPTIONAL { ?y :p ?x }", [2, 2, 2]),
        ("?x :p ?y . { SELECT ?x { ?x :p ?z } ORDER BY DESC(?z) LIMIT 1 }", [2, 0, 1]),
        ("?x :p|:q ?y . FILTER NOT EXISTS { ?x :q 3 FILTER(?y > 1) }", [2, 0, 0]),
    ],
)
def test_each_event_is_matched_by_itself(text: str, counts: list[int]) -> None:
    """Sub-queries count, cut and sort one event's triples; one without triples has rows where a pattern asks for
    none."""
    terms = TermDictionary()
    one = request(parsed(text))
    plan = compile_stream([one], terms)
    assert plan.operators
    a, p, q = (NamedNode(f"http://e/{n}") for n in "apq")
    integers = [Literal(i) for i in range(4)]
    events = [
        [Triple(a, p, integers[1]), Triple(a, p, integers[2]), Triple(a, q, integers[1])],
        [],
        [Triple(a, p, integers[3]), Triple(a, q, integers[3])],
    ]
    batch, _ = batch_of(events, terms)
    found = StreamMatcher(plan, terms).match(batch)[0]
    assert np.bincount(found.event, minlength=3).tolist() == counts


def test_constants_of_a_pattern_outlive_what_is_freed() -> None:
    terms = TermDictionary()
    one = request(parsed('?x :p ?y VALUES (?y ?z) { (1 "one") (2 "two") }'))
    matcher = StreamMatcher(compile_stream([one], terms), terms)
    event = [Triple(NamedNode("http://e/a"), NamedNode("http://e/p"), Literal(2))]
    for _ in range(3):
        batch, labels = batch_of([event], terms)
        (rows,) = as_mappings(matcher.match(batch)[0], one, labels, terms)
        assert [dict(row)[Variable("z")] for row in rows] == [Literal("two")]
        terms.collect()
        terms.intern_all(Literal(f"other {i}") for i in range(20))
