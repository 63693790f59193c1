"""One day of a small smart grid: six houses at six locations, their fares, the weather, storage offers.

All times are minutes since midnight. `PLANTED` are the sequences that the query finds, `NEAR_MISSES` those it
must not find; around them a seeded generator puts fares, weather and offers in which nothing is to be found:
fares of at most 20 (GPM A), weather at night (GPM B).
"""

from __future__ import annotations

import random

POWER = "http://smartgrid.org/powerStream"
WEATHER = "http://smartgrid.org/weatherStream"
STORAGE = "http://smartgrid.org/storageStream"
Event = tuple[int, str]
Day = dict[str, dict[int, str]]

PREFIXES = "@prefix pow: <http://example.org/power#> .\n@prefix : <http://example.org/> .\n"
MINUTE = 60_000_000
SEED = 1

# (start, house, its fare, good weather readings in a row, the offer's fare)
PLANTED = [(9 * 60, 1, 25, 1, 18), (11 * 60, 4, 31, 3, 30), (14 * 60 + 20, 2, 22, 5, 9)]

# (start, house, its fare, readings at these locations, (location, source, fare) of the offer, minutes between)
NEAR_MISSES = [
    (10 * 60, 3, 25, [3, 3], (3, "solar", 26), 2),  # the offer is dearer
    (12 * 60, 3, 25, [3, 3], (3, "wind", 10), 2),  # not solar
    (13 * 60, 5, 25, [5, 6], (5, "solar", 10), 2),  # another location's weather stands in between
    (15 * 60, 6, 20, [6], (6, "solar", 10), 2),  # the fare is not above 20
    (16 * 60 + 40, 1, 25, [1], (1, "solar", 10), 15),  # the offer comes in the next hour
]


def power(house: int, fare: int) -> str:
    """A reading of a house's meter; house number n is at location n."""
    return PREFIXES + f":H{house} pow:loc :L{house} ; pow:pow [ pow:fare {fare} ] ."


def weather(location: int, light: int, wind: int) -> str:
    """A weather reading."""
    return PREFIXES + f":W{location} pow:loc :L{location} ; pow:value [ pow:light {light} ; pow:windsp {wind} ] ."


def offer(location: int, source: str, fare: int) -> str:
    """An offer of stored power."""
    return PREFIXES + f':St{location} pow:loc :L{location} ; pow:pow [ pow:source "{source}" ; pow:fare {fare} ] .'


def _story(day: Day) -> set[int]:
    """Put the planted sequences and the near misses into the day; the minutes they take."""
    taken: set[int] = set()
    cases = [(t, house, fare, [house] * n, (house, "solar", fare2), 2) for t, house, fare, n, fare2 in PLANTED]
    for start, house, fare, readings, (place, source, fare2), step in cases + NEAR_MISSES:
        day[POWER][start] = power(house, fare)
        for i, location in enumerate(readings, 1):
            day[WEATHER][start + i * step] = weather(location, 60, 5)
        end = start + (len(readings) + 1) * step
        day[STORAGE][end] = offer(place, source, fare2)
        taken.update([start, *range(start + step, end + 1)])  # `;` may skip what comes before the first reading
    return taken


def streams() -> dict[str, list[Event]]:
    """The events of the three streams."""
    chance = random.Random(SEED)
    day: Day = {POWER: {0: power(1, 10)}, WEATHER: {}, STORAGE: {}}
    taken = _story(day)
    for minute in range(1, 24 * 60):
        if minute in taken:
            continue
        day[POWER][minute] = power(chance.randint(1, 6), chance.randint(5, 20))
        if minute % 3 == 0:
            day[WEATHER][minute] = weather(chance.randint(1, 6), chance.randint(0, 40), chance.randint(0, 12))
        if minute % 7 == 0:
            day[STORAGE][minute] = offer(chance.randint(1, 6), chance.choice(["solar", "wind"]), chance.randint(5, 30))
    return {iri: [(minute * MINUTE, graph) for minute, graph in sorted(day[iri].items())] for iri in day}
