"""How long streams have been silent, and when one is to be looked at for that.

A stream is looked at once it has been silent for `idle` seconds: its newest instant is complete then. It is looked at
again when time alone will complete something, which its readers say then, and when something has come; never between,
however many queries read it. All times are of the monotonic clock.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from math import inf


class Silences:
    """Of the streams of a log. Used with the worker's lock held."""

    def __init__(self, idle: float | None) -> None:
        self.idle = inf if idle is None else idle
        self._begun = time.monotonic()
        self._active: dict[str, float] = {}
        self._due: dict[str, float] = {}

    def came(self, stream: str) -> None:
        """Events have come."""
        self._active[stream] = time.monotonic()
        self.changed((stream,))

    def changed(self, streams: Iterable[str]) -> None:
        """Readers may wait for another time: one of them is new, or a punctuation has come."""
        for stream in streams:
            self._due[stream] = self.since((stream,)) + self.idle

    def forget(self, stream: str) -> None:
        """It has been deleted."""
        self._active.pop(stream, None)
        self._due.pop(stream, None)

    def since(self, streams: Iterable[str]) -> float:
        """When something last came on one of these."""
        return max(self._active.get(stream, self._begun) for stream in streams)

    @property
    def due(self) -> float:
        """When the next stream is to be looked at."""
        return min(self._due.values(), default=inf)

    def take(self, now: float) -> list[str]:
        """Those that are to be looked at; not again before they are `changed`, or `later`."""
        streams = [stream for stream, due in self._due.items() if due <= now]
        for stream in streams:
            del self._due[stream]
        return streams

    def later(self, streams: Iterable[str], due: float) -> None:
        """These are to be looked at again at a time, or before."""
        for stream in streams:
            self._due[stream] = min(due, self._due.get(stream, inf))
