"""Ladders: queries whose edges stand once, since they differ in a threshold on the event that begins matches alone, or,
where matches are counted apart by their starts, in the length of their windows.

Of 1,000 rules `?price > 100`, `?price > 101`, ... each event that passes all of them would begin 1,000 runs. What
happens to a run does not depend on the threshold of its first event, so the runs of the query with the loosest one are
those of all: a match is a member's if its first event passes the member's own threshold and came after the member. So
it is with the longest of sliding windows: a match is a member's if it has lasted no longer than the member's own.

    plans → ladder → matches of the loosest query, by their first rows → **matches of each member**
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field
from decimal import Decimal
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from oxiseq.engine.kernels.sequence.letter_rows import RowBlock
from oxiseq.engine.matching.tables import NativeGpm
from oxiseq.engine.patterns.plan import KernelGpm
from oxiseq.engine.plan.thresholds import Threshold, ValueRanks
from oxiseq.engine.sequence.counts import Counts
from oxiseq.engine.sequence.states import RUN_START, Value, ValueKind
from oxiseq.engine.terms.dictionary import TermDictionary
from oxiseq.grammar.records import dataclass

if TYPE_CHECKING:
    from oxiseq.engine.automaton.queries import JoinedQuery

I64 = NDArray[np.int64]


@dataclass(slots=True, eq=False)
class Rung:
    """A query on a ladder. `born`: the time of the last instant before it came; `size`: of its window (µs); `letter`,
    `column`: of common rows, the letter that begins matches, and where its rows have the value that thresholds
    compare."""

    ladder: Ladder
    threshold: Threshold | None
    born: int
    size: int
    letter: int = 0
    column: int = 0
    place: int = 0
    """Among the members, the loosest one first."""
    sought: tuple[KernelGpm, NativeGpm] = field(init=False)
    """How the match kernel finds rows that pass the threshold."""

    @property
    def strictness(self) -> tuple[Decimal, int]:
        """The looser one has less."""
        return Decimal(0) if self.threshold is None else self.threshold.strictness, -self.size


@dataclass(slots=True, eq=False)
class Ladder:
    """Queries whose edges stand once. `members`: the loosest one first; `keys`: of each edge."""

    terms: TermDictionary
    keys: Sequence[Sequence[Value]]
    members: list[JoinedQuery] = field(default_factory=list)
    rungs: list[Rung] = field(default_factory=list)
    """Of these."""
    _born: I64 = field(default_factory=lambda: np.zeros(0, np.int64))
    """By member."""
    _sizes: I64 = field(default_factory=lambda: np.zeros(0, np.int64))
    _ranks: ValueRanks | None = None

    def settle(self) -> None:
        """Queries have come, or gone."""
        self.members.sort(key=lambda each: _rung(each).strictness)
        self.rungs = rungs = [_rung(each) for each in self.members]
        for place, rung in enumerate(rungs):
            rung.place = place
        self._born = np.array([rung.born for rung in rungs], np.int64)
        self._sizes = np.array([rung.size for rung in rungs], np.int64)
        asked = [rung.threshold for rung in rungs if rung.threshold is not None]
        if asked:
            self._ranks = ValueRanks.of_thresholds(asked, self.terms)

    @property
    def longest(self) -> int:
        """The size of the members' longest window."""
        return max([rung.size for rung in map(_rung, self.members)])

    def owners(self, first: RowBlock) -> tuple[I64, I64]:
        """Pairs of a match and a member whose match it is, in this order; of each match the `first` row."""
        return self._pairs(self._passing(first), first.time)

    def owners_of(self, counts: Counts) -> tuple[I64, I64]:
        """The same of what has been counted at edges of a query."""
        start = self._held(counts.edge, counts.key, RUN_START)
        if self._ranks is None:
            ranks = np.searchsorted(-self._sizes, start - counts.bucket, "right")
        else:
            ranks = self._ranks.of(self._begun_with(counts.edge, counts.key)).astype(np.int64)
        match, member = self._pairs(ranks, start)
        fits = (counts.bucket - start)[match] <= self._sizes[member]
        return match[fits], member[fits]

    def _pairs(self, ranks: I64, begun: I64) -> tuple[I64, I64]:
        """Pairs of what has `begun` at a time and a member, of so many from the loosest on."""
        match = np.repeat(np.arange(len(ranks)), ranks)
        member = np.arange(len(match)) - np.repeat(np.cumsum(ranks) - ranks, ranks)
        after = begun[match] > self._born[member]
        return match[after], member[after]

    def begins(self, member: JoinedQuery, rows: RowBlock) -> NDArray[np.bool_]:
        """Which rows may begin a match of a member, which may have left since the others were settled."""
        rung = _rung(member)
        begins: NDArray[np.bool_] = (self._passing(rows) > rung.place) & (rows.time > rung.born)
        return begins

    def has(self, member: JoinedQuery, edges: I64, keys: I64) -> NDArray[np.bool_]:
        """Which runs with these keys, at edges of a query, may become counted matches of a member."""
        rung = _rung(member)
        has: NDArray[np.bool_] = self._held(edges, keys, RUN_START) > rung.born
        if self._ranks is not None:
            has &= self._ranks.of(self._begun_with(edges, keys)) > rung.place
        return has

    def _begun_with(self, edges: I64, keys: I64) -> I64:
        """The values that thresholds compare, of runs with these keys."""
        threshold = self.rungs[0].threshold
        assert threshold is not None
        return self._held(edges, keys, Value(ValueKind.BOUND, 0, threshold.variable))

    def _held(self, edges: I64, keys: I64, value: Value) -> I64:
        """What runs with these keys remember; those that begin matches remember nothing."""
        places = np.array([key.index(value) if value in key else 0 for key in self.keys], np.int64)
        held: I64 = keys[np.arange(len(keys)), places[edges]]
        return held

    def _passing(self, rows: RowBlock) -> NDArray[np.int64]:
        """How many members, from the loosest on, have thresholds that the values of rows pass."""
        assert self._ranks is not None
        rung, ranks = self.rungs[0], np.zeros(len(rows.letter), np.int64)
        own = np.flatnonzero(rows.letter == rung.letter)
        ranks[own] = self._ranks.of(rows.stored[own, rung.column])
        return ranks


def _rung(member: JoinedQuery) -> Rung:
    assert member.rung is not None
    return member.rung
