"""The order of terms: against Oxigraph's ORDER BY within a class, and an order in any case."""

from __future__ import annotations

import itertools
from functools import cmp_to_key
from typing import Final

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from profiles import drawn
from pyoxigraph import Literal, NamedNode, QuerySolutions, Store, Triple

from oxiseq.engine.terms.dictionary import TermDictionary
from oxiseq.engine.terms.order import TermOrder, order_key
from oxiseq.engine.terms.texts import Term

XSD: Final = "http://www.w3.org/2001/XMLSchema#"


def literal(text: str, datatype: str) -> Literal:
    return Literal(text, datatype=NamedNode(XSD + datatype))


def oxigraph_order(a: Term | None, b: Term | None) -> int:
    """-1, 0, 1: how ORDER BY has two terms; 0 where it leaves them as they stand."""

    def first(x: Term | None, y: Term | None) -> Term | None:
        written = " ".join("UNDEF" if t is None else str(t) for t in (x, y))
        solutions = Store().query(f"SELECT ?x {{ VALUES ?x {{ {written} }} }} ORDER BY ?x")
        assert isinstance(solutions, QuerySolutions)
        return next(iter(solutions))[0]

    if a == b:
        return 0
    one, other = first(a, b), first(b, a)
    return 0 if one != other else -1 if one == first(a, a) else 1


def order_of(terms: TermDictionary, order: TermOrder, a: Term | None, b: Term | None) -> int:
    ids = np.array([0 if t is None else terms.intern(t) for t in (a, b)], np.uint32)
    x, y = order.ranks(ids).tolist()
    return (x > y) - (x < y)


doubles: Final = st.sampled_from(["0", "-0", "1", "1.5", "0.1", "-3", "1e300", "INF", "-INF", "NaN", str(2.0**53)])
integers: Final = st.integers(-20, 20) | st.integers(2**53 - 3, 2**53 + 3) | st.integers(2**63 - 2, 2**63 + 2)
numbers: Final = st.one_of(
    doubles.map(lambda x: literal(x, "double")),
    doubles.map(lambda x: literal(x, "float")),
    integers.map(lambda x: literal(str(x), "integer")),
    st.decimals(-2, 2, places=3).map(lambda x: literal(f"{x:f}", "decimal")),
    st.integers(1, 30).map(lambda n: literal("0.1" + n * "0" + "1", "decimal")),
)
zones: Final = st.sampled_from(["", "Z", "+14:00", "-05:30"])
few: Final = st.integers(1, 3)
days: Final = st.builds("{:04}-{:02}-{:02}".format, st.sampled_from([1, 1999, 2000]), few, few)
seconds: Final = st.sampled_from(["0", "1.5", "1.0000001", "1.00000011"])
clocks: Final = st.builds("{:02}:00:0{}".format, st.integers(0, 23), seconds)
strings: Final = st.text(st.sampled_from('ab\\"\n\t\x01 !~é\U0001f600￿>'), max_size=4) | st.text(max_size=3)
durations: Final = st.builds(
    "{}P{}M{}DT{}S".format, st.sampled_from(["", "-"]), few, st.integers(0, 95), st.sampled_from(["0", "1.5"])
)
kinds: Final = {
    "numbers": numbers,
    "dateTimes": st.builds("{}T{}{}".format, days, clocks, zones).map(lambda x: literal(x, "dateTime")),
    "dates": st.builds("{}{}".format, days, zones).map(lambda x: literal(x, "date")),
    "times": st.builds("{}{}".format, clocks, zones).map(lambda x: literal(x, "time")),
    "years": st.builds("{}{}".format, st.sampled_from(["-0002", "-0001", "2000", "12000"]), zones).map(
        lambda x: literal(x, "gYear")
    ),
    "months": st.builds("--0{}{}".format, few, zones).map(lambda x: literal(x, "gMonth")),
    "month days": st.builds("--0{}-0{}".format, few, few).map(lambda x: literal(x, "gMonthDay")),
    "year months": st.builds("200{}-0{}".format, few, few).map(lambda x: literal(x, "gYearMonth")),
    "days": st.builds("---0{}{}".format, few, zones).map(lambda x: literal(x, "gDay")),
    "durations": durations.map(lambda x: literal(x, "duration")),
    "texts": st.one_of(
        strings.map(Literal),
        st.builds(Literal, strings, language=st.sampled_from(["en", "de", "en-gb"])),
        st.builds(Literal, strings, datatype=st.sampled_from([NamedNode("http://a"), NamedNode("http://z")])),
        st.sampled_from(["true", "false"]).map(lambda x: literal(x, "boolean")),
        st.sampled_from(["x", "true"]).map(lambda x: literal(x, "integer")),
    ),
    "IRIs": st.text(st.sampled_from("a/-é~"), max_size=3).map(lambda x: NamedNode("http://a/" + x)),
}
anything: Final = st.one_of(*kinds.values())
objects: Final = kinds["numbers"] | kinds["texts"]
triples: Final = st.builds(Triple, st.just(NamedNode("http://s")), st.just(NamedNode("http://p")), objects)


def determined(a: Term, b: Term) -> bool:
    """Whether values alone say how two terms of one class stand, without rounding."""
    if not isinstance(a, Literal) or not isinstance(b, Literal):
        return True
    query = f"SELECT (({a} < {b}) || ({a} > {b}) || ({a} = {b}) AS ?x) {{}}"
    solutions = Store().query(query)
    assert isinstance(solutions, QuerySolutions)
    return next(iter(solutions))[0] == literal("true", "boolean")


@pytest.mark.parametrize("kind", kinds)
@drawn(30)
@given(st.data())
def test_within_a_class_terms_stand_as_in_oxigraph(kind: str, data: st.DataObject) -> None:
    terms = TermDictionary()
    order = TermOrder(terms)
    a, b = (terms.term(terms.intern(data.draw(kinds[kind]))) for _ in range(2))
    theirs, ours = oxigraph_order(a, b), order_of(terms, order, a, b)
    if kind in ("texts", "IRIs") or (determined(a, b) and theirs):
        assert ours == theirs
    if order_key(a) == order_key(b):
        assert ours == 0


@given(st.lists(anything | triples | st.none(), max_size=12))
def test_kernels_order_terms_as_their_keys(found: list[Term | None]) -> None:
    terms = TermDictionary()
    order = TermOrder(terms)
    ids = np.array([0 if t is None else terms.intern(t) for t in found], np.uint32)
    for size in range(len(ids)):  # those that are known keep their order
        order.prepare(ids[: size + 1])
    keys = [order_key(terms.term(i) if i else None) for i in ids.tolist()]
    assert order.ranks(ids).tolist() == [sorted(set(keys)).index(key) for key in keys]
    assert [keys[ids.tolist().index(i)] for i in order.sorted(ids).tolist()] == sorted(keys)


@given(st.lists(anything, min_size=1, max_size=12, unique=True))
def test_the_total_order_does_not_depend_on_what_came_first(found: list[Term]) -> None:
    orders = []
    for each in (found, found[::-1]):
        terms = TermDictionary()
        ids = np.array([terms.intern(t) for t in each], np.uint32)
        orders.append([str(terms.term(i)) for i in dict.fromkeys(TermOrder(terms).sorted(ids).tolist())])
    assert orders[0] == orders[1]


@pytest.mark.parametrize(
    "terms",
    [
        [None, NamedNode("http://z"), literal("1", "integer"), Literal("a"), Triple(*3 * [NamedNode("http://a")])],
        [literal("9", "integer"), literal("10", "integer"), Literal("10a")],
        [literal("INF", "double"), literal("NaN", "double"), literal("2000-01-01T00:00:00Z", "dateTime")],
        [literal(text, "duration") for text in ("P27D", "P1M", "P32D", "P2M")],
    ],
    ids=["kinds of terms", "numbers before texts", "NaN behind all numbers", "months and days"],
)
def test_order_of_classes(terms: list[Term | None]) -> None:
    dictionary = TermDictionary()
    order = TermOrder(dictionary)
    for a, b in itertools.combinations(terms, 2):
        assert order_of(dictionary, order, a, b) == -1


@pytest.mark.parametrize(
    ("a", "b"),
    [("1", "1.0"), ("0.5", "0.50")],
)
def test_equal_values_rank_equal(a: str, b: str) -> None:
    terms = TermDictionary()
    order = TermOrder(terms)
    assert order_of(terms, order, literal(a, "double"), literal(b, "decimal")) == 0


def test_blank_nodes_stand_as_they_came_to_be_before_iris() -> None:
    terms = TermDictionary()
    iri = terms.intern(NamedNode("http://a"))
    ids = np.array([terms.blank(), iri, terms.blank(), 0], np.uint32)
    assert TermOrder(terms).ranks(ids).tolist() == [1, 3, 2, 0]


def test_decimals_that_round_to_one_double_are_told_apart_wherever_they_come_in() -> None:
    terms = TermDictionary()
    order = TermOrder(terms)
    texts = sorted(f"0.1{i:030b}" for i in range(200))
    middle_last = sorted(range(200), key=lambda i: -abs(i - 100.5))
    for i in middle_last:
        order.prepare(np.array([terms.intern(literal(texts[i], "decimal"))], np.uint32))
    ids = np.array([terms.intern(literal(text, "decimal")) for text in texts], np.uint32)
    assert order.ranks(ids).tolist() == list(range(200))


def test_ids_that_are_given_again_stand_where_their_new_terms_do() -> None:
    terms = TermDictionary()
    order = TermOrder(terms)
    kept = np.array([terms.intern(literal("2000-01-02", "date"))], np.uint32)
    terms.hold(kept)
    gone = terms.intern(literal("2000-01-01", "date"))
    assert order.ranks(np.array([kept[0], gone])).tolist() == [1, 0]
    terms.collect()
    again = terms.intern(literal("2000-01-03", "date"))
    assert again == gone
    assert order.ranks(np.array([kept[0], again])).tolist() == [0, 1]


@drawn(30)
@given(st.lists(anything, max_size=6))
def test_keys_are_a_total_preorder(found: list[Term]) -> None:
    terms = TermDictionary()
    order = TermOrder(terms)
    normal = [terms.term(terms.intern(t)) for t in found]
    by_pairs = sorted(normal, key=cmp_to_key(lambda a, b: order_of(terms, order, a, b)))
    assert [order_key(t) for t in by_pairs] == sorted(map(order_key, normal))
