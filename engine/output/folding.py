"""The matches that end at one instant → bundles of groups, without listing them (engine/plan/folding.py).

In the flow: finals of an instant → frozen set → **bundles by key** → groups (summaries.py).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray
from pyoxigraph import Literal, NamedNode

from oxiseq.engine.errors import LimitError
from oxiseq.engine.events.time import to_literal
from oxiseq.engine.expressions.totals import TOO_MANY
from oxiseq.engine.kernels.sequence.records import Memory
from oxiseq.engine.matches.events import MatchEvents, OfEvents, ReadEvents, bag_of
from oxiseq.engine.matches.frozen import FrozenMatches
from oxiseq.engine.output.entries import Bundle, Instant, InstantNumbers, Key, Weighed
from oxiseq.engine.plan.folding import Folding
from oxiseq.engine.terms.dictionary import TermDictionary

_ONE: Final = Literal("1", datatype=NamedNode("http://www.w3.org/2001/XMLSchema#integer"))
I64 = NDArray[np.int64]


class Folded(NamedTuple):
    """Of the matches that end at `time` those of one key."""

    time: int
    bundle: Bundle | Weighed


class MatchFolder:
    """Folds for one query."""

    def __init__(self, folding: Folding, terms: TermDictionary) -> None:
        self._folding, self._terms = folding, terms
        self._folded: list[Folded] = []

    def pick(self, S: Memory, time: int, read: ReadEvents) -> Memory:
        """The same set, of what ends at `time` (µs), if one of its matches is emitted, for CONSUME BY. Raises
        LimitError."""
        found = FrozenMatches(S)
        if found.exceeds(0):
            outputs = np.flatnonzero(found.pos >= 0)
            events = read(found.pos[outputs])
            self._folded += [Folded(time, bundle) for bundle in self._bundles(found, outputs, events, time)]
        return S

    def take(self) -> list[Folded]:
        """The folds since the last call."""
        folded, self._folded = self._folded, []
        return folded

    def _bundles(
        self, found: FrozenMatches, outputs: NDArray[np.intp], events: MatchEvents, time: int
    ) -> Iterator[Bundle]:
        for key, left_out in self._keys(events, time):
            if self._folding.keys:
                found.leave_out(outputs[left_out])
            try:
                count = found.count
            except LimitError:
                if any(self._folding.measures):
                    raise
                count = TOO_MANY
            if count:
                times = found.times(outputs) if any(self._folding.measures) else None
                yield Bundle(key, tuple(self._values(m, events, times, count) for m in self._folding.measures), count)

    def _keys(self, events: MatchEvents, time: int) -> Iterator[tuple[Key, NDArray[np.bool_]]]:
        """Each combination of keys that matches may have, with the outputs that are in none of those matches; in the
        order of the events that have the keys, which does not depend on ids."""
        by_event = np.argsort(events.of, kind="stable")
        found: list[tuple[Key, NDArray[np.bool_]]] = [((), np.zeros(len(events.of), np.bool_))]
        for key in self._folding.keys:
            if key is None:
                end = self._terms.intern(to_literal(time))
                found = [((*ids, end), out) for ids, out in found]
                continue
            gpm, variable = key
            mine, values = events.has(gpm)[events.of], events.ids(variable, events.of)
            found = [
                ((*ids, value), out | (mine & (values != value)))
                for ids, out in found
                for value in dict.fromkeys(values[by_event][(mine & ~out)[by_event]].tolist())
            ]
        return iter(found)

    def _values(
        self, measure: OfEvents | None, events: MatchEvents, times: NDArray[Any] | None, count: int
    ) -> list[tuple[int, int]]:
        """How often each value is there."""
        if measure is None or times is None:
            return [(0, count)]
        pairs = bag_of(events, measure, times, self._terms.intern(_ONE))
        if measure.single and (rest := count - sum(times for _, times in pairs)):
            pairs.append((0, rest))
        return pairs


def instants_of_folded(folded: Sequence[Folded], numbers: InstantNumbers | None) -> Iterator[Instant]:
    """In order of their ends; those of one end together. `numbers`: where clocks are not times."""
    by_time: dict[int, list[Bundle | Weighed]] = {}
    for time, bundle in folded:
        by_time.setdefault(time, []).append(bundle)
    for time in sorted(by_time):
        clock = time if numbers is None else int(numbers.of(np.array([time]))[0])
        yield Instant(time, clock, by_time[time])
