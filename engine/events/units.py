"""Integers as times: their unit, and a guess whether the unit was forgotten.

In the flow: integer columns of tables → **microseconds since 1970 UTC**.

Integers are microseconds unless a unit is given. Many logs hold epoch seconds, milliseconds or nanoseconds instead:
read as microseconds they would all lie in January or February 1970, or far beyond. So a table without a given unit is
refused where all times of its first batch would be a date from 2001 to 2100 in another unit. Small numbers, as made-up
streams have them, are none. `us` says that microseconds are meant.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from oxiseq.engine.errors import EventError
from oxiseq.engine.events.time import to_text
from oxiseq.engine.terms.value import INT64_MAX

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

TimeUnit: TypeAlias = Literal["s", "ms", "us", "ns"]
_NAMES: Final[dict[TimeUnit, str]] = {"s": "seconds", "ms": "milliseconds", "us": "microseconds", "ns": "nanoseconds"}
_FACTORS: Final[dict[TimeUnit, int]] = {"s": 1_000_000, "ms": 1_000, "us": 1}
_EARLIEST: Final = 978_307_200
"""2001-01-01 in seconds."""
_LATEST: Final = 4_102_444_800
"""2100-01-01 in seconds."""
_A_SECOND: Final[dict[TimeUnit, int]] = {"s": 1, "ms": 1_000, "ns": 1_000_000_000}
_SEEMING: Final = [(unit, _EARLIEST * second, _LATEST * second) for unit, second in _A_SECOND.items()]
"""Unit, the smallest time that seems to be in it, the first that is too large."""


def as_microseconds(value: int, unit: TimeUnit | None) -> int:
    """A time in the unit as microseconds; digits below a microsecond are cut off."""
    return value // 1_000 if unit == "ns" else value * _FACTORS[unit or "us"]


def all_as_microseconds(values: NDArray[np.int64], unit: TimeUnit | None) -> NDArray[np.int64]:
    """i64[n] likewise. Raises EventError for times beyond 64-bit microseconds."""
    if unit is None or unit == "us":
        return values
    if unit == "ns":
        return values // 1_000
    factor = _FACTORS[unit]
    if len(values) and max(int(values.max()), -int(values.min())) > INT64_MAX // factor:
        raise EventError(None, None, f"a time beyond 64-bit microseconds, in {_NAMES[unit]}")
    return values * factor


def check_unit(low: int, high: int, column: str) -> None:
    """Raise EventError if the times of a column without a unit, from `low` to `high`, seem to be in another one than
    microseconds."""
    for unit, earliest, latest in _SEEMING:
        if earliest <= low and high < latest:
            there = to_text(as_microseconds(low, unit))
            raise EventError(
                None,
                None,
                f"the column {column!r} seems to hold {_NAMES[unit]}: {low} is {there} in {_NAMES[unit]}, but "
                f"{to_text(low)} in microseconds, as integers are read: give --time-unit {unit} (time_unit={unit!r} in "
                f"Python), or us if microseconds are meant",
            )
