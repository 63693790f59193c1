"""A day of levels, one reading every five minutes from each buoy, and a few quakes.

Levels wander by centimetres; only the planted waves rise by more than half a metre between two readings.
"""

from __future__ import annotations

import random
from typing import NamedTuple

SEISMIC, BUOYS = "http://example.org/seismic", "http://example.org/buoys"
PREFIX = "@prefix : <http://example.org/ocean#> .\n"
MINUTE = 60_000_000
LOAD = ("ocean.ttl", "--reason", "rdfs")
"""What `oxiseq load` is told, to make the knowledge base."""
BUOYS_THERE = {
    "p1": "Pacific",
    "p2": "Pacific",
    "p3": "Pacific",
    "i1": "IndianOcean",
    "i2": "IndianOcean",
    "ship": "Pacific",
}


class Quake(NamedTuple):
    """At a minute of the day."""

    minute: int
    name: str
    magnitude: float
    ocean: str


QUAKES = [
    Quake(101, "q1", 7.8, "Pacific"),
    Quake(402, "q2", 6.1, "Pacific"),  # too weak
    Quake(703, "q3", 8.0, "IndianOcean"),  # one buoy only rises in time
    Quake(1_004, "q4", 6.6, "Pacific"),
]
WAVES = {
    ("p1", 125),
    ("p3", 140),
    ("ship", 130),
    ("p2", 430),
    ("p1", 440),
    ("i1", 730),
    ("i2", 830),
    ("p2", 1_040),
    ("p3", 1_040),
    ("p1", 1_060),
}
"""(buoy, minute) from which on its level is a metre higher, for two readings."""


def levels() -> list[tuple[int, str, float]]:
    """(minute, buoy, metres), by time."""
    drawn = random.Random(14)
    found = []
    for minute in range(0, 1_440, 5):
        for buoy in BUOYS_THERE:
            wave = any(b == buoy and 0 <= minute - m < 10 for b, m in WAVES)
            found.append((minute, buoy, round(4 + wave + drawn.uniform(-0.1, 0.1), 3)))
    return found


def streams() -> dict[str, list[tuple[int, str]]]:
    """The events."""
    quakes = [(q.minute * MINUTE, f"{PREFIX}:{q.name} :magnitude {q.magnitude} ; :under :{q.ocean} .") for q in QUAKES]
    read = [(minute * MINUTE, f"{PREFIX}:{buoy} :level {metres} .") for minute, buoy, metres in levels()]
    return {SEISMIC: quakes, BUOYS: read}
