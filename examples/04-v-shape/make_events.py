"""Real daily stock quotes; data and code are the demonstration's."""

from __future__ import annotations

from oxiseq.demo.show import STREAM, daily_events


def streams() -> dict[str, list[tuple[int, str]]]:
    """The quotes: one event per trading day."""
    return {STREAM: daily_events()}
