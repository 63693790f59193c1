"""The examples' own tests."""

from __future__ import annotations

from pathlib import Path

import pytest
from example_loading import EXAMPLES

from oxiseq.testing import run_file
from oxiseq.testing.run import failure_text

FILES = sorted(EXAMPLES.glob("*/*.oxitest.toml"))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.parent.name)
def test_cases_pass(path: Path) -> None:
    for result in run_file(path):
        assert result.passed, f"{result.case.name}\n{failure_text(result)}"


def test_every_example_has_some() -> None:
    assert {path.parent for path in FILES} == {path for path in EXAMPLES.iterdir() if path.name[:2].isdecimal()}
