"""Retry-After of a reply (RFC 9110, 10.2.3): seconds, or a date."""

from __future__ import annotations

from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Final

_LONGEST: Final = 86_400.0
"""Seconds: what asks for more is waited for so long."""


def seconds_of(given: str | None) -> float | None:
    """Seconds from now on; None where it says none."""
    text = (given or "").strip()
    if text.isascii() and text.isdecimal():
        return min(float(text[:12]), _LONGEST)
    try:
        at = parsedate_to_datetime(text)
    except ValueError:
        return None
    wait = (at.replace(tzinfo=at.tzinfo or UTC) - datetime.now(UTC)).total_seconds()
    return min(max(0.0, wait), _LONGEST)
