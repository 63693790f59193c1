"""Half a day of congestion levels (0 to 10) at three points of a road, every five minutes.

Times are minutes. On a calm day the first sensor never reports more than 3; the waves of `WAVES` pass through,
those of `NEAR_MISSES` do not as the query wants it.
"""

from __future__ import annotations

import random
from typing import NamedTuple

SENSOR = "http://www.insight-centre.org/dataset/SampleEventService#AarhusTrafficData"
FIRST, SECOND, THIRD = (SENSOR + number for number in ("182955", "195578", "195446"))
MINUTE = 60_000_000
SEED = 5
END = 12 * 60

PREFIXES = """\
@prefix ssn: <http://purl.oclc.org/NET/ssnx/ssn#> .
@prefix sao: <http://purl.oclc.org/NET/sao/ssn#> .
@prefix : <http://example.org/> .
"""


class Wave(NamedTuple):
    """Levels at the three sensors, each as {minute: level}."""

    first: dict[int, int]
    second: dict[int, int]
    third: dict[int, int]


WAVES = [
    Wave({60: 5}, {70: 6}, {70: 5}),
    Wave({185: 4}, {190: 9, 205: 4}, {190: 3, 205: 10}),  # too little at 190, so 205 is the next
    Wave({300: 7, 305: 8}, {315: 9}, {315: 8}),  # two readings of the first sensor, one answer to both
]
"""What the query finds: the first two once, the third twice."""

NEAR_MISSES = [
    Wave({120: 6}, {125: 6}, {130: 6}),  # not at the same time
    Wave({150: 6}, {150: 7}, {150: 7}),  # simultaneous with the first: not later
    Wave({400: 6}, {410: 5}, {410: 9}),  # one level is too low
    Wave({445: 6}, {455: 9}, {455: 9}),  # in the next window of 30 minutes
]


def _levels(wave: int, calm: tuple[int, int], chance: random.Random) -> dict[int, int]:
    levels = {minute: chance.randint(*calm) for minute in range(0, END, 5)}
    for case in WAVES + NEAR_MISSES:
        levels.update(case[wave])
    return levels


def _graph(level: int, parked: int) -> str:
    """The road's congestion level, and the cars parked on its lane: another property, not to be confused with it."""
    return PREFIXES + (
        f":road ssn:observedProperty :congestion ; sao:hasValue {level} .\n"
        f":lane ssn:observedProperty :parked ; sao:hasValue {parked} ."
    )


def streams() -> dict[str, list[tuple[int, str]]]:
    """The events of the three sensors."""
    chance = random.Random(SEED)
    made = {}
    for number, iri in enumerate((FIRST, SECOND, THIRD)):
        levels = _levels(number, (0, 3), chance)
        # the lane's values fall from sensor to sensor, so nothing ever matches on them
        made[iri] = [(minute * MINUTE, _graph(level, 30 - 10 * number)) for minute, level in sorted(levels.items())]
    return made
