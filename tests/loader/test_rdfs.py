"""RDFS reasoning against a plain application of the rules until nothing is new."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from pyoxigraph import Literal, NamedNode, Quad, Store

from oxiseq.kb_loader import INFERRED, reason, remove_inferred
from oxiseq.kb_loader.rdfs import DOMAIN, RANGE, SUB_CLASS, SUB_PROPERTY, TYPE, closure

NODES = [NamedNode(f"http://example.org/n{i}") for i in range(6)]
PREDICATES = st.sampled_from([TYPE, SUB_CLASS, SUB_PROPERTY, DOMAIN, RANGE, *NODES])
SUBJECTS = st.sampled_from([*NODES, TYPE, SUB_CLASS, SUB_PROPERTY, DOMAIN])
TRIPLES = st.lists(st.tuples(SUBJECTS, PREDICATES, st.one_of(SUBJECTS, st.just(Literal("x")))), max_size=12)
Triples = set[tuple[object, object, object]]


def naive(asserted: Triples) -> Triples:
    """What the rules yield."""
    derived: Triples = set()
    while True:
        known = asserted | derived
        new: Triples = set()
        for s, p, o in known:
            for s2, p2, o2 in known:
                if isinstance(o2, Literal):
                    continue  # no class and no property
                if p2 == SUB_PROPERTY and p == s2 and isinstance(o2, NamedNode):
                    new.add((s, o2, o))
                if p2 == DOMAIN and p == s2:
                    new.add((s, TYPE, o2))
                if p2 == RANGE and p == s2 and not isinstance(o, Literal):
                    new.add((o, TYPE, o2))
                if p == TYPE and p2 == SUB_CLASS and o == s2:
                    new.add((s, TYPE, o2))
                if p == p2 and p in (SUB_CLASS, SUB_PROPERTY) and o == s2:
                    new.add((s, p, o2))
        if new <= derived:
            return derived
        derived |= new


@given(st.lists(st.tuples(st.integers(0, 7), st.integers(0, 7)), max_size=14))
def test_the_closure_has_every_path_once_and_sorted(edges: list[tuple[int, int]]) -> None:
    """Also of cycles, of edges given twice, of none."""
    paths = set(edges)
    while more := {(a, d) for a, b in paths for c, d in edges if b == c} - paths:
        paths |= more
    found = closure(np.array(edges, np.int64).reshape(-1, 2), 8).tolist()
    assert [tuple(pair) for pair in found] == sorted(paths)


@given(TRIPLES)
def test_the_union_is_what_the_rules_give(triples: list[tuple[NamedNode, NamedNode, NamedNode | Literal]]) -> None:
    store = Store()
    store.extend(Quad(s, p, o) for s, p, o in triples)
    number = reason(store)
    found = {(q.subject, q.predicate, q.object) for q in store}
    asserted: Triples = set(triples)
    assert found == asserted | naive(asserted)
    inferred = {(q.subject, q.predicate, q.object) for q in store.quads_for_pattern(None, None, None, INFERRED)}
    assert len(inferred) == number
    assert naive(set(triples)) <= inferred
    remove_inferred(store)
    assert {(q.subject, q.predicate, q.object) for q in store} == set(triples)


def test_the_graph_has_all_instances_of_a_class_that_has_subclasses() -> None:
    a, b, x, y, _, _ = NODES
    store = Store()
    store.extend([Quad(b, SUB_CLASS, a), Quad(x, TYPE, b), Quad(y, TYPE, a)])
    reason(store)
    assert {q.subject for q in store.quads_for_pattern(None, TYPE, a, INFERRED)} == {x, y}


def test_a_tree_of_40080_classes_depth_8() -> None:
    store = Store()
    classes = [NamedNode(f"http://example.org/c{i}") for i in range(40_080)]
    store.bulk_extend(Quad(classes[i], SUB_CLASS, classes[(i - 1) // 4]) for i in range(1, 40_080))
    leaf = NODES[0]
    store.add(Quad(leaf, TYPE, classes[-1]))
    reason(store)
    depth, at = 0, 40_079
    while at:
        depth, at = depth + 1, (at - 1) // 4
    assert depth == 8
    assert len(list(store.quads_for_pattern(leaf, TYPE, None, INFERRED))) == depth  # all above its own class
    assert list(store.quads_for_pattern(leaf, TYPE, classes[0], INFERRED))
