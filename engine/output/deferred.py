"""Matches of one end that are not all found at once: a trailing negation decides some when their window closes.

In the flow: run → **matches put together by end** → answers. For SELECT NEXT, LAST, MAX and LIMIT, which need all
matches of an end. They are held, one by one, until no other match can have their end, so this costs memory and time
for each match that the strategy drops.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import field
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from oxiseq.engine.errors import LimitError
from oxiseq.engine.kernels.matches.records import PLACE_BITS
from oxiseq.engine.kernels.memory.growing import flat
from oxiseq.engine.matches.found import Found
from oxiseq.engine.output.rows import RowStore
from oxiseq.engine.terms.saved import State
from oxiseq.engine.windows.window import closed_at
from oxiseq.grammar.algebra import Strategy, Window
from oxiseq.grammar.records import dataclass

MOST_HELD: Final = 1_000_000
"""Matches held at a time."""


_AT_LAST: Final = 1 << 62


class PartitionInstants(NamedTuple):
    """Instants of partitions, in order: whose, their number there, and a number that rises with the stream."""

    partition: NDArray[np.int64]
    number: NDArray[np.int64]
    moment: NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class _Held:
    """A match: its row ids with places, and when its events happened."""

    rows: NDArray[np.int64]
    times: frozenset[int]


@dataclass(slots=True)
class _End:
    """The matches of one end (of one partition); `clock` of the end, in the window's unit."""

    clock: int
    matches: list[_Held] = field(default_factory=list)


class DeferredMatches:
    """Holds matches until all of their end are decided, then lets the strategy choose.

    `partition`: the column of stored values that names the partition, None if there are none. `wait`: how long (µs)
    after its end a match may be undecided, None if only the window's end decides; one of `window` and `wait` is given.
    """

    def __init__(
        self, strategy: Strategy | None, window: Window | None, partition: int | None, wait: int | None
    ) -> None:
        self._strategy = strategy
        self._window = window
        self._wait = wait
        self._partition = partition
        self._ends: dict[tuple[int, int], _End] = {}
        self._count = 0

    @property
    def waits(self) -> bool:
        """Whether something is held."""
        return bool(self._ends)

    @property
    def held(self) -> int:
        """How many matches."""
        return self._count

    @property
    def oldest_row(self) -> int:
        """The smallest row id that a match held refers to; a large number if there is none."""
        held = (match.rows for end in self._ends.values() for match in end.matches)
        return min((int(rows.min()) >> PLACE_BITS for rows in held), default=_AT_LAST)

    def save(self) -> State:
        """The matches held, in their order; they hold no terms."""
        held = [match for end in self._ends.values() for match in end.matches]
        times = [sorted(match.times) for match in held]
        return {
            "ends": np.array([(*key, e.clock, len(e.matches)) for key, e in self._ends.items()], np.int64),
            "rows": flat([match.rows for match in held], np.int64),
            "row_counts": _lengths([match.rows for match in held]),
            "times": flat(times, np.int64),
            "time_counts": _lengths(times),
        }

    def restore(self, state: State) -> None:
        """Continue with saved matches."""
        rows = np.split(state["rows"].copy(), np.cumsum(state["row_counts"]))
        times = np.split(state["times"], np.cumsum(state["time_counts"]))
        held = [_Held(own, frozenset(when.tolist())) for own, when in zip(rows, times, strict=True)][:-1]
        at = 0
        for time, partition, clock, count in state["ends"].reshape(-1, 4).tolist():
            self._ends[time, partition] = _End(clock, held[at : at + count])
            at += count
        self._count = at

    def hold(self, found: Found, rows: RowStore) -> None:
        """Take a run's matches. Raises LimitError."""
        block = rows.take(found.rows >> PLACE_BITS)
        for low, high in zip(found.ends[:-1].tolist(), found.ends[1:].tolist(), strict=True):
            last = high - 1
            partition = 0 if self._partition is None else int(block.stored[last, self._partition])
            end = self._ends.setdefault((int(block.time[last]), partition), _End(int(block.clock[last])))
            end.matches.append(_Held(found.rows[low:high], frozenset(block.time[low:high].tolist())))
        self._count += len(found)
        if self._count > MOST_HELD:
            raise LimitError(self._count, MOST_HELD, "matches whose trailing negation or strategy is undecided")

    def release(self, until: int, start: int, seen: PartitionInstants | None = None) -> Found:
        """The matches that the strategy keeps, for the decided ends, in the order in which that was known, then by end.

        `until`: the smallest clock that may still come; `start`: the first one of the first tumbling window. `seen`:
        the instants of partitions that have come since the last call, where clocks are numbers of those.
        """
        known = [(self._decided(key, end.clock, until, start, seen), key) for key, end in self._ends.items()]
        decided = sorted([each for each in known if each[0] is not None], key=lambda each: (each[0], each[1][0]))
        kept: list[_Held] = []
        for _, key in decided:
            matches = self._ends.pop(key).matches
            self._count -= len(matches)
            kept += matches if self._strategy is None else _CHOICES[self._strategy](matches)
        return Found.of([held.rows for held in kept])

    def deadline(self, start: int) -> int | None:
        """When the clock has passed this, an end is decided; None if none is held. `start` as in `release`."""
        return min([self._known_at(end.clock, start) - 1 for end in self._ends.values()], default=None)

    def _known_at(self, end: int, start: int) -> int:
        """From which clock on all matches are known that end at `end`."""
        first = _AT_LAST if self._wait is None else end + self._wait + 1
        if self._window is not None:
            first = min(first, closed_at(self._window, end, start))
        return first

    def _decided(
        self, key: tuple[int, int], end: int, until: int, start: int, seen: PartitionInstants | None
    ) -> int | None:
        """When it was known that no more matches have this end; None: not yet."""
        first = self._known_at(end, start)
        if seen is not None:
            at = np.flatnonzero((seen.partition + 1 == key[1]) & (seen.number >= first))
            if len(at):
                return int(seen.moment[at[0]])
        return _AT_LAST if until >= first else None


def _lengths(lists: Sequence[Sequence[int] | NDArray[np.int64]]) -> NDArray[np.int64]:
    return np.array([len(each) for each in lists], np.int64)


def _best(matches: list[_Held], decisive: Callable[[frozenset[int]], int]) -> list[_Held]:
    """The decisive one of the positions in which two differ belongs to the winner."""
    best = matches[0].times
    for held in matches:
        different = held.times ^ best
        if different and decisive(different) in held.times:
            best = held.times
    return [held for held in matches if held.times == best]


def _maximal(matches: list[_Held]) -> list[_Held]:
    known = sorted({held.times for held in matches}, key=len, reverse=True)
    kept: list[frozenset[int]] = []
    for times in known:
        if not any(times < other for other in kept):
            kept.append(times)
    chosen = set(kept)
    return [held for held in matches if held.times in chosen]


_CHOICES: Final[dict[Strategy, Callable[[list[_Held]], list[_Held]]]] = {
    Strategy.NEXT: lambda matches: _best(matches, min),
    Strategy.LAST: lambda matches: _best(matches, max),
    Strategy.MAX: _maximal,
}
