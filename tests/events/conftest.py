"""Fixtures of the tests of events."""

from __future__ import annotations

import pytest
from event_contents import Contents, batch_contents


@pytest.fixture
def contents() -> Contents:
    """Batches as plain values: times and triples in N-Triples form."""
    return batch_contents
