"""What a Spark worker has loaded is not collected again after each task."""

from __future__ import annotations

import gc

import pytest

from oxiseq.spark.garbage import freeze_loaded, unfreeze


def test_what_is_loaded_is_frozen_until_the_next_query() -> None:
    unfreeze()
    loaded = [[number] for number in range(10_000)]
    try:
        freeze_loaded()
        frozen = gc.get_freeze_count()
        assert frozen > len(loaded)
        little = [[number] for number in range(100)]
        freeze_loaded()
        assert gc.get_freeze_count() < frozen + len(little)
        assert any(each is little[0] for each in gc.get_objects())
    finally:
        unfreeze()
    assert gc.get_freeze_count() < len(loaded)


def test_it_freezes_a_limited_number_of_times(monkeypatch: pytest.MonkeyPatch) -> None:
    """Frozen objects are never collected, so what each task makes must not be frozen for ever."""
    monkeypatch.setattr("oxiseq.spark.garbage._MANY", -1)
    monkeypatch.setattr("oxiseq.spark.garbage._TIMES", 2)
    unfreeze()
    counts = []
    try:
        made = []
        for _ in range(4):
            made.append([[number] for number in range(1_000)])
            freeze_loaded()
            counts.append(gc.get_freeze_count())
    finally:
        monkeypatch.undo()
        unfreeze()
    assert counts[1] > counts[0] + 500
    assert max(counts[2:]) < counts[1] + 500
