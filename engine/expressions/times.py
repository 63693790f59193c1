"""Functions of dates, times and durations beyond SPARQL's: local time, weekday, quotients and multiples of durations.

In the flow: `functions` gives FUNCTIONS to Oxigraph wherever it evaluates a query; `exact` calls `of_durations`.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import datetime, timedelta
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING, Final
from zoneinfo import ZoneInfo

from pyoxigraph import Literal, NamedNode

from oxiseq.grammar.functions import LOCAL, WEEKDAY
from oxiseq.grammar.terms import XSD

if TYPE_CHECKING:
    from oxiseq.engine.terms.texts import Term

_DATE_TIME: Final = re.compile(r"(\d{4})-(\d\d)-(\d\d)T(\d\d):(\d\d):(\d\d)(\.\d+)?(Z|[+-]\d\d:\d\d)?", re.ASCII)
_DURATION: Final = re.compile(
    r"(-?)P(?:(\d+)Y)?(?:(\d+)M)?(?:(\d+)D)?(?:T(?:(\d+)H)?(?:(\d+)M)?(?:(\d+(?:\.\d+)?)S)?)?", re.ASCII
)
_DIGITS: Final = 18
"""Fractional digits of a quotient, as of decimals."""


# --- of a date and time ----------------------------------------------------------------------------------


def local(time: Term, zone: Term) -> Term | None:
    """The same instant with the offset that an IANA zone has then; None for anything but an xsd:dateTime with an
    offset and a known zone."""
    read = _read(time)
    if read is None or not isinstance(zone, Literal) or zone.datatype.value != f"{XSD}string":
        return None
    known = _zone(zone.value)
    assert isinstance(time, Literal)
    if known is None or time.datatype.value == f"{XSD}date":
        return None
    at, fraction = read
    if at.tzinfo is None:
        return None
    try:
        offset = at.astimezone(known).utcoffset()
    except (OverflowError, ValueError):  # before the year 1 or after 9999
        return None
    assert offset is not None
    minutes = round(offset / timedelta(minutes=1))  # a zone's oldest offsets have seconds, those of XSD have none
    try:
        moved = (at - (at.utcoffset() or timedelta()) + timedelta(minutes=minutes)).replace(tzinfo=None)
    except OverflowError:
        return None
    sign, (hours, rest) = "-" if minutes < 0 else "+", divmod(abs(minutes), 60)
    return Literal(f"{moved.isoformat()}{fraction}{sign}{hours:02}:{rest:02}", datatype=time.datatype)


def weekday(time: Term) -> Term | None:
    """The day of the week of an xsd:dateTime or xsd:date where it stands, by ISO 8601: 1 is Monday, 7 Sunday."""
    read = _read(time)
    return None if read is None else Literal(read[0].isoweekday())


FUNCTIONS: Final[dict[NamedNode, Callable[..., Term | None]]] = {NamedNode(LOCAL): local, NamedNode(WEEKDAY): weekday}
"""By IRI, as Oxigraph takes custom functions."""


def _read(time: Term) -> tuple[datetime, str] | None:
    """A time in whole seconds, and the text of its fraction; a date is its midnight."""
    if not isinstance(time, Literal) or time.datatype.value not in (f"{XSD}dateTime", f"{XSD}date"):
        return None
    text = time.value
    if time.datatype.value == f"{XSD}date":
        text = f"{text[:10]}T00:00:00{text[10:]}"
    found = _DATE_TIME.fullmatch(text)
    if found is None:
        return None
    *parts, fraction, offset = found.groups()
    try:
        at = datetime.fromisoformat("{}-{}-{}T{}:{}:{}".format(*parts) + (offset or ""))
    except ValueError:
        return None
    return at, fraction or ""


@lru_cache(maxsize=256)
def _zone(name: str) -> ZoneInfo | None:
    try:
        return ZoneInfo(name)
    except (OSError, ValueError):  # ZoneInfoNotFoundError is a KeyError
        return None
    except KeyError:
        return None


# --- durations -------------------------------------------------------------------------------------------


def of_durations(name: str, a: Term, b: Term) -> Term | None:
    """`*` and `/` of durations and numbers (XPath's functions on durations); None for other operands, for months
    with days, and for a division by zero.

    A quotient of two is a decimal, cut off behind 18 digits; months are rounded to whole ones, seconds kept to 18
    digits.
    """
    if name == "*" and _duration(a) is None:
        a, b = b, a
    of = _duration(a)
    if of is None:
        return None
    by, amount = _duration(b), _number(b)
    if name == "/" and by is not None:
        (months, seconds), (other_months, other_seconds) = of, by
        if (months or other_months) and (seconds or other_seconds):
            return None
        over = other_months or other_seconds
        return None if not over else _decimal(Fraction(months or seconds) / over)
    if amount is None or name not in ("*", "/") or (name == "/" and not amount):
        return None
    months, seconds = of
    if months and seconds:
        return None
    factor = amount if name == "*" else 1 / amount
    assert isinstance(a, Literal)
    if months or a.datatype.value == f"{XSD}yearMonthDuration":
        return Literal(_months_text(round_half_up(months * factor)), datatype=a.datatype)
    return Literal(_seconds_text(seconds * factor), datatype=a.datatype)


def round_half_up(number: Fraction) -> int:
    """The nearest whole number; of two the greater one, as fn:round has it."""
    return (2 * number + 1).__floor__() // 2


def _duration(term: Term) -> tuple[int, Fraction] | None:
    """Months and seconds."""
    kinds = (f"{XSD}duration", f"{XSD}dayTimeDuration", f"{XSD}yearMonthDuration")
    if not isinstance(term, Literal) or term.datatype.value not in kinds:
        return None
    found = _DURATION.fullmatch(term.value)
    if found is None or term.value[-1] in "PT":
        return None
    sign, years, months, days, hours, minutes, seconds = found.groups()
    whole = 12 * int(years or 0) + int(months or 0)
    rest = 86_400 * int(days or 0) + 3_600 * int(hours or 0) + 60 * int(minutes or 0) + Fraction(seconds or 0)
    return (-whole, -rest) if sign else (whole, Fraction(rest))


def _number(term: Term) -> Fraction | None:
    if not isinstance(term, Literal) or term.datatype.value not in (f"{XSD}integer", f"{XSD}decimal"):
        return None
    try:
        return Fraction(term.value)
    except ValueError:
        return None


def _decimal(number: Fraction) -> Literal:
    whole = abs(number.numerator) * 10**_DIGITS // number.denominator
    text = f"{whole // 10**_DIGITS}.{whole % 10**_DIGITS:0{_DIGITS}}".rstrip("0").rstrip(".")
    return Literal(("-" if number < 0 and whole else "") + text, datatype=NamedNode(f"{XSD}decimal"))


def _months_text(months: int) -> str:
    years, rest = divmod(abs(months), 12)
    text = f"{f'{years}Y' if years else ''}{f'{rest}M' if rest or not years else ''}"
    return f"{'-' if months < 0 else ''}P{text}"


def _seconds_text(seconds: Fraction) -> str:
    units = abs(seconds.numerator) * 10**_DIGITS // seconds.denominator
    whole, fraction = divmod(units, 10**_DIGITS)
    days, rest = divmod(whole, 86_400)
    hours, rest = divmod(rest, 3_600)
    minutes, rest = divmod(rest, 60)
    last = f"{rest}.{fraction:0{_DIGITS}}".rstrip("0").rstrip(".") if fraction else str(rest)
    clock = f"{f'{hours}H' if hours else ''}{f'{minutes}M' if minutes else ''}{f'{last}S' if rest or fraction else ''}"
    text = f"{f'{days}D' if days else ''}{f'T{clock}' if clock else ''}"
    return f"{'-' if seconds < 0 and units else ''}P{text or 'T0S'}"
