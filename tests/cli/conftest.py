"""A folder with a query, its events and a knowledge base."""

from __future__ import annotations

from pathlib import Path

import pytest
from cli_files import BIGGER, EVENTS, KB, NAMED, UNPAID, query, write


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """jumps.spaseq (SELECT), named (with the KB), bigger (CONSTRUCT), unpaid (trailing negation), ask; payments.nq;
    names.nq."""
    queries = {"jumps": query(), "named": NAMED, "bigger": BIGGER, "unpaid": UNPAID, "ask": query("ASK")}
    for name, text in queries.items():
        write(tmp_path, f"{name}.spaseq", text)
    write(tmp_path, "payments.nq", EVENTS)
    write(tmp_path, "names.nq", KB)
    return tmp_path
