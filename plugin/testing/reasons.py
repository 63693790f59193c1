"""Why a case's matches are missing."""

from __future__ import annotations

from oxiseq.testing.run import Result


def reasons(result: Result) -> list[str]:
    """Lines for people; none where it cannot be told."""
    return []
