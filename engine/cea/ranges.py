"""Comparisons of a numeric column with a constant, as ranges: `low <= value <= high`, or the contrary.

The order of numbers is kept when they are promoted, so the numbers that are below (above) a constant are an initial
(final) part of the column's type; where it ends is found by bisection with the exact evaluator's own comparison. So
what a kernel answers by two comparisons is what the evaluator says, beyond 2^53 too.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable

from pyoxigraph import Literal, NamedNode, Variable

from oxiseq.engine import kinds
from oxiseq.engine.expressions.exact import holds
from oxiseq.engine.expressions.values import NUMERIC, Value, promoted, read
from oxiseq.engine.terms.normal import XSD
from oxiseq.grammar.algebra import Call, Expression
from oxiseq.grammar.functions import MIRRORED
from oxiseq.grammar.records import dataclass


@dataclass(frozen=True, slots=True)
class Range:
    """Integers, or floats as floats; empty when low > high."""

    low: int | float
    high: int | float
    negated: bool


def compared(leaf: Expression) -> tuple[str, Variable, Literal, bool] | None:
    """(operator, attribute, constant, negated) of a leaf that compares an attribute with a constant, else None."""
    negated = False
    if isinstance(leaf, Call) and leaf.name == "!":
        negated, leaf = True, leaf.args[0]
    if not isinstance(leaf, Call) or leaf.name not in MIRRORED:
        return None
    left, right = leaf.args
    if isinstance(left, Variable) and isinstance(right, Literal):
        return leaf.name, left, right, negated
    if isinstance(left, Literal) and isinstance(right, Variable):
        return MIRRORED[leaf.name], right, left, negated
    return None


def range_of(leaf: Expression, kind: int) -> Range | None:
    """The range of a leaf on numbers of a kind (INTEGER in 64 bits, FLOAT, DOUBLE), or None if it is none."""
    what = compared(leaf)
    if what is None:
        return None
    name, attribute, literal, negated = what
    constant = read(literal)
    domain = _Integers() if kind == kinds.INTEGER else _Floats(kind)
    if constant.kind not in NUMERIC:  # the same whatever the number is
        one = Literal("1", datatype=_INTEGER)
        return domain.everything(not holds(leaf, {attribute: one}))
    if isinstance(constant.number, float) and math.isnan(constant.number):
        return domain.nothing(negated is not (name == "!="))
    below = domain.last(lambda value: _stands(value, constant) < 0)
    up_to = domain.last(lambda value: _stands(value, constant) <= 0)
    ranges = {
        "<": (domain.low, below),
        "<=": (domain.low, up_to),
        ">": (up_to + 1, domain.high),
        ">=": (below + 1, domain.high),
        "=": (below + 1, up_to),
        "!=": (below + 1, up_to),
    }
    return domain.range(*ranges[name], negated is not (name == "!="))


_INTEGER = NamedNode(XSD + "integer")


def _stands(value: Value, constant: Value) -> int:
    _, a, b = promoted(value, constant)
    return (a > b) - (a < b)


class _Integers:
    """64-bit integers, numbered as they are."""

    low, high = -(2**63), 2**63 - 1

    def value(self, number: int) -> Value:
        return Value(kinds.INTEGER, number)

    def last(self, test: Callable[[Value], bool]) -> int:
        """The largest number that passes; those that pass come first. One less than the smallest if none does."""
        low, high = self.low - 1, self.high
        while low < high:
            middle = (low + high + 1) // 2
            if test(self.value(middle)):
                low = middle
            else:
                high = middle - 1
        return low

    def range(self, low: int, high: int, negated: bool) -> Range:
        if low > high:
            return self.nothing(negated)
        return Range(low, high, negated)

    def everything(self, negated: bool) -> Range:
        return Range(self.low, self.high, negated)

    def nothing(self, negated: bool) -> Range:
        return Range(self.high, self.low, negated)


class _Floats(_Integers):
    """Floats of a kind, numbered in their order: 0.0 is 0, -0.0 is -1."""

    def __init__(self, kind: int) -> None:
        self._kind = kind
        self._width = "<d<q" if kind == kinds.DOUBLE else "<f<i"
        self.high = self._bits(math.inf)
        self.low = -1 - self.high

    def value(self, number: int) -> Value:
        return Value(self._kind, self._float(number))

    def range(self, low: int, high: int, negated: bool) -> Range:
        if low > high:
            return self.nothing(negated)
        return Range(self._float(low), self._float(high), negated)

    def everything(self, negated: bool) -> Range:
        """NaN is inside nothing: so what holds of all is what is not outside."""
        return self.nothing(not negated)

    def nothing(self, negated: bool) -> Range:
        return Range(math.inf, -math.inf, negated)

    def _bits(self, number: float) -> int:
        bits: int = struct.unpack(self._width[2:], struct.pack(self._width[:2], number))[0]
        return bits

    def _float(self, number: int) -> float:
        magnitude = number if number >= 0 else -1 - number
        found: float = struct.unpack(self._width[:2], struct.pack(self._width[2:], magnitude))[0]
        return found if number >= 0 else -found
