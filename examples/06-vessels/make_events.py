"""Three hours of a harbour radar: one sweep a minute, each event has all vessels in sight.

A trip is the minute of departure and what the radar sees from then on, minute by minute; before it the vessel
lies in the harbour (speed 0), after it at the last place. Freighters that pass by are the noise.
"""

from __future__ import annotations

import random
from typing import NamedTuple

STREAM = "http://harbour.org/boats"
MINUTE = 60_000_000
SEED = 6
END = 180
FREIGHTERS = 12

PREFIXES = "@prefix pred: <http://example/> .\n@prefix : <http://example.org/> .\n"


class Reading(NamedTuple):
    """What a sweep sees of a vessel."""

    speed: int
    place: str
    direction: str


class Trip(NamedTuple):
    """A vessel's trip."""

    vessel: str
    departure: int
    readings: list[Reading]


def trip(vessel: str, departure: int, speeds: list[int], directions: str, goal: str = "fishingarea") -> Trip:
    """Leave the harbour, cross the sea, arrive at the goal; a speed and a direction (one letter) per minute."""
    places = ["harbour", *["sea"] * (len(speeds) - 2), goal]
    steps = zip(speeds, places, directions, strict=True)
    return Trip(vessel, departure, [Reading(*step) for step in steps])


PLANTED = [
    trip("marie", 5, [4, 9, 11, 12, 0], "NNNNE"),
    trip("jeanne", 5, [3, 8, 0], "SSS"),  # leaves in the same sweep
    trip("louise", 91, [2, *range(3, 29), 0], "W" * 28),  # 27 minutes, just inside the window
]
NEAR_MISSES = [
    trip("anna", 10, [4, 9, 9, 0], "NNEE"),  # turns on the way
    trip("berta", 35, [6, 9, 5, 0], "NNNN"),  # slows down below its first speed
    trip("clara", 40, [4, 9, 9, 0], "NNNN", goal="reef"),  # stops elsewhere
    trip("dora", 55, [4, *[9] * 8, 0], "N" * 10),  # arrives in the next window
    trip("ghost", 70, [4, 9, 9, 0], "NNNN"),  # the register does not know it
    trip("emma", 75, [4, 0], "NN"),  # no reading at sea
]


def _sight(journey: Trip, minute: int) -> Reading:
    since = minute - journey.departure
    if since < 0:
        return Reading(0, "harbour", journey.readings[0].direction)
    return journey.readings[min(since, len(journey.readings) - 1)]


def streams() -> dict[str, list[tuple[int, str]]]:
    """The radar's sweeps."""
    chance = random.Random(SEED)
    sweeps = []
    for minute in range(END):
        seen = {journey.vessel: _sight(journey, minute) for journey in PLANTED + NEAR_MISSES}
        for number in range(FREIGHTERS):
            place = chance.choice(["sea", "sea", "fishingarea"])
            seen[f"freighter{number}"] = Reading(chance.randint(0, 20), place, chance.choice("NESW"))
        sweeps.append((minute * MINUTE, PREFIXES + "".join(_line(name, seen[name]) for name in seen)))
    return {STREAM: sweeps}


def _line(vessel: str, seen: Reading) -> str:
    return f':{vessel} pred:speed {seen.speed} ; pred:location "{seen.place}" ; pred:direction "{seen.direction}" .\n'
