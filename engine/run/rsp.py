"""One query over windows and its streams: events in, answers out. All its state is here.

    push ─ arrivals ─ events in order ┬ all instants at once (rsp/steady.py)         ┬ rows to tell ─ answers
                                      └ one instant after the other (rsp/general.py) ┘
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np
from numpy.typing import NDArray

from oxiseq.engine.events.batch import EventBatch
from oxiseq.engine.flow.plan import draws_in_turn
from oxiseq.engine.kb import KnowledgeBase
from oxiseq.engine.kb_in_time import KbInTime
from oxiseq.engine.output.batch import MatchBatch
from oxiseq.engine.rsp.columns import Columns
from oxiseq.engine.rsp.full_rows import FullRows
from oxiseq.engine.rsp.general import GeneralAnswers
from oxiseq.engine.rsp.plan import RspPlan
from oxiseq.engine.rsp.schedule import Schedule, Stretches
from oxiseq.engine.rsp.steady import SteadyAnswers, is_steady
from oxiseq.engine.run.alone import AloneRun
from oxiseq.engine.run.arrivals import Arrivals
from oxiseq.engine.run.concern import Concern
from oxiseq.engine.run.resets import Resets
from oxiseq.engine.run.watermarks import AFTER_ALL, BEFORE_ALL
from oxiseq.engine.run.window_concern import concern_of
from oxiseq.engine.terms.blanks import KbBlanks
from oxiseq.engine.terms.dictionary import TermDictionary
from oxiseq.engine.terms.saved import KnownTerms, SavedTerms, State
from oxiseq.grammar.rsp_algebra import Report

MOST_INSTANTS: Final = 1 << 13
"""That are worked on at once, unless windows are steady: what operators make of them is memory."""
START, END = 0, 1
"""Letters of the two times that a row of an event mapping has."""
_NO_LETTERS: Final = np.zeros(0, np.int32)
_NO_TIMES: Final = np.zeros(0, np.int64)


class RspRun(AloneRun):
    """The running state of a query over windows. `lateness` in microseconds; events before `start` are not seen.

    Its matches are rows: `time` is the instant at which a row is told; a row that carries an event mapping has two
    events, with the letters START and END and the mapping's times. Counter: `matches` told.
    """

    def __init__(
        self, plan: RspPlan, terms: TermDictionary, kb: KnowledgeBase, start: int | None = None, lateness: int = 0
    ) -> None:
        self._plan = plan
        self._terms = terms
        self.matches = 0
        self._arrivals = Arrivals(len(plan.streams), lateness, start)
        self._kb = KbInTime(kb)
        self._blanks = KbBlanks(terms)
        self._newest: int | None = None
        self._schedule = Schedule(plan.rhythm)
        self._in_turn = draws_in_turn(plan.flow.plan)
        self._told = Columns(plan.flow.told, terms)
        self.resets = Resets()
        """How often it has forgotten its windows."""
        self._begin()
        terms.register(self)

    def _begin(self) -> None:
        """Nothing has been seen."""
        answers = SteadyAnswers if is_steady(self._plan) else GeneralAnswers
        self._answers: SteadyAnswers | GeneralAnswers = answers(self._plan, self._terms, self._kb, self._blanks)

    @property
    def plan(self) -> RspPlan:
        return self._plan

    @property
    def concern(self) -> Concern | None:
        return concern_of(self._plan, self._terms)

    @property
    def order(self) -> Arrivals:
        return self._arrivals

    def held_ids(self) -> Iterator[NDArray[np.uint32]]:
        """The terms of all that it may still look at (see `TermDictionary`)."""
        yield from self._arrivals.held_ids()
        yield from self._answers.held_ids()
        yield from self._blanks.held_ids()
        for batch in self._left:
            yield batch.values

    # --- events in, answers out ---------------------------------------------------------------------

    def push(self, stream: str, batch: EventBatch) -> EventBatch | None:
        late = self._arrivals.push(self._plan.streams.index(stream), batch)
        return late if len(late) else None

    def advance(self) -> list[MatchBatch]:
        """Answer at all instants that are complete by now; what is told, in order. Raises LimitError, KbError. An error
        of the KB loses nothing: the next call tells what this one did not."""
        found, self._left = [*self._left], ()
        for passed in self._kb.stretches(self._arrivals.passed):
            answering = not self._plan.rhythm.every_instant or self._arrivals.complete(passed)
            if answering and not self._asked(self._kb, found):
                break
            batches = self._arrivals.take(passed)
            self._see(batches)
            for at, rows in self._answer(batches, passed):
                if len(rows):
                    found.append(self._batch(at, rows))
        if not found:
            return found
        if len(found) > 1:
            found = [MatchBatch.concat(found, len(self._plan.columns))]
        self.matches += len(found[0])
        self._terms.hold(found[0].values)
        return found

    def _see(self, batches: list[EventBatch]) -> None:
        """How far streams have come."""
        for batch in batches:
            if len(batch):
                last = batch.time.item(-1)
                self._newest = last if self._newest is None else max(self._newest, last)

    def _answer(
        self, batches: list[EventBatch], passed: int
    ) -> Iterator[tuple[NDArray[np.int64], FullRows]]:
        """What is told at all instants that are due, and when."""
        if isinstance(self._answers, SteadyAnswers):
            yield from self._answers.advance(batches)
        else:
            yield from self._advance(self._answers, batches, passed)

    def _advance(
        self, general: GeneralAnswers, batches: list[EventBatch], passed: int
    ) -> Iterator[tuple[NDArray[np.int64], FullRows]]:
        """So many instants at a time."""
        times = np.concatenate([batch.time for batch in batches])
        if not len(times) and passed == BEFORE_ALL:
            return
        general.add(batches)
        due = self._schedule.due(times, passed, self._newest, passed == AFTER_ALL, general.windows)
        if self._plan.volatile:
            self._schedule.check(due)
        self._schedule.go_on(due)
        most = 1 if self._in_turn else MOST_INSTANTS
        for low in range(0, len(due), most):
            some = due.slice(low, low + most)
            yield self._again(*general.told(some, self._schedule))

    def _again(
        self, stretches: Stretches, number: NDArray[np.int64], rows: FullRows
    ) -> tuple[NDArray[np.int64], FullRows]:
        """With what RSTREAM tells again at the other ticks of stretches, where windows hold the same: the time of each
        row, and the rows. number: that of each row's stretch, ascending."""
        at = stretches.at[number]
        several = np.flatnonzero(stretches.until > stretches.at)
        if self._plan.report is not Report.RSTREAM or not len(several) or not len(rows):
            return at, rows
        ends = np.searchsorted(number, np.arange(len(stretches) + 1))
        times, index = [at], [np.arange(len(rows))]
        for k in several[ends[several] < ends[several + 1]].tolist():
            low, high = int(ends[k]), int(ends[k + 1])
            again = self._schedule.again(stretches.slice(k, k + 1), high - low)
            times.append(np.repeat(again, high - low))
            index.append(np.tile(np.arange(low, high), len(again)))
        at, every = np.concatenate(times), np.concatenate(index)
        order = np.argsort(at, kind="stable")
        return at[order], rows.take(every[order])

    def _batch(self, at: NDArray[np.int64], rows: FullRows) -> MatchBatch:
        values = self._told.of(rows.values, at)
        events = rows.span.shape[1]
        if not events:
            return MatchBatch(at, values, np.zeros(len(rows) + 1, np.int64), _NO_LETTERS, _NO_TIMES)
        letters = np.tile(np.array([START, END][:events], np.int32), len(rows))
        ends = np.arange(len(rows) + 1, dtype=np.int64) * events
        return MatchBatch(at, values, ends, letters, rows.span.reshape(-1).copy())

    def forget(self, at: int) -> None:
        """Between batches: windows and event mappings are empty from now on; what waits for its instant goes on."""
        self.resets = self.resets.another(at, 0 if self._newest is None else self._newest, self.records)
        self._schedule.forget()
        self._begin()

    # --- the KB, state ------------------------------------------------------------------------------

    def keep_answers(self) -> bool:
        return self._kb.keep(self._arrivals.unfinished)

    @property
    def reads_kb(self) -> bool:
        return self._plan.reads_kb

    @property
    def kb_texts(self) -> tuple[str, ...]:
        return self._kb.texts

    def save(self, terms: SavedTerms) -> State:
        return {
            "arrivals": self._arrivals.save(terms),
            "schedule": self._schedule.save(),
            "newest": self._newest,
            "matches": self.matches,
            "resets": self.resets.save(),
            "blanks": self._blanks.save(terms),
            "answers": self._answers.save(terms),
            "kept": self._kb.save(terms),
        }

    def restore(self, state: State, terms: KnownTerms) -> None:
        self._arrivals.restore(state["arrivals"], terms)
        self._schedule.restore(state["schedule"])
        self._newest = None if state["newest"] is None else int(state["newest"])
        self.matches = int(state["matches"])
        self.resets = Resets.restored(state["resets"])
        self._blanks.restore(state["blanks"], terms)
        self._answers.restore(state["answers"], terms)
        self._kb.restore(state["kept"], terms)

    # --- what it tells ------------------------------------------------------------------------------

    @property
    def state(self) -> dict[str, int]:
        return self._answers.state

    @property
    def bytes(self) -> int:
        """About how large its state is."""
        return self._answers.bytes
