"""Functions of times and arithmetic on durations (semantics.md 7), in plain Python.

Readings (the specification is silent): an offset is rounded to the nearest minute, halves to the even one; seconds of a
duration are cut off towards zero, as a quotient is; a duration of nothing has its type's months, or seconds.
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
MONTHS, SECONDS = "months", "seconds"
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


def amount(term: object) -> dict[str, Fraction] | None:
    """What a duration is made of: its months, its seconds; nothing of a duration is nothing of what its type has. None
    for what is no duration."""
    kind = term.datatype.value.removeprefix(XSD) if isinstance(term, Literal) else ""
    has = {"yearMonthDuration": {MONTHS}, "dayTimeDuration": {SECONDS}, "duration": {MONTHS, SECONDS}}.get(kind)
    found = DURATION.fullmatch(term.value) if has and isinstance(term, Literal) else None
    if has is None or found is None:
        return None
    years, months, days, hours, minutes, seconds = (Fraction(found[i] or 0) for i in range(2, 8))
    sign = -1 if found[1] else 1
    parts = {
        MONTHS: sign * (12 * years + months),
        SECONDS: sign * (86_400 * days + 3_600 * hours + 60 * minutes + seconds),
    }
    if any(value and part not in has for part, value in parts.items()):
        return None
    some = {part: value for part, value in parts.items() if value}
    return some or {part: Fraction(0) for part in has}


def quotient(a: object, b: object) -> Fraction | None:
    """How many times one duration fits into another, 18 digits, cut off towards zero; None for an error."""
    x, y = amount(a), amount(b)
    if x is None or y is None or len(y) != 1:
        return None
    ((part, by),) = y.items()
    if not by or part not in x or any(value for other, value in x.items() if other != part):
        return None
    return Fraction(int(x[part] / by * DIGITS), DIGITS)


def scaled(term: Literal, by: Fraction) -> Literal | None:
    """A duration of the same type, so many times as long; None for an error."""
    parts = amount(term)
    if parts is None or sum(value != 0 for value in parts.values()) > 1:
        return None
    ((part, value),) = [pair for pair in parts.items() if pair[1]] or [next(iter(parts.items()))]
    months = floor(value * by + Fraction(1, 2)) if part == MONTHS else 0
    exact = Fraction(0) if part == MONTHS else Fraction(int(value * by * DIGITS), DIGITS)
    sign = "-" if months < 0 or exact < 0 else ""
    if months or (not exact and term.datatype.value.endswith("yearMonthDuration")):
        return Literal(f"{sign}P{abs(months)}M", datatype=term.datatype)
    whole, rest = divmod(abs(exact.numerator) * DIGITS // exact.denominator, DIGITS)
    return Literal(f"{sign}PT{whole}.{rest:018}S", datatype=term.datatype)
