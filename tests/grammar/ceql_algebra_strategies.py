"""Hypothesis strategies for CEQL's algebra as the parser gives it: chains of two or more, `-1` as a number."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal

from algebra_strategies import consumptions, limits, pairs, selections, some
from hypothesis import strategies as st
from pyoxigraph import Literal, NamedNode, Variable

from oxiseq.grammar import algebra as a
from oxiseq.grammar import ceql_algebra as c

XSD = "http://www.w3.org/2001/XMLSchema#"

names = st.sampled_from(["BUY", "SELL", "b", "msft_1", "WITHIN", "filter", "x"])
attributes = st.sampled_from([Variable(n) for n in ("price", "name", "k2", "Select", "events")])


def _number(text: str) -> Literal:
    kind = "double" if "e" in text.lower() else "decimal" if "." in text else "integer"
    return Literal(text, datatype=NamedNode(XSD + kind))


_texts = st.text(max_size=4, alphabet=st.characters(exclude_categories=["Cs"], exclude_characters="\0"))
numbers = st.sampled_from(["1", "01", "-1", "+2.50", ".5", "1e3", "-1.5E-2", "30000"]).map(_number)
literals = st.one_of(
    numbers,
    st.builds(Literal, _texts),
    st.sampled_from(["true", "false"]).map(lambda v: Literal(v, datatype=NamedNode(XSD + "boolean"))),
    st.builds(lambda text: Literal(text, datatype=NamedNode(XSD + "dateTime")), _texts),
    st.builds(lambda text: Literal(text, language="en"), _texts),
)


def _calls(e: st.SearchStrategy[a.Expression]) -> st.SearchStrategy[a.Expression]:
    binary = st.sampled_from(["||", "&&", "=", "!=", "<", ">", "<=", ">=", "+", "-", "*", "/"])
    return st.one_of(
        st.builds(a.Call, binary, st.tuples(e, e)),
        st.builds(a.Call, st.sampled_from(["!", "NEGATE", "PLUS"]), st.tuples(e)),
    )


predicates = st.recursive(st.one_of(attributes, literals), _calls, max_leaves=6)
conditions = st.recursive(
    st.builds(c.Holds, names, predicates),
    lambda inner: st.one_of(st.builds(c.AllOf, pairs(inner)), st.builds(c.AnyOf, pairs(inner))),
    max_leaves=4,
)
formulas = st.recursive(
    st.builds(c.EventType, names),
    lambda f: st.one_of(
        st.builds(c.Named, f, names),
        st.builds(c.Filtered, f, conditions),
        st.builds(c.Either, pairs(f)),
        st.builds(c.Follows, f, some(st.tuples(st.booleans(), f), 1)),
        st.builds(c.Iterated, f, st.booleans()),
    ),
    max_leaves=6,
)
_sizes = st.one_of(st.integers(0, 10**12), st.sampled_from([60_000_000, 1_000, 3]))
_unsigned = st.decimals(0, 10**6, places=3).map(lambda d: _number(f"{Decimal(d):f}")) | st.just(_number("30000"))
windows = st.one_of(
    st.builds(lambda size: a.Window(size, False, True), _sizes),
    st.builds(lambda size: a.Window(size, True, True), st.integers(0, 99)),
    st.builds(c.AttributeWindow, _unsigned, attributes),
)
_named = st.builds(c.Name, names)
_over = st.sampled_from(["COUNT", "SUM", "AVG", "MIN", "MAX"])
_of = st.builds(lambda x, y: a.Call(c.OF, (x, y)), attributes, attributes)
_aggregates = st.one_of(
    st.just(a.Aggregate("COUNT", None)),
    st.builds(a.Aggregate, _over, st.one_of(attributes, _of)),
    st.builds(lambda x: a.Call(c.OF, (x,)), attributes),
)
_sums = st.recursive(
    st.one_of(_aggregates, literals),
    lambda e: st.one_of(
        st.builds(a.Call, st.sampled_from("+-*/"), st.tuples(e, e)),
        st.builds(a.Call, st.just("NEGATE"), st.tuples(e)),
    ),
    max_leaves=4,
)
_compared = st.just(c.START) | st.recursive(
    st.one_of(st.just(a.Aggregate("COUNT", None)), st.builds(a.Aggregate, _over, st.one_of(attributes, _of)), literals),
    lambda e: st.builds(a.Call, st.sampled_from("+-*/"), st.tuples(e, e)),
    max_leaves=3,
)
_told = st.builds(c.Told, _sums, names) | attributes.map(lambda v: c.Told(a.Call(c.OF, (v,)), v.value))
_totals = st.builds(
    c.Totals,
    some(_told, 1),
    some(attributes, 0),
    st.none() | st.recursive(st.one_of(_aggregates, attributes, literals), _calls, max_leaves=5),
)


def _telling(query: c.CeqlQuery, totals: c.Totals | None) -> c.CeqlQuery:
    return query if totals is None else replace(query, columns=None, totals=totals)


_one_by_one = st.builds(
    c.CeqlQuery,
    st.none() | some(_named, 1),
    some(_named, 1),
    formulas,
    st.none() | windows,
    st.none() | st.just("http://example.org/stock#"),
    selections,
    st.none() | st.builds(a.Partition, some(attributes, 1)),
    consumptions,
    limits | st.builds(a.Limit, st.integers(1, 9), st.integers(0, 9)),
    st.none() | st.builds(c.EndOrder, some(st.tuples(_compared, st.booleans()), 1)),
    st.none() | st.builds(a.Sample, st.integers(1, 9), st.integers(0, 9)),
)
queries = st.builds(_telling, _one_by_one, st.none() | _totals)
