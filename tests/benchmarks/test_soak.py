"""The soak at a small size; its count by NumPy against plain loops; what it must find fault with."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks.soak import __main__ as command
from benchmarks.soak import watch
from benchmarks.soak.count import Counter, matches
from benchmarks.soak.events import HOUR, STEPS, Drawn, Source
from benchmarks.soak.watch import Stretch
from oxiseq.engine.terms.dictionary import TermDictionary

GOOD = Stretch(events=100, seconds=1.0, resident=10_000, records=500, terms=50, found=(3, 7), counted=(3, 7))


def drawn(count: int, seed: int, machines: int, span: int) -> Drawn:
    random = np.random.default_rng(seed)
    time = np.sort(random.choice(span, count, replace=False)).astype(np.int64)
    kind = np.where(random.random(count) < 0.7, np.arange(count) % STEPS, random.integers(0, STEPS, count))
    return Drawn(time, random.integers(0, machines, count), kind, random.random(count) < 0.9)


def by_loops(events: Drawn, window: int) -> dict[int, int]:
    """For each end how many choices there are: a table of choices for each first event."""
    found: dict[int, int] = {}
    rows = [
        row
        for row in zip(
            events.time.tolist(), events.machine.tolist(), events.kind.tolist(), events.passes.tolist(), strict=True
        )
        if row[3]
    ]
    for at, (start, machine, kind, _) in enumerate(rows):
        if kind:
            continue
        ways = [1] + [0] * (STEPS - 1)
        for time, other, later, _ in rows[at + 1 :]:
            if other == machine and later and time - start <= window:
                ways[later] += ways[later - 1]
                if later == STEPS - 1 and ways[later - 1]:
                    found[time] = found.get(time, 0) + ways[later - 1]
    return found


@pytest.mark.parametrize("seed", range(5))
def test_count_equals_plain_loops(seed: int) -> None:
    events = drawn(400, seed, machines=2, span=3_000)
    expected = by_loops(events, window=300)
    ends, counts = matches(events, 300)
    assert {end: n for end, n in zip(ends.tolist(), counts.tolist(), strict=True) if n} == expected
    assert expected


def test_count_is_the_same_in_stretches() -> None:
    events = drawn(500, 9, machines=2, span=3_000)
    counter = Counter(300)
    names = Drawn.__slots__
    parts = [counter.count(Drawn(*(getattr(events, name)[at : at + 70] for name in names))) for at in range(0, 500, 70)]
    expected = by_loops(events, 300)
    assert sum(count for count, _ in parts) == sum(expected.values())
    assert sum(times for _, times in parts) == sum(end * count for end, count in expected.items())


def test_events_are_the_same_however_they_are_asked_for() -> None:
    terms = TermDictionary()
    whole, _ = Source(terms, 10, 3).draw(300)
    assert len(whole) == 300 and (np.diff(whole.time) > 0).all()
    again, _ = Source(terms, 10, 3).draw(300)
    assert np.array_equal(whole.time, again.time)
    fresh = whole.subject[::3]
    assert len(np.unique(fresh)) == 300
    assert not set(fresh.tolist()) & set(again.subject.tolist())


def test_a_small_soak_is_right(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watch, "MEMORY_GROWTH", 2.0)  # other tests' memory moves in the same process
    monkeypatch.setattr(watch, "RATE_KEPT", 0.2)
    file = tmp_path / "soak.md"
    status = command.main(["--events", "200000", "--rate", "10", "--report", str(file)])
    text = file.read_text(encoding="utf-8")
    assert status == 0, text
    assert "All counts are equal" in text
    assert text.count("\n| ") >= command.STRETCHES
    assert HOUR // 1_000_000 * 10 * 5 < 200_000  # several windows


def test_terms_that_occur_once_are_freed() -> None:
    soak = command.Soak(10, 1)
    most = max(soak.stretch(50_000).terms for _ in range(8))
    assert most < 250_000  # of 400,000 subjects and 6,250 readings


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"found": (4, 7)}, "stretch 8: 4 matches"),
        ({"found": (3, 8)}, "or at other times"),
        ({"resident": 12_000}, "resident memory: the last quarter has 1.20"),
        ({"records": 600}, "live records: the last quarter has 1.20"),
        ({"seconds": 2.0}, "rate: the last quarter has 0.67"),
    ],
)
def test_faults_are_found(change: dict[str, Any], words: str) -> None:
    stretches = [GOOD] * 7 + [replace(GOOD, **change)]
    (fault,) = watch.faults(stretches)
    assert words in fault
    assert watch.faults([GOOD] * 8) == []
