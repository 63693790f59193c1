"""Microseconds, datetimes and literals."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyoxigraph import Literal, NamedNode

from oxiseq.engine.errors import EventError
from oxiseq.engine.events.time import (
    FIRST_TIME,
    LAST_TIME,
    to_datetime,
    to_duration_literal,
    to_literal,
    to_microseconds,
)
from oxiseq.engine.terms.normal import XSD, normalise

INT64 = st.integers(-(2**63), 2**63 - 1)
TIMES = st.integers(FIRST_TIME, LAST_TIME)


def typed(lexical: str, datatype: str) -> Literal:
    return Literal(lexical, datatype=NamedNode(XSD + datatype))


@given(TIMES)
def test_a_time_comes_back_from_its_literal(microseconds: int) -> None:
    literal = to_literal(microseconds)
    assert to_microseconds(literal) == microseconds
    assert normalise(literal) == literal


@given(st.datetimes(timezones=st.just(UTC)))
def test_a_time_comes_back_from_its_datetime(time: datetime) -> None:
    assert to_datetime(to_microseconds(time)) == time


@given(INT64)
def test_durations_are_written_as_the_store_writes_them(microseconds: int) -> None:
    literal = to_duration_literal(microseconds)
    assert normalise(literal) == literal


@pytest.mark.parametrize(
    ("microseconds", "text"),
    [
        (0, "PT0S"),
        (1, "PT0.000001S"),
        (-60_000_000, "-PT1M"),
        (93_784_500_000, "P1DT2H3M4.5S"),
        (86_400_000_000, "P1D"),
        (3_600_000_000, "PT1H"),
    ],
)
def test_durations(microseconds: int, text: str) -> None:
    assert to_duration_literal(microseconds).value == text


@pytest.mark.parametrize(
    ("microseconds", "text"),
    [
        (0, "1970-01-01T00:00:00Z"),
        (-1, "1969-12-31T23:59:59.999999Z"),
        (1_500_000, "1970-01-01T00:00:01.5Z"),
        (-62_167_219_200_000_000, "0000-01-01T00:00:00Z"),
        (253_402_300_800_000_000, "10000-01-01T00:00:00Z"),
    ],
)
def test_literals(microseconds: int, text: str) -> None:
    assert to_literal(microseconds) == typed(text, "dateTime")


@pytest.mark.parametrize(
    "time",
    [
        10_800_000_000,
        datetime(1970, 1, 1, 3),
        datetime(1970, 1, 1, 3, tzinfo=UTC),
        datetime(1970, 1, 1, 5, tzinfo=timezone(timedelta(hours=2))),
        typed("1970-01-01T03:00:00", "dateTime"),
        typed("1970-01-01T03:00:00.000000000Z", "dateTime"),
        typed("1970-01-01T03:00:00.0000009Z", "dateTime"),
        typed("1970-01-01T05:00:00+02:00", "dateTime"),
        typed("1970-01-01T03:00:00Z", "dateTimeStamp"),
        typed("10800000000", "integer"),
        typed("+010800000000", "long"),
    ],
)
def test_ways_to_write_three_o_clock(time: datetime | int | Literal) -> None:
    assert to_microseconds(time) == 3 * 3600 * 10**6


@pytest.mark.parametrize(
    "literal",
    [
        typed("1970-02-30T00:00:00Z", "dateTime"),
        typed("999999-01-01T00:00:00Z", "dateTime"),
        typed(str(2**63), "integer"),
        typed(str(LAST_TIME + 1), "integer"),
        typed(str(FIRST_TIME - 1), "integer"),
        typed("10000-01-01T00:00:00Z", "dateTime"),
        typed("0000-12-31T23:59:59Z", "dateTime"),
        typed("0001-01-01T00:00:00+14:00", "dateTime"),
        typed("1.5", "decimal"),
        typed("x", "integer"),
        Literal("1970-01-01T00:00:00Z"),
    ],
)
def test_literals_that_are_no_times(literal: Literal) -> None:
    with pytest.raises(EventError, match="time"):
        to_microseconds(literal)


@pytest.mark.parametrize("wrong", [True, 1.5, None, b"1970-01-01"])
def test_types_that_are_no_times(wrong: object) -> None:
    with pytest.raises(TypeError, match="not a time"):
        to_microseconds(wrong)  # type: ignore[arg-type]  # the wrong type is the point


@pytest.mark.parametrize("time", [2**62, 2**63 - 1, -(2**63), 10**30, LAST_TIME + 1, FIRST_TIME - 1])
def test_times_are_of_four_digit_years(time: int) -> None:
    with pytest.raises(EventError, match="outside of the years 1 to 9999"):
        to_microseconds(time)


def test_the_first_and_the_last_time_are_taken() -> None:
    assert to_microseconds(typed("0001-01-01T00:00:00Z", "dateTime")) == to_microseconds(FIRST_TIME) == FIRST_TIME
    assert to_microseconds(typed("9999-12-31T23:59:59.999999Z", "dateTime")) == to_microseconds(LAST_TIME) == LAST_TIME
    with pytest.raises(EventError, match="outside of the years"):  # in UTC it is of the year 0
        to_microseconds(datetime(1, 1, 1, tzinfo=timezone(timedelta(hours=14))))


@pytest.mark.parametrize(
    ("text", "time"),
    [
        ("1970-01-01", 0),
        ("1970-01-02", 86_400_000_000),
        ("1970-01-01T00:00:01.5Z", 1_500_000),
        ("1970-01-01T01:00:00+01:00", 0),
        ("1970-01-01T00:00:00", 0),
    ],
)
def test_texts_are_dates_and_date_times(text: str, time: int) -> None:
    assert to_microseconds(text) == time


@pytest.mark.parametrize(
    "text",
    [
        "",
        "noon",
        "5",
        "1970",
        "1970-13-01",
        "1970-02-30",
        "1970-01-01T25:00:00Z",
        "9" * 10**5,
        "0000-01-01",
        "99999-01-01",
        "1970-01-01\n",
    ],
)
def test_other_texts_are_no_times(text: str) -> None:
    with pytest.raises(EventError, match="time") as raised:
        to_microseconds(text)
    assert len(str(raised.value)) < 300
