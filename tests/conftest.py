"""Hypothesis draws as `profiles` says; one test more than there are cores is run at a time."""

from __future__ import annotations

import os

from profiles import load_profile

load_profile()


def pytest_xdist_auto_num_workers() -> int:
    """Of `-n auto`: with one for the tests that wait, for Java, servers and browsers."""
    return (os.cpu_count() or 1) + 1
