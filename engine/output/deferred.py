"""Matches of one end that are not all found at once: trailing negations decide some earlier than others.

In the flow: run → **matches put together by end** → answers. For SELECT NEXT, LAST, MAX, LIMIT, ORDER BY and
aggregates, which need all matches of an end. They are decided together, at the latest deadline of the sequences that
end there, those since refuted included (semantics.md 2.6a). They are held, one by one, until then, so this costs memory
and time for each match that the strategy drops.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import field
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from oxiseq.engine.bounds import BOUNDS, CHOICES, MATCHES, InstantBound, InstantBounds
from oxiseq.engine.errors import LimitError
from oxiseq.engine.kernels.matches.records import PLACE_BITS
from oxiseq.engine.kernels.memory.growing import flat
from oxiseq.engine.matches.found import Found
from oxiseq.engine.omissions import LeftOut
from oxiseq.engine.output.deadlines import UNKNOWN, Deadlines, NumberedInstants
from oxiseq.engine.output.rows import KnownRows
from oxiseq.engine.terms.saved import KnownTerms, SavedTerms, State, Stateful
from oxiseq.grammar.algebra import Strategy
from oxiseq.grammar.records import dataclass

DEAR: Final = 60
"""Comparisons of positions that take as long as that of two matches that wait."""
_NO_ROW: Final = 1 << 62
NOTHING_WAITS: Final = -(1 << 61)
"""Instead of the latest start, where no sequence of an end waits for time: `SEQ(A; (B; N!)?)` has such ends."""
I64 = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class _Held:
    """A match: its row ids with places, and when its events happened."""

    rows: I64
    times: frozenset[int]


@dataclass(slots=True)
class _End:
    """The sequences of one end (of one partition), and the matches that have come of them. `clock` of the end, in the
    window's unit; `latest`: the clock at which the last of them starts; `due`: their latest deadline, as far as it is
    known; `closes`: whether their window's last instant is known."""

    clock: int
    latest: int
    due: int = UNKNOWN
    closes: bool = False
    matches: list[_Held] = field(default_factory=list)
    given: int = 0
    """How many matches have come; if that is too many, none is held."""


class Decided(NamedTuple):
    """An end whose sequences are decided, at `at` (µs), matches or not; `time` of the end."""

    time: int
    at: int


class DeferredMatches(Stateful):
    """Holds matches until all of their end are decided, then lets the strategy choose.

    `partition`: the column of stored values that names the partition, None if there are none. `together`: whether the
    ends of all partitions at a time are decided together; `in_order`: whether each waits for those before it.
    """

    def __init__(
        self,
        strategy: Strategy | None,
        deadlines: Deadlines,
        partition: int | None,
        *,
        together: bool = False,
        in_order: bool = False,
        bounds: InstantBounds = BOUNDS,
    ) -> None:
        self._bounds = bounds
        self._strategy, self._deadlines = strategy, deadlines
        self._partition, self._together, self._in_order = partition, together, in_order
        self._ends: dict[tuple[int, int], _End] = {}
        self._left_out: dict[int, tuple[InstantBound, int | LimitError]] = {}
        """When ends were decided that are left out; none between batches."""
        self._count = 0
        self._first: int | None = None
        """The first deadline, as far as that is known since the last release."""

    @property
    def waits(self) -> bool:
        """Whether something is undecided."""
        return bool(self._ends)

    @property
    def held(self) -> int:
        """How many matches."""
        return self._count

    @property
    def rows_named(self) -> I64:
        """The ids of the rows that matches held refer to, each once."""
        rows = (match.rows for end in self._ends.values() for match in end.matches)
        named: I64 = np.unique(flat([*rows], np.int64) >> PLACE_BITS)
        return named

    @property
    def oldest_row(self) -> int:
        """The smallest row id that a match held refers to; a large number if there is none."""
        return int(self.rows_named.min(initial=_NO_ROW))

    def renumber(self, ids: I64, first: int) -> None:
        """The rows of these ids have other ones from now on, which count from `first`."""
        for end in self._ends.values():
            end.matches = [_Held(renumbered(match.rows, ids, first), match.times) for match in end.matches]

    @property
    def horizon(self) -> int:
        """The clock of the first end that is undecided; a large number if there is none."""
        return min([end.clock for end in self._ends.values()], default=UNKNOWN)

    def save(self, _terms: SavedTerms) -> State:
        """The matches held, in their order; they hold no terms."""
        held = [match for end in self._ends.values() for match in end.matches]
        times = [sorted(match.times) for match in held]
        ends = [(*key, e.clock, e.latest, e.due, e.closes, len(e.matches)) for key, e in self._ends.items()]
        return {
            "undecided": np.array(ends, np.int64),
            "given": np.array([end.given for end in self._ends.values()], np.int64),
            "rows": flat([match.rows for match in held], np.int64),
            "row_counts": _lengths([match.rows for match in held]),
            "times": flat(times, np.int64),
            "time_counts": _lengths(times),
        }

    def restore(self, state: State, _terms: KnownTerms) -> None:
        """Continue with saved matches."""
        rows = np.split(state["rows"].copy(), np.cumsum(state["row_counts"]))
        times = np.split(state["times"], np.cumsum(state["time_counts"]))
        held = [_Held(own, frozenset(when.tolist())) for own, when in zip(rows, times, strict=True)][:-1]
        at = 0
        undecided = state["undecided"].reshape(-1, 7)
        every = state["given"] if "given" in state else undecided[:, 6]  # earlier versions held all
        for (time, partition, clock, latest, due, closes, count), given in zip(
            undecided.tolist(), every.tolist(), strict=True
        ):
            self._ends[time, partition] = _End(clock, latest, due, bool(closes), held[at : at + count], given)
            at += count
        self._count, self._first = at, None

    # --- what comes ---------------------------------------------------------------------------------

    def reach(self, times: I64, partitions: I64, clocks: I64, latest: I64) -> None:
        """Sequences end at these times (in these partitions, at these clocks), the last of which begin at the clocks
        `latest`."""
        ends = zip(times.tolist(), partitions.tolist(), clocks.tolist(), latest.tolist(), strict=True)
        for time, partition, clock, start in ends:
            end = self._ends.setdefault((time, partition), _End(clock, start))
            end.latest = max(end.latest, start)

    def reach_all(self, found: Found, rows: KnownRows) -> None:
        """As `reach`, of sequences one by one."""
        if len(found):
            last, first = rows.take(found.rows[found.ends[1:] - 1] >> PLACE_BITS), found.rows[found.ends[:-1]]
            partition = np.zeros(len(found), np.int64)
            if self._partition is not None:
                partition = last.stored[:, self._partition].astype(np.int64)
            self.reach(last.time, partition, last.clock, rows.clocks(first >> PLACE_BITS))

    def hold(self, found: Found, rows: KnownRows, most: int) -> None:
        """Take a run's matches; of an end that has more than `most` none is held."""
        block = rows.take(found.rows >> PLACE_BITS)
        for low, high in zip(found.ends[:-1].tolist(), found.ends[1:].tolist(), strict=True):
            last = high - 1
            partition = 0 if self._partition is None else int(block.stored[last, self._partition])
            key = int(block.time[last]), partition
            end = self._ends.setdefault(key, _End(int(block.clock[last]), NOTHING_WAITS))
            end.given += 1
            if end.given <= most:
                end.matches.append(_Held(found.rows[low:high], frozenset(block.time[low:high].tolist())))
                self._count += 1
            elif end.matches:
                self._count -= len(end.matches)
                end.matches = []

    # --- what is decided ----------------------------------------------------------------------------

    def release(
        self, passed: int, start: int, instants: NumberedInstants, ended: int | None
    ) -> tuple[Found, list[Decided]]:
        """The matches that the strategy keeps, for the decided ends, in the order in which that was known, then by end
        (or by end alone); and these ends.

        `passed`: the smallest time that may still come; `start`: the first clock of the first tumbling window;
        `instants`: those that have come since the last call. `ended`: the greatest time of streams that have ended:
        what only instants could decide is decided there.
        """
        self._look(start, instants)
        self._first = None
        every = [(end.due, key) for key, end in self._ends.items()]
        if ended is not None:
            ends = np.array([time for _, (time, _) in every], np.int64)
            last = self._deadlines.at_end(ends, ended).tolist()
            every = [(at if due == UNKNOWN else due, key) for at, (due, key) in zip(last, every, strict=True)]
        if self._together:
            latest: dict[int, int] = {}
            for due, (time, _) in every:
                latest[time] = max(due, latest.get(time, due))
            every = [(latest[key[0]], key) for _, key in every]
        known = [each for each in every if each[0] < passed]
        if self._in_order:
            first = min([key[0] for due, key in every if due >= passed], default=UNKNOWN)
            known = [each for each in known if each[1][0] < first]
        known.sort(key=lambda each: each[1][0] if self._in_order else (each[0], each[1][0]))
        kept: list[_Held] = []
        at: list[int] = []
        for due, key in known:
            end = self._ends.pop(key)
            matches = end.matches
            self._count -= len(matches)
            if end.given and not matches:
                self._left_out[due] = MATCHES, end.given
            try:
                chosen = self._chosen(matches)
            except LimitError as error:
                self._left_out[due], chosen = (CHOICES, error), []
            kept += chosen
            at += [due] * len(chosen)
        found = Found.of([held.rows for held in kept], np.array(at, np.int64))
        return found, [Decided(key[0], due) for due, key in known]

    def _chosen(self, matches: list[_Held]) -> list[_Held]:
        """Those of an end that the strategy keeps. Raises LimitError."""
        if self._strategy is None or not matches:
            return matches
        if self._strategy is Strategy.MAX:
            return _maximal(matches, self._bounds.choices // DEAR)
        return _best(matches, min if self._strategy is Strategy.NEXT else max)

    def take_left_out(self) -> LeftOut:
        """When ends were decided, since the last call, that had too many matches."""
        left_out, self._left_out = self._left_out, {}
        return left_out

    def _look(self, start: int, instants: NumberedInstants) -> None:
        """Learn deadlines."""
        window = self._deadlines.window
        fresh = [(key, end) for key, end in self._ends.items() if not end.closes]
        if not fresh:
            return
        times, partitions = np.array([key for key, _ in fresh], np.int64).T
        starts = np.array([end.latest for _, end in fresh], np.int64)
        waits = starts > NOTHING_WAITS
        due = np.where(waits, self._deadlines.of(times, starts, partitions, start, instants), times)
        if window is None or not window.events:
            known = np.ones(len(due), np.bool_)
        else:
            known = ~waits | (instants.times(self._deadlines.last_clocks(starts, start), partitions) < UNKNOWN)
        for (_, end), time, closes in zip(fresh, due.tolist(), known.tolist(), strict=True):
            end.due, end.closes = time, closes

    @property
    def deadline(self) -> int | None:
        """When the clock has passed this, an end is decided; None if none is held, or only an instant can tell."""
        if self._first is None:
            self._first = min([end.due for end in self._ends.values()], default=UNKNOWN)
        return None if self._first == UNKNOWN else self._first


def renumbered(places: I64, ids: I64, first: int) -> I64:
    """Row ids with places where the rows of these ids, ascending, have the ids from `first` on."""
    numbers: I64 = first + np.searchsorted(ids, places >> PLACE_BITS)
    return (numbers << PLACE_BITS) | (places & ((1 << PLACE_BITS) - 1))


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


def _maximal(matches: list[_Held], most: int) -> list[_Held]:
    """Those that no other contains; so many pairs are compared at most. Raises LimitError."""
    known = sorted({held.times for held in matches}, key=len, reverse=True)
    kept: list[frozenset[int]] = []
    compared = 0
    for times in known:
        compared += len(kept)
        if compared > most:
            raise LimitError(compared, most, "comparisons for SELECT MAX at one instant")
        if not any(times < other for other in kept):
            kept.append(times)
    chosen = set(kept)
    return [held for held in matches if held.times in chosen]
