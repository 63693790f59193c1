"""Results on their way to streams: CONSTRUCT ... INTO STREAM (semantics.md 2.6a).

In the flow: matches → **results, in order of when they are decided** → events of their stream. One is written as soon
as all queries that write its stream have told everything before it: so no reader sees the stream out of order.
"""

from __future__ import annotations

import heapq
from collections.abc import Mapping
from itertools import count
from typing import Generic, TypeVar

from oxiseq.engine.order.watermarks import AFTER_ALL

T = TypeVar("T")
W = TypeVar("W")


class ResultQueue(Generic[W, T]):
    """Results of type T that queries, known as W, have found and that are not written yet."""

    def __init__(self) -> None:
        self._results: dict[str, list[tuple[int, int, W, T]]] = {}
        """By stream a heap."""
        self._serial = count()

    def __bool__(self) -> bool:
        return bool(self._results)

    def add(self, stream: str, at: int, writer: W, result: T) -> None:
        """One more, decided `at` (µs)."""
        heapq.heappush(self._results.setdefault(stream, []), (at, next(self._serial), writer, result))

    def next(self, complete: Mapping[str, int]) -> tuple[str, int, T] | None:
        """Take the first that may be written: its stream, when it is decided, it. `complete`: by stream, before which
        time (µs) all results have been found; a stream that nobody writes any more is complete."""
        ready = [
            (*results[0][:2], stream)
            for stream, results in self._results.items()
            if results[0][0] < complete.get(stream, AFTER_ALL)
        ]
        if not ready:
            return None
        stream = min(ready)[-1]
        at, _, _, result = heapq.heappop(self._results[stream])
        if not self._results[stream]:
            del self._results[stream]
        return stream, at, result

    def holds(self, writer: W) -> bool:
        """Whether some of a query's wait."""
        return any(each[2] == writer for results in self._results.values() for each in results)

    def forget(self, writer: W) -> None:
        """A query begins again, and finds what waits again."""
        left = {stream: [r for r in results if r[2] != writer] for stream, results in self._results.items()}
        self._results = {stream: results for stream, results in left.items() if results}
        for results in self._results.values():
            heapq.heapify(results)
