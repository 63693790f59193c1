"""The queries of an automaton, and what they have found there.

In the flow: one run for all → **matches of each query, shape by shape** → its own answers.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray
from pyoxigraph import Variable

from oxiseq.engine.automaton.ladders import Rung
from oxiseq.engine.automaton.letters import MemberLetters
from oxiseq.engine.automaton.memory import (
    TableSpan,
)
from oxiseq.engine.kernels.matches.records import (
    PLACE_BITS,
)
from oxiseq.engine.kernels.sequence.letter_rows import RowBlock
from oxiseq.engine.kernels.sequence.records import NEVER_CLOSES
from oxiseq.engine.matches.found import Found
from oxiseq.engine.matching.enrich import KbAnswer
from oxiseq.engine.omissions import InstantError, Streak
from oxiseq.engine.order.clock import Clock
from oxiseq.engine.output.deadlines import NumberedInstants
from oxiseq.engine.output.deferred import Decided
from oxiseq.engine.output.rows import RowStore
from oxiseq.engine.run.finder import Finder, Findings
from oxiseq.engine.sequence.counts import Counts
from oxiseq.grammar.records import dataclass

if TYPE_CHECKING:
    from oxiseq.engine.automaton.automaton import SharedAutomaton


@dataclass(slots=True, eq=False)
class AnswerShape:
    """Queries whose matches are written by one writer at once. `places`: of their stored variables in common rows;
    `written`: what is equal in their writers, None for those that write by themselves; `arranges`: matches of an
    instant come in the order that their rows fix; `enriched`: what matches are joined with, the KB's
    answers of these names here, by GPM, as variables of the queries."""

    places: NDArray[np.int32]
    written: Hashable | None
    arranges: bool
    enriched: tuple[tuple[str, tuple[str, ...], tuple[Variable, ...]], ...]


@dataclass(slots=True, eq=False)
class JoinedQuery:
    """A query, or several that are equal, in an automaton. `span`: its part of the tables."""

    automaton: SharedAutomaton
    finder: Finder
    span: TableSpan
    letters: MemberLetters
    shape: AnswerShape
    streak: Streak
    rung: Rung | None = None
    """Where it stands on a ladder, whose span it has."""
    exact: int | None = None
    """How many records it has, if somebody has asked since the last step."""
    kept: int | None = None
    """Up to which instant it has been told that the KB of before holds."""
    place: int = 0
    """Among all, in the order of shapes."""

    @property
    def places(self) -> NDArray[np.int32]:
        """i32[own letter, stored variable]: its columns in common rows."""
        return self.shape.places

    # --- common rows as the query alone has them (`KnownRows`), for its choice ----------------------

    @property
    def times(self) -> tuple[NDArray[np.int64], int]:
        return self.automaton.rows.times

    def take(self, ids: NDArray[np.int64]) -> RowBlock:
        return self.automaton.own_rows(self, ids)

    def clocks(self, ids: NDArray[np.int64]) -> NDArray[np.int64]:
        return self.automaton.rows.clocks(ids) - self.span.clocks

    def answers(self, epoch: int) -> dict[str, KbAnswer]:
        return self.automaton.answers_of(self.shape, epoch)

    # --- where its state is (`CommonState`) ---------------------------------------------------------

    def come_home(self) -> None:
        """Has its part in a run of its own from now on."""
        self.automaton.release(self)

    def copied(self) -> Finder:
        """Another finder in the same state."""
        return self.automaton.copy_of(self)

    @property
    def records(self) -> int:
        """How many records are its; some may be dead by now, unless `collect` has been called since the last step."""
        return self.automaton.records_of(self)

    @property
    def bytes(self) -> int:
        """Its share of all memory."""
        return self.automaton.bytes // max(len(self.automaton.members), 1)

    @property
    def waits(self) -> bool:
        """Whether the clock alone may complete a match of it."""
        deferred = self.finder.deferred
        return bool(self.automaton.due[0][self.span.query]) or (deferred is not None and deferred.waits)

    @property
    def deadline(self) -> int | None:
        """When time alone may complete a match of it (µs), if it can."""
        held = None if self.finder.deferred is None else self.finder.deferred.deadline
        deadline = min(self.automaton.due[1].item(self.span.query), NEVER_CLOSES if held is None else held)
        return None if deadline == NEVER_CLOSES else deadline

    def collect(self, clock: int, instants: int) -> None:
        """Frees what is dead, of all."""
        self.automaton.collect(clock + self.span.clocks, instants + self.span.shift)
        self.automaton.count(self)

    def keep(self, clock: Clock) -> bool:
        """The KB is about to change; whether something is kept for it that was not."""
        if not self.letters.parts:
            return False
        kb = self.automaton.matching.kb
        kb.keep(clock.unfinished)
        before, self.kept = self.kept, kb.kept_until
        return self.kept is not None and self.kept != before


class ShapeFound(NamedTuple):
    """What queries of one shape have found in some instants: of member i the matches `bounds[i] : bounds[i + 1]`, which
    name these rows. `omitted`: the instants that are left out; `seen`: those that there were, if windows count them."""

    shape: AnswerShape
    members: list[JoinedQuery]
    bounds: list[int]
    found: Found
    rows: RowStore
    omitted: dict[JoinedQuery, list[InstantError]]
    seen: NumberedInstants | None
    until: int
    """The smallest clock that may still come."""
    counted: Counts | None = None
    """Where matches are counted: of member i those `bounds[i] : bounds[i + 1]`; nothing is `found` then."""
    ends: Sequence[Decided] = ()
    """Those that are decided, of a query that waits for all of an end."""

    def decided(self, number: int) -> NDArray[np.int64]:
        """When the matches of a member are decided (µs)."""
        found = self._of(number)
        return self.rows.block.time[found.rows[found.ends[1:] - 1] >> PLACE_BITS] if found.at is None else found.at

    def findings(self, number: int) -> Findings:
        """What a member has found, by its number."""
        member = self.members[number]
        omitted, choice = self.omitted.get(member, ()), member.finder.choice
        until, start = self.until - member.span.clocks, member.finder.window_start
        if member.finder.deferred is not None and member.finder.plan.summary is not None:
            until = min(until, member.finder.horizon)
        if self.counted is not None:
            mine = self.counted.take(slice(*self.bounds[number : number + 2]))
            return Findings(Found.of(()), mine, (), until, start, omitted)
        found, folded = self._of(number), choice.take_folded()
        if folded is not None:
            return Findings(None, None, folded, until, start, omitted)
        counts = choice.take_counts()
        return Findings(found, None, (), until, start, omitted, counts, decided=self.ends)

    def _of(self, number: int) -> Found:
        member, seen = self.members[number], self.seen
        if seen is not None:
            seen = seen._replace(number=seen.number - member.span.clocks)
        return member.finder.stamped(self.found.take(np.arange(*self.bounds[number : number + 2])), self.rows, seen)
