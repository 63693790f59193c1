"""The events of log.csv: a row is an event of a case, an order of a shop."""

from __future__ import annotations

import csv
from datetime import datetime
from pathlib import Path
from typing import Final

from oxiseq.grammar.declare import EventLog

SHOP: Final = "http://shop.example/"
LOG: Final = EventLog(f"{SHOP}log", f"{SHOP}case", f"{SHOP}activity")


def rows() -> list[tuple[str, str, int]]:
    """Case, activity and time in microseconds, by time."""
    with (Path(__file__).parent / "log.csv").open(encoding="utf-8", newline="") as file:
        return [
            (row["case"], row["activity"], int(datetime.fromisoformat(row["time"]).timestamp()) * 1_000_000)
            for row in csv.DictReader(file)
        ]


def streams() -> dict[str, list[tuple[int, str]]]:
    """The log as a stream."""
    return {LOG.stream: [(time, _event(case, activity)) for case, activity, time in rows()]}


def _event(case: str, activity: str) -> str:
    return f'[] <{LOG.case}> <{SHOP}{case}> ; <{LOG.activity}> "{activity}" .'
