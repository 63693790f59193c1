"""Functions of time in expressions: getDURATION(), getSTARTTIME(), getENDTIME() (semantics.md 5).

Compared with a number they are numbers of microseconds, else an xsd:dayTimeDuration and xsd:dateTimes. `prepared` makes
that explicit, `bound_of` finds the conditions that bound a hull's length, which are not evaluated row by row.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from fractions import Fraction
from math import ceil, floor, isfinite
from typing import Final

from pyoxigraph import Literal

from oxiseq.engine import kinds
from oxiseq.engine.expressions.values import NUMERIC, read, to_double
from oxiseq.engine.flow.times import NEVER
from oxiseq.grammar.algebra import Call, Expression, MatchFunction
from oxiseq.grammar.functions import MIRRORED
from oxiseq.grammar.records import dataclass
from oxiseq.grammar.scope import subexpressions
from oxiseq.grammar.terms import XSD_DAY_TIME_DURATION, XSD_DURATION

DURATION: Final = "getDURATION"
NUMBER: Final = "number"
"""Marks a function of time that stands for a number of microseconds."""
_DURATION = re.compile(
    r"(-?)P(?=[\dT])(?:(\d+)Y)?(?:(\d+)M)?(?:(\d+)D)?(?:T(?=\d)(?:(\d+)H)?(?:(\d+)M)?(?:(\d+(?:\.\d+)?)S)?)?"
)


@dataclass(frozen=True, slots=True)
class Length:
    """A condition on the length of a hull: `op` and microseconds."""

    op: str
    size: Fraction

    @property
    def whole(self) -> tuple[str, int]:
        """The same on whole microseconds: an operator and a number."""
        size = self.size
        if size.denominator == 1:
            return self.op, int(size)
        match self.op:
            case "<" | "<=":
                return "<=", floor(size)
            case ">" | ">=":
                return ">=", ceil(size)
            case "=":
                return "<", -NEVER
            case _:
                return ">=", -NEVER

    @property
    def limit(self) -> int:
        """The longest hull that satisfies it."""
        if self.size >= NEVER:
            return NEVER
        if self.op == "<":
            return ceil(self.size) - 1
        return floor(self.size) if self.op in ("<=", "=") else NEVER


def has_time(expression: Expression) -> bool:
    """Whether it reads a time."""
    return any(isinstance(e, MatchFunction) for e in subexpressions(expression))


def bound_of(conditions: Iterable[Expression]) -> int:
    """The longest hull that some conditions allow."""
    found = [length.limit for c in conditions if (length := length_of(c)) is not None]
    return min(found, default=NEVER)


def length_of(condition: Expression) -> Length | None:
    """The condition as one on a hull's length, if it is `getDURATION() op constant`."""
    if not isinstance(condition, Call) or condition.name not in MIRRORED:
        return None
    left, right = condition.args
    if _is_duration(left) and (size := _constant(right)) is not None:
        return Length(condition.name, size)
    if _is_duration(right) and (size := _constant(left)) is not None:
        return Length(MIRRORED[condition.name], size)
    return None


def _is_duration(e: Expression) -> bool:
    return isinstance(e, MatchFunction) and e.name == DURATION


def _constant(e: Expression) -> Fraction | None:
    """A constant length in microseconds, cut at NEVER: a number, or a duration without months. Not an xsd:float, to
    which lengths would be rounded."""
    if not isinstance(e, Literal):
        return None
    if e.datatype in (XSD_DURATION, XSD_DAY_TIME_DURATION):
        size = microseconds(e.value)
    else:
        value = read(e)
        exact = value.kind in NUMERIC and value.kind != kinds.FLOAT and isfinite(to_double(value.number))
        size = Fraction(value.number) if exact else None
    return None if size is None else max(Fraction(-NEVER), min(Fraction(NEVER), size))


def microseconds(text: str) -> Fraction | None:
    """An xsd:duration in microseconds; None if it is none, or has months."""
    match = _DURATION.fullmatch(text)
    if match is None:
        return None
    years, months, days, hours, minutes, seconds = (Fraction(g or 0) for g in match.groups()[1:])
    if years or months:
        return None
    total = (days * 86_400 + hours * 3_600 + minutes * 60 + seconds) * 1_000_000
    return -total if match.group(1) else total


def prepared(e: Expression) -> Expression:
    """The expression with numbers where a function of time is compared with a number."""
    if not isinstance(e, Call):
        return e
    args = tuple(prepared(a) for a in e.args)
    if e.name not in MIRRORED or len(args) != 2:
        return Call(e.name, args, span=e.span)
    as_terms = Call(e.name, args, span=e.span)
    for i in (0, 1):
        function, other = args[i], args[1 - i]
        if isinstance(function, MatchFunction) and not isinstance(other, MatchFunction):
            number = MatchFunction(function.name, NUMBER)
            pair = (number, other) if i == 0 else (other, number)
            as_numbers = Call(e.name, pair, span=e.span)
            if isinstance(other, Literal):
                return as_numbers if read(other).kind in NUMERIC else as_terms
            return Call("IF", (Call("ISNUMERIC", (other,)), as_numbers, as_terms), span=e.span)
    return as_terms
