"""SSH brute force and the cold chain find what plain loops over their files find; the alert goes all the way."""

from __future__ import annotations

import csv
import shutil
from datetime import datetime
from itertools import pairwise

import pytest
from example_loading import EXAMPLES, load

MINUTE = 60_000_000


def test_guessed_logins_are_those_of_a_plain_loop() -> None:
    logins = list(load("19-ssh", "make_events").logins())
    assert len(logins) == 17  # one line of the log is cron's
    expected = []
    for at, kind, _, address in logins:
        before = [t for t, k, _, a in logins if k == "Failed" and a == address and at - MINUTE <= t < at]
        if kind == "Accepted" and len(before) >= 5:
            expected.append((at, address, len(before)))
    found = [(m.at_us, m["address"].value, int(m["failures"].value)) for m in load("19-ssh").main()]
    assert found == expected
    assert [address for _, address, _ in expected] == ["203.0.113.9"]


def test_warm_boxes_are_those_of_a_plain_loop() -> None:
    boxes: dict[str, list[tuple[int, float | None, str]]] = {}
    with (EXAMPLES / "20-cold-chain" / "boxes.csv").open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            at = round(datetime.fromisoformat(row["time"]).timestamp() * 1_000_000)
            celsius = float(row["celsius"]) if row["celsius"] else None
            boxes.setdefault(row["box"], []).append((at, celsius, row["state"]))
    expected = set()
    for box, rows in boxes.items():
        delivered = [at for at, _, state in rows if state == "delivered"]
        for three in zip(rows, rows[1:], rows[2:], strict=False):
            times = [at for at, _, _ in three]
            near = all(b - a <= 10 * MINUTE for a, b in pairwise(times))
            warm = all(celsius is not None and celsius > 8 for _, celsius, _ in three)
            if near and warm and not any(times[2] < at <= times[2] + 30 * MINUTE for at in delivered):
                expected.add((box, max(c for _, c, _ in three if c is not None)))
    found = {(m["box"].value.rpartition("/")[2], float(m["hottest"].value)) for m in load("20-cold-chain").main()}
    assert found == expected == {("b1", 10.5)}


def test_trawlers_in_a_reserve_are_those_of_a_plain_loop() -> None:
    folder = EXAMPLES / "21-ais"
    reserves = [_corners(line) for line in (folder / "kb.nq").read_text(encoding="utf-8").splitlines()]
    ships: dict[str, list[tuple[int, int | None, float, str, str]]] = {}
    with (folder / "ais.csv").open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            at = round(datetime.strptime(row["# Timestamp"] + "Z", "%d/%m/%Y %H:%M:%S%z").timestamp() * 1_000_000)
            place = float(row["Longitude"]), float(row["Latitude"])
            inside = next((n for n, corners in enumerate(reserves) if _within(place, corners)), None)
            ships.setdefault(row["MMSI"], []).append((at, inside, float(row["SOG"]), row["Name"], row["Ship type"]))
    expected = set()
    for rows in ships.values():
        for four in zip(rows, rows[1:], rows[2:], rows[3:], strict=False):
            (_, before, *_), (_, inside, _, name, kind), *_ = four
            near = all(b[0] - a[0] <= 10 * MINUTE for a, b in pairwise(four))
            slow = all(row[1] == inside and row[2] < 5 for row in four[1:])
            if before is None and inside is not None and near and slow and kind == "Fishing":
                expected.add((name, four[1][0]))
    found = {
        (m["name"].value, round(datetime.fromisoformat(m["since"].value).timestamp() * 1_000_000))
        for m in load("21-ais").main()
    }
    assert found == expected
    assert {name for name, _ in found} == {"MARIE", "EMIL"}


def _corners(line: str) -> list[tuple[float, float]]:
    _, _, text = line.partition("((")
    return [(float(x), float(y)) for x, y in (pair.split() for pair in text.partition("))")[0].split(","))]


def _within(place: tuple[float, float], corners: list[tuple[float, float]]) -> bool:
    """By how often a ray to the right meets the edges."""
    x, y = place
    crossed = [
        x < (x2 - x1) * (y - y1) / (y2 - y1) + x1 for (x1, y1), (x2, y2) in pairwise(corners) if (y1 > y) != (y2 > y)
    ]
    return sum(crossed) % 2 == 1


@pytest.mark.skipif(
    shutil.which("mosquitto", path="/usr/sbin:/usr/local/sbin:/usr/bin") is None, reason="mosquitto is not installed"
)
def test_the_alert_goes_from_the_broker_to_the_webhook() -> None:
    assert load("20-cold-chain", "live").main() == {
        "text": "http://cold.example/box/b1: warm since 2024-05-01T08:05:00Z, 10.5 degrees"
    }
