"""One query over its streams: events in, matches out. All its state is here.

    push ─ clock ─ complete instants ─ finder ─ matches ─ teller ─ answers

Nothing here does I/O; the KB is reached through the `KnowledgeBase` protocol.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import NamedTuple

import numpy as np

from oxiseq.engine.errors import MappingsError
from oxiseq.engine.kb import KnowledgeBase
from oxiseq.engine.matching.enrich import KbAnswer
from oxiseq.engine.omissions import InstantError, raised
from oxiseq.engine.order.clock import Clock, Instants
from oxiseq.engine.output.batch import MatchBatch
from oxiseq.engine.output.rows import RowStore
from oxiseq.engine.patterns.matcher import Rows
from oxiseq.engine.plan.query import QueryPlan
from oxiseq.engine.run.finder import Finder, Findings, Part, of_all
from oxiseq.engine.run.resets import Resets
from oxiseq.engine.run.run import Run
from oxiseq.engine.run.teller import Teller
from oxiseq.engine.sequence.memory import Capacities
from oxiseq.engine.terms.dictionary import TermDictionary
from oxiseq.engine.terms.saved import KnownTerms, SavedTerms, State, unsaved, value

CHUNK = 16_384
"""Instants processed at a time, so that memory does not grow with a batch."""


class QueryRun(Run):
    """The running state of a query.

    `start` is the t of tumbling windows (default: the first event's time), `lateness` in microseconds.
    `clock` may be shared with other queries that read the same streams, `finder` and `teller` with those that find and
    emit the same (sharing/shared.py). Counters: `events` taken, `instants` completed, `late` refused, `matches` found.
    """

    made_of = (
        value("matches"),
        *Run.made_of,
        unsaved("clock"),
    )

    def __init__(
        self,
        plan: QueryPlan,
        terms: TermDictionary,
        kb: KnowledgeBase,
        start: int | None = None,
        lateness: int = 0,
        capacities: Capacities | None = None,
        clock: Clock | None = None,
    ) -> None:
        self._plan = plan
        self.matches = 0
        self.resets = Resets()
        self.clock = Clock(len(plan.streams), lateness, start) if clock is None else clock
        self.finder = Finder(plan, terms, kb, start, capacities or Capacities())
        self.finder.users = 1
        self.teller = Teller(plan, terms)
        self._joined = _Counters(0, 0, 0)
        self._terms = terms
        self._too_much: InstantError | None = None
        self._left: list[MatchBatch] = []
        """What `advance` had found when it raised an error."""
        terms.register(self)

    @property
    def plan(self) -> QueryPlan:
        return self._plan

    @property
    def order(self) -> Clock:
        return self.clock

    # --- a query by itself --------------------------------------------------------------------------

    def advance(self) -> list[MatchBatch]:
        """Work through all instants that are complete by now; the matches found, in order. Raises LimitError; what has
        been found is returned by the next call then (or by `left`)."""
        found = [*self.left(), *self.work(self.clock.take())]
        while self.clock.has_more:
            found += self.work(self.clock.take())
        error = self.take_error()
        if error is not None:
            self._left = found
            raise error
        return found

    def left(self) -> list[MatchBatch]:
        """What `advance` had found when it raised an error, once."""
        found, self._left = self._left, []
        return found

    def take_error(self) -> InstantError | None:
        """Why the matches of some instant since the last call are missing; the others are there."""
        error, self._too_much = self._too_much, None
        return error

    # --- its state and counters ---------------------------------------------------------------------

    @property
    def events(self) -> int:
        """How many events it has received."""
        return self.clock.events - self._joined.events

    @property
    def window_start(self) -> int | None:
        """The t of tumbling windows (µs); None before the first event where none was given."""
        return self.finder.start

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
        self._forget()
        finder = self._state()
        partitions = {} if finder.partitions is None else {"partitions": finder.partitions.table.live}
        return {**finder.sequence.live, "rows": finder.rows.held, **partitions}

    @property
    def waiting(self) -> tuple[int, ...]:
        """Of each edge of the automaton, how many groups of partial matches wait there; some may be dead by now."""
        return self._state().sequence.waiting

    @property
    def records(self) -> int:
        """How many records its state has; some may be dead by now (`collect`)."""
        found_by = self.finder.away or self.finder
        return found_by.records + self.teller.records

    @property
    def bytes(self) -> int:
        """How large its arrays are, or its part of them. They do not become smaller, but by `forget`."""
        found_by = self.finder.away or self.finder
        return -(-found_by.bytes // max(1, self.finder.users))

    def reserve(self) -> None:
        """Have the memory that the first row needs."""
        self.finder.reserve()

    def collect(self, at: int | None = None) -> None:
        """Frees dead memory, so that `records` counts what lives: at a time (µs) that has come, or by all that has
        passed."""
        self._forget()
        passed = self.clock.passed - 1 if at is None else at
        now = self.instants - 1 if self.finder.by_number else passed
        (self.finder.away or self.finder).collect(now, self.instants)

    def _forget(self) -> None:
        """Drop rows that no later match can hold."""
        if self.finder.away is not None:
            return  # they are dropped there
        self.finder.forget_due()
        if self.instants:
            self.finder.forget(self.clock.completed, self.instants - 1)

    def forget(self, at: int) -> None:
        """Between batches: give up all partial matches, matches held and what DISTINCT remembers; `at` is now (µs
        since 1970).

        It continues as if it had been registered now, and sees the events that wait for their instant. Counters, the
        beginning of tumbling windows and the KB's answers stay; windows of n EVENTS begin again in each partition.
        """
        self.come_home()
        self.origin = None
        self.resets = self.resets.another(at, self.clock.completed, self.records)
        if self.others:
            self.share(self.finder.another(self.plan), self.teller.anew(self.plan))
        else:
            self.finder.begin()
            self.teller = self.teller.anew(of_all(self.finder, self.plan))

    @property
    def paged(self) -> int:  # type: ignore[override]  # it counts as it goes
        return self.finder.paged + self.teller.paged

    # --- with others --------------------------------------------------------------------------------

    @property
    def others(self) -> int:
        """With how many others it finds its matches now."""
        return self.finder.users - 1

    def come_home(self) -> None:
        """Have the state of its matches in its finder, if it has joined others."""
        if self.finder.away is not None:
            self.finder.away.come_home()

    def _state(self) -> Finder:
        """A finder in its state, to be read."""
        if self.finder.away is None:
            return self.finder
        finder = self.finder.away.copied()
        if self.instants:
            finder.forget(self.clock.completed, self.instants - 1)
        return finder

    def share(self, finder: Finder, teller: Teller) -> None:
        """Finds and emits what others do, in the same state."""
        self.finder.users -= 1
        self.finder, self.teller = finder, teller
        finder.users += 1

    def compose_no_more(self) -> None:
        """Count its matches otherwise than by composed windows, as it does among many, or as it has been saved; for one
        that has not seen anything."""
        if self._plan.runner.otherwise is not None:
            self._plan = self._plan.runner.otherwise
            finder = self.finder.another(self._plan)
            self.share(finder, Teller(of_all(finder, self._plan), self._terms))

    @property
    def shift(self) -> int:
        """How many instants its clock had completed before its own first one."""
        return self._joined.instants

    @property
    def lineage(self) -> Hashable | None:
        """The same in runs of equal queries, with one clock, that are known to be in the same state: those that have
        not seen an instant, or continue from one snapshot. None: there may be no such run."""
        return self.origin or (None if self.instants else b"")

    def leave(self) -> None:
        """Continue by itself."""
        self.come_home()
        if self.others:
            self._forget()
            finder = self.finder.copy()
            self.share(finder, self.teller.copy(finder.rows))
            self._forget()

    # --- saved and restored -------------------------------------------------------------------------

    def save(self, terms: SavedTerms) -> State:
        return {"clock": self.clock.save(terms), **self.save_own(terms)}

    def restore(self, state: State, terms: KnownTerms) -> None:
        self.restore_own(state, type(self.clock).restored(state["clock"], terms), terms)

    def save_own(self, terms: SavedTerms) -> State:
        """Its state between batches, but for the clock, which it may share: that is named before.

        Of the KB only the answers for instants up to now are saved: for rows that matches may still be made
        of, and for instants that were not complete when the KB changed. The present answers are queried again
        (semantics.md 2.2).
        """
        self._forget()
        finder = self._state()
        return {
            **super().save(terms),
            "joined": list(self._joined),
            **finder.save_for(terms, self.plan),
            **self.teller.save_with(finder.rows, terms),
            "kept": finder.answers.save(terms),
        }

    def restore_own(self, state: State, clock: Clock, terms: KnownTerms) -> None:
        """Continue from a saved state, with a clock in the state of then; for a run that has not seen any event."""
        if "composed" not in state["sequence"]:
            self.compose_no_more()
        super().restore(state, terms)
        self.clock, self._joined = clock, _Counters(*map(int, state["joined"]))
        self.finder.restore_with(state, self.teller.restore_rows(state, terms), terms)
        self.finder.answers.restore(state["kept"], terms)

    # --- instants → matches -------------------------------------------------------------------------

    def work(self, instants: Instants) -> list[MatchBatch]:
        """Work through complete instants, in the order of the clock; the matches found."""
        self.come_home()
        found: list[MatchBatch] = []
        total = len(instants.time)
        low = 0
        while low < total or low == 0:
            answers, high = self.finder.answers.at(instants, low)
            high = min(low + CHUNK, high)
            part = instants.slice(low, high)
            try:
                rows = self.finder.native(part)
            except MappingsError:
                found += self._work(part, None, high >= total, answers)
            else:
                if rows is not None or self.watchful or self.others:
                    found += self._work(part, rows or self.finder.nothing, high >= total, answers)
            low = max(high, 1)
        return found

    def step(self, part: Instants, found: Sequence[list[Rows]] | None, last: bool) -> list[MatchBatch]:
        """`work` on a part of the instants whose matching has been done elsewhere, as far as the kernel does it.

        `found`: per stream a list of each request's rows (None: it matches by itself after all); `last`: the rest of
        the instants is nothing. Not for a query with `own_answers`.
        """
        self.come_home()
        return self._work(part, found, last, None)

    def tell(self, instants: Instants, findings: Findings, rows: RowStore) -> list[MatchBatch]:
        """The answers for what it has found together with others, whose matches name these rows."""
        if self.omitted.over:
            return []
        return self._told(Part(instants, instants.first - self._joined.instants, last=True), findings, rows)

    def take(self, batch: MatchBatch, omitted: Sequence[InstantError]) -> list[MatchBatch]:
        """The answers, which have been written with those of others, for a query with a `written`."""
        if self.omitted.over:
            return []
        return self._counted([batch] if len(batch) else [], omitted)

    @property
    def written(self) -> Hashable | None:
        """The same in queries whose matches are written alike, each by itself; None: it has to see all of its own."""
        return None if self.finder.decides_late else self.teller.written

    def _work(
        self, instants: Instants, found: Sequence[list[Rows]] | None, last: bool, answers: dict[str, KbAnswer] | None
    ) -> list[MatchBatch]:
        self.origin = None
        if self.omitted.over:
            return []
        part = Part(instants, instants.first - self._joined.instants, last)
        return self._told(part, self.finder.find(part, found, answers), self.finder.rows)

    def _told(self, part: Part, findings: Findings, rows: RowStore) -> list[MatchBatch]:
        told, omitted = self.teller.tell(part, findings, rows)
        batches = self._counted([*told], [*findings.omitted, *omitted])
        if not self.others:
            self.finder.forget_due()
            self.teller.forget_told()
        return batches

    def _counted(self, batches: list[MatchBatch], omitted: Sequence[InstantError]) -> list[MatchBatch]:
        """What it is given of what has been found, when these instants were left out."""
        if omitted:
            batches = self._note_omitted(sorted(omitted, key=lambda error: error.instant), batches)
        self.matches += sum(map(len, batches))
        return batches

    def _note_omitted(self, errors: Sequence[InstantError], batches: list[MatchBatch]) -> list[MatchBatch]:
        """Instants were left out; of what has been found what it is given: nothing behind the one that is final."""
        last = next((number for number, error in enumerate(errors) if error.final), len(errors))
        errors = errors[: last + 1]
        self.omitted = self.omitted.more(errors)
        if errors[-1].final or self._too_much is None:
            self._too_much = raised(errors)
        if errors[-1].final:
            last = errors[-1].instant
            batches = [batch.take(np.flatnonzero(batch.at <= last)) for batch in batches]
        return batches

    @property
    def reads_kb(self) -> bool:
        """Whether its matches depend on the knowledge base too."""
        return self.finder.answers.reads_kb

    @property
    def kb_texts(self) -> tuple[str, ...]:
        """Its queries to the knowledge base, as SPARQL."""
        return self.finder.answers.texts

    def keep_answers(self) -> bool:
        """The KB is about to change: instants up to the newest one so far keep the present answers. Whether some do
        that did not before."""
        return (self.finder.away or self.finder.answers).keep(self.clock)

    @property
    def own_answers(self) -> bool:
        """Whether instants may come for which the KB's answers of an earlier moment hold."""
        return self.finder.answers.kept

    @property
    def watchful(self) -> bool:
        """Whether it needs the instants in which the kernel has found nothing for it."""
        finder = self.finder
        begins = finder.start is None and self.plan.window is not None
        return finder.asks_every_event or finder.waits or self.teller.watchful or begins

    def follow(self, clock: Clock) -> None:
        """Continues with another clock, in the same state; the counters keep their values."""
        events, late, instants = self.events, self.late, self.instants
        self.clock = clock
        self._joined = _Counters(clock.events - events, clock.late - late, clock.instants - instants)

    @property
    def waits(self) -> bool:
        return self.teller.waits or self.finder.waits

    @property
    def deadline(self) -> int | None:
        """A match may be complete, or a report due, without a later event, when time has passed this (µs); None
        if only an event can complete one, as one closes a window that counts instants."""
        finder = self.finder
        reports = () if finder.by_number else self.teller.deadlines(finder.window_start, finder.horizon)
        return min([*finder.deadlines, *reports], default=None)


class _Counters(NamedTuple):
    """A clock's counts when a query joined it."""

    events: int
    late: int
    instants: int
