"""Functions of times and arithmetic on durations (semantics.md 7), in plain Python.

Readings (the specification is silent): an offset is rounded to the nearest minute, halves to the even one; seconds of a
duration are cut off towards zero, as a quotient is; a duration of nothing is the same value in every type, so that it
has a quotient by months and by seconds.
"""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, timedelta
from fractions import Fraction
from math import floor
from zoneinfo import ZoneInfo

from pyoxigraph import BlankNode, Literal, NamedNode, Triple

XSD = "http://www.w3.org/2001/XMLSchema#"
DATE_TIME = re.compile(r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(\.\d+)?(Z|[+-]\d\d:\d\d)")
DATE = re.compile(r"(\d{4}-\d\d-\d\d)(Z|[+-]\d\d:\d\d|T.*)?")
DURATION = re.compile(
    r"(-?)P(?!$)(?:(\d+)Y)?(?:(\d+)M)?(?:(\d+)D)?(?:T(?!$)(?:(\d+)H)?(?:(\d+)M)?(?:(\d+(?:\.\d+)?)S)?)?"
)
DIGITS = 10**18


def local(at: object, zone: object) -> Literal | None:
    """`oxiseq:local`: the same instant with the offset that the IANA zone has then; None for an error."""
    text, name = _of_kind(at, "dateTime"), _of_kind(zone, "string")
    found = None if text is None else DATE_TIME.fullmatch(text)
    if found is None or name is None:
        return None
    try:
        instant = datetime.fromisoformat(found[1] + found[3].replace("Z", "+00:00")).astimezone(UTC)
        offset = instant.astimezone(ZoneInfo(name)).utcoffset()
        assert offset is not None
        minutes = round(offset / timedelta(minutes=1))
        there = (instant + timedelta(minutes=minutes)).replace(tzinfo=None)
    except (ValueError, OverflowError, OSError, LookupError):  # no such time, or no such zone
        return None
    hours, rest = divmod(abs(minutes), 60)
    written = f"{there.isoformat()}{found[2] or ''}{'-' if minutes < 0 else '+'}{hours:02}:{rest:02}"
    return Literal(written, datatype=NamedNode(XSD + "dateTime"))


def weekday(at: object) -> Literal | None:
    """`oxiseq:weekday`: 1 for Monday to 7 for Sunday, by the time's own offset; None for an error."""
    text = _of_kind(at, "dateTime") or _of_kind(at, "date")
    found = None if text is None else DATE.fullmatch(text)
    if found is None:
        return None
    try:
        return Literal(date.fromisoformat(found[1]).isoweekday())
    except ValueError:
        return None


FUNCTIONS = {NamedNode("urn:oxiseq:local"): local, NamedNode("urn:oxiseq:weekday"): weekday}


def _of_kind(term: object, kind: str) -> str | None:
    if isinstance(term, NamedNode | BlankNode | Triple) or not isinstance(term, Literal):
        return None
    return term.value if term.datatype.value == XSD + kind else None


# --- durations ------------------------------------------------------------------------------------


def amount(term: object) -> tuple[Fraction, Fraction] | None:
    """The months and the seconds of a duration; None for what is none."""
    kind = term.datatype.value.removeprefix(XSD) if isinstance(term, Literal) else ""
    if not isinstance(term, Literal) or kind not in ("yearMonthDuration", "dayTimeDuration", "duration"):
        return None
    found = DURATION.fullmatch(term.value)
    if found is None:
        return None
    years, months, days, hours, minutes, seconds = (Fraction(found[i] or 0) for i in range(2, 8))
    named = [found[i] is not None for i in range(2, 8)]
    if (kind == "dayTimeDuration" and any(named[:2])) or (kind == "yearMonthDuration" and any(named[2:])):
        return None
    sign = -1 if found[1] else 1
    return sign * (12 * years + months), sign * (86_400 * days + 3_600 * hours + 60 * minutes + seconds)


def quotient(a: object, b: object) -> Fraction | None:
    """How many times one duration fits into another, 18 digits, cut off towards zero; None for an error."""
    x, y = amount(a), amount(b)
    if x is None or y is None or all(y) or not any(y):
        return None
    of_months = bool(y[0])
    if x[of_months]:  # seconds by months, or months by seconds
        return None
    part = 0 if of_months else 1
    return Fraction(int(x[part] / y[part] * DIGITS), DIGITS)


def scaled(term: Literal, by: Fraction) -> Literal | None:
    """A duration of the same type, so many times as long; None for an error."""
    parts = amount(term)
    if parts is None or all(parts):
        return None
    months = floor(parts[0] * by + Fraction(1, 2))
    exact = Fraction(int(parts[1] * by * DIGITS), DIGITS)
    sign = "-" if months < 0 or exact < 0 else ""
    if months or term.datatype.value.endswith("yearMonthDuration"):
        years, months = divmod(abs(months), 12)
        text = f"{years}Y" * bool(years) + f"{months}M" * bool(months)
        return Literal(f"{sign}P{text or '0M'}", datatype=term.datatype)
    minutes, seconds = divmod(abs(exact), 60)
    hours, minutes = divmod(minutes, 60)
    days, hours = divmod(hours, 24)
    whole, rest = divmod(seconds * DIGITS, DIGITS)
    fraction = f".{int(rest):018}".rstrip("0").rstrip(".")
    clock = f"{hours}H" * bool(hours) + f"{minutes}M" * bool(minutes) + f"{int(whole)}{fraction}S" * bool(seconds)
    text = f"{days}D" * bool(days) + (f"T{clock}" if clock else "" if days else "T0S")
    return Literal(f"{sign}P{text}", datatype=term.datatype)
