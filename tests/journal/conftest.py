"""A journal in a folder of its own, with a clock that the test moves."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from journal_events import STREAM, Clock

from oxiseq.journal import Journal


@pytest.fixture
def clock() -> Clock:
    """Stands still until it is moved."""
    return Clock()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Where the journal is."""
    return tmp_path / "journal.oxiseq"


@pytest.fixture
def journal(path: Path, clock: Clock) -> Iterator[Journal]:
    """A new journal with one stream. Whatever a test does to it, it is found to be in order afterwards."""
    with Journal(path, "normal", clock=clock) as opened:
        opened.streams.create(STREAM)
        yield opened
    with Journal(path, read_only=True) as again:
        assert again.verify() == []
