"""SPAseq queries that have rows, but none at which a match may end: they work on them later, when one comes.

    rows at which no match ends ─ the instants wait ─ **processed** when such a row comes, or somebody looks

A query falls asleep after a few instants that brought rows without effect. From then on its other rows are not even
made: it matches the waiting instants alone, as far as its window reaches back.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from typing import Final

import numpy as np
from numpy.typing import NDArray

from oxiseq.engine.order.clock import Instants
from oxiseq.engine.plan.query import QueryPlan
from oxiseq.engine.run.finder import Finder

IN_VAIN: Final = 16
"""Stretches of instants with such rows alone, after which a query falls asleep."""
MOST: Final = 1 << 14
"""Instants that a query may be behind; some more while others catch up."""


def ending(plan: QueryPlan) -> frozenset[str]:
    """The GPMs at whose events a match may end; empty where instants without those matter at once, too."""
    graph, requests = plan.runner.sequence.graph, [each for each in plan.runner.requests if each is not None]
    if plan.summary is not None or any(edge.waits for edge in graph.edges):
        return frozenset()
    if any(gpm.kb is not None or gpm.parts.in_place or gpm.asks_again for gpm in plan.runner.gpms.values()):
        return frozenset()
    if not all(each.all_native for each in requests):
        return frozenset()
    arms = (arm for edge in graph.edges for arm in edge.arms)
    return frozenset(name for arm in arms if graph.states[arm.target].final for name in arm.letter)


class Asleep:
    """The sleeping finders of one clock, and the instants that they have not processed."""

    def __init__(self) -> None:
        self._since: dict[Finder, int] = {}
        """The position of the first such instants; who has been looked at longest ago is first."""
        self._parts: list[Instants] = []
        self._base = 0
        self._kept = 0
        """Parts that waited when the last ones were freed."""
        self._in_vain: dict[Finder, int] = {}

    def __contains__(self, finder: object) -> bool:
        return finder in self._since

    def __iter__(self) -> Iterator[Finder]:
        return iter(tuple(self._since))

    def __len__(self) -> int:
        return len(self._since)

    def held_ids(self) -> Iterator[NDArray[np.uint32]]:
        """The terms of the instants that wait."""
        for part in self._parts:
            for batch in part.batches:
                yield from batch.ids

    def tires(self, finder: Finder) -> bool:
        """Whether a finder falls asleep that has again had rows without effect."""
        self._in_vain[finder] = count = self._in_vain.get(finder, 0) + 1
        if count < IN_VAIN:
            return False
        del self._in_vain[finder]
        self._since[finder] = self._base + len(self._parts)
        return True

    def rouse(self, finder: Finder) -> None:
        """It may have found something, or is no longer of this clock: it is awake."""
        self._in_vain.pop(finder, None)
        if self._since.pop(finder, None) is not None:
            self._trim()

    def add(self, part: Instants) -> None:
        """Instants that come next."""
        if self._since and len(part.time):
            self._parts.append(part)

    def overdue(self, instants: int) -> Iterator[Finder]:
        """Those too far behind; as many as it takes for each to catch up once while as many instants come as it may be
        behind. They do so one after the other (`missed`). Whose window has left most of what waits is spared that."""
        for _ in range(1 + len(self._since) * instants // MOST):
            finder = next(iter(self._since), None)
            if finder is None or self._behind(self._since[finder] - self._base) <= MOST:
                break
            at = self._reach(finder)
            if self._behind(at) > MOST:
                yield finder
                continue
            del self._since[finder]
            self._since[finder] = self._base + at
        self._trim()

    def _behind(self, at: int) -> int:
        """How many instants wait from part `at` on."""
        if at == len(self._parts):
            return 0
        newest = self._parts[-1]
        return newest.first + len(newest.time) - self._parts[at].first

    def _reach(self, finder: Finder) -> int:
        """The first part that a sleeping one has not processed and that its window still holds."""
        at, floor = self._since[finder] - self._base, self._floor(finder)
        return at if floor is None else bisect_left(self._parts, floor, at, key=lambda part: part.time[-1])

    def _floor(self, finder: Finder) -> int | None:
        """The first time that its window of time still holds; None: it holds all, or nothing waits."""
        window = finder.plan.window
        if window is None or window.events or not self._parts:
            return None
        floor: int = int(self._parts[-1].time[-1]) - window.size
        return floor

    def missed(self, finder: Finder) -> Instants | None:
        """The instants that a sleeping one has not processed, as far as its window reaches; they now count as
        processed."""
        parts, floor = self._parts[self._reach(finder) :], self._floor(finder)
        del self._since[finder]
        self._since[finder] = self._base + len(self._parts)
        self._trim()
        if floor is not None and parts:
            parts[0] = parts[0].slice(int(parts[0].time.searchsorted(floor)), len(parts[0].time))
        return Instants.concat(parts) if parts else None

    def _trim(self) -> None:
        """Instants that nobody needs any more are freed once there are twice as many as the last time."""
        if self._since and len(self._parts) < 2 * self._kept:
            return
        gone = min(self._since.values(), default=self._base + len(self._parts)) - self._base
        del self._parts[:gone]
        self._base += gone
        self._kept = len(self._parts)
