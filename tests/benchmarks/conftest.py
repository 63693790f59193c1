"""The benchmarks are no part of the package: they are found beside tests/.

They run in one worker: they call nearly all kernels, which are compiled once then, while another worker runs Spark.
"""

from __future__ import annotations

import gc
import os
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
INSIDE = f"{HERE}{os.sep}"
sys.path.append(str(HERE.parents[1]))


@pytest.hookimpl(tryfirst=True)  # before xdist looks at the groups
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if str(item.path).startswith(INSIDE):
            item.add_marker(pytest.mark.xdist_group("benchmarks"))


@pytest.fixture(autouse=True)
def _what_was_there_before_stays() -> None:
    """`measure` collects garbage before each task, which should not look through all that earlier tests have left."""
    gc.freeze()
