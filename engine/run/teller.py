"""The output of a query for the matches found: its columns, or rows of groups, and its memory of emitted rows.

In the flow: finder → **answers**. Queries with the same output for the same matches may have one teller.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from oxiseq.engine.extras import needed
from oxiseq.engine.matches.found import Found
from oxiseq.engine.matching.enrich import KbAnswer
from oxiseq.engine.omissions import InstantError, LeftOut, Streak
from oxiseq.engine.output.batch import MatchBatch
from oxiseq.engine.output.counted import CountedEntries
from oxiseq.engine.output.entries import InstantNumbers, instants_of
from oxiseq.engine.output.folding import instants_of_folded
from oxiseq.engine.output.rows import RowStore
from oxiseq.engine.output.summaries import Summaries
from oxiseq.engine.output.window_ranks import WindowRanks
from oxiseq.engine.output.write import AnswerWriter
from oxiseq.engine.plan.query import QueryPlan
from oxiseq.engine.run.finder import Findings, Part
from oxiseq.engine.sequence.counts import Counts
from oxiseq.engine.terms.dictionary import AnyIds, TermDictionary
from oxiseq.engine.terms.saved import KnownTerms, SameTerms, SavedTerms, State, Stateful, part
from oxiseq.engine.window import end_of

if TYPE_CHECKING:
    from oxiseq.engine.output import composing, counted_rows
else:
    composing = needed("oxiseq.engine.output.composing")
    counted_rows = needed("oxiseq.engine.output.counted_rows")


class Told(NamedTuple):
    """What has been found, and the instants that are left out."""

    batches: Sequence[MatchBatch]
    omitted: Sequence[InstantError]


class Teller(Stateful):
    """The running state of a plan's output."""

    made_of = part("_summaries"), part("_numbers")

    def __init__(self, plan: QueryPlan, terms: TermDictionary) -> None:
        self.plan: Final = plan
        self._terms = terms
        self._writer = AnswerWriter(plan, terms)
        self._summaries = None if plan.summary is None else Summaries(plan.summary, terms)
        self._counted = self._counted_rows = self._composed = None
        sequence = plan.runner.sequence
        if plan.summary is not None and self._summaries is not None:
            arrangement = self._summaries.arrangement
            if sequence.counted:
                self._counted = CountedEntries(plan.summary, sequence, terms)
                by_number = plan.window is not None and plan.window.events
                if counted_rows.in_columns(plan.summary) and not by_number and plan.summary.suppression is None:
                    self._counted_rows = counted_rows.CountedRows(arrangement.wide, sequence.keys, terms)
            if plan.runner.composing is not None:
                self._composed = composing.ComposedRows(plan.summary, plan.runner.composing, arrangement, terms)
        window = plan.window
        self._ranks = self._writer.ranks
        self._numbers = InstantNumbers(2 * window.size) if window is not None and window.events else None
        self._streak = Streak(terms.bounds)
        self._told: tuple[Findings, Told | Exception] | None = None
        terms.register(self)

    def held_ids(self) -> Iterator[AnyIds]:
        """The terms of all that it may still look at (see `TermDictionary`)."""
        yield from self._writer.held_ids()
        yield from super().held_ids()

    def tell(self, part: Part, findings: Findings, rows: RowStore) -> Told:
        """The answers that a part of the instants gives, whose matches name these rows; the same for every caller.
        Raises its error to everyone, too."""
        if self._told is None or self._told[0] is not findings:
            try:
                batches = self._answers(part, findings, rows)
                if (left_out := self._left_out()) or self._streak.running:
                    self._streak.note([time for batch in batches for time in batch.at.tolist()], left_out)
                omitted = self._streak.take() if self._streak.omitted else []
                self._told = findings, Told(batches, omitted)
            except Exception as error:
                self._told = findings, error
        told = self._told[1]
        if isinstance(told, Exception):
            raise told
        return told

    def _left_out(self) -> LeftOut:
        """The instants of the part that it leaves out."""
        left_out: LeftOut = self._writer.take_left_out()
        if self._ranks is not None:
            left_out = {**left_out, **self._ranks.take_left_out()}
        if self._summaries is not None:
            left_out = {**left_out, **self._summaries.due.take_left_out()}
        return left_out

    @property
    def written(self) -> Hashable | None:
        """The same in tellers that only write, and write the same for the same matches, or counts; None: in no
        other."""
        if self._counted_rows is not None:
            return self._counted_rows.form
        return None if self._ranks is not None or self._summaries is not None else self._writer.written

    def write(self, found: Found, rows: RowStore) -> MatchBatch:
        """Of matches of several queries that are written as its own."""
        return self._writer.write_all(found, rows)

    def write_counts(self, found: Counts, bounds: Sequence[int]) -> Sequence[MatchBatch] | None:
        """Of several queries that are written as its own, the i-th from bound i up to the next; None where they are to
        be written one by one."""
        assert self._counted_rows is not None and self._summaries is not None
        batches, arrangement = self._counted_rows.rows(found, bounds), self._summaries.arrangement
        if batches is not None and not arrangement.is_order:
            batches = [arrangement.of(batch.time, batch.values) for batch in batches]
        for batch in batches or ():
            self._terms.hold(batch.values)
        return batches

    @property
    def paged(self) -> int:
        """Of how many listed matches a page was taken."""
        return self._writer.paged

    def forget_told(self) -> None:
        """All callers have their answers."""
        self._told = None

    def _answers(self, part: Part, findings: Findings, rows: RowStore) -> list[MatchBatch]:
        found = findings.found
        batches = []
        if found is not None and len(found):
            batches = self._writer.write(found, rows, findings.start, findings.drawn_from)
        if self._ranks is not None:
            return self._closed(self._ranks, part, findings)
        if self._summaries is not None:
            return self._summarised(self._summaries, batches, part, findings)
        return batches

    def _closed(self, ranks: WindowRanks, part: Part, findings: Findings) -> list[MatchBatch]:
        """What the windows that have closed report of their matches."""
        lasts, times, window = None, part.instants.time, self.plan.window
        ended: dict[int, int] = {}
        assert window is not None
        if self._numbers is not None:
            if len(times):
                self._numbers.see(times, part.number)
            closing = ranks.closing(findings.until, findings.start)
            lasts = {number: self._numbers.last(end_of(window, number, 0)) for number in closing}
            if findings.ended is not None:
                count = part.number + len(times)
                ended = {number: findings.ended for number in closing if end_of(window, number, 0) > count}
        batches = ranks.take(findings.until, findings.start, lasts, ended)
        for batch in batches:
            self._terms.hold(batch.values)
        return batches

    def _summarised(
        self, summaries: Summaries, batches: list[MatchBatch], part: Part, findings: Findings
    ) -> list[MatchBatch]:
        """The rows of groups that matches, the instants and the clock's progress give."""
        plan, times, number = self.plan, part.instants.time, part.number
        assert plan.summary is not None
        if self._numbers is not None and len(times):
            self._numbers.see(times, number)
        clocks = times if self._numbers is None else np.arange(number, number + len(times))
        sliding = plan.window is not None and plan.window.sliding
        if self._composed is not None:
            composed = self._composed.rows(findings.ends, findings.times)
            if composed is None:
                return []
            self._terms.hold(composed.values)
            return [composed]
        summaries.due.see(times, clocks, findings.start)
        counted = findings.counted
        if self._counted_rows is not None and counted is not None:
            told = self.write_counts(counted, [0, len(counted)])
            if told is not None:
                return [batch for batch in told if len(batch)]
        if self._counted is not None and counted is not None:
            found = self._counted.instants(counted, findings.start, self._numbers)
        elif plan.runner.folding is not None:
            found = instants_of_folded(findings.folded, self._numbers)
        else:
            found = instants_of(batches, len(plan.summary.keys), sliding, self._numbers)
        ended = None if findings.ended is None else (number + len(times), findings.ended)
        rows = summaries.take(found, findings.until, findings.start, findings.decided, ended)
        self._terms.hold(rows.values)
        return [rows] if len(rows) else []

    # --- time ---------------------------------------------------------------------------------------

    @property
    def tells_of_time(self) -> bool:
        """Whether it may ever need instants without matches."""
        return self._ranks is not None or self.watchful

    @property
    def watchful(self) -> bool:
        """Whether it needs instants without matches."""
        if self._ranks is not None:
            return self._ranks.waits or self._numbers is not None
        if self._summaries is None:
            return False
        composing = self.plan.runner.composing
        reports = composing is not None and composing.report is not None
        return self._numbers is not None or reports or self._summaries.due.counts_instants

    @property
    def waits(self) -> bool:
        """Whether the clock alone may let it emit something."""
        if self._ranks is not None:
            return self._ranks.waits
        return self._summaries is not None and self._summaries.due.waits

    def deadlines(self, start: int, horizon: int) -> Sequence[int]:
        """When the clock has passed one of these (µs), it has something to emit; `start`: the window's t; `horizon`:
        the first end (µs) of which not all is decided, for which reports wait."""
        if self._ranks is not None:
            close = self._ranks.deadline(start)
            return () if close is None else (close,)
        report = None if self._summaries is None else self._summaries.due.deadline(start)
        return () if report is None or report >= horizon else (report,)

    # --- its saved state ------------------------------------------------------------------------------

    @property
    def records(self) -> int:
        """How many rows, groups and matches it remembers."""
        return self._writer.remembered + (0 if self._summaries is None else self._summaries.records)

    def save_with(self, rows: RowStore, terms: SavedTerms) -> State:
        """Its state between batches, and the KB's answers for the rows held."""
        running = self._streak.running
        return {**self.save(terms), "left_out": running, "answers": self._writer.save(rows, terms)}

    def anew(self, plan: QueryPlan) -> Teller:
        """One that has not emitted anything, for a query that continues among the same instants."""
        other = Teller(plan, self._terms)
        if self._numbers is not None and other._numbers is not None:
            other._numbers.follow(self._numbers)
        return other

    def copy(self, rows: RowStore) -> Teller:
        """Another one in the same state; not where the knowledge base is queried."""
        other = Teller(self.plan, self._terms)
        other.restore_rows(self.save_with(rows, SavedTerms(self._terms)), SameTerms(self._terms))
        return other

    def restore_rows(self, state: State, terms: KnownTerms) -> list[dict[str, KbAnswer]]:
        """Continue from a saved state, with one that has not emitted anything; the KB's answers for rows, by epoch."""
        self._streak.running = int(state.get("left_out", 0))
        self.restore(state, terms)
        return self._writer.restore(state["answers"], terms)
