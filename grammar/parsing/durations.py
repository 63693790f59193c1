"""Spans of time written as xsd:duration."""

from __future__ import annotations

import re
from fractions import Fraction

from oxiseq.grammar.terms import XSD_DAY_TIME_DURATION, XSD_DURATION

DURATIONS = (XSD_DURATION, XSD_DAY_TIME_DURATION)
_DURATION = re.compile(
    r"P(?=[\dT])(?:(\d+)Y)?(?:(\d+)M)?(?:(\d+)D)?(?:T(?=\d)(?:(\d+)H)?(?:(\d+)M)?(?:(\d+(?:\.\d+)?)S)?)?",
    re.ASCII,
)


class MonthsError(ValueError):
    """A duration in months, which differ in length."""


def duration_size(text: str) -> Fraction:
    """Microseconds. Raises MonthsError, ValueError for what is no duration."""
    match = _DURATION.fullmatch(text)
    if match is None:
        raise ValueError(f"{text} is not a duration that a window can have")
    years, months, days, hours, minutes, seconds = (Fraction(g or 0) for g in match.groups())
    if years or months:
        raise MonthsError("months differ in length: give the window in days")
    return (days * 86_400 + hours * 3_600 + minutes * 60 + seconds) * 1_000_000
