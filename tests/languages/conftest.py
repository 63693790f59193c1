"""Distributions that bring a language, on the path of this process and of those that it starts."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from plugin_folders import TOY

from oxiseq.grammar import languages


def forget() -> None:
    """What has been found of plug-ins."""
    languages._points.cache_clear()
    languages._loaded.cache_clear()


@pytest.fixture
def toy(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The toy language is installed."""
    monkeypatch.syspath_prepend(TOY)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(TOY), os.environ.get("PYTHONPATH", "")]))
    forget()
    yield TOY
    forget()


@pytest.fixture
def plugged(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Path]:
    """A folder on the path that distributions can be put into (`bring`)."""
    monkeypatch.syspath_prepend(tmp_path)
    forget()
    yield tmp_path
    forget()
