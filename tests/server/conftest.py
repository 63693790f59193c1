"""Servers that a module's tests share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from servers import NO_OXIGRAPH, ours, oxigraph_program, real


@pytest.fixture(scope="module")
def our_address() -> Iterator[str]:
    """Our server, in memory."""
    with ours() as address:
        yield address


@pytest.fixture(scope="module")
def real_address() -> Iterator[str]:
    """The real oxigraph server, in memory."""
    if oxigraph_program() is None:
        pytest.skip(NO_OXIGRAPH)
    with real() as address:
        yield address
