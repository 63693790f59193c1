"""The matches of a query at work, so far: as columns, numbered from 1, the newest of them kept.

In the flow: batches of a run → **found** → `Match`, `Matches`, when somebody looks.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from oxiseq.journal import CursorError
from oxiseq.matches.match import Match
from oxiseq.matches.shape import Block, Shape
from oxiseq.options.kinds import whole_number

MOST: Final = 1_000_000
"""Matches of a query that are kept unless it says otherwise."""


class FoundMatches:
    """Not safe for many threads: the query's lock is held. `first`: the number of the first that is kept; `last`: of
    the newest, 0 when there is none; `most`: how many are kept, or a few more, since a batch goes as a whole."""

    def __init__(self, shape: Shape, most: int) -> None:
        self.first, self.last, self.most = 1, 0, whole_number(most, "keep", 1)
        self._shape = shape
        self._parts: deque[tuple[int, Any]] = deque()
        """Number of the first, and a batch."""
        self._open: tuple[int, Block] | None = None
        """The part that is being returned one by one."""

    def add(self, batches: Sequence[Any]) -> None:
        """Matches in the order in which they were found."""
        for batch in batches:
            if len(batch):
                self._parts.append((self.last + 1, batch))
                self.last += len(batch)
        while len(self._parts) > 1 and self.last - self._parts[1][0] + 1 >= self.most:
            self._parts.popleft()
            self.first = self._parts[0][0]

    def one(self, number: int) -> Match | None:
        """The match with this number, None before it is found. Raises CursorError if it is no longer kept."""
        if number > self.last:
            return None
        begin, block = self._block_with(number)
        return block.match(number - begin)

    def behind(self, after: int, limit: int | None) -> Block:
        """Those with greater numbers than `after`, at most `limit`. Raises CursorError."""
        self._check(after + 1)
        stop = self.last + 1 if limit is None else min(self.last, after + limit) + 1
        parts = [(begin, batch) for begin, batch in self._parts if begin < stop and begin + len(batch) > after + 1]
        block = self._shape.block([batch for _, batch in parts])
        begin = parts[0][0] if parts else 1
        block = block.numbered(begin)
        return block.take(np.arange(max(0, after + 1 - begin), max(0, min(stop - begin, len(block)))))

    def _block_with(self, number: int) -> tuple[int, Block]:
        if self._open is None or not self._open[0] <= number < self._open[0] + len(self._open[1]):
            self._check(number)
            begin, batch = next((b, batch) for b, batch in self._parts if b <= number < b + len(batch))
            self._open = begin, self._shape.block([batch]).numbered(begin)
        return self._open

    def _check(self, number: int) -> None:
        if number < self.first:
            raise CursorError("matches of the query", number, self.first)
