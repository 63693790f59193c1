"""Facts about values (semantics.md, section 7), one each."""

from __future__ import annotations

import pytest
from pyoxigraph import Literal, NamedNode, Variable

from oxiseq.grammar.algebra import Filter
from oxiseq.grammar.parser import parse
from reference.ranking import compared
from reference.values import ExpressionError, evaluate, normal

TEXT = """PREFIX xsd: <http://www.w3.org/2001/XMLSchema#> PREFIX : <http://e/>
SELECT * FROM STREAM S <http://e/s> WHERE {{ SEQ(A) DEFINE GPM A ON S {{ ?x :p ?y FILTER({}) }} }}"""


def value(expression: str) -> str:
    """The expression's value: its lexical form; `error` if it has none."""
    element = parse(TEXT.format(expression)).gpms[0].pattern.elements[-1]
    assert isinstance(element, Filter)
    try:
        found = evaluate(element.condition, {Variable("x"): NamedNode("http://e/x")})
    except ExpressionError:
        return "error"
    return found.value


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("1 = 1.0", "true"),
        ("9007199254740993 = 9007199254740992", "false"),
        ("9007199254740993 = 9007199254740992e0", "true"),
        ("18446744073709551617 > 18446744073709551616", "true"),
        ('0.1 = "0.1"^^xsd:float', "true"),
        ('"0.1"^^xsd:float = 0.1e0', "false"),
        ("1 / 3", "0.333333333333333333"),
        ("-2.0 / 3", "-0.666666666666666666"),
        ("1 / 0", "error"),
        ("1 / 0e0", "INF"),
        ("0e0 / 0 = 0e0 / 0", "false"),
        ("0e0 / 0 != 0e0 / 0", "true"),
        ("0e0 / 0 <= 0e0 / 0", "false"),
        ("9223372036854775807 + 1", "9223372036854775808"),
        ("1.5 * 2", "3"),
        ("- 1.50", "-1.5"),
        ('1 + "0.1"^^xsd:float', "1.1"),
        ("false < true", "true"),
        ("'a' < 'b'", "true"),
        ("'a' < 1", "error"),
        ("'a' = 1", "false"),
        ("'a'@en = 'a'", "false"),
        ("'a'@en = 'a'@EN", "true"),
        ("'a'@en < 'b'@en", "error"),
        ("'x'^^:unknown = 'x'^^:unknown", "true"),
        ("'x'^^:unknown = 'y'^^:unknown", "error"),
        ("'x'^^:unknown != 1", "error"),
        ('"abc"^^xsd:integer = 1', "error"),
        ('"abc"^^xsd:integer || true', "true"),
        ('!"abc"^^xsd:integer', "error"),
        ("?x = :x", "true"),
        ("?x = 1", "false"),
        ("?x < :y", "error"),
        ("?y = 1 || true", "true"),
        ("?y = 1 && false", "false"),
        ("?y = 1 || false", "error"),
        ("BOUND(?y)", "false"),
        ("COALESCE(?y, 7)", "7"),
        ("IF(?x = :x, 1, ?y)", "1"),
        ("1 IN (?y, 1.0)", "true"),
        ("1 IN (?y, 2)", "error"),
        ("1 NOT IN (2, 3)", "true"),
        ("SAMETERM(1, 1.0)", "false"),
        ('"2020-01-01T12:00:00Z"^^xsd:dateTime < "2020-01-02T00:00:00"^^xsd:dateTime', "error"),
        ('"2020-01-01T12:00:00Z"^^xsd:dateTime < "2020-01-02T02:00:01"^^xsd:dateTime', "true"),
        ('"2020-01-01T12:00:00Z"^^xsd:dateTime = "2020-01-01T12:00:00"^^xsd:dateTime', "false"),
        ('"2020-01-01T12:00:00Z"^^xsd:dateTime = "2020-01-01T13:00:00+01:00"^^xsd:dateTime', "true"),
        ('"2020-01-01"^^xsd:date = "2020-01-01T00:00:00"^^xsd:dateTime', "false"),
        ('REGEX("abc", "^A", "i")', "true"),
        ('STRLEN("äb")', "2"),
        ('xsd:integer("12") + 1', "13"),
    ],
)
def test_value(expression: str, expected: str) -> None:
    assert value(expression) == expected


@pytest.mark.parametrize(
    ("text", "datatype", "expected"),
    [
        ("01", "integer", ("1", "integer")),
        ("01", "byte", ("1", "integer")),
        ("01.50", "double", ("1.5", "double")),
        ("1", "boolean", ("true", "boolean")),
        ("PT60M", "dayTimeDuration", ("PT1H", "dayTimeDuration")),
        ("2020-01-01T24:00:00+00:00", "dateTime", ("2020-01-02T00:00:00Z", "dateTime")),
        ("99999999999999999999", "integer", ("99999999999999999999", "integer")),
        ("abc", "integer", ("abc", "integer")),
    ],
)
def test_normal_form(text: str, datatype: str, expected: tuple[str, str]) -> None:
    xsd = "http://www.w3.org/2001/XMLSchema#"
    assert normal(Literal(text, datatype=NamedNode(xsd + datatype))) == Literal(
        expected[0], datatype=NamedNode(xsd + expected[1])
    )


def test_one_instant_in_two_time_zones_is_equal_in_order() -> None:
    kind = NamedNode("http://www.w3.org/2001/XMLSchema#dateTime")
    a, b = (Literal(text, datatype=kind) for text in ("2020-01-01T01:00:00+01:00", "2020-01-01T00:00:00Z"))
    assert compared(a, b) == compared(b, a) == 0
