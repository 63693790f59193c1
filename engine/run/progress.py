"""How far a query has come that writes a stream: before which time all its results have been found (semantics.md 2.6a).

A query that sleeps gets no events while none can have it find anything, so its own order does not know. The streams do.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

from oxiseq.engine.order.watermarks import AFTER_ALL, Watermark
from oxiseq.engine.run.run import Run


class ReadProgress:
    """Of one query, as far as its streams have told since it has been made. `run()`: its run, which may be another when
    it is restored; `reads`: the IRIs of its streams."""

    def __init__(self, run: Callable[[], Run], reads: Iterable[str]) -> None:
        self._run: Final = run
        self._streams = {iri: Watermark() for iri in reads}

    def came(self, stream: str, time: int) -> None:
        """Events of a stream have come, the newest of this time (µs)."""
        if (mark := self._streams.get(stream)) is not None:
            mark.largest = max(mark.largest, time)

    def told(self, stream: str, time: int) -> None:
        """No event of `stream` before `time` (µs) will come."""
        if (mark := self._streams.get(stream)) is not None:
            mark.punctuation = max(mark.punctuation, time)

    @property
    def passed(self) -> int:
        """All results that are decided before this time (µs) have been found, and none will follow."""
        run = self._run()
        lateness = run.lateness
        seen = min([mark.at(lateness) for mark in self._streams.values()], default=AFTER_ALL)
        return max(seen, run.order.passed)
