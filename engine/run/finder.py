"""The finder of a query's matches: rows of its letters, the running sequence on them, and the rows that matches may
hold.

    complete instants ─ graph patterns ─ rows of letters ─ sequence run ─ **matches**, and counts of them

Queries that differ only in what they emit for matches may have one finder: it processes each part of the instants
once, on the first call (sharing/shared.py).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from oxiseq.engine.bounds import MAPPINGS, InstantBounds
from oxiseq.engine.errors import MappingsError
from oxiseq.engine.extras import needed
from oxiseq.engine.kb import KnowledgeBase
from oxiseq.engine.kernels.matches.records import PLACE_BITS
from oxiseq.engine.kernels.sequence import letter_rows as lr
from oxiseq.engine.kernels.sequence.letter_rows import RowBlock
from oxiseq.engine.kernels.sequence.records import Memory
from oxiseq.engine.kernels.sequence.records import Rows as SequenceRows
from oxiseq.engine.matches.found import Found
from oxiseq.engine.matches.partitions import PartitionTable
from oxiseq.engine.matching.enrich import KbAnswer
from oxiseq.engine.omissions import InstantError, LeftOut, Streak
from oxiseq.engine.order.clock import Clock, Instants
from oxiseq.engine.order.watermarks import AFTER_ALL, BEFORE_ALL
from oxiseq.engine.output import choosing
from oxiseq.engine.output.deadlines import UNKNOWN, Deadlines, NumberedInstants
from oxiseq.engine.output.deferred import Decided, DeferredMatches
from oxiseq.engine.output.due import DueReports
from oxiseq.engine.output.rows import KnownRows, RowStore
from oxiseq.engine.patterns.matcher import Rows
from oxiseq.engine.plan.own_run import RunKind, why_own_run
from oxiseq.engine.plan.query import QueryPlan
from oxiseq.engine.plan.thresholds import ladder_of
from oxiseq.engine.run.letters import KbAnswers, LetterRows, Source
from oxiseq.engine.run.partitions import Partitions, Split
from oxiseq.engine.sequence.counts import Counts
from oxiseq.engine.sequence.memory import Capacities, rows_named
from oxiseq.engine.sequence.run import SequenceRun
from oxiseq.engine.sequence.states import PARTITION
from oxiseq.engine.terms.dictionary import TermDictionary
from oxiseq.engine.terms.saved import KnownTerms, SameTerms, SavedTerms, State, Stateful, maybe, part, unsaved, value
from oxiseq.engine.window import window_start
from oxiseq.grammar.records import dataclass

if TYPE_CHECKING:
    from oxiseq.engine.output import composing, folding, weighing
    from oxiseq.engine.sequence.composed import ComposedSequence
else:
    composing = needed("oxiseq.engine.output.composing")
    folding, weighing = needed("oxiseq.engine.output.folding"), needed("oxiseq.engine.output.weighing")


class CommonState(Protocol):
    """Where the state of a finder is that has joined others (engine/automaton)."""

    def come_home(self) -> None:
        """The finder has its state again."""

    def copied(self) -> Finder:
        """Another finder in the same state."""

    @property
    def records(self) -> int:
        """As of a finder."""

    @property
    def bytes(self) -> int:
        """Its share of the common memory."""

    @property
    def waits(self) -> bool:
        """Whether the clock alone may let it find something."""

    @property
    def deadline(self) -> int | None:
        """When the clock has passed this (µs), something may be found; None: only an event can complete a match."""

    def collect(self, clock: int, instants: int) -> None:
        """As of a finder."""

    def keep(self, clock: Clock) -> bool:
        """As of its answers."""


class Part(NamedTuple):
    """Instants to work on. `number`: of the first; `last`: nothing that follows has an instant."""

    instants: Instants
    number: int
    last: bool


@dataclass(slots=True, eq=False)  # frozen would make it four times as slow
class Findings:
    """The result of a part of the instants. `until`: the smallest clock that may still come, in the window's unit;
    `start`: the first clock of the first tumbling window; `omitted`: the instants that are left out."""

    found: Found | None
    counted: Counts | None
    folded: Sequence[folding.Folded]
    until: int
    start: int
    omitted: Sequence[InstantError] = ()
    drawn_from: Sequence[int] = ()
    """Of how many matches the samples of `found` were drawn, end by end, where a window's matches are sampled."""
    ends: Sequence[composing.GroupEnds] = ()
    """Of composed windows, what has ended."""
    times: dict[int, int] = field(default_factory=dict)
    """The ids of times of `ends` as terms, as far as a query has needed them."""
    decided: Sequence[Decided] = ()
    """The ends that are decided, where matches wait until all of their end are."""
    ended: int | None = None
    """If the streams have ended, the greatest time that one had come to."""


class Finder(Stateful):
    """The running state of a plan's search. `start`: the t of tumbling windows, None before the first instant;
    `users`: how many queries have it. Of several, all are notified of a part before its rows are forgotten."""

    made_of = (
        value("start", maybe),
        value("_kept_rows"),
        unsaved("sequence"),
        unsaved("rows"),
        part("deferred"),
        part("partitions"),
        part("_due"),
        unsaved("_weigher"),
    )

    def __init__(
        self, plan: QueryPlan, terms: TermDictionary, kb: KnowledgeBase, start: int | None, capacities: Capacities
    ) -> None:
        self.plan: Final = plan
        self._window = window = plan.window
        self.by_number: Final = window is not None and window.events
        """Whether windows count instants."""
        self.endless: Final = window is None or (window.events and plan.clauses.partitioned)
        """Whether time alone does not decide which rows are out of every window."""
        self.start = start
        self.users = 0
        self.away: CommonState | None = None
        """Where its state is, while it is not here."""
        self.answers = KbAnswers(plan, terms, kb)
        self.capacities = capacities
        self._terms, self.kb = terms, kb
        requests = [request for request in plan.runner.requests if request is not None]
        self.kind: Final = RunKind.of(plan)
        self.joins = why_own_run(plan) is None
        """Whether it may find its matches among those of others (engine/automaton)."""
        self.ladder = ladder_of(plan) if self.joins else None
        """What queries have in common with which it may be on a ladder (automaton/ladders.py)."""
        self.arranges = self.ladder is not None and not plan.runner.sequence.counted
        """Whether its matches come in an order that their rows fix: they may be among those of a ladder, whose runs lie
        in memory as others began them (automaton/ladders.py)."""
        self._alive: int | None = None
        """How many of its records live, if nothing has come since that was counted."""
        self._partly_native = not all(request.all_native for request in requests)
        self.asks_every_event = any(request.asks_every_event for request in requests)
        self._part: Part | None = None
        self._findings: Findings | Exception | None = None
        self._counts = plan.runner.sequence.counted
        self.begin()
        terms.register(self)

    @cached_property
    def _letters(self) -> LetterRows:
        """The rows of its letters; a query that joins others has none of its own."""
        plan, window = self.plan, self._window
        letters = LetterRows(plan, self._terms, self.answers.exists)
        if window is not None and self.partitions is None:
            letters.settings[lr.BY_NUMBER] = window.events
            # else a window's last instant and a bound that passes would come in an order that batches decide
            passes = any(edge.passes for edge in plan.runner.sequence.graph.edges)
            letters.settings[lr.EVERY] = window.events and passes
        elif self._deadlines is not None and self.by_number:  # an instant without rows may be a window's last one
            letters.settings[lr.EVERY] = True
        return letters

    def begin(self) -> None:
        """Nothing has been seen."""
        plan, exists = self.plan, self.answers.exists
        self.rows = RowStore(len(plan.runner.stored))
        self.choice = choosing.EndChoice(plan, self._terms, self.capacities.nodes // 4)
        self._weigher: weighing.MatchWeigher | None = None
        folded = plan.runner.folding
        if folded is not None and folded.weighed:
            self._weigher = weighing.MatchWeigher(plan, folded, self.rows, self._terms)
        ask = None if exists is None else exists.ask
        sequence, terms = plan.runner.sequence, self._terms
        self._composer: composing.MatchComposer | None = None
        self.sequence: SequenceRun | ComposedSequence
        if plan.runner.composing is None:
            self.sequence = SequenceRun(sequence, terms, self.capacities, ask, self.choice, self._weigher)
        else:
            self._composer = composing.MatchComposer(plan, plan.runner.composing, self.rows, terms, self.capacities)
            self.sequence = self._composer.sequence
        self._deadlines = _deadlines(plan)
        self.deferred = None if self._deadlines is None else _deferred(plan, self._deadlines, terms.bounds)
        """The matches that wait until all of their end are decided, of a query that waits for them."""
        self.partitions: Partitions | None = None
        if plan.clauses.partitioned:
            self.partitions = Partitions(plan, self.sequence, self.capacities.groups, self._terms)
        self._kept_rows = 0
        self.placed = 0
        """How many partitions of the next part's first instant have been worked through, where it was with others."""
        self.unmatched, self._undecided = Streak(terms.bounds), Streak(terms.bounds)
        """Of instants with an event that has too many mappings: running are those with no other event matched in
        between; and of those at which time decides too many matches, or lets too many reports become due."""

    def is_idle(self) -> bool:
        """Whether nothing that it has seen may become part of a match; what is dead goes first."""
        assert isinstance(self.sequence, SequenceRun)
        self.sequence.clean()
        return not self.sequence.records

    def reserve(self) -> None:
        """Have the memory that the first row needs."""
        self.sequence.reserve()

    def another(self, plan: QueryPlan) -> Finder:
        """One that has not seen anything."""
        return Finder(plan, self._terms, self.kb, self.start, self.capacities)

    def copy(self) -> Finder:
        """Another one in the same state; not where the knowledge base is queried."""
        other = self.another(self.plan)
        other.restore_with(self.save_for(SavedTerms(self._terms), self.plan), [], SameTerms(self._terms))
        return other

    def give_away(self) -> tuple[Memory | None, RowStore]:
        """The memory of its run, if it has some, and its rows; it has seen nothing from now on, but for the beginning
        of windows."""
        assert isinstance(self.sequence, SequenceRun)
        self.forget_due()
        memory, rows = self.sequence.give_away(), self.rows
        self.rows = RowStore(rows.width)
        if self.partitions is not None:
            self.partitions = Partitions(self.plan, self.sequence, self.capacities.groups, self._terms)
        return memory, rows

    def take_back(
        self,
        memory: Memory,
        rows: RowStore,
        other: Finder,
        ids: NDArray[np.int64],
        partitions: PartitionTable | None,
    ) -> None:
        """Continue with memory of its run and with rows, and with partitions numbered alike, for one that has not seen
        anything; with the matches held of `other`, which may be itself, where these rows have these `ids`."""
        assert isinstance(self.sequence, SequenceRun)
        self.sequence.take_back(memory)
        self.rows = rows
        self._undecided.running = other._undecided.running
        if self.deferred is not None and other.deferred is not None:
            if other is not self:
                terms = self._terms
                self.deferred.restore(other.deferred.save(SavedTerms(terms)), SameTerms(terms))
            self.deferred.renumber(ids, 0)
        if self.partitions is not None and partitions is not None:
            self.partitions.table.restore(partitions.save(SavedTerms(self._terms)), SameTerms(self._terms))
            self.partitions.table.forget_unused()

    @property
    def _due(self) -> DueReports | None:
        return None if self._composer is None else self._composer.due

    # --- saved and restored -------------------------------------------------------------------------

    def save_for(self, terms: SavedTerms, plan: QueryPlan) -> State:
        """Its state between batches, with the stored columns of `plan`, of a query whose finder it is."""
        sequence = self.sequence.save(terms)
        if self.endless:
            self._forget_unnamed()
        columns = [self.plan.runner.stored.index(variable) for variable in plan.runner.stored]
        rows = self.rows.save(columns, _are_terms(plan), terms)
        running = {"unmatched": self.unmatched.running, "undecided": self._undecided.running}
        return {**self.save(terms), **running, "sequence": sequence, "rows": rows}

    def restore_with(self, state: State, epochs: list[dict[str, KbAnswer]], terms: KnownTerms) -> None:
        """Continue from a saved state, of this plan; for one that has not seen any event. `epochs`: the KB's
        answers."""
        self.restore(state, terms)
        self.unmatched.running = int(state.get("unmatched", 0))
        self._undecided.running = int(state.get("undecided", 0))
        self.sequence.restore(state["sequence"], terms)
        self.rows.restore(state["rows"], epochs, _are_terms(self.plan), terms)

    # --- instants → matches -------------------------------------------------------------------------

    def rows_of(
        self, instants: Instants, found: Sequence[list[Rows]] | None = None
    ) -> tuple[list[list[Rows]], dict[int, MappingsError]]:
        """Per stream the rows of each request, and the instants, by number, with an event on which a GPM is beyond a
        limit: it has no rows. `found`: rows matched elsewhere, as far as the kernel matches."""
        if found is not None and not self._partly_native:
            return list(found), {}
        every, beyond = list[list[Rows]](), dict[int, MappingsError]()
        for number, (matcher, batch) in enumerate(zip(self.answers.matchers, instants.batches, strict=True)):
            if matcher is None:
                every.append([])
                continue
            rows, errors = matcher.rows_within(batch, None if found is None else found[number])
            every.append(rows)
            beyond |= {int(instants.where[number][event]): error for event, error in errors.items()}
        return every, beyond

    def _note_unmatched(
        self, instants: Instants, every: Sequence[Sequence[Rows]], beyond: Mapping[int, MappingsError]
    ) -> None:
        """Instants that are left out since an event there is beyond a limit; those with rows are answered."""
        with_rows = {
            number
            for where, requests in zip(instants.where, every, strict=True)
            for rows in requests
            for number in where[rows.event[rows.low : rows.high]].tolist()
        }
        clocks = instants.clocks
        left_out = {int(clocks[number]): (MAPPINGS, error) for number, error in beyond.items()}
        self.unmatched.note([int(clocks[number]) for number in with_rows], left_out)

    def native(self, instants: Instants) -> list[list[Rows]] | None:
        """Per stream the rows of each request, as far as the kernel matches; None: there are none."""
        found: list[list[Rows]] = []
        nothing = True
        for matcher, batch in zip(self.answers.matchers, instants.batches, strict=True):
            rows = [] if matcher is None else matcher.native(batch)
            nothing = nothing and (matcher is None or rows is matcher.nothing)
            found.append(rows)
        return None if nothing else found

    @property
    def nothing(self) -> list[list[Rows]]:
        """Rows that are none, for `find`."""
        return [[] if matcher is None else list(matcher.nothing) for matcher in self.answers.matchers]

    def find(self, part: Part, found: Sequence[list[Rows]] | None, answers: dict[str, KbAnswer] | None) -> Findings:
        """The result of a part; the same for every caller. `found`: as for `rows_of`; `answers` of
        the KB: None where they are still to be queried. Raises its error to every caller, too."""
        if self._part is None or self._part.instants is not part.instants:
            self.forget_due()
            self._part = part
            try:
                self._findings = self._work(part, found, answers)
            except Exception as error:
                self._findings = error
                raise
        elif isinstance(self._findings, Exception):
            raise self._findings
        assert isinstance(self._findings, Findings)
        return self._findings

    @property
    def found_nothing(self) -> bool:
        """Whether its last result is nothing to queries that only wait for matches."""
        findings = self._findings
        if not isinstance(findings, Findings) or findings.counted is not None or findings.omitted:
            return False
        if findings.folded or findings.ends or findings.decided or self.deferred is not None:
            return False
        return not findings.found

    def _work(self, part: Part, found: Sequence[list[Rows]] | None, answers: dict[str, KbAnswer] | None) -> Findings:
        self._alive = None
        if answers is None:
            answers, _ = self.answers.at(part.instants, 0)
        rows, beyond = self.rows_of(part.instants, found)
        exists = self.answers.exists
        if exists is not None:
            exists.begin(part.instants.batches)
        try:
            findings = self._find(part, rows, answers, beyond)
        finally:
            if exists is not None:
                exists.end()
        if self.unmatched.omitted or self._undecided.omitted:
            omitted = [*self.unmatched.take(), *self._undecided.take()]
            findings.omitted = sorted([*omitted, *findings.omitted], key=lambda error: error.instant)
        return findings

    def _find(
        self,
        part: Part,
        rows: Sequence[Sequence[Rows]],
        answers: dict[str, KbAnswer],
        beyond: dict[int, MappingsError],
    ) -> Findings:
        plan, instants, number, last = self.plan, part.instants, part.number, part.last
        clocks, count = instants.clocks, len(instants.time)
        if count and self.start is None:
            self.start = clocks.item(0)
        split: Split | None = None
        sources: list[Source] = []
        if count and self.partitions is None:
            sources = self._letters.sources(rows, instants.where, instants.time, answers)
        elif count and self.partitions is not None:
            split = self.partitions.split_rows(rows, instants.where, clocks)
            if split is not None:
                sources = self._letters.sources(rows, instants.where, instants.time, answers, split)
        beyond |= self._letters.take_beyond()
        if beyond or self.unmatched.running:
            self._note_unmatched(instants, rows, beyond)
        newest = clocks.item(-1) if count else None
        if newest is not None and instants.clock is not None:
            newest -= 1  # the next position may be at the same time
        until = self._until(newest, number + count, last, instants.passed)
        placed, self.placed = self.placed, 0
        ended = instants.reached if last and instants.passed >= AFTER_ALL else None
        found: Found | None = None
        decided: Sequence[Decided] = ()
        due = None if self._composer is None else self._composer.due
        if sources or self.waits or (due is not None and count):
            all_there = count > 0 if self.partitions is None else split is not None
            written = bool(sources) or (all_there and bool(self._letters.settings[lr.EVERY]))
            if written:
                self._write_rows(sources, instants, number, answers, split)
            if self._composer is not None:
                return self._composed(self._composer, part, until, written=written)
            assert isinstance(self.sequence, SequenceRun)
            passed = self._time_until(newest, last, instants.passed)
            if self._weigher is not None:
                self._weigher.origin = self.window_start
            buffer = self._letters.buffer if written else None
            if placed and buffer is not None and split is not None:
                placed = buffer.count_of(instants.time.item(0), split.partition[:placed])
            found = self.sequence.feed(buffer, until, self.rows, passed, self.window_start, placed)
            if self.arranges:
                found = found.arranged()
            seen = _NO_INSTANTS if self._deadlines is None else self._seen(part, written=written)
            if self.deferred is None:
                found = self.stamped(found, self.rows, seen, ended)
            else:
                found, decided = self.released(found, self.rows, self._letters.buffer.arrays, passed, seen, ended)
                until = until if plan.summary is None else min(until, self.horizon)
            if plan.ranking is not None and plan.ranking.page is not None:
                found = self._of_end(found, plan.ranking.page.at)
        if not isinstance(self.sequence, SequenceRun):
            return Findings(None, None, (), until, self.window_start)
        counted = self.sequence.take_counts() if self._counts else None
        omitted = self.sequence.take_omitted()
        folded = self.choice.take_folded() if self._weigher is None else self._weigher.take()
        if folded is not None:
            return Findings(None, counted, folded, until, self.window_start, omitted=omitted, ended=ended)
        drawn_from = self.choice.take_counts()
        return Findings(found, counted, (), until, self.window_start, omitted, drawn_from, decided=decided, ended=ended)

    def _composed(self, composer: composing.MatchComposer, part: Part, until: int, *, written: bool) -> Findings:
        """What ends in the rows, if some have been `written`, and what reports tell; no later match needs them."""
        buffer, due, start = self._letters.buffer if written else None, composer.due, self.window_start
        values = _no_values if self.partitions is None else self.partitions.table.values
        composer.sequence.origin = start
        if due is None:
            ends = [] if buffer is None else composer.feed(buffer, values)
        else:
            times, number = part.instants.time, part.number
            due.see(times, np.arange(number, number + len(times)) if self.by_number else times, start)
            if part.last and part.instants.passed >= AFTER_ALL:
                due.end(part.instants.reached)
            ends = composer.report(buffer, values, due.due(until, until, start, over=True), start)
            self._undecided.note([time for each in ends for time in each.time.tolist()], due.take_left_out())
        self.rows.forget(BEFORE_ALL, self.rows.end)
        return Findings(None, None, (), until, start, ends=ends)

    def _of_end(self, found: Found, at: int) -> Found:
        """Those that end at a time (µs)."""
        last = self.rows.take(found.rows[found.ends[1:] - 1] >> PLACE_BITS)
        return found.take(np.flatnonzero(last.time == at))

    @property
    def paged(self) -> int:
        """How many matches end at the instant of which a page is found on the compact set."""
        return 0 if self.choice.picker is None else self.choice.picker.paged

    def _write_rows(
        self,
        sources: list[Source],
        instants: Instants,
        number: int,
        answers: dict[str, KbAnswer],
        split: Split | None,
    ) -> None:
        """The letters' rows, into the buffer and the row store."""
        times, settings = instants.time, self._letters.settings
        settings[lr.FIRST_NUMBER] = number
        if self.answers.reads_kb:
            settings[lr.EPOCH] = self.rows.epoch(answers)
        columns: tuple[NDArray[np.int64], ...] = ()
        if split is not None:
            columns = split.clock, split.instant, split.number, split.partition
        elif instants.clock is not None and not self.by_number:  # windows of time where instants are positions
            columns = (instants.clock,)
        self._letters.write(sources, times, self.rows, columns)

    # --- when matches with trailing negations are decided --------------------------------------------

    def stamped(
        self, found: Found, rows: KnownRows, seen: NumberedInstants | None = None, ended: int | None = None
    ) -> Found:
        """The matches, which name these rows, with the times at which they are decided, in that order, then in that of
        their ends; as they are where each is decided with its last event. `seen`: the instants of the part, where
        windows count them; `ended`: the greatest time of streams that have ended."""
        if self._deadlines is None or not len(found) or found.at is not None:
            return found
        last = rows.take(found.rows[found.ends[1:] - 1] >> PLACE_BITS)
        starts = rows.clocks(found.rows[found.ends[:-1]] >> PLACE_BITS)
        partitions = self._partition_of(last)
        at = self._deadlines.of(last.time, starts, partitions, self.window_start, seen or _NO_INSTANTS)
        at = np.where(self._waits(found), at, last.time)
        if ended is not None:
            at = np.where(at == UNKNOWN, self._deadlines.at_end(last.time, ended), at)
        return replace(found, at=at).take(np.lexsort((last.time, at)))

    def released(
        self,
        found: Found,
        rows: KnownRows,
        buffer: SequenceRows,
        passed: int,
        seen: NumberedInstants | None = None,
        ended: int | None = None,
    ) -> tuple[Found, list[Decided]]:
        """The matches of the ends that are decided, and these, where they wait until all of their end are. `found`:
        what the run has found in the instants in `buffer`, naming `rows`; `passed`: the smallest time that may still
        come; `seen`, `ended`: as of `stamped`. Where sequences that begin to wait are listed, they come with the
        matches of their instant: in an even wave."""
        deferred, sieve = self.deferred, self.choice.sieve
        assert deferred is not None
        reached = found.marks[:, 0] < 0
        if reached.any():
            at, latest = -1 - found.marks[reached, 0], found.rows[found.ends[:-1][reached]]
            own = np.zeros(len(at), np.int64) if self.partitions is None else buffer.partition[at] + 1
            deferred.reach(buffer.time[at], own, buffer.clock[at], latest)
            found = _NOTHING if reached.all() else found.take(np.flatnonzero(~reached))
        left_out: LeftOut = {}
        if sieve is not None and len(found):
            begins = self._waits(found) & (found.marks[:, 0] & 1 == 0)
            deferred.reach_all(sieve.keep(found.take(np.flatnonzero(begins)), rows), rows)
            found = sieve.keep(found.take(np.flatnonzero(~begins)), rows)
            left_out = sieve.take_left_out()
        if len(found):
            deferred.hold(found, rows, self._terms.bounds.matches)
        found, decided = deferred.release(passed, self.window_start, seen or _NO_INSTANTS, ended)
        assert found.at is not None
        self._undecided.note(found.at.tolist(), {**deferred.take_left_out(), **left_out})
        return found, decided

    def decides_before(self, passed: int) -> bool:
        """Whether ends are decided of which matches wait, where `passed` is the smallest time (µs) that may come."""
        deadline = None if self.deferred is None else self.deferred.deadline
        return deadline is not None and deadline < passed

    def moments(self, found: Found, rows: KnownRows) -> NDArray[np.int64]:
        """When (µs) a run whose matches wait has found them: at their end, or, if they waited for time, when that had
        come; in any order."""
        found = found.take(np.flatnonzero(found.marks[:, 0] >= 0))
        late, ends = found.marks[:, 0] & 1 == 1, rows.take(found.rows[found.ends[1:] - 1] >> PLACE_BITS).time
        at = self.stamped(found.take(np.flatnonzero(late)), rows).at
        return ends if at is None else np.concatenate([ends[~late], at])

    def take_undecided(self) -> list[InstantError]:
        """The ends that were left out when they were decided, since the last call."""
        return self._undecided.take()

    @property
    def decides_late(self) -> bool:
        """Whether time may decide matches, behind their last event."""
        return self._deadlines is not None

    def _waits(self, found: Found) -> NDArray[np.bool_]:
        """Which matches end in a negation, by the place of their last event."""
        runner = self.plan.runner
        guarded = {ending.source for ending in runner.automaton.endings if ending.guards}
        places = np.array([position in guarded for position, _ in runner.sequence.places], np.bool_)
        last: NDArray[np.bool_] = places[found.rows[found.ends[1:] - 1] & ((1 << PLACE_BITS) - 1)]
        return last

    def _partition_of(self, block: RowBlock) -> NDArray[np.int64]:
        """The partition of each row, counted from 1; 0 where nothing asks."""
        if not self.by_number or self.partitions is None:
            return np.zeros(len(block.time), np.int64)
        column: NDArray[np.int64] = block.stored[:, self.plan.runner.stored.index(PARTITION)].astype(np.int64)
        return column

    def _seen(self, part: Part, *, written: bool) -> NumberedInstants:
        """The instants of the part, where windows count them; `written`: those of partitions are in the buffer."""
        if not self.by_number:
            return _NO_INSTANTS
        if self.partitions is None:
            times = part.instants.time
            return NumberedInstants(np.arange(part.number, part.number + len(times)), times)
        k, arrays = self._letters.buffer.instants if written else 0, self._letters.buffer.arrays
        return NumberedInstants(arrays.instant[:k], arrays.time[:k], arrays.partition[:k] + 1)

    # --- time ---------------------------------------------------------------------------------------

    @property
    def waits(self) -> bool:
        """Whether the clock alone may let it find something."""
        if self.away is not None:
            return self.away.waits
        due = None if self._composer is None else self._composer.due
        held = self.deferred is not None and self.deferred.waits
        return self.sequence.waits or held or (due is not None and due.waits)

    @property
    def deadlines(self) -> list[int]:
        """When the clock has passed one of these (µs), something may be found."""
        if self.away is not None:
            return [] if self.away.deadline is None else [self.away.deadline]
        held = None if self.deferred is None else self.deferred.deadline
        due = None if self._composer is None or self.by_number else self._composer.due
        report = None if due is None else due.deadline(self.window_start)
        return [each for each in (self.sequence.deadline, held, report) if each is not None]

    @property
    def horizon(self) -> int:
        """The clock of the first end of which not all is decided; a large number if there is none."""
        return UNKNOWN if self.deferred is None else self.deferred.horizon

    @property
    def window_start(self) -> int:
        """The first clock of the first tumbling window."""
        return 0 if self.by_number else self.start or 0

    def _until(self, time: int | None, number: int, last: bool, passed: int) -> int:
        """The smallest clock that may still come, in the window's unit, after the instant at `time`; the next
        instant has this number."""
        if passed >= AFTER_ALL and last:
            return AFTER_ALL
        if self.by_number and self.partitions is not None:
            return BEFORE_ALL  # windows close when the partition continues
        if self.by_number:
            return number
        return self._time_until(time, last, passed)

    def _time_until(self, time: int | None, last: bool, passed: int) -> int:
        """The smallest time (µs) that may still come, after the instant at `time`."""
        return passed if last or time is None else time + 1

    # --- release ------------------------------------------------------------------------------------

    @property
    def records(self) -> int:
        """How many records its state has; some may be dead by now (`collect`)."""
        partitions = 0 if self.partitions is None else self.partitions.table.live
        held = 0 if self.deferred is None else self.deferred.held
        alive = self.sequence.records + self.rows.held if self._alive is None else self._alive
        return alive + partitions + held

    def collect(self, clock: int = BEFORE_ALL, instants: int = 0) -> None:
        """Frees what is dead, behind so many instants, before the next of which this clock has passed, so that
        `records` counts what lives: where others could find its matches, too (plan/own_run.py), nothing of that may
        count what they have met."""
        if not isinstance(self.sequence, SequenceRun):
            self.sequence.collect()
        elif self.joins:
            self.sequence.pass_to(clock, instants)
            if self.partitions is not None:
                self.sequence.pass_in(self.partitions.table.count)
            self.sequence.clean()
            if self.partitions is not None:
                self.partitions.table.forget_unused()
            self._alive = self.sequence.alive + len(rows_in_use(self.sequence.memory_there, self.deferred))
        else:
            self.sequence.clean()
        if self.endless:
            self._forget_unnamed()

    def _forget_unnamed(self) -> None:
        """Drop rows before all that a node refers to, or a match held; nodes have been collected."""
        oldest = self.sequence.oldest_row
        if self.deferred is not None:
            oldest = min(oldest, self.deferred.oldest_row)
        self.rows.forget(BEFORE_ALL, oldest)
        self._kept_rows = self.rows.held

    def forget_due(self) -> None:
        """Frees what the last part has made obsolete; all of its matches have been emitted."""
        part = self._part
        if part is None:
            return
        count = len(part.instants.time)
        if count and self.rows.held:
            self.forget(part.instants.clocks.item(-1), part.number + count - 1)
        self._part = self._findings = None

    def forget(self, time: int, number: int) -> None:
        """Drop rows that are out of every window, now that the instant of this time and number is over."""
        if (window := self._window) is None or self.endless:
            if self.rows.held > 4 * max(self._kept_rows, 1024):
                self.sequence.collect()
                self._forget_unnamed()
        else:
            clock = number if window.events else time
            floor: int = window_start(clock, window.size, window.sliding, self.window_start)
            if self.deferred is not None and window.sliding:
                floor -= window.size  # a match is held for a window's length after its end
            self.rows.forget(floor, 0)


def rows_in_use(memory: Memory | None, deferred: DeferredMatches | None) -> NDArray[np.int64]:
    """The ids of the rows that a collected memory's nodes name, or matches held, each once."""
    named = np.zeros(0, np.int64) if memory is None else rows_named(memory)
    return named if deferred is None else np.union1d(named, deferred.rows_named)


def _no_values(numbers: NDArray[np.int64], column: int) -> NDArray[np.uint32]:
    """Of partitions where there are none."""
    raise AssertionError("without PARTITION BY rows have the values")


def of_all(finder: Finder, plan: QueryPlan) -> QueryPlan:
    """The plan of a query whose matches a finder finds: its own answer, made of the finder's rows."""
    return replace(
        finder.plan,
        query=plan.query,
        summary=plan.summary,
        runner=replace(
            finder.plan.runner,
            answer=plan.runner.answer,
            limit=plan.runner.limit,
            written=plan.runner.written,
            listed=plan.runner.listed,
            folding=plan.runner.folding,
        ),
    )


def _are_terms(plan: QueryPlan) -> NDArray[np.bool_]:
    """Which of the stored columns hold terms."""
    return np.array([v != PARTITION for v in plan.runner.stored], np.bool_)


_NOTHING = Found.of(())
_NO_INSTANTS = NumberedInstants(np.zeros(0, np.int64), np.zeros(0, np.int64))


def _deadlines(plan: QueryPlan) -> Deadlines | None:
    """When its matches are decided; None: each with its last event."""
    graph = plan.runner.sequence.graph
    waits = any(edge.waits for edge in graph.edges)
    return Deadlines(plan.window, graph.longest_wait, graph.longest_bound) if waits else None


def _deferred(plan: QueryPlan, deadlines: Deadlines, bounds: InstantBounds) -> DeferredMatches | None:
    if not plan.runner.deferred:
        return None
    strategy = None if plan.query.selection is None else plan.query.selection.strategy
    column = plan.runner.stored.index(PARTITION) if plan.clauses.partitioned else None
    groups = plan.summary is not None
    in_order = plan.summary is not None and not plan.summary.instantly
    return DeferredMatches(strategy, deadlines, column, together=groups, in_order=in_order, bounds=bounds)
