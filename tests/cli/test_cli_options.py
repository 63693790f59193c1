"""Times and durations on the command line."""

from __future__ import annotations

import click
import pytest
from cli_files import BEGIN_MICROSECONDS

from oxiseq.cli.options import Duration, Iri, Time


@pytest.mark.parametrize(
    ("text", "microseconds"),
    [
        ("5s", 5_000_000),
        ("2m", 120_000_000),
        ("2min", 120_000_000),
        ("1.5h", 5_400_000_000),
        ("1d", 86_400_000_000),
        ("200ms", 200_000),
        ("7us", 7),
        ("0s", 0),
        ("1234567us", 1_234_567),
        ("PT5S", 5_000_000),
        ("PT0.5S", 500_000),
        ("P1DT2H3M", 93_780_000_000),
        ("PT1M", 60_000_000),
    ],
)
def test_durations(text: str, microseconds: int) -> None:
    assert Duration().convert(text, None, None) == microseconds


@pytest.mark.parametrize("text", ["", "s", "5  s", "P", "PT", "5sec", "١s5"])
def test_what_is_not_a_duration(text: str) -> None:
    with pytest.raises(click.BadParameter, match="is not a duration"):
        Duration().convert(text, None, None)


@pytest.mark.parametrize(
    ("text", "microseconds"),
    [
        ("2024-05-01T10:00:00Z", BEGIN_MICROSECONDS),
        ("2024-05-01T10:00:00", BEGIN_MICROSECONDS),
        ("2024-05-01T12:00:00.000001+02:00", BEGIN_MICROSECONDS + 1),
        ("2024-05-01", BEGIN_MICROSECONDS - 36_000_000_000),
        ("0", 0),
        ("-7", -7),
        (str(BEGIN_MICROSECONDS), BEGIN_MICROSECONDS),
    ],
)
def test_times(text: str, microseconds: int) -> None:
    assert Time().convert(text, None, None) == microseconds


@pytest.mark.parametrize("text", ["", "noon", "2024-13-01", "2024-05-01T25:00:00Z", "1.5", "9" * 30])
def test_what_is_not_a_time(text: str) -> None:
    with pytest.raises(click.BadParameter, match="is not a time"):
        Time().convert(text, None, None)


def test_iris_with_and_without_brackets() -> None:
    assert Iri().convert("<urn:a>", None, None) == Iri().convert("urn:a", None, None) == "urn:a"
    with pytest.raises(click.BadParameter, match="is not an IRI"):
        Iri().convert("a b", None, None)
