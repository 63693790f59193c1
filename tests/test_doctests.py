"""The examples in docstrings are run; every module imports. README's and the docs' own: tests/docs."""

from __future__ import annotations

import doctest
import importlib.util
import pkgutil
from functools import cache

import pytest

import oxiseq

FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


@cache
def modules() -> tuple[str, ...]:
    return ("oxiseq", *(m.name for m in pkgutil.walk_packages(oxiseq.__path__, "oxiseq.")))


def with_examples() -> list[str]:
    """By their source, so that collecting imports nothing."""
    found = []
    for name in modules():
        spec = importlib.util.find_spec(name)
        assert spec is not None and spec.origin is not None, name
        with open(spec.origin, encoding="utf-8") as source:
            if ">>> " in source.read():
                found.append(name)
    return found


def test_every_module_imports() -> None:
    for name in modules():
        importlib.import_module(name)


@pytest.mark.parametrize("name", with_examples())
def test_docstrings(name: str) -> None:
    """Those of public names, whose `__module__` is oxiseq, are run in tests/plugin/test_public_names.py."""
    assert doctest.testmod(importlib.import_module(name), optionflags=FLAGS).failed == 0
