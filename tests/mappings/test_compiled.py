"""Compiled mappings make what Oxigraph makes of the same CONSTRUCT query, row by row."""

from __future__ import annotations

import re
from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mapped_rows import asked, rows_of

from oxiseq.engine.terms.normal import XSD
from oxiseq.mappings.construct import variable_of
from oxiseq.mappings.declared import StreamMapping

P: Final = f"PREFIX ex: <http://ex/> PREFIX xsd: <{XSD}>\n"
NAMES: Final = ("id", "t", "n")
TEXTS: Final = st.one_of(
    st.text(alphabet='ab1 .-"\\\n\r<>{}|^`é𝄞/:?#%', max_size=8),
    st.sampled_from(
        [
            "1.50",
            "-0",
            "01",
            "1e3",
            "INF",
            "NaN",
            "true",
            "2024-05-01T10:00:00.10+00:00",
            "http://ex/a",
            "a:b",
            " 5",
            "+5",
            "5.",
            ".5",
            "9" * 30,
            "1.1234567890123456789",
        ]
    ),
)
VALUES: Final = st.one_of(
    st.none(), TEXTS, st.booleans(), st.integers(-(2**70), 2**70), st.floats(allow_nan=False, allow_infinity=False)
)
ROWS: Final = st.lists(st.fixed_dictionaries({}, optional=dict.fromkeys(NAMES, VALUES)), min_size=1, max_size=6)


def _expressions(variables: list[str]) -> Any:
    variable = st.sampled_from([f"?{name}" for name in variables])
    constant = st.sampled_from(['"x"', '"http://ex/"', "<http://ex/c>", "5", "1.50", '"a"@en', "true"])

    def call(inner: Any) -> Any:
        return st.one_of(
            inner.map("STR({})".format),
            inner.map("IRI({})".format),
            inner.map("ENCODE_FOR_URI({})".format),
            st.lists(inner, max_size=3).map(lambda args: f"CONCAT({', '.join(args)})"),
            st.tuples(inner, st.sampled_from(["xsd:double", "xsd:integer", "xsd:string", "xsd:dateTime", "ex:dt"])).map(
                lambda of: f"STRDT({of[0]}, {of[1]})"
            ),
            st.tuples(st.sampled_from(["double", "integer", "decimal", "boolean", "string"]), inner).map(
                lambda of: f"xsd:{of[0]}({of[1]})"
            ),
            inner.map('STRLANG({}, "en")'.format),
            inner.map("UCASE({})".format),
        )

    return st.recursive(st.one_of(variable, constant), call, max_leaves=4)


@st.composite
def queries(draw: st.DrawFn) -> str:
    """CONSTRUCT queries whose WHERE are BINDs."""
    known, binds = list(NAMES), []
    for number in range(draw(st.integers(0, 3))):
        binds.append(f"BIND({draw(_expressions(known))} AS ?b{number})")
        known.append(f"b{number}")
    part = st.sampled_from([f"?{name}" for name in known])
    subject = st.one_of(part, st.just("ex:s"), st.just("_:x"), st.just("_:y"))
    predicate = st.one_of(part, st.sampled_from(["ex:p", "ex:q", "a"]))
    object_ = st.one_of(part, st.sampled_from(["_:x", "7", '"l"@en', "ex:o"]))
    triples = draw(st.lists(st.tuples(subject, predicate, object_), min_size=1, max_size=4))
    return f"{P}CONSTRUCT {{ {' . '.join(map(' '.join, triples))} }} WHERE {{ {' '.join(binds)} }}"


@given(queries(), ROWS)
def test_a_query_makes_what_oxigraph_makes(query: str, rows: list[dict[str, Any]]) -> None:
    events, bad = rows_of(rows, {"construct": query, "time": None}, 5)
    expected = asked(rows, query)
    failed = {each.place for each in bad if re.search(" is no xsd:[a-z]+$", each.reason)}
    kept = [graph for place, graph in enumerate(expected, 1) if place not in failed]
    assert [graph for _, graph in events] == [graph for graph in kept if graph]
    assert {each.place for each in bad} - failed == {p for p, graph in enumerate(expected, 1) if not graph} - failed
    assert not failed or "xsd:" in query.removeprefix(P)


@pytest.mark.parametrize("kind", ["integer", "decimal", "double", "boolean"])
@given(st.one_of(TEXTS, st.sampled_from(["abc", "1e5", "12", "true", "0", "-7.25"])))
def test_a_row_with_a_text_that_a_cast_does_not_take_is_bad(kind: str, text: str) -> None:
    """As one of the shorthand is: the event would lack a triple, and nobody would know."""
    query = f"{P}CONSTRUCT {{ ex:s ex:n ?n ; ex:own ex:o }} WHERE {{ BIND(xsd:{kind}(?a) AS ?n) }}"
    events, bad = rows_of([{"a": text}], {"construct": query, "time": None}, 5)
    (graph,) = asked([{"a": text}], query)
    if len(graph) == 2 or not text.strip():
        assert ([graph for _, graph in events], bad) == ([graph], [])
    else:
        assert events == [] and [each.reason.endswith(f"is no xsd:{kind}") for each in bad] == [True]


def test_most_of_the_queries_are_compiled() -> None:
    query = (
        P
        + """CONSTRUCT { ?s ex:p ?v } WHERE { BIND(IRI(CONCAT("http://ex/", STR(?id))) AS ?s)
                                                   BIND(xsd:double(?t) AS ?v) }"""
    )
    assert StreamMapping(query).why_slow is None
    assert StreamMapping(query.replace("STR(?id)", "UCASE(?id)")).why_slow == "UCASE in WHERE"


FLAT: Final[dict[str, Any]] = {
    "prefixes": {"ex": "http://ex/"},
    "subject": "ex:{id}/{+t}",
    "type": ["ex:R", "http://ex/S"],
    "predicates": {
        "ex:n": "n",
        "ex:lang": {"column": "n", "language": "DE-ch"},
        "ex:iri": "<http://ex/n/{n}>",
        "ex:double": {"column": "d", "datatype": "xsd:double"},
        "ex:own": {"column": "n", "datatype": "ex:dt"},
        "ex:value": [{"value": 5}, {"value": "five"}],
        "ex:given": {"iri": "ex:{id}"},
    },
    "time": None,
}


TRIMMED: Final = VALUES.filter(lambda v: not isinstance(v, str) or v.strip(" \t\r\n") == v != "")
"""Of columns with a datatype, whose blanks around are left out."""
FLAT_ROWS: Final = st.lists(
    st.fixed_dictionaries({}, optional=dict.fromkeys(NAMES, VALUES) | {"d": TRIMMED}), min_size=1, max_size=6
)


@given(FLAT_ROWS)
def test_the_shorthand_makes_what_its_query_makes(rows: list[dict[str, Any]]) -> None:
    events, bad = rows_of(rows, FLAT, 5)
    left_out = {each.place for each in bad}
    right = [row for place, row in enumerate(rows, 1) if place not in left_out]
    expected = asked(right, StreamMapping(FLAT).text, {name: variable_of(name) for name in (*NAMES, "d")})
    assert [graph for _, graph in events] == expected


@pytest.mark.parametrize("name", ["a.b", "a b", "@timestamp", "größe", "a-b", "a_b"])
def test_columns_of_any_name_are_told_apart(name: str) -> None:
    given_ = {"predicates": {"http://ex/p": name, "http://ex/q": "a_2d_b"}, "time": None}
    row = {name: 1, "a_2d_b": 2}
    events, _ = rows_of([row], given_, 5)
    assert [graph for _, graph in events] == asked([row], StreamMapping(given_).text, {n: variable_of(n) for n in row})
