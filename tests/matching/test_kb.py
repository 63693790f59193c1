"""The KB's answer and its join, against a nested loop."""

from __future__ import annotations

import random

import numpy as np
import pytest
from graph_patterns import parsed
from hypothesis import given
from hypothesis import strategies as st
from pyoxigraph import BlankNode, Literal, NamedNode, Quad, RdfFormat, Store, Variable, parse

from oxiseq.engine import kinds
from oxiseq.engine.errors import KbError
from oxiseq.engine.kb import StoreKb
from oxiseq.engine.kb_in_time import KbInTime
from oxiseq.engine.matching.enrich import KbAnswer, KbPattern
from oxiseq.engine.terms.dictionary import TermDictionary
from oxiseq.grammar.scope import split_gpm


def compatible(left: list[int], right: list[int]) -> bool:
    return all(a == b or a == 0 or b == 0 for a, b in zip(left, right, strict=True))


def ids(dice: random.Random, rows: int, width: int, low: int, high: int) -> np.ndarray:
    """Random term ids, u32[rows, width]."""
    table = np.zeros((rows, width), np.uint32)
    for place in np.ndindex(rows, width):
        table[place] = dice.randint(low, high)
    return table


@given(st.integers(0, 2**62))
def test_join_is_the_nested_loop(seed: int) -> None:
    dice = random.Random(seed)
    width, extra = dice.randint(0, 4), dice.randint(0, 2)
    low = dice.choice([0, 1])
    kb = ids(dice, dice.randint(0, 12), width + extra, low, 3)
    places = tuple(dice.sample(range(width + extra), width))
    rows = ids(dice, dice.randint(0, 12), width, dice.choice([low, 1]), 4)
    answer = KbAnswer(tuple(Variable(f"v{i}") for i in range(width + extra)), kb, places)
    expected = [
        (i, j)
        for i in range(len(rows))
        for j in range(len(kb))
        if compatible(rows[i].tolist(), kb[j, list(places)].tolist())
    ]
    row, kb_row = answer.join(rows)
    assert list(zip(row.tolist(), kb_row.tolist(), strict=True)) == expected
    assert (answer.partners(rows) > 0).tolist() == [any(i == r for r, _ in expected) for i in range(len(rows))]


def test_answer_is_distinct_and_asked_again_only_after_a_change() -> None:
    store = Store()
    kb = StoreKb(store)
    terms = TermDictionary()
    pattern = split_gpm(parsed("?x :p ?y GRAPH :kb { ?x :owner ?o }")).kb
    assert pattern is not None
    asked = KbPattern(pattern, (Variable("x"),), terms)
    assert asked.shared_certain
    made = KbInTime(kb).materialised("pattern", asked)
    assert len(made.now) == 0
    a, owner, graph = (NamedNode(f"http://e/{name}") for name in ("a", "owner", "kb"))
    integer = NamedNode("http://www.w3.org/2001/XMLSchema#integer")
    store.add(Quad(a, owner, Literal("01", datatype=integer), graph))
    assert len(made.now) == 0
    kb.touch()
    answer = made.now
    assert made.now is answer
    assert answer.variables == (Variable("x"), Variable("o"))
    assert [terms.term(int(i)) for i in answer.columns[0]] == [a, Literal("1", datatype=integer)]


def test_optional_leaves_shared_variables_unbound() -> None:
    store = Store()
    graph = NamedNode("http://e/kb")
    for name in "ab":
        store.add(Quad(NamedNode(f"http://e/{name}"), NamedNode("http://e/k"), Literal(name), graph))
    store.add(Quad(NamedNode("http://e/a"), NamedNode("http://e/owner"), Literal("ann"), graph))
    pattern = split_gpm(parsed("?x :p ?o GRAPH :kb { ?z :k ?y OPTIONAL { ?z :owner ?o } }")).kb
    assert pattern is not None
    terms = TermDictionary()
    asked = KbPattern(pattern, (Variable("o"),), terms)
    assert not asked.shared_certain
    answer = asked.answer(StoreKb(store))
    assert not answer.shared_certain
    ann, bob = terms.intern(Literal("ann")), terms.intern(Literal("bob"))
    row, _ = answer.join(np.array([[ann], [bob], [0]], np.uint32))
    assert row.tolist() == [0, 0, 1, 2, 2]


def test_pattern_without_variables_is_one_empty_row_or_none() -> None:
    store = Store()
    kb = StoreKb(store)
    pattern = split_gpm(parsed("?x :p ?y GRAPH :kb { :a :p :b }")).kb
    assert pattern is not None
    asked = KbPattern(pattern, (), TermDictionary())
    rows = np.zeros((3, 0), np.uint32)
    assert asked.answer(kb).partners(rows).tolist() == [0] * 3
    a, p, b, g = (NamedNode(f"http://e/{n}") for n in ("a", "p", "b", "kb"))
    store.add(Quad(a, p, b, g))
    kb.touch()
    assert asked.answer(kb).join(rows)[0].tolist() == [0, 1, 2]


def test_blank_nodes_of_the_kb_keep_their_identity() -> None:
    store = Store()
    store.extend(parse("_:b <http://e/p> _:b <http://e/kb> .\n_:b <http://e/p> _:c <http://e/kb> .", RdfFormat.N_QUADS))
    pattern = split_gpm(parsed("?q :p ?w GRAPH :kb { ?x :p ?y }")).kb
    assert pattern is not None
    terms = TermDictionary()
    columns = KbPattern(pattern, (), terms).answer(StoreKb(store)).columns
    assert (terms.columns.kind[columns] == kinds.BLANK).all()
    assert sorted((columns[:, 0] == columns[:, 1]).tolist()) == [False, True]


def test_a_blank_node_of_the_kb_is_the_same_in_all_answers_as_long_as_one_is_held() -> None:
    store, terms = Store(), TermDictionary()
    node, p, g = BlankNode("x"), NamedNode("http://e/p"), NamedNode("http://e/kb")
    store.add(Quad(node, p, node, g))
    kb = StoreKb(store)
    one, other = (split_gpm(parsed(f"?q :p ?w GRAPH :kb {{ {pattern} }}")).kb for pattern in ("?x :p ?y", "?y :p ?x"))
    assert one is not None and other is not None
    made = KbInTime(kb).materialised("pattern", KbPattern(one, (), terms))
    (label,) = made.now.columns[0, :1].tolist()
    assert (KbPattern(other, (), terms).answer(kb).columns == label).all()
    kb.touch()
    assert (made.now.columns == label).all()
    terms.collect()
    assert terms.kb_blanks == {"x": label}
    store.clear()
    kb.touch()
    assert not len(made.now)
    terms.collect()
    assert not terms.kb_blanks


def test_a_query_that_the_store_refuses_is_a_kb_error() -> None:
    with pytest.raises(KbError, match="refuses"):
        StoreKb(Store()).solutions("SELECT nonsense")
