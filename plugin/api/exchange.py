"""Between queries: what a push has found is returned once every query has seen the push.

Callbacks get their matches in order of completion, and results of CONSTRUCT ... INTO STREAM are pushed in order
of time, whichever query made them. So a push inside a callback, or a chain of queries, never overtakes.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Callable
from itertools import count
from typing import TypeAlias

from oxiseq.matches.match import Match

Callbacks: TypeAlias = tuple[Callable[[Match], object], ...]


class Exchange:
    """Holds matches back while streams are fed, in a `with` block: the outermost of nested blocks emits all at its
    end. `push(stream, match)` feeds a result to its stream.

    When a callback raises, what has not been returned yet follows at the next push.
    """

    def __init__(self, push: Callable[[str, Match], None]) -> None:
        self._push = push
        self._depth = 0
        self._found: deque[tuple[Match, Callbacks, str | None]] = deque()
        self._results: list[tuple[int, int, str, Match]] = []
        self._serial = count()

    def __enter__(self) -> None:
        self._depth += 1

    def __exit__(self, error: type[BaseException] | None, *_: object) -> None:
        try:
            if error is None and self._depth == 1 and (self._found or self._results):
                self._hand_out()
        finally:
            self._depth -= 1

    def found(self, match: Match, callbacks: Callbacks, into: str | None) -> None:
        """A match has completed: `callbacks` get it, its graph goes to the stream `into`."""
        if callbacks or into is not None:
            self._found.append((match, callbacks, into))

    def _hand_out(self) -> None:
        while self._found or self._results:
            if self._found:
                match, callbacks, into = self._found.popleft()
                if into is not None:
                    heapq.heappush(self._results, (match.at_us, next(self._serial), into, match))
                for callback in callbacks:
                    callback(match)
            else:
                _, _, into, match = heapq.heappop(self._results)
                self._push(into, match)
