"""Two hours of a small Aarhus in the vocabulary of CityBench: traffic, parking, weather, pollution and a walker.

The benchmark replays what real sensors said; these are made up, so that each of the twelve questions has answers, and
times without one. What does not change is in kb.trig.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import NamedTuple

SSN, SAO = "http://purl.oclc.org/NET/ssnx/ssn#", "http://purl.oclc.org/NET/sao/"
CT = "http://www.insight-centre.org/citytraffic#"
SES = "http://www.insight-centre.org/dataset/SampleEventService#"
DOUBLE = "http://www.w3.org/2001/XMLSchema#double"

SECOND = 1_000_000
MINUTE = 60 * SECOND
LASTS = 120 * MINUTE
SEED = 16


class Service(NamedTuple):
    """One that reports `measured` every so many `seconds`; its stream has the same name."""

    name: str
    measured: tuple[str, ...]
    seconds: int


SERVICES = (
    Service("AarhusTrafficData182955", ("CongestionLevel", "EstimatedTime"), 300),
    Service("AarhusTrafficData158505", ("CongestionLevel", "EstimatedTime"), 300),
    Service("AarhusTrafficData186979", ("CongestionLevel", "EstimatedTime"), 300),
    Service("AarhusWeatherData0", ("Temperature", "Humidity", "WindSpeed"), 420),
    Service("AarhusParkingDataKALKVAERKSVEJ", ("ParkingVacancy",), 360),
    Service("AarhusParkingDataSKOLEBAKKEN", ("ParkingVacancy",), 360),
    Service("AarhusPollutionData201399", ("AirPollutionIndex",), 300),
    Service("AarhusPollutionData197626", ("AirPollutionIndex",), 300),
)
WALKER = "UserLocationService"
SILENT = range(30, 50)
"""The minutes in which the weather station says nothing."""


def streams() -> dict[str, list[tuple[int, str]]]:
    """Stream IRI → (microseconds, graph in N-Triples) in order of time. An event is one report of one service."""
    chance = random.Random(SEED)
    found = {SES + service.name: list(_reports(service, chance)) for service in SERVICES}
    found[SES + WALKER] = list(_walk(chance))
    return found


def _reports(service: Service, chance: random.Random) -> Iterator[tuple[int, str]]:
    now = {name: _drawn(name, chance) for name in service.measured}
    for number, time in enumerate(range(chance.randrange(60) * SECOND, LASTS, service.seconds * SECOND)):
        now = {name: _drawn(name, chance) if chance.random() < 0.5 else value for name, value in now.items()}
        lines = [_observation(service.name, name, number, _double(value)) for name, value in now.items()]
        if "Weather" not in service.name or time // MINUTE not in SILENT:
            yield time, "\n".join(lines)


def _drawn(name: str, chance: random.Random) -> float:
    if name == "ParkingVacancy":
        return float(max(0, chance.randrange(-3, 9)))
    return chance.randrange(0, 200) / 4  # quarters: their sums are exact


def _walk(chance: random.Random) -> Iterator[tuple[int, str]]:
    """From the south to the north, a step every four minutes."""
    for number, time in enumerate(range(90 * SECOND, LASTS, 240 * SECOND)):
        here = f"_:here{number}"
        latitude, longitude = 56.148 + 0.0014 * number, 10.210 + 0.001 * chance.randrange(-3, 4)
        place = f"{here} <{CT}hasLatitude> {_double(latitude)} .\n{here} <{CT}hasLongitude> {_double(longitude)} ."
        yield time, f"{_observation(WALKER, 'Location', number, here)}\n{place}"


def _observation(service: str, measured: str, number: int, value: str) -> str:
    it = f"<{SES}{service}-{measured}-{number}>"
    return "\n".join(
        [
            f"{it} <http://www.w3.org/1999/02/22-rdf-syntax-ns#type> <{SSN}Observation> .",
            f"{it} <{SSN}observedBy> <{SES}{service}> .",
            f"{it} <{SSN}observedProperty> <{SES}{service}-{measured}> .",
            f"{it} <{SAO}hasValue> {value} .",
        ]
    )


def _double(value: float) -> str:
    return f'"{value:.4f}"^^<{DOUBLE}>'
