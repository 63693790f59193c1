"""The time of rows: one column or several, numbers and clocks, units and zones."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from oxiseq.engine.errors import EventError
from oxiseq.mappings.plan import MappingError
from oxiseq.mappings.times import Clock, zone_of

TEN = int(datetime(2024, 5, 1, 10, tzinfo=UTC).timestamp()) * 1_000_000


@pytest.mark.parametrize(
    ("columns", "clock", "expected"),
    [
        ([["2024-05-01T10:00:00Z"]], Clock(), TEN),
        ([["2024-05-01 10:00:00"]], Clock(), TEN),
        ([["2024-05-01T12:00:00+02:00"]], Clock(), TEN),
        ([["2024-05-01 12:00:00"]], Clock(zone=zone_of("Europe/Berlin")), TEN),
        ([["2024-05-01T10:00:00Z"]], Clock(zone=zone_of("Europe/Berlin")), TEN),
        ([["2024-05-01 05:30:00"]], Clock(zone=zone_of("-04:30")), TEN),
        ([["2024-05-01"], ["10:00:00"]], Clock(), TEN),
        ([["2024-05-01"], ["12:00:00"]], Clock(zone=zone_of("Europe/Berlin")), TEN),
        ([["2024-05-01"]], Clock(), TEN - 36_000_000_000),
        ([[TEN // 1_000_000]], Clock("s"), TEN),
        ([[TEN / 1e6 + 0.25]], Clock("s"), TEN + 250_000),
        ([[str(TEN // 1_000)]], Clock("ms"), TEN),
        ([[TEN * 1_000 + 999]], Clock("ns"), TEN),
        ([[datetime(2024, 5, 1, 12, tzinfo=timezone(timedelta(hours=2)))]], Clock(), TEN),
        ([[datetime(2024, 5, 1, 12)]], Clock(zone=zone_of("Europe/Berlin")), TEN),
        ([[np.int64(TEN)]], Clock(), TEN),
    ],
)
def test_times(columns: list[list[Any]], clock: Clock, expected: int) -> None:
    times, wrong = clock.read(columns)
    assert (times.tolist(), wrong) == ([expected], {})


@pytest.mark.parametrize(
    "value",
    [
        None,
        "",
        "soon",
        "now",
        "NaT",
        True,
        [],
        float("nan"),
        float("inf"),
        1.5,
        2**80,
        "9" * 39,
        "2024-02-30T00:00:00Z",
        "2024-05-01T25:00:00Z",
        "0000-01-01T00:00:00Z",
        "2024-05",
        {},
    ],
)
def test_what_is_no_time_is_said(value: Any) -> None:
    times, wrong = Clock().read([[value, 7]])
    assert times[1] == 7
    assert list(wrong) == [0]


CELLS = st.one_of(
    st.datetimes(datetime(1, 1, 2), datetime(9999, 12, 30)).map(lambda t: t.isoformat()),
    st.datetimes(datetime(1950, 1, 1), datetime(2100, 1, 1)).map(lambda t: t.isoformat(" ") + "Z"),
    st.integers(-(10**12), 10**12),
    st.sampled_from(["2024-03-31 02:30:00", "2024-10-27 02:30:00", "2024-02-30 00:00:00"]),
)


@given(st.lists(CELLS, min_size=1, max_size=8), st.sampled_from(["UTC", "Europe/Berlin", "+05:45", "America/St_Johns"]))
def test_many_at_a_time_are_what_they_are_one_by_one(cells: list[Any], zone: str) -> None:
    clock = Clock(zone=zone_of(zone))
    times, wrong = clock.read([cells])
    for row, cell in enumerate(cells):
        try:
            assert (int(times[row]), row in wrong) == (clock.one(cell), False)
        except EventError:
            assert row in wrong


@pytest.mark.parametrize("zone", ["", "Nowhere/At_All", "../../etc/passwd", "/etc/passwd", "+25:00", 5, None, "x" * 99])
def test_zones_that_are_none(zone: object) -> None:
    with pytest.raises(MappingError, match="zone"):
        zone_of(zone)
