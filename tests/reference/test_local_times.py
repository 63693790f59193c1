"""Facts about functions of times and arithmetic on durations, worked out by hand from semantics.md."""

from __future__ import annotations

import pytest
from pyoxigraph import Literal, NamedNode

from oxiseq.grammar.algebra import Call, Expression, FunctionCall
from reference.facts import columns
from reference.values import XSD, ExpressionError, evaluate


def value(e: Expression) -> str | None:
    try:
        return evaluate(e, {}).value
    except ExpressionError:
        return None


def typed(text: str) -> Literal:
    """`PT1H^dayTimeDuration`; an integer, a decimal or a double without."""
    text, _, kind = text.partition("^")
    kind = kind or ("double" if "e" in text else "decimal" if "." in text else "integer")
    return Literal(text, datatype=NamedNode(XSD + kind))


HOUR, DAY, YEAR = "PT1H^dayTimeDuration", "P1D^dayTimeDuration", "P1Y^yearMonthDuration"


@pytest.mark.parametrize(
    ("a", "op", "b", "expected"),
    [
        (DAY, "/", HOUR, "24"),
        (HOUR, "/", "PT7M^dayTimeDuration", "8.571428571428571428"),
        ("-PT1H^dayTimeDuration", "/", "PT7M^dayTimeDuration", "-8.571428571428571428"),
        (DAY, "/", "PT24H^duration", "1"),
        (YEAR, "/", "P5M^yearMonthDuration", "2.4"),
        (HOUR, "/", "3", "PT20M"),
        (HOUR, "*", "1.5", "PT1H30M"),
        ("-2", "*", HOUR, "-PT2H"),
        (HOUR, "/", "7", "PT8M34.285714285714285714S"),
        ("P3M^yearMonthDuration", "*", "0.5", "P2M"),
        ("-P3M^yearMonthDuration", "*", "0.5", "-P1M"),
        ("P2Y^duration", "*", "2", "P4Y"),
        ("P1M^yearMonthDuration", "*", "0", "P0M"),
        (YEAR, "/", DAY, None),
        (DAY, "/", "PT0S^dayTimeDuration", None),
        (DAY, "/", "0", None),
        (DAY, "*", "1e0", None),
        ("P1M1D^duration", "*", "2", None),
        ("2", "/", DAY, None),
        (DAY, "*", DAY, None),
        ("P^dayTimeDuration", "*", "1", None),
    ],
)
def test_durations(a: str, op: str, b: str, expected: str | None) -> None:
    assert value(Call(op, (typed(a), typed(b)))) == expected


@pytest.mark.parametrize(
    ("text", "zone", "expected"),
    [
        ("2026-07-20T23:30:00.25Z", "Europe/Berlin", "2026-07-21T01:30:00.25+02:00"),
        ("2026-10-25T01:30:00+01:00", "Europe/Berlin", "2026-10-25T02:30:00+02:00"),  # the hour that comes twice
        ("1880-01-01T00:00:00Z", "Europe/Berlin", "1880-01-01T00:53:00+00:53"),  # +00:53:28
        ("2026-07-20T10:00:00", "Europe/Berlin", None),
        ("2026-07-20T10:00:00Z", "Europe/Nowhere", None),
        ("9999-12-31T23:30:00Z", "Europe/Berlin", None),
        ("0001-01-01T00:00:00Z", "America/New_York", None),
    ],
)
def test_local(text: str, zone: str, expected: str | None) -> None:
    call = FunctionCall(NamedNode("urn:oxiseq:local"), (typed(f"{text}^dateTime"), Literal(zone)))
    assert value(call) == expected


@pytest.mark.parametrize(
    ("of", "day"),
    [
        ("2026-11-30T00:00:00Z^dateTime", "1"),
        ("2026-12-06T23:59:59.999-11:00^dateTime", "7"),
        ("2024-02-29^date", "4"),
        ("2024-02-29+01:00^date", "4"),
        ("2026-02-30^date", None),
        ("2026^gYear", None),
    ],
)
def test_weekday(of: str, day: str | None) -> None:
    assert value(FunctionCall(NamedNode("urn:oxiseq:weekday"), (typed(of),))) == day


def test_patterns_have_the_functions() -> None:
    bind = 'BIND("2026-12-01T06:30:00Z"^^xsd:dateTime AS ?t) '
    bodies = {"A": f'+ {bind} BIND(HOURS(<urn:oxiseq:local>(?t, "Europe/Berlin")) AS ?h)'}
    assert columns("SELECT ?h ((?t - ?t) / 2 AS ?d)", "A", "a1", bodies=bodies) == [{"h": "7", "d": "PT0S"}]
