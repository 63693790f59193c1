"""Durations: read exactly, written so that they are read again, and quick with whatever is given."""

from __future__ import annotations

import time
from datetime import timedelta

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from oxiseq.engine.events.time import to_duration_literal
from oxiseq.grammar.errors import OxiseqError
from oxiseq.options.kinds import LONGEST, UNITS, duration, duration_text

SIZES = st.integers(0, LONGEST) | st.sampled_from(list(UNITS.values())).flatmap(
    lambda unit: st.integers(0, LONGEST // unit).map(lambda count: count * unit)
)


@given(SIZES)
def test_every_form_of_a_size_is_that_size(size: int) -> None:
    assert duration(duration_text(size)) == size
    assert duration(timedelta(microseconds=size)) == size
    assert duration(to_duration_literal(size).value) == size
    seconds, micros = divmod(size, 1_000_000)
    assert duration(f"{seconds}s{micros}us") == duration(f"{seconds}.{micros:06} s") == size


@pytest.mark.parametrize(
    ("size", "text"),
    [(0, "0s"), (1, "1us"), (1_500, "1500us"), (5_000_000, "5s"), (90 * UNITS["m"], "90m"), (UNITS["d"], "1d")],
)
def test_it_is_written_in_its_greatest_whole_unit(size: int, text: str) -> None:
    assert duration_text(size) == text


@given(st.text() | st.text("0123456789.eE+-PTDHMSdhmsuinµ ") | st.floats() | st.integers() | st.none() | st.binary())
def test_anything_is_a_size_or_refused_shortly(anything: object) -> None:
    try:
        assert 0 <= duration(anything, "lateness") <= LONGEST
    except OxiseqError as error:
        assert str(error).startswith("lateness=") and len(str(error)) < 300


def test_nanoseconds_are_not_dropped() -> None:
    assert duration(pd.Timedelta(5, "us")) == 5
    with pytest.raises(OxiseqError, match="finer than a microsecond"):
        duration(pd.Timedelta(5_001, "ns"))


@pytest.mark.parametrize("text", ["9", "1s", " ", "1 ", "1.", "P", "PT9", "-", "1e9", "٥", "1h1"])
def test_a_megabyte_is_refused_at_once(text: str) -> None:
    begun = time.perf_counter()
    with pytest.raises(OxiseqError):
        duration(text * 1_000_000)
    assert time.perf_counter() - begun < 1


def test_integers_that_python_does_not_write_are_refused() -> None:
    for number in (10**5_000, -(10**5_000)):
        with pytest.raises(OxiseqError, match="is out of range"):
            duration(number)
