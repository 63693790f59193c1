"""Hypothesis profiles: `OXISEQ_PROFILE=dev` (the default), `ci` or `nightly`.

`ci` draws the same examples every time, so that a change is judged by what it changed; the others draw anew.
"""

from __future__ import annotations

import os
from typing import Any, Final

from hypothesis import HealthCheck, settings

PROFILE: Final = os.environ.get("OXISEQ_PROFILE", "dev")
EXAMPLES: Final = {"dev": 100, "ci": 100, "nightly": 10_000}
"""Of each property. There are some 130 of them, and the gate has fifteen minutes."""
THOROUGH: Final = {"dev": 100, "ci": 150, "nightly": 10_000}
"""Of those that compare an engine with its reference."""
_SLOW_TO_DRAW: Final = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much]


def load_profile() -> None:
    """Take the profile that the environment names."""
    for name, examples in EXAMPLES.items():
        settings.register_profile(
            name, max_examples=examples, derandomize=name == "ci", deadline=None, print_blob=True,
            suppress_health_check=_SLOW_TO_DRAW,
        )  # fmt: skip
    settings.load_profile(PROFILE)


def thorough(**more: Any) -> settings:
    """For tests that compare an engine with its reference; `more`: other settings."""
    return settings(max_examples=THOROUGH[PROFILE], **more)
