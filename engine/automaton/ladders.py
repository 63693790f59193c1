"""Ladders: queries whose edges stand once, since they differ in a threshold on the event that begins matches alone.

Of 1,000 rules `?price > 100`, `?price > 101`, ... each event that passes all of them would begin 1,000 runs. What
happens to a run does not depend on the threshold of its first event, so the runs of the query with the loosest one are
those of all: a match is a member's if its first event passes the member's own threshold and came after the member.

    plans → ladder → matches of the loosest query, by their first rows → **matches of each member**
"""

from __future__ import annotations

from dataclasses import field
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from oxiseq.engine.kernels.sequence.letter_rows import RowBlock
from oxiseq.engine.matching.tables import NativeGpm
from oxiseq.engine.patterns.plan import KernelGpm
from oxiseq.engine.plan.thresholds import Threshold
from oxiseq.engine.run.ranks import ValueRanks
from oxiseq.engine.terms.dictionary import TermDictionary
from oxiseq.grammar.records import dataclass

if TYPE_CHECKING:
    from oxiseq.engine.automaton.queries import JoinedQuery

I64 = NDArray[np.int64]


@dataclass(slots=True, eq=False)
class Rung:
    """A query on a ladder. `born`: the time of the last instant before it came; `letter`, `column`: of common rows, the
    letter that begins matches, and where its rows have the value that thresholds compare."""

    ladder: Ladder
    threshold: Threshold
    born: int
    letter: int = 0
    column: int = 0
    place: int = 0
    """Among the members, the loosest one first."""
    sought: tuple[KernelGpm, NativeGpm] = field(init=False)
    """How the match kernel finds rows that pass the threshold."""


@dataclass(slots=True, eq=False)
class Ladder:
    """Queries whose edges stand once. `members`: the loosest one first."""

    terms: TermDictionary
    members: list[JoinedQuery] = field(default_factory=list)
    rungs: list[Rung] = field(default_factory=list)
    """Of these."""
    _born: I64 = field(default_factory=lambda: np.zeros(0, np.int64))
    """By member."""
    _ranks: ValueRanks | None = None

    def settle(self) -> None:
        """Queries have come, or gone."""
        self.members.sort(key=lambda each: _rung(each).threshold.strictness)
        self.rungs = rungs = [_rung(each) for each in self.members]
        for place, rung in enumerate(rungs):
            rung.place = place
        how = [rung.threshold.strictness for rung in rungs]
        firsts = [n for n in range(len(how)) if n == 0 or how[n] != how[n - 1]]
        conditions = tuple(rungs[n].threshold.condition for n in firsts)
        self._ranks = ValueRanks(rungs[0].threshold.variable, conditions, (*firsts[1:], len(how)), self.terms)
        self._born = np.array([rung.born for rung in rungs], np.int64)

    def owners(self, first: RowBlock) -> tuple[I64, I64]:
        """Pairs of a match and a member whose match it is, in this order; of each match the `first` row."""
        ranks = self._passing(first)
        match = np.repeat(np.arange(len(ranks)), ranks)
        member = np.arange(len(match)) - np.repeat(np.cumsum(ranks) - ranks, ranks)
        after = first.time[match] > self._born[member]
        return match[after], member[after]

    def begins(self, member: JoinedQuery, rows: RowBlock) -> NDArray[np.bool_]:
        """Which rows may begin a match of a member, which may have left since the others were settled."""
        rung = _rung(member)
        begins: NDArray[np.bool_] = (self._passing(rows) > rung.place) & (rows.time > rung.born)
        return begins

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
