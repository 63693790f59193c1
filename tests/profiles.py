"""Which examples Hypothesis draws: `OXISEQ_PROFILE=fixed` (the default) or `nightly`.

`fixed` draws the same examples every time, here, at a new user's and in CI, so that the tests pass or fail by what the
code is. `nightly` draws anew, over a hundred times as many. `--hypothesis-seed=N` (or `random`) draws anew in either.
`OXISEQ_EXAMPLES=N` says of each property how many: `make nightly` runs round after round of the gate's number.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Sequence
from itertools import product
from typing import Any, Final

import pytest
from hypothesis import HealthCheck, settings

PROFILE: Final = os.environ.get("OXISEQ_PROFILE", "fixed")
NIGHTLY: Final = PROFILE == "nightly"
EXAMPLES: Final = int(os.environ.get("OXISEQ_EXAMPLES", 10_000 if NIGHTLY else 40))
"""Of each property. There are some 250 of them, and the gate has twelve minutes."""
_SLOW_TO_DRAW: Final = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much]


def load_profile(exploring: bool) -> None:
    """Take the profile that the environment names; `exploring`: a seed was given, other examples are wanted."""
    settings.register_profile(
        PROFILE,
        max_examples=EXAMPLES,
        derandomize=not (NIGHTLY or exploring),
        deadline=None,
        print_blob=True,
        suppress_health_check=_SLOW_TO_DRAW,
    )
    settings.load_profile(PROFILE)


def drawn(percent: int, **more: Any) -> settings:
    """For tests that want fewer examples than others, or more: so many in a hundred; `more`: other settings."""
    return settings(max_examples=max(1, EXAMPLES * percent // 100), **more)


def thorough(**more: Any) -> settings:
    """For tests that compare an engine with its reference; `more`: other settings."""
    return drawn(150, **more)


def in_the_gate(some: Collection[object], every: Iterable[object]) -> list[Any]:
    """Parameters of a test: the gate has some, `make full` every one."""
    return [each if each in some else pytest.param(each, marks=pytest.mark.full) for each in every]


def crossed(first: Sequence[object], *others: Sequence[object], ways: int = 1) -> list[Any]:
    """Parameters of a test, all combinations of values; of them the gate has so many with each value of `first`, in
    which the values of `others` take turns."""
    values = first, *others
    gate = {
        (place, *((place + way) % len(other) for other in others)) for place in range(len(first)) for way in range(ways)
    }
    return [
        pytest.param(
            *(each[at] for each, at in zip(values, places, strict=True)),
            marks=() if places in gate else pytest.mark.full,
        )
        for places in product(*(range(len(each)) for each in values))
    ]
