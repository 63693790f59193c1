"""The value of a term: kind, number, exact part, quality (matching.md, section 2).

In the flow: normal form → **value** → columns of the term dictionary → kernels. It takes literals in
the store's normal form, where integers beyond 64 bits and decimals beyond 18 digits stay as written, so
their values are read here with any number of digits.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from ctypes import c_float
from datetime import datetime
from fractions import Fraction
from typing import Final, NamedTuple

from pyoxigraph import BlankNode, Literal, NamedNode, Triple

from oxiseq.engine import kinds
from oxiseq.engine.terms.normal import RDF_LANG_STRING, XSD
from oxiseq.grammar.terms import INTEGER_TYPES

INT64_MIN: Final = -(2**63)
INT64_MAX: Final = 2**63 - 1


class Value(NamedTuple):
    """One row of the term columns."""

    kind: int
    number: float
    exact: int
    quality: int


IRI_VALUE: Final = Value(kinds.IRI, 0.0, 0, 0)
BLANK_VALUE: Final = Value(kinds.BLANK, 0.0, 0, 0)
STRING_VALUE: Final = Value(kinds.STRING, 0.0, 0, 0)
EMPTY_STRING_VALUE: Final = Value(kinds.STRING, 0.0, 0, kinds.EMPTY)
LANGSTRING_VALUE: Final = Value(kinds.LANGSTRING, 0.0, 0, 0)
UNKNOWN_VALUE: Final = Value(kinds.UNKNOWN, 0.0, 0, 0)
OTHER_VALUE: Final = Value(kinds.OTHER, 0.0, 0, 0)


def term_value(term: NamedNode | BlankNode | Literal | Triple) -> Value:
    """The value of a term whose literals are in normal form."""
    if isinstance(term, Literal):
        return literal_value(term)
    if isinstance(term, NamedNode):
        return IRI_VALUE
    return BLANK_VALUE if isinstance(term, BlankNode) else OTHER_VALUE


def literal_value(literal: Literal) -> Value:
    """The value of a literal in normal form.

    A lexical form that its datatype does not allow gives kind UNKNOWN. Whitespace around a number is such
    a fault here, as it is in the store. The range of a derived integer type is not checked, as the store
    makes `"300"^^xsd:byte` an integer.
    """
    if literal.language is not None:
        return LANGSTRING_VALUE
    datatype = literal.datatype.value
    if datatype == XSD + "string":
        return STRING_VALUE if literal.value else EMPTY_STRING_VALUE
    reader = _READERS.get(datatype)
    return UNKNOWN_VALUE if reader is None else reader(literal.value) or UNKNOWN_VALUE


# --- numbers --------------------------------------------------------------------------------------

_INTEGER = re.compile(r"[+-]?[0-9]+", re.ASCII)
_DECIMAL = re.compile(r"([+-]?)([0-9]*)(?:\.([0-9]*))?", re.ASCII)
_DOUBLE = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?", re.ASCII)
_SPECIAL: Final = {"INF": math.inf, "+INF": math.inf, "-INF": -math.inf, "NaN": math.nan}
_TWO_53: Final = 2**53
_ALL_EXACT: Final = kinds.ROUNDED | kinds.EXACT_INTEGER | kinds.EXACT_NUMBER
MAX_DIGITS: Final = 4000
"""Python refuses to read integers of more digits than 4,300 by default; numbers as long are UNKNOWN."""


def _boolean(text: str) -> Value | None:
    if text not in ("true", "false", "1", "0"):
        return None
    truth = int(text in ("true", "1"))
    return Value(kinds.BOOLEAN, float(truth), truth, _ALL_EXACT)


def _integer(text: str) -> Value | None:
    if _INTEGER.fullmatch(text) is None or len(text) > MAX_DIGITS:
        return None
    number = int(text)
    if -_TWO_53 <= number <= _TWO_53:
        return Value(kinds.INTEGER, float(number), number, _ALL_EXACT)
    return integer_value(number)


def _decimal(text: str) -> Value | None:
    match = _DECIMAL.fullmatch(text)
    if match is None or len(text) > MAX_DIGITS:
        return None
    sign, whole, fraction = match.group(1), match.group(2), match.group(3) or ""
    if not whole and not fraction:
        return None
    fraction = fraction.rstrip("0")
    return _exact_number(kinds.DECIMAL, int(sign + (whole + fraction)), len(fraction))


def integer_value(number: int) -> Value:
    """Of an integer, however large."""
    nearest, quality = _nearest(number, 0), kinds.ROUNDED
    if math.isfinite(nearest) and int(nearest) == number:
        quality |= kinds.EXACT_NUMBER
    if INT64_MIN <= number <= INT64_MAX:
        return Value(kinds.INTEGER, nearest, number, quality | kinds.EXACT_INTEGER)
    return Value(kinds.INTEGER, nearest, 0, quality)


def _exact_number(kind: int, mantissa: int, scale: int) -> Value:
    """mantissa · 10^-scale; the scale is the smallest possible one."""
    number, quality = _nearest(mantissa, scale), kinds.ROUNDED
    if -_TWO_53 <= mantissa <= _TWO_53:  # m / 10^s is a double exactly if 5^s divides m
        exact = mantissa % 5**scale == 0
    else:
        exact = math.isfinite(number) and Fraction(number) == Fraction(mantissa, 10**scale)
    if exact:
        quality |= kinds.EXACT_NUMBER
    if scale <= kinds.MAX_SCALE and INT64_MIN <= mantissa <= INT64_MAX:
        return Value(kind, number, mantissa, quality | kinds.EXACT_INTEGER | scale << kinds.SCALE_SHIFT)
    return Value(kind, number, 0, quality)


def _nearest(mantissa: int, scale: int) -> float:
    """The double nearest to mantissa · 10^-scale, ±INF beyond the range (as promotion to double gives)."""
    denominator: int = 10**scale
    try:
        return mantissa / denominator  # division of integers is correctly rounded in Python
    except OverflowError:
        return math.inf if mantissa > 0 else -math.inf


def _read_double(text: str) -> float | None:
    special = _SPECIAL.get(text)
    if special is not None:
        return special
    return float(text) if _DOUBLE.fullmatch(text) is not None else None


def _double(text: str) -> Value | None:
    number = _read_double(text)
    return None if number is None else Value(kinds.DOUBLE, number, 0, kinds.ROUNDED | kinds.EXACT_NUMBER)


def _float(text: str) -> Value | None:
    """A float, widened. In normal form it is the shortest text of a float32, hence never near a tie of
    float32, and rounding twice does no harm."""
    number = _read_double(text)
    if number is None:
        return None
    return Value(kinds.FLOAT, to_float32(number), 0, kinds.ROUNDED | kinds.EXACT_NUMBER)


def to_float32(number: float) -> float:
    """The double rounded to float32 (ties to even), ±INF beyond its range."""
    return c_float(number).value


# --- dates and the rest ---------------------------------------------------------------------------

_YEAR = r"(-?(?:[1-9][0-9]{3,}|0[0-9]{3}))"
_ZONE = r"(Z|[+-](?:(?:0[0-9]|1[0-3]):[0-5][0-9]|14:00))?"
_MONTH, _DAY = r"(0[1-9]|1[0-2])", r"(0[1-9]|[12][0-9]|3[01])"
_CLOCK = r"(?:([01][0-9]|2[0-3]):([0-5][0-9]):([0-5][0-9])(?:\.([0-9]+))?|24:00:00(?:\.0+)?)"
_DATETIME = re.compile(f"{_YEAR}-{_MONTH}-{_DAY}T{_CLOCK}{_ZONE}", re.ASCII)
_USUAL = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(?:\.[0-9]{1,6})?(Z?)", re.ASCII)
_EPOCH: Final = datetime(1970, 1, 1)
_DAY_SECONDS: Final = 86_400
_MONTH_DAYS: Final = (31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)


def days_from_civil(year: int, month: int, day: int) -> int:
    """Days since 1970-01-01 in the proleptic Gregorian calendar, with a year 0 (Hinnant's algorithm)."""
    year -= month <= 2
    era, year_of_era = divmod(year, 400)
    day_of_year = (153 * (month + (-3 if month > 2 else 9)) + 2) // 5 + day - 1
    return era * 146_097 + year_of_era * 365 + year_of_era // 4 - year_of_era // 100 + day_of_year - 719_468


def _month_days(year: int, month: int) -> int:
    leap = year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
    return 28 if month == 2 and not leap else _MONTH_DAYS[month - 1]


class DateTime(NamedTuple):
    """A dateTime: whole microseconds since 1970 (UTC when zoned, else local), cut off downwards."""

    microseconds: int
    zoned: bool
    whole: bool
    """False when digits below a microsecond were cut off."""


def read_datetime(text: str) -> DateTime | None:
    """Read an xsd:dateTime of any year; None when the text is not one."""
    usual = _USUAL.fullmatch(text)
    if usual is not None:
        try:
            span = datetime.fromisoformat(text.removesuffix("Z")) - _EPOCH
        except ValueError:  # the year 0, 24:00:00, or no date at all: handled below
            pass
        else:
            seconds = span.days * _DAY_SECONDS + span.seconds
            return DateTime(seconds * 1_000_000 + span.microseconds, bool(usual.group(1)), True)
    match = _DATETIME.fullmatch(text)
    if match is None:
        return None
    year_text, month_text, day_text, hour, minute, second, fraction, zone = match.groups()
    if len(year_text) > MAX_DIGITS:
        return None
    year, month, day = int(year_text), int(month_text), int(day_text)
    if day > _month_days(year, month):
        return None
    seconds = days_from_civil(year, month, day) * _DAY_SECONDS - zone_minutes(zone) * 60
    seconds += _DAY_SECONDS if hour is None else int(hour) * 3600 + int(minute) * 60 + int(second)
    digits = (fraction or "").rstrip("0")
    micros = int(digits[:6].ljust(6, "0"))
    return DateTime(seconds * 1_000_000 + micros, zone is not None, len(digits) <= 6)


def zone_minutes(zone: str | None) -> int:
    """`+05:30` → 330; `Z` and none → 0."""
    if zone is None or zone == "Z":
        return 0
    minutes = int(zone[1:3]) * 60 + int(zone[4:6])
    return -minutes if zone[0] == "-" else minutes


def _datetime(text: str) -> Value | None:
    read = read_datetime(text)
    if read is None:
        return None
    quality = kinds.ZONED if read.zoned else 0
    if not INT64_MIN <= read.microseconds <= INT64_MAX:
        return Value(kinds.DATETIME, 0.0, 0, quality)
    if read.whole:
        quality |= kinds.EXACT_INTEGER
    return Value(kinds.DATETIME, float(read.microseconds), read.microseconds, quality)


_TIME_PART = r"(?:T(?=[0-9])(?:[0-9]+H)?(?:[0-9]+M)?(?:[0-9]+(?:\.[0-9]+)?S)?)?"
_OTHER: Final = {
    "date": f"{_YEAR}-{_MONTH}-{_DAY}{_ZONE}",
    "time": f"{_CLOCK}{_ZONE}",
    "gYear": f"{_YEAR}{_ZONE}",
    "gYearMonth": f"{_YEAR}-{_MONTH}{_ZONE}",
    "gMonth": f"--{_MONTH}{_ZONE}",
    "gMonthDay": f"--{_MONTH}-{_DAY}{_ZONE}",
    "gDay": f"---{_DAY}{_ZONE}",
    "duration": rf"-?P(?=[0-9T])(?:[0-9]+Y)?(?:[0-9]+M)?(?:[0-9]+D)?{_TIME_PART}",
    "yearMonthDuration": r"-?P(?=[0-9])(?:[0-9]+Y)?(?:[0-9]+M)?",
    "dayTimeDuration": rf"-?P(?=[0-9T])(?:[0-9]+D)?{_TIME_PART}",
}


def _other_reader(name: str, pattern: str) -> Callable[[str], Value | None]:
    compiled = re.compile(pattern, re.ASCII)

    def read(text: str) -> Value | None:
        match = compiled.fullmatch(text)
        if match is None:
            return None
        if name == "date" and int(match.group(3)) > _month_days(int(match.group(1)), int(match.group(2))):
            return None
        if name == "gMonthDay" and int(match.group(2)) > _MONTH_DAYS[int(match.group(1)) - 1]:
            return None
        return OTHER_VALUE

    return read


_READERS: Final[dict[str, Callable[[str], Value | None]]] = {
    XSD + "boolean": _boolean,
    XSD + "decimal": _decimal,
    XSD + "double": _double,
    XSD + "float": _float,
    XSD + "dateTime": _datetime,
    XSD + "dateTimeStamp": lambda text: None,  # the store makes a well-formed one a dateTime
    RDF_LANG_STRING: lambda text: None,  # without a language tag it is ill-typed
    **dict.fromkeys(INTEGER_TYPES, _integer),
    **{XSD + name: _other_reader(name, pattern) for name, pattern in _OTHER.items()},
}
