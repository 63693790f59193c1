"""The example on real glucose readings, against plain loops."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from example_loading import load

HOUR = 3_600_000_000
LOWER, UPPER = 70, 180


def instants() -> list[tuple[int, list[int]]]:
    """Time → the values read then (one, apart from a few times), each value once, in order."""
    grouped: dict[int, list[int]] = {}
    for time, value in load("07-glucose", "make_events").readings():
        values = grouped.setdefault(time, [])
        if value not in values:
            values.append(value)
    return sorted(grouped.items())


def spikes(read: list[tuple[int, list[int]]], start: int) -> Iterator[tuple[int, int, int]]:
    """Stays above the limit that begin after reading `start`: (index of the return, readings, peak)."""
    paths = [(0, 0)]
    for i in range(start + 1, len(read)):
        back = sum(value <= UPPER for value in read[i][1])
        for readings, peak in paths:
            if readings:
                yield from [(i, readings, peak)] * back
        high = [value for value in read[i][1] if value > UPPER]
        paths = [(readings + 1, max(peak, value)) for readings, peak in paths for value in high]
        if not paths:
            return


def test_spikes() -> None:
    read = instants()
    expected: Counter[tuple[int, ...]] = Counter()
    for i, (time, values) in enumerate(read):
        for _ in (value for value in values if value <= UPPER):
            for end, readings, peak in spikes(read, i):
                if read[end][0] - time <= 3 * HOUR:
                    expected[time, read[end][0], readings, peak] += 1
    got: Counter[tuple[int, ...]] = Counter()
    for match in load("07-glucose").main():
        ((_, start),) = match.events["A"]
        got[start, match.at_us, int(match["readings"].value), int(match["peak"].value)] += 1
        assert int(match["readings"].value) == len(match.events["B"])
    assert got == expected
    assert sum(got.values()) == 300


def falls(read: list[tuple[int, list[int]]]) -> Iterator[tuple[int, int]]:
    """Indices of readings below the lower limit right after one in range, with the value; once per pair."""
    for i in range(1, len(read)):
        for _ in (value for value in read[i - 1][1] if value >= LOWER):
            for low in (value for value in read[i][1] if value < LOWER):
                yield i, low


def test_rebounds() -> None:
    read = instants()
    expected: Counter[tuple[int, ...]] = Counter()
    for i, low in falls(read):
        end = next((j for j in range(i + 1, len(read)) if max(read[j][1]) > UPPER), None)
        if end is not None and read[end][0] - read[i - 1][0] <= 4 * HOUR:
            for high in (value for value in read[end][1] if value > UPPER):
                expected[read[i][0], read[end][0], low, high] += 1
    got = Counter(
        (match.events["B"][0][1], match.at_us, int(match["low"].value), int(match["high"].value))
        for match in load("07-glucose").main("rebound")
    )
    assert got == expected
    assert sum(got.values()) == 52


def test_stays_low() -> None:
    read = instants()
    expected: Counter[tuple[int, ...]] = Counter()
    for i, low in falls(read):
        first, time = read[i - 1][0], read[i][0]
        after = [values for later, values in read[i + 1 : i + 70] if later - first <= HOUR]
        if time - first <= HOUR and all(max(values) < LOWER for values in after):
            expected[time, first + HOUR, low] += 1
    got = Counter(
        (match.end_us, match.at_us, int(match["low"].value)) for match in load("07-glucose").main("stays-low")
    )
    assert got == expected
    assert sum(got.values()) == 43
