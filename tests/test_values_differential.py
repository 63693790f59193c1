"""The engine's exact evaluator and the reference's, on random expressions over literals of every sort."""

from __future__ import annotations

import random
from collections.abc import Callable
from itertools import product
from typing import Any, TypeAlias

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from pyoxigraph import BlankNode, Literal, NamedNode, Variable
from reference import values

from oxiseq.engine.expressions import exact
from oxiseq.grammar.algebra import Call, Expression, FunctionCall, Term

XSD = "http://www.w3.org/2001/XMLSchema#"
LEXICAL = {
    "integer": ["0", "1", "-1", "2", "9007199254740992", "9007199254740993", "9223372036854775807", "2" * 20],
    "decimal": ["0", "0.1", "-0.5", "1.0", "0.333333333333333333", "9007199254740993.5", "123456789012345678901.5"],
    "float": ["0", "-0", "0.1", "16777216", "16777217", "1e30", "INF", "-INF", "NaN", "3.4028235e38"],
    "double": ["0", "-0", "0.1", "1e0", "9007199254740992", "1e300", "INF", "NaN", "1e-320", "16777217"],
    "boolean": ["true", "false"],
    "string": ["", "a", "b", "ab", "ä", "1"],
    "dateTime": [
        "2020-01-01T00:00:00Z",
        "2020-01-01T14:00:00",
        "2020-01-01T14:00:00.000001",
        "2020-01-01T00:00:00+14:00",
        "2019-12-31T10:00:00",
        "2020-02-30T00:00:00Z",
        "-0001-01-01T00:00:00Z",
        "2020-01-01T00:00:00.0000001Z",
    ],
    "date": ["2020-01-01", "2020-01-02", "2020-01-01Z", "nonsense"],
    "dayTimeDuration": ["PT1S", "PT60M", "P1D"],
    "byte": ["5", "300", "x"],
}
LITERALS: list[Term] = [
    Literal(text, datatype=NamedNode(XSD + kind)) for kind, texts in LEXICAL.items() for text in texts
]
TERMS: list[Term] = [
    *LITERALS,
    Literal("a", language="en"),
    Literal("b", language="en"),
    Literal("x", datatype=NamedNode("http://e/unknown")),
    Literal("y", datatype=NamedNode("http://e/unknown")),
    Literal("abc", datatype=NamedNode(XSD + "integer")),
    NamedNode("http://e/x"),
    NamedNode("http://e/y"),
    BlankNode("b"),
]
BINARY = [
    "=",
    "!=",
    "<",
    ">",
    "<=",
    ">=",
    "=",
    "<",
    "+",
    "-",
    "*",
    "/",
    "&&",
    "||",
    "IN",
    "NOT IN",
    "SAMETERM",
    "COALESCE",
]
UNARY = ["!", "NEGATE", "PLUS", "STR", "DATATYPE", "ISNUMERIC", "ISIRI", "ISBLANK", "LANG"]
VARIABLES = [Variable(name) for name in "xyz"]


def expression(dice: random.Random, depth: int) -> Expression:
    if depth == 0 or dice.random() < 0.2:
        return dice.choice(VARIABLES)
    if dice.random() < 0.2:
        return Call(dice.choice(UNARY), (expression(dice, depth - 1),))
    if dice.random() < 0.05:
        return Call("IF", tuple(expression(dice, depth - 1) for _ in range(3)))
    if dice.random() < 0.05:
        return Call("BOUND", (dice.choice(VARIABLES),))
    return Call(dice.choice(BINARY), (expression(dice, depth - 1), expression(dice, depth - 1)))


Evaluate: TypeAlias = Callable[[Expression, Any], object]


def outcome(evaluate: Evaluate, error: type[Exception], e: Expression, mapping: dict[Variable, Term]) -> str:
    try:
        return str(evaluate(e, mapping))
    except error:
        return "error"


def undefined(e: Expression, mapping: dict[Variable, Term]) -> bool:
    """Arithmetic on something that is no number: the specification leaves it open."""
    if not isinstance(e, Call):
        return False
    if e.name in ("+", "-", "*", "/", "NEGATE", "PLUS"):
        for arg in e.args:
            try:
                found = values.value_of(values.evaluate(arg, mapping))
            except values.ExpressionError:
                continue
            if not isinstance(found, values.Number):
                return True
    return any(undefined(arg, mapping) for arg in e.args)


@given(st.integers(0, 2**62))
@example(0)
@example(17)
def test_exact_evaluator_agrees(seed: int) -> None:
    dice = random.Random(seed)
    for _ in range(20):
        e = expression(dice, dice.choice([1, 1, 2, 3]))
        bound = {v: values.normal_term(dice.choice(TERMS)) for v in VARIABLES if dice.random() < 0.95}
        if undefined(e, bound):
            continue
        expected = outcome(values.evaluate, values.ExpressionError, e, bound)
        assert outcome(exact.evaluate, exact.ExpressionError, e, bound) == expected, (e, bound)


# --- durations and local times --------------------------------------------------------------------

DURATIONS: list[Term] = [
    Literal(text, datatype=NamedNode(XSD + kind))
    for kind, texts in {
        "dayTimeDuration": ["PT1S", "-PT0.1S", "P1DT1H", "PT0S", "PT7M", "PT", "P1Y", "PT0.000000000000000001S"],
        "yearMonthDuration": ["P1M", "-P3M", "P1Y2M", "P0M", "P1D"],
        "duration": ["P1Y", "PT1H", "P1M1D", "P0D", "-P1M", "P0M"],
    }.items()
    for text in texts
]
FACTORS: list[Term] = [
    Literal(text, datatype=NamedNode(XSD + kind))
    for kind, texts in {
        "integer": ["0", "1", "-2", "3", "7", "9" * 20],
        "decimal": ["0.5", "-1.5", "0.333333333333333333", "1.0", "0.0"],
        "double": ["2e0"],
        "string": ["1"],
    }.items()
    for text in texts
]
ZONED: list[Term] = [
    Literal(text, datatype=NamedNode(XSD + kind))
    for kind, texts in {
        "dateTime": [
            "2026-10-25T00:59:59Z",
            "2026-10-25T01:00:00.250Z",
            "2026-07-20T10:00:00+05:30",
            "2026-07-20T10:00:00",
            "1880-01-01T00:00:00Z",
            "1960-01-01T00:00:00.123456789Z",
            "9999-12-31T23:30:00Z",
            "0001-01-01T00:30:00Z",
            "-0044-03-15T00:00:00Z",
            "12026-01-01T00:00:00Z",
            "2026-02-30T00:00:00Z",
            "2026-01-01T24:00:00Z",
        ],
        "date": ["2024-02-29", "2024-02-29+01:00", "2026-02-30", "-0044-03-15", "12026-01-01", "0001-01-01Z"],
        "gYear": ["2026"],
        "string": ["2026-07-20T10:00:00Z"],
    }.items()
    for text in texts
]
ZONES: list[Term] = [
    *(Literal(name) for name in ("Europe/Berlin", "America/New_York", "Africa/Monrovia", "Asia/Kolkata", "UTC")),
    *(Literal(name) for name in ("", "Europe/Nowhere", "../UTC", "Europe")),
    NamedNode("http://e/x"),
]


def agree(e: Expression, **bound: Term) -> bool:
    given_ = {Variable(name): values.normal_term(term) for name, term in bound.items()}
    expected = outcome(values.evaluate, values.ExpressionError, e, given_)
    return outcome(exact.evaluate, exact.ExpressionError, e, given_) == expected


X, Y = Variable("x"), Variable("y")
NO_MONTHS = Literal("P0M", datatype=NamedNode(XSD + "yearMonthDuration"))
LOCAL, WEEKDAY = (
    FunctionCall(NamedNode(f"urn:oxiseq:{name}"), args) for name, args in (("local", (X, Y)), ("weekday", (X,)))
)


@pytest.mark.parametrize("name", ["*", "/"])
def test_durations_agree(name: str) -> None:
    pairs = [*product(DURATIONS, [*DURATIONS, *FACTORS]), *product(FACTORS, DURATIONS)]
    mended = [(a, b) for a, b in pairs if NO_MONTHS not in (a, b) or (a in DURATIONS and b in DURATIONS)]
    assert [(a, b) for a, b in mended if not agree(Call(name, (X, Y)), x=a, y=b)] == []


def test_functions_of_times_agree() -> None:
    dates = [at for at in ZONED if isinstance(at, Literal) and at.datatype.value == f"{XSD}date"]
    assert [at for at in ZONED if not agree(WEEKDAY, x=at)] == []
    some = [at for at in ZONED if at not in dates]
    assert [(at, zone) for at, zone in product(some, ZONES) if not agree(LOCAL, x=at, y=zone)] == []


BERLIN = Literal("Europe/Berlin")
DIFFERENT: dict[str, tuple[Expression, Term, Term]] = {
    "nothing of months times a number": (Call("*", (X, Y)), NO_MONTHS, Literal(3)),
    "nothing of months by a number": (Call("/", (X, Y)), NO_MONTHS, Literal(3)),
    "the local time of a date": (LOCAL, Literal("2024-02-29Z", datatype=NamedNode(XSD + "date")), BERLIN),
    "a zone with a language": (LOCAL, ZONED[0], Literal("Europe/Berlin", language="en")),
}


@pytest.mark.parametrize("what", DIFFERENT)
def test_values_that_differed(what: str) -> None:
    e, x, y = DIFFERENT[what]
    assert agree(e, x=x, y=y)
