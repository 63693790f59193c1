"""Where tumbling windows begin, when a query that has been at work is run again over other events."""

from __future__ import annotations

from typing import Final

from oxiseq.grammar.algebra import Window

_LONG_AGO: Final = -62_135_596_800_000_000
"""The year 1, in µs."""


def same_windows(window: Window | None, start: int | None) -> int | None:
    """A t of the same tumbling windows that is so long ago that no event is before it; None where that says nothing:
    windows slide or count events, or `start` (µs) is not known."""
    if start is None or window is None or window.sliding or window.events:
        return None
    return _LONG_AGO + (start - _LONG_AGO) % window.size
