"""Between queries: what a push has found is returned once every query has seen the push.

Callbacks get their matches in order of completion. Results of CONSTRUCT ... INTO STREAM are written when every query
that writes the stream has told all before, in order of the time at which they are decided; then the stream is complete
up to there, and its readers are told (semantics.md 2.6a). So a push inside a callback, or a chain of queries, never
overtakes, and no result is late.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Mapping
from typing import TypeAlias

from oxiseq.engine.order.watermarks import AFTER_ALL, BEFORE_ALL
from oxiseq.matches.match import Match
from oxiseq.matches.results import ResultQueue

Callbacks: TypeAlias = tuple[Callable[[Match], object], ...]


class Exchange:
    """Holds matches back while streams are fed, in a `with` block: the outermost of nested blocks emits all at its
    end. `push(stream, match)` feeds a result to its stream, `punctuate(stream, time)` says up to when that is complete.
    `complete()`: by stream that queries write, before which time (µs) all their results have been found.

    When a callback raises, what has not been returned yet follows at the next push.
    """

    def __init__(
        self,
        push: Callable[[str, Match], None],
        punctuate: Callable[[str, int], None],
        complete: Callable[[], Mapping[str, int]],
    ) -> None:
        self._push, self._punctuate, self._complete = push, punctuate, complete
        self._depth = 0
        self._found: deque[tuple[Match, Callbacks, str | None]] = deque()
        self._results = ResultQueue[None, Match]()
        self._told: dict[str, int] = {}
        """By stream that queries write, up to when it is complete."""

    def __enter__(self) -> None:
        self._depth += 1

    def __exit__(self, error: type[BaseException] | None, *_: object) -> None:
        try:
            if error is None and self._depth == 1:
                self._hand_out()
        finally:
            self._depth -= 1

    def found(self, match: Match, callbacks: Callbacks, into: str | None) -> None:
        """A match has completed: `callbacks` get it, its graph goes to the stream `into`."""
        if callbacks or into is not None:
            self._found.append((match, callbacks, into))

    def _hand_out(self) -> None:
        while True:
            while self._found:
                match, callbacks, into = self._found.popleft()
                if into is not None:
                    self._results.add(into, match.at_us, None, match)
                for callback in callbacks:
                    callback(match)
            complete = self._complete()
            if not complete and not self._results:
                return
            if (result := self._results.next(complete)) is not None:
                self._push(result[0], result[2])
            elif not self._tell(complete.items()):
                return

    def _tell(self, complete: Iterable[tuple[str, int]]) -> bool:
        """Say of one stream that it is complete up to a later time; whether there was one."""
        for into, time in complete:
            if self._told.get(into, BEFORE_ALL) < time < AFTER_ALL:
                self._told[into] = time
                self._punctuate(into, time)
                return True
        return False
