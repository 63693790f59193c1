"""Hypothesis profiles: `OXISEQ_PROFILE=dev` (the default), `ci` or `nightly`.

`ci` draws the same examples every time, so that a change is judged by what it changed; the others draw anew.
"""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings

SLOW_TO_DRAW = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much]

for name, examples in (("dev", 100), ("ci", 500), ("nightly", 10_000)):
    settings.register_profile(
        name,
        max_examples=examples,
        derandomize=name == "ci",
        deadline=None,
        print_blob=True,
        suppress_health_check=SLOW_TO_DRAW,
    )
settings.load_profile(os.environ.get("OXISEQ_PROFILE", "dev"))
