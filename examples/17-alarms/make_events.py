"""Readings of three machines, a day long, and what the desk acknowledges; the runs of hot readings are planted."""

from __future__ import annotations

from random import Random
from typing import Final, NamedTuple

READINGS: Final = "http://plant.example/readings"
DESK: Final = "http://plant.example/desk"
MINUTE: Final = 60_000_000


class Run(NamedTuple):
    """Hot readings of a machine, two minutes apart, from a minute of the day on; the minute at which somebody
    acknowledges them, if somebody does."""

    machine: int
    begins: int
    readings: int
    acknowledged: int | None = None


PLANTED: Final = (
    Run(1, 60, 3),  # an alarm at minute 74
    Run(2, 200, 2),  # only two
    Run(1, 300, 3, 310),  # in time
    Run(3, 400, 3, 414),  # ten minutes after the third: in time
    Run(2, 500, 3, 515),  # eleven minutes after it: too late
    Run(3, 700, 4),  # two alarms: of the readings 1 to 3, and 2 to 4
)


def streams() -> dict[str, list[tuple[int, str]]]:
    """The readings, and the desk's acknowledgements."""
    random = Random(17)
    hot = {(run.machine, run.begins + 2 * i) for run in PLANTED for i in range(run.readings)}
    readings = [
        (minute * MINUTE, "\n".join(_reading(random, machine, (machine, minute) in hot) for machine in (1, 2, 3)))
        for minute in range(0, 1440, 2)
    ]
    desk = [(run.acknowledged * MINUTE, _acknowledged(run.machine)) for run in PLANTED if run.acknowledged is not None]
    return {READINGS: readings, DESK: desk}


def _acknowledged(machine: int) -> str:
    return f"<http://plant.example/m{machine}> <http://plant.example/vocab#acknowledgedBy> 'Ann' ."


def _reading(random: Random, machine: int, hot: bool) -> str:
    degrees = random.randint(91, 120) if hot else random.randint(40, 90)
    return f"<http://plant.example/m{machine}> <http://plant.example/vocab#degrees> {degrees} ."
