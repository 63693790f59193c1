"""`normalise` is what a real store does to a literal."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyoxigraph import BaseDirection, Literal, NamedNode, Quad, Store, Triple

from oxiseq.engine.terms.normal import XSD, normalise, normalise_triple
from oxiseq.grammar.terms import INTEGER_TYPES

S = NamedNode("urn:s")

NUMERIC = [*sorted(name.removeprefix(XSD) for name in INTEGER_TYPES), "decimal", "double", "float"]
DURATIONS = ["duration", "dayTimeDuration", "yearMonthDuration"]
DATES = ["dateTime", "dateTimeStamp", "date", "time", "gYear", "gYearMonth", "gMonth", "gMonthDay", "gDay"]
TEMPORAL = DURATIONS + DATES
OTHER = ["string", "boolean", "anyURI", "token", "normalizedString", "hexBinary", "base64Binary", "QName", "new"]


def through_the_store(literals: list[Literal]) -> list[Literal]:
    """Each literal as it comes back after `store.add`."""
    store = Store()
    for number, literal in enumerate(literals):
        store.add(Quad(S, S, literal, NamedNode(f"urn:g:{number}")))
    back = {quad.graph_name.value: quad.object for quad in store}
    return [back[f"urn:g:{number}"] for number in range(len(literals))]


def typed(lexical: str, datatype: str) -> Literal:
    return Literal(lexical, datatype=NamedNode(XSD + datatype))


digits = st.text("0123456789", max_size=22)
sign = st.sampled_from(["", "", "-", "+"])
numerals = st.one_of(
    st.builds("{}{}".format, sign, digits),
    st.builds("{}{}.{}".format, sign, digits, digits),
    st.builds("{}{}.{}e{}".format, sign, digits, digits, st.integers(-330, 330)),
    st.integers().map(str),
    st.integers(-(2**64), 2**64).map(str),
    st.floats().map(str),
    st.floats(-1e6, 1e6).map(str),
    st.builds("{}.{}00".format, st.sampled_from([*range(-12, 12), "-0"]), st.integers(0, 999)),
    st.sampled_from(["0.50", "-0.500", "0.010", "0.00", "-0.00", "5.00", "-10.0", "0.0000010"]),
    st.decimals(allow_nan=False, allow_infinity=False, places=8).map(str),
    st.decimals(allow_nan=False, allow_infinity=False, min_value=-(10**9), max_value=10**9).map(str),
    st.sampled_from(["INF", "+INF", "-INF", "NaN", "-NaN", "inf", "nan", "-0", "0", "00", "-0.0", ".", "1."]),
    st.text("0123456789+-.eE \t\nINFa٣", max_size=8),
)
zones = st.sampled_from(["", "", "Z", "+00:00", "-00:00", "+14:00", "+14:01", "-05:30", "z"])
years = st.one_of(st.integers(0, 9999).map("{:04}".format), st.sampled_from(["0000", "-0001", "12024", "02024"]))
two = st.one_of(st.integers(0, 61).map("{:02}".format), st.sampled_from(["1", "24", "00", "29", "30", "12"]))
fraction = st.one_of(st.just(""), digits.map(".{}".format), st.sampled_from([".0", ".50", ".000001", ".5"]))
clocks = st.one_of(st.builds("{}:{}:{}{}".format, two, two, two, fraction), st.sampled_from(["24:00:00", "24:00:00.0"]))
temporals = st.one_of(
    st.builds("{}-{}-{}T{}{}".format, years, two, two, clocks, zones),
    st.datetimes().map(lambda time: time.isoformat()),
    st.datetimes().map(lambda time: time.isoformat() + "Z"),
    st.builds("{}-{}-{}{}".format, years, two, two, zones),
    st.builds("{}{}".format, clocks, zones),
    st.builds("--{}-{}{}".format, two, two, zones),
    st.builds("{}P{}Y{}M{}DT{}H{}M{}{}S".format, sign, digits, two, digits, two, two, digits, fraction),
    st.from_regex(r"-?P([0-9]{1,3}[YMD]){0,3}(T([0-9]{1,3}[HMS]){0,3})?", fullmatch=True),
    st.text("0123456789+-.:TZPYMDHS ", max_size=20),
)
anything = st.one_of(
    numerals, temporals, st.text(max_size=6), st.sampled_from(["true", "false", "1", "0", "TRUE", " true", ""])
)
# Doubles of 16 digits and more with few bits behind the point: often in the middle of two shortest numerals.
halves = st.builds(lambda whole, bits: repr(whole / 2**bits), st.integers(2**50, 2**53 - 1), st.integers(1, 12))
literals = st.one_of(
    st.builds(typed, halves, st.just("double")),
    st.builds(typed, numerals, st.sampled_from(NUMERIC)),
    st.builds(typed, temporals, st.sampled_from(TEMPORAL)),
    st.builds(typed, temporals, st.just("dateTime")),
    st.builds(typed, anything, st.sampled_from(NUMERIC + TEMPORAL + OTHER)),
    st.builds(
        lambda text, language: Literal(text, language=language),
        st.text(max_size=4),
        st.sampled_from(["en", "EN", "de-CH", "zh-Hant-TW", "x-Private"]),
    ),
)


@given(st.lists(literals, min_size=10, max_size=40))
def test_a_literal_becomes_what_the_store_makes_of_it(written: list[Literal]) -> None:
    assert [normalise(literal) for literal in written] == through_the_store(written)


@given(st.lists(literals, min_size=10, max_size=40))
def test_a_normal_form_stays_as_it_is(written: list[Literal]) -> None:
    normal = [normalise(literal) for literal in written]
    assert [normalise(literal) for literal in normal] == normal


TABLE = [
    ("integer", "01", "1"),
    ("integer", "-0", "0"),
    ("integer", "+5", "5"),
    ("integer", "9223372036854775807", "9223372036854775807"),
    ("integer", "0009223372036854775808", "0009223372036854775808"),
    ("integer", " 5", " 5"),
    ("decimal", "1.", "1"),
    ("decimal", "-0.10", "-0.1"),
    ("decimal", "-0.0", "0"),
    ("decimal", "0.1234567890123456789", "0.1234567890123456789"),
    ("double", "01.50", "1.5"),
    ("double", "1e21", "1000000000000000000000"),
    ("double", "-0", "-0"),
    ("double", "1E400", "INF"),
    ("double", "900719925474099.25", "900719925474099.3"),
    ("double", "900719925474099.2", "900719925474099.3"),
    ("double", "900719925474099.3", "900719925474099.3"),
    ("float", "16777217", "16777216"),
    ("boolean", "1", "true"),
    ("boolean", "TRUE", "TRUE"),
    ("dateTime", "2024-01-01T24:00:00", "2024-01-02T00:00:00"),
    ("dateTime", "2024-01-01T00:00:00.500+00:00", "2024-01-01T00:00:00.5Z"),
    ("dateTime", "2024-02-30T00:00:00Z", "2024-02-30T00:00:00Z"),
    ("dayTimeDuration", "PT60M", "PT1H"),
    ("unknown", "01", "01"),
]


@pytest.mark.parametrize(("datatype", "written", "normal"), TABLE)
def test_table(datatype: str, written: str, normal: str) -> None:
    literal = typed(written, datatype)
    assert normalise(literal) == typed(normal, datatype)
    assert through_the_store([literal]) == [typed(normal, datatype)]


@pytest.mark.parametrize(("datatype", "lexical"), [("byte", "0300"), ("unsignedInt", "-5"), ("long", "+7")])
def test_derived_integers_become_integers(datatype: str, lexical: str) -> None:
    assert normalise(typed(lexical, datatype)) == typed(str(int(lexical)), "integer")


def test_a_literal_with_direction_goes_through_the_store() -> None:
    literal = Literal("x", language="AR", direction=BaseDirection.RTL)
    assert [normalise(literal)] == through_the_store([literal])


def test_literals_within_triple_terms_are_normalised() -> None:
    assert normalise_triple(Triple(S, S, typed("01", "integer"))) == Triple(S, S, typed("1", "integer"))
