"""Times as the caller gives them, integers or datetimes: answers tell theirs in the same way."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from enum import Enum
from itertools import chain, islice
from pathlib import Path
from typing import Any, TypeAlias

from oxiseq.engine.events.time import to_datetime

Time: TypeAlias = int | datetime
"""Microseconds since 1970 UTC, or a datetime (without a zone: UTC)."""


class Clock(Enum):
    """How a caller writes times."""

    MICROSECONDS = "integers"
    UTC = "datetimes"
    NAIVE = "datetimes without a zone"

    def of(self, microseconds: int) -> Time:
        """A time so written. Raises OverflowError for a datetime outside the years 1 to 9999."""
        if self is Clock.MICROSECONDS:
            return microseconds
        time = to_datetime(microseconds)
        return time if self is Clock.UTC else time.replace(tzinfo=None)


def clock_of(times: Iterable[Any]) -> Clock:
    """That of the first datetime among some of the caller's times; integers if there is none."""
    for time in times:
        if isinstance(time, datetime):
            return Clock.NAIVE if time.tzinfo is None else Clock.UTC
    return Clock.MICROSECONDS


def peeked(streams: Mapping[str, Any]) -> tuple[dict[str, Any], list[Any]]:
    """Streams, and the first time of each that is given as events; its iterator still has them all."""
    whole: dict[str, Any] = {}
    times = []
    for name, events in streams.items():
        whole[name] = events
        if isinstance(events, Iterable) and not isinstance(events, str | Path):
            remaining = iter(events)
            first = list(islice(remaining, 1))
            times += [event[0] for event in first if isinstance(event, tuple | list) and event]
            whole[name] = chain(first, remaining)
    return whole, times
