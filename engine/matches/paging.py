"""A page of the matches that end at one instant: those from the i-th one on, without listing those before them.

In the flow: finals of an instant → **the page's matches** → enumeration (frozen.py: the i-th is found by the counts of
the compact set).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import field
from typing import TYPE_CHECKING, Final

import numpy as np

from oxiseq.engine.errors import LimitError
from oxiseq.engine.extras import needed
from oxiseq.engine.kernels.matches import records as k
from oxiseq.engine.matches.memory import M, put_matches
from oxiseq.grammar.records import dataclass

if TYPE_CHECKING:
    from oxiseq.engine.matches import frozen
else:
    frozen = needed("oxiseq.engine.matches.frozen")

PAGE: Final = 100
"""Matches of a page where nobody says how many."""
MOST_ROWS: Final = 100_000
"""Events of a page's matches: to compute what is selected of these takes seconds, in which nothing can end it."""


@dataclass(frozen=True, slots=True)
class Page:
    """Of the matches that end at `at` (µs), in the order in which they are enumerated, `size` from the one at `offset`
    on, the first one being at 0. `check` is called for each of them, and may raise what is to end the work."""

    at: int
    offset: int
    size: int
    check: Callable[[], None] = field(default=lambda: None, compare=False, repr=False)


class Pager:
    """Picks a page. `count`: how many matches end at its instant. `consumes`: a match of another instant is needed, for
    CONSUME BY. `whole`: all of the instant are wanted, who asks takes the page himself."""

    def __init__(self, page: Page, *, consumes: bool, whole: bool = False) -> None:
        self.count = 0
        self._page, self._consumes, self._whole = page, consumes, whole

    def pick(self, S: M, time: int) -> M:
        """Memory whose finals stand for the page's matches, of the finals of the instant at `time`; it may be called
        several times for the page's instant, as partitions come. Raises LimitError."""
        page = self._page
        if time != page.at:
            return put_matches(S, _one(S) if self._consumes else [])
        if self._whole:
            return S
        found = frozen.FrozenMatches(S)
        before, self.count = self.count, self.count + found.count
        low, high = max(page.offset, before), min(page.offset + page.size, self.count)
        return put_matches(S, list(self._picked(found, range(low - before, high - before))))

    def _picked(self, found: frozen.FrozenMatches, wanted: range) -> Iterator[frozen.Places]:
        rows = 0
        for i in wanted:
            self._page.check()
            yield (places := found.at(i))
            rows += len(places)
            if rows > MOST_ROWS:
                raise LimitError(rows, MOST_ROWS, "events of a page's matches, of which a smaller limit has fewer")


def _one(S: M) -> list[frozen.Places]:
    """One of the matches below the finals; none if all are out of the window."""
    finals = S.finals[: S.scalars[k.FINALS]]
    live = finals[S.nodes["maxs"][finals[:, 0]] >= finals[:, 1], 0]
    if not len(live):
        return []
    found, n = [], int(live[0])
    while n >= 0:
        node = S.nodes[n]
        if node["leaf"] >= 0:  # the one of a heap that began last
            n = int(node["leaf"])
            continue
        found.append(int(node["pos"]))
        n = int(node["left"])
    return [np.array(found[::-1], np.int64)]
