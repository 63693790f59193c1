"""The examples in docstrings and in README are run."""

from __future__ import annotations

import doctest
import importlib
import pkgutil
from pathlib import Path

import pytest

import oxiseq

README = Path(__file__).parents[1] / "README.md"
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


def modules() -> list[str]:
    return ["oxiseq"] + [m.name for m in pkgutil.walk_packages(oxiseq.__path__, "oxiseq.")]


@pytest.mark.parametrize("name", modules())
def test_docstrings(name: str) -> None:
    assert doctest.testmod(importlib.import_module(name), optionflags=FLAGS).failed == 0


def test_readme() -> None:
    result = doctest.testfile(str(README), module_relative=False, optionflags=FLAGS)
    assert result.attempted > 0
    assert result.failed == 0
