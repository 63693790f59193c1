"""The engine's exact evaluator and the reference's, on random expressions over literals of every sort."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any, TypeAlias

from hypothesis import example, given
from hypothesis import strategies as st
from pyoxigraph import BlankNode, Literal, NamedNode, Variable
from reference import values

from oxiseq.engine.expressions import exact
from oxiseq.grammar.algebra import Call, Expression, Term

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
