"""Values that lie closer together than the kernels' numbers: dateTimes below a microsecond, ties of float32; and what
is equal to nothing of another kind."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from pyoxigraph import Literal, NamedNode

from oxiseq.engine.expressions.amounts import Added, added_up
from oxiseq.engine.expressions.exact import equal
from oxiseq.engine.expressions.values import ExpressionError, read, to_float
from oxiseq.engine.terms.dictionary import TermDictionary

XSD = "http://www.w3.org/2001/XMLSchema#"
DATETIME = NamedNode(f"{XSD}dateTime")


def second(fraction: str) -> Literal:
    return Literal(f"2026-11-27T10:00:00.{fraction}Z", datatype=DATETIME)


def test_datetimes_have_an_order_below_a_microsecond() -> None:
    digits = ["000001", "0000010", "00000101", "0000011", "00000119", "0000012", "000002"]
    numbers = [read(second(each)).number for each in digits]
    assert numbers[0] == numbers[1] and numbers[1:] == sorted(set(numbers))
    assert numbers[4] - numbers[0] == Fraction(19, 100)  # of a microsecond


@pytest.mark.parametrize("other", ["0", "false", "x", "1970-01-01T00:00:00Z"])
def test_a_datetime_equals_nothing_of_another_kind_whose_number_is_0_too(other: str) -> None:
    epoch = read(Literal("1970-01-01T00:00:00", datatype=DATETIME))
    kind = {"0": "integer", "false": "boolean", "x": "string"}.get(other, "dateTime")
    value = read(Literal(other, datatype=NamedNode(f"{XSD}{kind}")))
    assert epoch.number == 0 and not equal(epoch, value) and not equal(value, epoch)


def test_a_datetime_and_what_is_none_have_no_answer() -> None:
    epoch = read(Literal("1970-01-01T00:00:00", datatype=DATETIME))
    for broken in (Literal("soon", datatype=DATETIME), Literal("1", datatype=NamedNode("urn:unknown"))):
        for pair in ((epoch, read(broken)), (read(broken), epoch)):
            with pytest.raises(ExpressionError):
                equal(*pair)


@pytest.mark.parametrize(
    ("number", "nearest"),
    [
        (1 + Fraction(1, 2**24), 1.0),  # a tie: to the even one
        (1 + Fraction(1, 2**24) + Fraction(1, 2**70), 1 + 2.0**-23),  # whose double is that tie
        (1 + Fraction(1, 2**24) - Fraction(1, 2**70), 1.0),
        (1 + Fraction(3, 2**24), 1 + 2.0**-22),
        (1 + Fraction(3, 2**24) - Fraction(1, 2**70), 1 + 2.0**-23),
        (-1 - Fraction(1, 2**24) - Fraction(1, 2**70), -1 - 2.0**-23),
    ],
)
def test_a_float_is_rounded_once(number: Fraction, nearest: float) -> None:
    assert to_float(number) == nearest


def added(*numbers: str) -> list[float] | None:
    """What each of some events adds, one number each."""
    terms = TermDictionary()
    ids = np.array([terms.constant(Literal(n, datatype=NamedNode(f"{XSD}decimal"))) for n in numbers])
    found = added_up([Added(np.arange(len(numbers)), ids, Fraction(1))], len(numbers), terms)
    return None if found is None else found.tolist()


def test_decimals_are_added_in_one_unit() -> None:
    assert added("1.5", "20.25", "3") == [150, 2025, 300]


def test_sums_that_doubles_cannot_hold_are_not_added() -> None:
    assert added(str(2**52 - 1)) == [2**52 - 1]
    assert added(str(2**52)) is None
    assert added(*[str(2**51)] * 2) is None
