"""Values of terms without rounding: Python integers, fractions, and floats for float and double.

In the flow: terms of a mapping → **exact values** → `exact`. The kinds are those of the term columns
(engine/kinds.py), so that this reading and the machine's agree on what a term is.
"""

from __future__ import annotations

import math
import re
from fractions import Fraction
from functools import lru_cache
from typing import Final

import numpy as np
from pyoxigraph import Literal, NamedNode

from oxiseq.engine import kinds
from oxiseq.engine.terms.normal import XSD, normalise
from oxiseq.engine.terms.texts import Term
from oxiseq.engine.terms.value import read_datetime, term_value
from oxiseq.grammar.records import dataclass

XSD_BOOLEAN: Final = NamedNode(XSD + "boolean")
_DATATYPES: Final = {
    kinds.INTEGER: NamedNode(XSD + "integer"),
    kinds.DECIMAL: NamedNode(XSD + "decimal"),
    kinds.FLOAT: NamedNode(XSD + "float"),
    kinds.DOUBLE: NamedNode(XSD + "double"),
}
NUMERIC: Final = frozenset(_DATATYPES)
TRUE: Final = Literal("true", datatype=XSD_BOOLEAN)
FALSE: Final = Literal("false", datatype=XSD_BOOLEAN)

_FRACTION: Final = re.compile(r"\.[0-9]{6}([0-9]+)")

Exact = int | Fraction | float
"""int for integers and booleans, Fraction for decimals and dateTimes (microseconds), else float."""


class ExpressionError(Exception):
    """SPARQL's *error* value: an unbound variable, a type error, a division by zero. A filter drops it."""


@dataclass(frozen=True, slots=True)
class Value:
    """A term's value; `term` is None for a computed number (its text is made on demand)."""

    kind: int
    number: Exact = 0
    zoned: bool = False
    term: Term | None = None


@lru_cache(maxsize=1 << 16)
def read(term: Term) -> Value:
    """The value of a term, which is brought to the store's normal form first."""
    if not isinstance(term, Literal):
        return Value(term_value(term).kind, term=term)
    term = normalise(term)
    row = term_value(term)
    match row.kind:
        case kinds.BOOLEAN | kinds.INTEGER:
            number: Exact = int(term.value) if row.kind == kinds.INTEGER else row.exact
            return Value(row.kind, number, term=term)
        case kinds.DECIMAL:
            return Value(row.kind, Fraction(term.value), term=term)
        case kinds.FLOAT | kinds.DOUBLE:
            return Value(row.kind, row.number, term=term)
        case kinds.DATETIME:
            return Value(row.kind, _microseconds(term.value), bool(row.quality & kinds.ZONED), term)
    return Value(row.kind, term=term)


def _microseconds(text: str) -> Fraction:
    whole = read_datetime(text)
    assert whole is not None  # its kind is DATETIME
    fraction = _FRACTION.search(text)
    below = fraction.group(1) if fraction else ""
    return Fraction(whole.microseconds) + (Fraction(int(below), 10 ** len(below)) if below else 0)


def boolean(truth: bool) -> Value:
    """xsd:boolean."""
    return Value(kinds.BOOLEAN, int(truth), term=TRUE if truth else FALSE)


def term_of(value: Value) -> Term:
    """The term in the store's normal form."""
    return value.term if value.term is not None else normalise(_literal(value))


def _literal(value: Value) -> Literal:
    datatype = _DATATYPES[value.kind]
    if isinstance(value.number, float):
        return Literal(_float_text(value.number, value.kind), datatype=datatype)
    return Literal(_decimal_text(Fraction(value.number)), datatype=datatype)


def _float_text(number: float, kind: int) -> str:
    if math.isnan(number):
        return "NaN"
    if math.isinf(number):
        return "INF" if number > 0 else "-INF"
    return str(np.float32(number)) if kind == kinds.FLOAT else repr(number)


def _decimal_text(number: Fraction) -> str:
    """A fraction whose denominator divides a power of ten; the shortest digits."""
    scale, rest = 0, number.denominator
    for prime in (2, 5):
        count = 0
        while rest % prime == 0:
            rest, count = rest // prime, count + 1
        scale = max(scale, count)
    assert rest == 1  # sums, products and truncated quotients of decimals
    mantissa = abs(number.numerator) * (10**scale // number.denominator)
    digits = str(mantissa).rjust(scale + 1, "0")
    sign = "-" if number < 0 else ""
    return f"{sign}{digits[:-scale]}.{digits[-scale:]}" if scale else sign + digits


# --- promotion (XPath) ----------------------------------------------------------------------------


def to_double(number: Exact) -> float:
    """The nearest double, ±INF beyond the range."""
    try:
        return float(number)
    except OverflowError:
        return math.inf if number > 0 else -math.inf


def to_float(number: Exact) -> float:
    """The nearest float32, widened; rounded once, not by way of a double."""
    if isinstance(number, float):
        with np.errstate(over="ignore", invalid="ignore"):
            return float(np.float32(number))
    nearest = to_double(number)
    with np.errstate(over="ignore"):
        rounded = np.float32(nearest)
    if math.isfinite(nearest) and nearest != number and np.isfinite(rounded):
        # the double may lie on a tie of float32 where the number itself does not
        away = math.inf if nearest > float(rounded) else -math.inf  # NumPy would compare them as floats
        with np.errstate(over="ignore"):
            other = np.nextafter(rounded, np.float32(away))
        if np.isfinite(other) and 2 * Fraction(nearest) == Fraction(float(rounded)) + Fraction(float(other)):
            nearer_other = abs(Fraction(number) - Fraction(float(other))) < abs(
                Fraction(number) - Fraction(float(rounded))
            )
            return float(other if nearer_other else rounded)
    return float(rounded)


def promoted(a: Value, b: Value) -> tuple[int, Exact, Exact]:
    """The kind in which two numbers meet, and both brought to it."""
    kind = max(a.kind, b.kind)  # integer < decimal < float < double
    if kind == kinds.DOUBLE:
        return kind, to_double(a.number), to_double(b.number)
    if kind == kinds.FLOAT:
        return kind, to_float(a.number), to_float(b.number)
    return kind, a.number, b.number
