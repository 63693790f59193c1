"""One CEQL query with joins over its streams: events in, complex events out, by live keys.

    push ─ positions ─ graph patterns ─ live keys ─ matches, of which each is one complex event

Below it is a SPAseq run whose instants are positions (order/positions.py); so the answers of live keys are emitted as
those of determinised sets are (tuples.py).
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Self

import numpy as np
from pyoxigraph import NamedNode

from oxiseq.engine.cea.term_marks import faults_in, unfit
from oxiseq.engine.events.batch import EventBatch
from oxiseq.engine.events.faults import Faults, Unfit
from oxiseq.engine.events.row_events import RowEncoder
from oxiseq.engine.events.tuples import TupleRows
from oxiseq.engine.kb import KnowledgeBase
from oxiseq.engine.omissions import InstantError, Omissions
from oxiseq.engine.order.positions import PositionClock
from oxiseq.engine.output.batch import MatchBatch
from oxiseq.engine.output.complex_events import ComplexEvents
from oxiseq.engine.plan.joined import JoinedPlan
from oxiseq.engine.run.alone import AloneRun
from oxiseq.engine.run.query import QueryRun
from oxiseq.engine.run.resets import Resets
from oxiseq.engine.terms.dictionary import TermDictionary
from oxiseq.engine.terms.saved import KnownTerms, SavedTerms, State, part, record, unsaved
from oxiseq.grammar.parts import parts


class JoinedRun(AloneRun):
    """The running state of a CEQL query with joins. `lateness` in microseconds; events before `start` are not seen.

    Counter: `matches` found. `faults`: events that are no tuple events are left out, as if they had not come.
    """

    made_of = (
        record("faults", Faults),
        record("omitted", Omissions, missing=None),
        part("_run"),
        unsaved("_clock.log"),
    )

    def __init__(
        self, plan: JoinedPlan, terms: TermDictionary, kb: KnowledgeBase, start: int | None = None, lateness: int = 0
    ) -> None:
        super().__init__()
        self._plan, self._terms, self._kb = plan, terms, kb
        self.faults = Faults()
        self._clock = PositionClock(len(plan.streams), lateness, start)
        self._run = QueryRun(plan.runner.sequence, terms, kb, start, lateness, clock=self._clock)
        asked = frozenset(each.value for each in parts(plan.runner.translated, NamedNode))
        self._left: list[ComplexEvents] = []
        self._rows = RowEncoder(terms, plan.query.vocab or "", asked)

    def another(self) -> Self:
        return type(self)(self._plan, self._terms, self._kb, self._clock.start, self._clock.lateness)

    @property
    def plan(self) -> JoinedPlan:
        return self._plan

    @property
    def paged(self) -> int:  # type: ignore[override]  # that of the run below
        return self._run.paged

    @property
    def order(self) -> PositionClock:
        return self._clock

    @property
    def resets(self) -> Resets:  # type: ignore[override]  # those of the run below
        return self._run.resets

    @property  # type: ignore[misc]  # that of the run below
    def matches(self) -> int:
        """How many it has found."""
        return self._run.matches

    @property
    def fits(self) -> Hashable:  # type: ignore[override]  # it depends on what is read
        return self._plan.query.vocab, self._plan.runner.attributes

    def unfit(self, stream: str, batch: EventBatch, terms: TermDictionary) -> Unfit | None:
        """Those that are no tuple events."""
        attributes = self._plan.runner.attributes
        fault = faults_in(self._plan.query.vocab or "", attributes, batch, terms)
        return None if fault is None else unfit(stream, batch.time, fault, attributes)

    def push(self, stream: str, batch: EventBatch | TupleRows) -> EventBatch | TupleRows | None:
        """Take events of a stream in order of arrival; returns the late ones, if any. Call `advance` for matches.

        Events that are no tuple events are left out (`faults`). Raises EventError for a column of a table that cannot
        be an attribute; then none of the batch is taken.
        """
        if self.omitted.over:
            return None
        events = self._rows.encode(batch) if isinstance(batch, TupleRows) else batch
        wrong = self.unfit(stream, events, self._terms)
        if wrong is not None:
            self.faults = self.faults.more(wrong)
            events, batch = events.take(wrong.fit), batch.take(wrong.fit)
        late = self._clock.take_in(self._plan.streams.index(stream), events)
        return None if late is None else batch.take(late)

    def advance(self) -> list[ComplexEvents]:
        """Work through all events whose position is known by now; returns the matches found, in order of end. Raises
        LimitError; what has been found is returned by the next call then (or by `left`)."""
        before = self._run.omitted.count
        try:
            found = [*self.left(), *map(self._complex_events, self._run.advance())]
        except InstantError as error:
            self._left = [*map(self._complex_events, self._run.left())]
            raise self._timed(error, self._run.omitted.count - before) from None
        self._forget_log()
        return found

    def left(self) -> list[ComplexEvents]:
        found, self._left = self._left, []
        return found

    def _timed(self, error: InstantError, count: int) -> InstantError:
        """With the time of its event, whose position it has; it stands for so many."""
        error.instant = int(self._clock.log.times(np.array([error.instant]))[0])
        self.omitted = self.omitted.more([error], count)
        return error

    def _complex_events(self, batch: MatchBatch) -> ComplexEvents:
        """Times of the run below are positions."""
        positions, log = batch.event_time, self._clock.log
        time, stream = log.at(positions)
        return ComplexEvents(
            positions[batch.ends[:-1]],
            batch.time,
            log.times(batch.time),
            batch.ends,
            positions,
            self._plan.runner.held[batch.event_letter],
            time,
            stream,
        )

    def _forget_log(self) -> None:
        rows = self._run.finder.rows
        self._clock.log.forget(int(rows.block.time[0]) if rows.held else self._clock.instants)

    # --- counters, memory and snapshots: those of the run below ---------------------------------------

    def keep_answers(self) -> bool:
        return self._run.keep_answers()

    @property
    def reads_kb(self) -> bool:
        return self._run.reads_kb

    @property
    def kb_texts(self) -> tuple[str, ...]:
        return self._run.kb_texts

    @property
    def state(self) -> dict[str, int]:
        """Numbers of live records."""
        return {**self._run.state, "events": self._clock.log.held, "ignored": self.faults.count}

    @property
    def records(self) -> int:
        """How many records its state has; some may be dead by now (`collect`)."""
        return self._run.records + self._clock.log.held

    def reserve(self) -> None:
        self._run.reserve()

    def collect(self) -> None:
        self._run.collect()
        self._forget_log()

    def forget(self, at: int) -> None:
        """As there; counters and positions continue."""
        self._run.forget(at)
        self._clock.log.begin(self._clock.instants)

    def save(self, terms: SavedTerms) -> State:
        self._forget_log()
        return super().save(terms)

    def restore(self, state: State, terms: KnownTerms) -> None:
        super().restore(state, terms)
        clock = self._run.clock
        assert isinstance(clock, PositionClock)
        self._clock = clock
