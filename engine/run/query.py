"""One query over its streams: events in, matches out. All its state is here.

    push ─ clock ─ complete instants ─ graph patterns ─ rows of letters ─ sequence run ─ answers

Nothing here does I/O; the KB is reached through the `KnowledgeBase` protocol.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from oxiseq.engine.events.batch import EventBatch
from oxiseq.engine.kb import KnowledgeBase
from oxiseq.engine.kernels.sequence import letter_rows as lr
from oxiseq.engine.matching.enrich import KbAnswer
from oxiseq.engine.output.batch import MatchBatch
from oxiseq.engine.output.counted import CountedEntries
from oxiseq.engine.output.deferred import DeferredMatches, PartitionInstants
from oxiseq.engine.output.entries import InstantNumbers, instants_of
from oxiseq.engine.output.picking import MatchPicker
from oxiseq.engine.output.rows import RowStore
from oxiseq.engine.output.summaries import Summaries
from oxiseq.engine.output.write import AnswerWriter
from oxiseq.engine.patterns.matcher import Rows
from oxiseq.engine.plan.query import QueryPlan
from oxiseq.engine.run.answers import KbAnswers
from oxiseq.engine.run.clock import Clock, Instants
from oxiseq.engine.run.letters import LetterRows, Source
from oxiseq.engine.run.partitions import Partitions, Split
from oxiseq.engine.run.resets import Resets
from oxiseq.engine.run.watermarks import AFTER_ALL, BEFORE_ALL
from oxiseq.engine.sequence.memory import Capacities
from oxiseq.engine.sequence.run import SequenceRun
from oxiseq.engine.sequence.states import PARTITION
from oxiseq.engine.terms.dictionary import AnyIds, TermDictionary
from oxiseq.engine.terms.saved import KnownTerms, SavedTerms, State
from oxiseq.grammar.algebra import OnClose

CHUNK = 16_384
"""Instants worked through at a time, so that memory does not grow with a batch."""


class QueryRun:
    """The running state of a query.

    `start` is the t of tumbling windows (default: the first event's time), `lateness` in microseconds.
    `clock` may be shared with other queries that read the same streams. Counters: `events` taken, `instants`
    completed, `late` refused, `matches` found.
    """

    def __init__(
        self, plan: QueryPlan, terms: TermDictionary, kb: KnowledgeBase,
        start: int | None = None, lateness: int = 0, capacities: Capacities | None = None,
    ) -> None:
        self.plan = plan
        self.matches = 0
        self.resets = Resets()
        self.clock = Clock(len(plan.streams), lateness, start)
        self._joined = _Counters(0, 0, 0)
        self._terms = terms
        self._start = start
        self._answers = KbAnswers(plan, terms, kb)
        self._terms_stored = np.array([v != PARTITION for v in plan.stored], np.bool_)
        self._letters = LetterRows(plan, terms, self._answers.exists)
        self._capacities = capacities or Capacities()
        self._begin()
        terms.register(self)
        requests = [request for request in plan.requests if request is not None]
        self._partly_native = not all(request.all_native for request in requests)
        self._asks_every_event = any(request.asks_every_event for request in requests)
        window = plan.window
        if window is not None and self._partitions is None:
            settings = self._letters.settings
            settings[lr.BY_NUMBER], settings[lr.SLIDING], settings[lr.WINDOW_SIZE] = (
                window.events, window.sliding, window.size
            )  # fmt: skip

    def _begin(self) -> None:
        """Nothing has been seen."""
        plan = self.plan
        exists = self._answers.exists
        self._rows = RowStore(len(plan.stored))
        picker = None
        if plan.ranking is not None and plan.sequence.clauses.picks:
            picker = MatchPicker(plan, plan.ranking, self._rows, self._terms)
        self._sequence = SequenceRun(
            plan.sequence, self._terms, self._capacities, None if exists is None else exists.ask, picker
        )
        self._writer = AnswerWriter(plan, self._terms)
        self._deferred = _deferred(plan)
        self._partitions: Partitions | None = None
        if plan.query.partition is not None:
            self._partitions = Partitions(plan, self._sequence, self._capacities.groups)
        self._summaries = None if plan.summary is None else Summaries(plan.summary, self._terms)
        self._counted = None
        if plan.summary is not None and plan.sequence.counted:
            self._counted = CountedEntries(plan.summary, plan.sequence, self._terms)
        self._numbers = InstantNumbers(2 * plan.window.size) if self._by_number and plan.window is not None else None
        self._kept_rows = 0

    def held_ids(self) -> Iterator[AnyIds]:
        """The terms of all that it may still look at (see `TermDictionary`)."""
        yield from self.clock.held_ids()
        yield from self._rows.held_ids()
        yield from self._sequence.held_ids()
        yield from self._writer.held_ids()
        if self._summaries is not None:
            yield from self._summaries.held_ids()
        if self._partitions is not None:
            yield from self._partitions.held_ids()

    # --- a query by itself --------------------------------------------------------------------------

    def push(self, stream: str, batch: EventBatch) -> EventBatch:
        """Take events of a stream in order of arrival; returns the late ones. Call `advance` for matches."""
        return self.clock.push(self.plan.streams.index(stream), batch)

    def punctuate(self, stream: str, time: int) -> None:
        """No event of `stream` before `time` (µs) will come."""
        self.clock.advance(self.plan.streams.index(stream), time)

    def settle(self) -> None:
        """Take every instant seen so far as complete: what comes for it from now on is late."""
        self.clock.settle()

    def close(self) -> None:
        """The streams have ended; trailing negations are decided."""
        self.clock.close()

    def advance(self) -> list[MatchBatch]:
        """Work through all instants that are complete by now; the matches found, in order."""
        found = self.work(self.clock.take())
        while self.clock.ready:
            found += self.work(self.clock.take())
        return found

    # --- what it tells ------------------------------------------------------------------------------

    @property
    def events(self) -> int:
        """How many events it has received."""
        return self.clock.events - self._joined.events

    @property
    def window_start(self) -> int | None:
        """The t of tumbling windows (µs); None before the first event where none was given."""
        return self._start

    @property
    def late(self) -> int:
        """How many of them were late."""
        return self.clock.late - self._joined.late

    @property
    def instants(self) -> int:
        """How many instants are complete."""
        return self.clock.instants - self._joined.instants

    @property
    def state(self) -> dict[str, int]:
        """Numbers of live records."""
        if self.instants:
            self._forget(self.clock.completed, self.instants - 1)
        partitions = {} if self._partitions is None else {"partitions": self._partitions.table.live}
        return {**self._sequence.live, "rows": self._rows.held, **partitions}

    @property
    def waiting(self) -> tuple[int, ...]:
        """Of each edge of the automaton, how many groups of partial matches wait there; some may be dead by now."""
        return self._sequence.waiting

    @property
    def records(self) -> int:
        """How many records its state has; some may be dead by now (`collect`)."""
        partitions = 0 if self._partitions is None else self._partitions.table.live
        held = 0 if self._deferred is None else self._deferred.held
        held += 0 if self._summaries is None else self._summaries.records
        return self._sequence.records + self._rows.held + partitions + held + self._writer.remembered

    @property
    def bytes(self) -> int:
        """How large its arrays are. They do not become smaller, but by `forget`."""
        partitions = 0 if self._partitions is None else self._partitions.table.bytes
        return self._sequence.bytes + self._rows.bytes + partitions

    def collect(self) -> None:
        """Free what is dead now, so that `records` tells what lives."""
        if self.instants:
            self._forget(self.clock.completed, self.instants - 1)
        self._sequence.collect()
        if self._endless:
            self._forget_unnamed()

    def forget(self, at: int) -> None:
        """Between batches: give up all partial matches, matches held and what DISTINCT remembers; `at` is now (µs
        since 1970).

        It goes on as if it had been registered now, and sees the events that wait for their instant. Counters, the
        beginning of tumbling windows and the KB's answers stay; windows of n EVENTS in partitions begin anew.
        """
        self.resets = self.resets.another(at, self.clock.completed, self.records)
        self._begin()

    @property
    def lateness(self) -> int:
        """How much a stream may be out of order, in microseconds."""
        return self.clock.lateness

    @property
    def open(self) -> bool:
        """Whether events wait for their instant to be complete."""
        return self.clock.open

    # --- saved and restored -------------------------------------------------------------------------

    def save(self, terms: SavedTerms) -> State:
        """Its state between batches, but for the clock, which it may share: that is named before.

        Of the KB only what has been answered for instants up to now is saved: for rows that matches may still be made
        of, and for instants that were not complete when the KB changed. What holds from now on is asked again
        (semantics.md 2.2).
        """
        if self.instants:
            self._forget(self.clock.completed, self.instants - 1)
        sequence = self._sequence.save(terms)
        if self._endless:
            self._forget_unnamed()
        return {
            "matches": self.matches, "resets": self.resets.save(), "start": self._start,
            "joined": list(self._joined), "kept_rows": self._kept_rows,
            "sequence": sequence, "rows": self._rows.save(self._terms_stored, terms),
            "answers": self._writer.save(self._rows, terms), "kept": self._answers.save(terms),
            "deferred": None if self._deferred is None else self._deferred.save(),
            "partitions": None if self._partitions is None else self._partitions.table.save(terms),
            "summaries": None if self._summaries is None else self._summaries.save(terms),
            "numbers": None if self._numbers is None else self._numbers.save(),
        }  # fmt: skip

    def restore(self, state: State, clock: Clock, terms: KnownTerms) -> None:
        """Go on from a saved state, with a clock in the state of then; for a run that has not seen any event."""
        start = state["start"]
        self.matches, self._start = int(state["matches"]), None if start is None else int(start)
        self.resets = Resets.restored(state["resets"])
        self._kept_rows = int(state["kept_rows"])
        self.clock, self._joined = clock, _Counters(*map(int, state["joined"]))
        self._sequence.restore(state["sequence"], terms)
        epochs = self._writer.restore(state["answers"], terms)
        self._rows.restore(state["rows"], epochs, self._terms_stored, terms)
        if self._deferred is not None:
            self._deferred.restore(state["deferred"])
        if self._partitions is not None:
            self._partitions.table.restore(state["partitions"], terms)
        if self._summaries is not None:
            self._summaries.restore(state["summaries"], terms)
        if self._numbers is not None:
            self._numbers.restore(state["numbers"])
        self._answers.restore(state["kept"], terms)

    # --- instants → matches -------------------------------------------------------------------------

    def work(self, instants: Instants) -> list[MatchBatch]:
        """Work through complete instants, in the order of the clock; the matches found."""
        found: list[MatchBatch] = []
        total = len(instants.time)
        low = 0
        while low < total or low == 0:
            answers, high = self._answers.at(instants, low)
            high = min(low + CHUNK, high)
            part = instants.slice(low, high)
            found += self._work(part, self._rows_of(part), high >= total, answers)
            low = max(high, 1)
        return found

    def step(self, part: Instants, found: Sequence[list[Rows]] | None, last: bool) -> list[MatchBatch]:
        """`work` on a part of the instants whose matching has been done elsewhere, as far as the kernel does it.

        `found`: per stream a list of each request's rows (None: it matches by itself after all); `last`: the rest of
        the instants is nothing. Not for a query with `own_answers`.
        """
        answers, _ = self._answers.at(part, 0)
        return self._work(part, self._rows_of(part, found), last, answers)

    def _rows_of(self, part: Instants, found: Sequence[list[Rows]] | None = None) -> list[list[Rows]]:
        if found is None:
            return [[] if matcher is None else matcher.rows(batch)
                    for matcher, batch in zip(self._answers.matchers, part.batches, strict=True)]
        if not self._partly_native:
            return list(found)
        return [[] if matcher is None else matcher.rows(batch, rows)
                for matcher, batch, rows in zip(self._answers.matchers, part.batches, found, strict=True)]

    @property
    def reads_kb(self) -> bool:
        """Whether its matches depend on the knowledge base too."""
        return self._answers.reads_kb

    @property
    def kb_texts(self) -> tuple[str, ...]:
        """What it asks the knowledge base, as SPARQL."""
        return self._answers.texts

    def keep_answers(self) -> bool:
        """The KB is about to change: instants up to the newest one so far keep the answers of now. Whether some do that
        did not before."""
        return self._answers.keep(self.clock)

    @property
    def own_answers(self) -> bool:
        """Whether instants may come for which the KB's answers of an earlier moment hold."""
        return self._answers.kept

    @property
    def watchful(self) -> bool:
        """Whether it must be told of instants in which the kernel has found nothing for it."""
        begins = self._start is None and self.plan.window is not None
        return self._asks_every_event or self.waits or self._summaries is not None or begins

    @property
    def nothing(self) -> list[list[Rows]]:
        """Per stream and request rows that are none, for `step`."""
        return [[] if matcher is None else list(matcher.nothing) for matcher in self._answers.matchers]

    def follow(self, clock: Clock) -> None:
        """Go on with another clock, in the same state; the counters go on from where they are."""
        events, late, instants = self.events, self.late, self.instants
        self.clock = clock
        self._joined = _Counters(clock.events - events, clock.late - late, clock.instants - instants)

    def _work(
        self, instants: Instants, rows: Sequence[Sequence[Rows]], last: bool, answers: dict[str, KbAnswer]
    ) -> list[MatchBatch]:
        """`rows`: per stream the occurrences of each request."""
        exists = self._answers.exists
        if exists is None:
            return self._find(instants, rows, last, answers)
        exists.begin(instants.batches)
        try:
            return self._find(instants, rows, last, answers)
        finally:
            exists.end()

    def _find(
        self, instants: Instants, rows: Sequence[Sequence[Rows]], last: bool, answers: dict[str, KbAnswer]
    ) -> list[MatchBatch]:
        times, number = instants.time, instants.first - self._joined.instants
        count = len(times)
        if count and self._start is None:
            self._start = int(times[0])
        split: Split | None = None
        sources: list[Source] = []
        if count and self._partitions is None:
            sources = self._letters.sources(rows, instants.where, answers)
        elif count and self._partitions is not None:
            split = self._partitions.split(rows, instants.where, times, self._window_start)
            if split is not None:
                sources = self._letters.sources(rows, instants.where, answers, split.frame)
        batches: list[MatchBatch] = []
        until = self._until(int(times[-1]) if count else None, number + count, last, instants.passed)
        if sources or self.waits:
            if self._counted is not None and self._counted.by_window and self.plan.window is not None:
                self._sequence.count_by(self._window_start, self.plan.window.size)
            if sources:
                self._write_rows(sources, times, number, answers, split)
            passed = self._time_until(int(times[-1]) if count else None, last, instants.passed)
            found = self._sequence.feed(self._letters.buffer if sources else None, until, self._rows.times, passed)
            if self._deferred is not None:
                self._deferred.hold(found, self._rows)
                found = self._deferred.release(until, self._window_start, self._seen(bool(sources)))
            if len(found):
                batches = self._writer.write(found, self._rows)
        if self._summaries is not None:
            batches = self._summarised(self._summaries, batches, times, number, until)
        self.matches += sum([len(batch) for batch in batches])
        if count:
            self._forget(int(times[-1]), number + count - 1)
        return batches

    def _summarised(
        self, summaries: Summaries, batches: list[MatchBatch], times: NDArray[np.int64], number: int, until: int
    ) -> list[MatchBatch]:
        """The rows of groups that matches, the instants at `times` and the clock's progress give."""
        plan = self.plan
        assert plan.summary is not None
        numbers = self._numbers if self._by_number else None
        if numbers is not None and len(times):
            numbers.see(times, number)
        clocks = times if numbers is None else np.arange(number, number + len(times))
        summaries.see(times, clocks, self._window_start)
        sliding = plan.window is not None and plan.window.sliding
        if self._counted is not None:
            found = self._counted.instants(self._sequence.take_counts(), self._window_start, numbers)
        else:
            found = instants_of(batches, len(plan.summary.keys), sliding, numbers)
        rows = summaries.take(found, until if until >= AFTER_ALL else until - self._undecided, self._window_start)
        self._terms.hold(rows.values)
        return [rows] if len(rows) else []

    @property
    def _undecided(self) -> int:
        """How long before the clock, in the window's unit, matches may have ended that a negation has still to decide;
        at a window's close it has decided all."""
        if self._deferred is None or self.plan.summary is None or isinstance(self.plan.summary.report, OnClose):
            return 0
        window = self.plan.window
        if window is not None:
            return window.size
        return self.plan.sequence.graph.longest_wait or 0

    def _write_rows(
        self, sources: list[Source], times: NDArray[np.int64], number: int, answers: dict[str, KbAnswer],
        split: Split | None,
    ) -> None:
        """The letters' rows, into the buffer and the row store."""
        settings = self._letters.settings
        settings[lr.FIRST_NUMBER] = number if split is None else 0
        if self.reads_kb:
            settings[lr.EPOCH] = self._rows.epoch(answers)
        if self.plan.window is not None:
            settings[lr.WINDOW_START] = self._window_start
        if split is None:
            self._letters.write(sources, times, self._rows)
            return
        self._letters.write(sources, times[split.instant], self._rows)
        buffer = self._letters.buffer
        rows, k = buffer.arrays, buffer.instants
        at = rows.instant[:k].copy()
        rows.instant[:k], rows.clock[:k], rows.tau[:k] = split.number[at], split.clock[at], split.tau[at]
        rows.partition[:k], rows.moment[:k] = split.partition[at], number + split.instant[at]
        if self._by_number:
            counts = np.diff(rows.first[: k + 1])
            self._rows.set_clocks(np.repeat(rows.clock[:k], counts))

    def _seen(self, rows: bool) -> PartitionInstants | None:
        """The instants that the run has just worked through, where each partition counts its own."""
        if not rows or self._partitions is None or not self._by_number:
            return None
        k, arrays = self._letters.buffer.instants, self._letters.buffer.arrays
        return PartitionInstants(arrays.partition[:k], arrays.instant[:k], arrays.moment[:k])

    @property
    def waits(self) -> bool:
        """Whether the clock alone may let it report something."""
        if self._summaries is not None and self._summaries.waits:
            return True
        return self._sequence.waits or (self._deferred is not None and self._deferred.waits)

    @property
    def deadline(self) -> int | None:
        """A match may be complete, or a report due, without a later event, when time has passed this (µs); None
        if there is none, or if windows count instants."""
        if self._by_number:
            return None
        held = None if self._deferred is None else self._deferred.deadline(self._window_start)
        report = None if self._summaries is None else self._summaries.deadline(self._window_start)
        report = None if report is None else report + self._undecided
        due = [each for each in (self._sequence.deadline, held, report) if each is not None]
        return min(due, default=None)

    @property
    def newest(self) -> int:
        """The time (µs) of the newest event, whoever has seen it: a run that is restored knows it too."""
        return self.clock.newest

    @property
    def silence(self) -> int | None:
        """How long (µs) nothing may come, behind the newest event, until `deadline` has passed; None without one."""
        deadline = self.deadline
        return None if deadline is None else deadline + 1 - self.clock.newest

    @property
    def _window_start(self) -> int:
        """The first clock of the first tumbling window."""
        return 0 if self._by_number else self._start or 0

    @property
    def _by_number(self) -> bool:
        """Whether windows count instants."""
        return self.plan.window is not None and self.plan.window.events

    def _until(self, time: int | None, number: int, last: bool, passed: int) -> int:
        """The smallest clock that may still come, in the window's unit, after the instant at `time`; the next
        instant has this number."""
        if passed >= AFTER_ALL and last:
            return AFTER_ALL
        if self._by_number and self._partitions is not None:
            return BEFORE_ALL  # windows close when the partition goes on
        if self._by_number:
            return number
        return self._time_until(time, last, passed)

    def _time_until(self, time: int | None, last: bool, passed: int) -> int:
        """The smallest time (µs) that may still come, after the instant at `time`."""
        return passed if last or time is None else time + 1

    @property
    def _endless(self) -> bool:
        """Whether time alone does not tell which rows are out of every window."""
        window = self.plan.window
        return window is None or (window.events and self._partitions is not None)

    def _forget_unnamed(self) -> None:
        """Drop rows before all that a node refers to, or a match held; nodes have been collected."""
        oldest = self._sequence.oldest_row
        if self._deferred is not None:
            oldest = min(oldest, self._deferred.oldest_row)
        self._rows.forget(BEFORE_ALL, oldest)
        self._kept_rows = self._rows.held

    def _forget(self, time: int, number: int) -> None:
        """Drop rows that are out of every window, now that the instant of this time and number is over."""
        window = self.plan.window
        if self._endless:
            if self._rows.held > 4 * max(self._kept_rows, 1024):
                self._sequence.collect()
                self._forget_unnamed()
        elif window is not None and self._rows.held:
            clock = number if window.events else time
            start = self._window_start
            floor = clock - window.size if window.sliding else start + (clock - start) // window.size * window.size
            if self._deferred is not None and window.sliding:
                floor -= window.size  # a match is held for a window's length after its end
            self._rows.forget(floor, 0)


def _deferred(plan: QueryPlan) -> DeferredMatches | None:
    if not plan.deferred:
        return None
    selection = plan.query.selection
    column = plan.stored.index(PARTITION) if plan.query.partition is not None else None
    return DeferredMatches(selection.strategy if selection is not None else None, plan.window, column,
                           plan.sequence.graph.longest_wait)  # fmt: skip


class _Counters(NamedTuple):
    """What a clock had counted when a query joined it."""

    events: int
    late: int
    instants: int
