"""One query over its streams: events in, matches out. All its state is here.

    push ─ clock ─ complete instants ─ graph patterns ─ rows of letters ─ sequence run ─ answers

Nothing here does I/O; the KB is reached through the `KnowledgeBase` protocol.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from oxiseq.engine.events.batch import EventBatch
from oxiseq.engine.kb import HeldKb, KnowledgeBase
from oxiseq.engine.matching.enrich import KbAnswer
from oxiseq.engine.matching.matcher import StreamMatcher
from oxiseq.engine.output.batch import MatchBatch
from oxiseq.engine.output.rows import RowBlock, RowStore
from oxiseq.engine.output.write import AnswerWriter
from oxiseq.engine.plan.query import QueryPlan
from oxiseq.engine.run.clock import AFTER_ALL, BEFORE_ALL, Clock, Instants
from oxiseq.engine.run.letters import Frame, gpm_frame, letter_frame
from oxiseq.engine.sequence.memory import Capacities
from oxiseq.engine.sequence.run import LetterRows, SequenceRun
from oxiseq.engine.terms.dictionary import AnyIds, TermDictionary

_CHUNK = 16_384
"""Instants worked through at a time, so that memory does not grow with a batch."""


class QueryRun:
    """The running state of a query.

    `start` is the t of tumbling windows (default: the first event's time), `lateness` in microseconds.
    Counters: `events` taken, `instants` completed, `late` refused, `matches` found.
    """

    def __init__(
        self, plan: QueryPlan, terms: TermDictionary, kb: KnowledgeBase,
        start: int | None = None, lateness: int = 0, capacities: Capacities | None = None,
    ) -> None:
        self.plan = plan
        self.events = self.late = self.instants = self.matches = 0
        self._terms = terms
        self._kb = kb
        self._held = HeldKb(kb)
        self._start = start
        self._clock = Clock(len(plan.streams), lateness, start)
        self._matchers = [
            StreamMatcher(request, terms, self._held) if request is not None else None for request in plan.requests
        ]
        self._sequence = SequenceRun(plan.sequence, terms, capacities)
        self._rows = RowStore(len(plan.stored))
        self._writer = AnswerWriter(plan, terms)
        self._kept_answers: list[tuple[int, dict[str, KbAnswer], int]] = []
        self._kept_rows = 0
        terms.register(self)

    def held_ids(self) -> Iterator[AnyIds]:
        """The terms of all that it may still look at (see `TermDictionary`)."""
        yield from self._clock.held_ids()
        yield from self._rows.held_ids()
        yield from self._sequence.held_ids()
        yield from self._writer.held_ids()

    def push(self, stream: str, batch: EventBatch) -> EventBatch:
        """Take events of a stream in order of arrival; returns the late ones. Call `advance` for matches."""
        late = self._clock.push(self.plan.streams.index(stream), batch)
        self.events += len(batch)
        self.late += len(late)
        return late

    def punctuate(self, stream: str, time: int) -> None:
        """No event of `stream` before `time` (µs) will come."""
        self._clock.advance(self.plan.streams.index(stream), time)

    def settle(self) -> None:
        """Take every instant seen so far as complete: what comes for it from now on is late."""
        newest = self._clock.newest
        if newest > BEFORE_ALL:
            for stream in self.plan.streams:
                self.punctuate(stream, newest + 1)

    def close(self) -> None:
        """The streams have ended; trailing negations are decided."""
        for stream in self.plan.streams:
            self.punctuate(stream, AFTER_ALL)

    @property
    def state(self) -> dict[str, int]:
        """Numbers of live records."""
        return {**self._sequence.live, "rows": self._rows.held}

    @property
    def lateness(self) -> int:
        """How much a stream may be out of order, in microseconds."""
        return self._clock.lateness

    @property
    def open(self) -> bool:
        """Whether events wait for their instant to be complete."""
        return self._clock.open

    def keep_answers(self) -> None:
        """The KB is about to change: what has been pushed so far keeps the answers of now.

        Of patterns that are evaluated in place only the copy before the first change is kept while events wait.
        """
        newest = self._clock.newest
        if not self._clock.open or not self._reads_kb:
            return
        if self._kept_answers and self._kept_answers[-1][0] >= newest:
            return  # nothing has come since the change before
        if not self._kept_answers:
            for matcher in self._matchers:
                if matcher is not None:
                    matcher.refresh()
        self._kept_answers.append((newest, self._answers(), self._kb.version))

    @property
    def _reads_kb(self) -> bool:
        return any(gpm.kb is not None or gpm.parts.in_place for gpm in self.plan.gpms.values())

    def _answers(self) -> dict[str, KbAnswer]:
        return {name: gpm.kb.answer(self._kb) for name, gpm in self.plan.gpms.items() if gpm.kb is not None}

    def advance(self) -> list[MatchBatch]:
        """Work through all instants that are complete by now; the matches found, in order."""
        instants = self._clock.take()
        found: list[MatchBatch] = []
        total = len(instants.time)
        low = 0
        while low < total or low == 0:
            answers, high = self._answers_at(instants, low)
            high = min(low + _CHUNK, high)
            found += self._work(_slice(instants, low, high), high >= total, answers)
            low = max(high, 1)
        return found

    def _answers_at(self, instants: Instants, low: int) -> tuple[dict[str, KbAnswer], int]:
        """The KB answers that hold for the instants from `low` on, and the first instant for which they do not."""
        while self._kept_answers and low < len(instants.time):
            bound, answers, version = self._kept_answers[0]
            high = int(np.searchsorted(instants.time, bound, "right"))
            if high > low:
                self._held.held = version
                return answers, high
            self._kept_answers.pop(0)
        self._held.held = None
        return self._answers(), len(instants.time)

    def _work(self, instants: Instants, last: bool, answers: dict[str, KbAnswer]) -> list[MatchBatch]:
        times = instants.time
        if len(times) and self._start is None:
            self._start = int(times[0])
        number = self.instants + np.arange(len(times))
        self.instants += len(times)
        window = self.plan.window
        clocks = number if window is not None and window.events else times
        until = self._until(int(clocks[-1]) + 1 if len(clocks) else None, last)
        epoch = self._rows.epoch(answers)
        frames = self._frames(instants, answers)
        rows, block = self._letter_rows(frames, number, clocks, times, epoch)
        self._rows.append(block)
        found = self._sequence.feed(rows, until)
        batches = self._writer.write(found, self._rows) if len(found) else []
        self.matches += sum(len(batch) for batch in batches)
        self._forget(clocks)
        return batches

    def _until(self, following: int | None, last: bool) -> int:
        """The smallest clock that may still come, in the window's unit."""
        window = self.plan.window
        passed = self._clock.passed
        if passed >= AFTER_ALL and last:
            return AFTER_ALL
        if window is not None and window.events:
            return self.instants if following is None else following
        if not last and following is not None:
            return following
        return passed

    def _frames(self, instants: Instants, answers: dict[str, KbAnswer]) -> dict[str, Frame]:
        frames: dict[str, Frame] = {}
        for stream, matcher in enumerate(self._matchers):
            if matcher is None:
                continue
            found = matcher.match(instants.batches[stream])
            for name, gpm in self.plan.gpms.items():
                if gpm.stream == stream:
                    frames[name] = gpm_frame(gpm, found[gpm.order], instants.where[stream],
                                             answers.get(name), self._terms)
        return frames

    def _letter_rows(
        self, frames: dict[str, Frame], number: NDArray[np.int64], clocks: NDArray[np.int64],
        times: NDArray[np.int64], epoch: int,
    ) -> tuple[LetterRows, RowBlock]:
        plans = self.plan.letters
        made = [letter_frame(plan, frames, self._terms) for plan in plans]
        where = np.concatenate([frame.where for frame in made])
        letter = np.repeat(np.arange(len(made), dtype=np.int32), [len(frame) for frame in made])
        order = np.argsort(where, kind="stable")  # by instant, then letter, then as found in the event
        where, letter = where[order], letter[order]
        width = max(1, max(len(plan.columns) for plan in plans))
        values = np.zeros((len(where), width), np.int64)
        stored = np.zeros((len(where), len(self.plan.stored)), np.uint32)
        at = 0
        for plan, frame in zip(plans, made, strict=True):
            values[at : at + len(frame), : len(plan.columns)] = frame.table(plan.columns)
            if plan.positive:
                stored[at : at + len(frame)] = frame.table(self.plan.stored)
            at += len(frame)
        instants, first = np.unique(where, return_index=True)
        clock = clocks[instants]
        rows = LetterRows(
            letter, np.ascontiguousarray(values[order]), number[instants].astype(np.int64),
            np.ascontiguousarray(clock), self._floors(clock), np.append(first, len(where)).astype(np.int64),
            self._rows.end,
        )
        block = RowBlock(letter, times[where], clocks[where], stored[order],
                         np.full(len(where), epoch, np.int32))
        return rows, block

    def _floors(self, clock: NDArray[np.int64]) -> NDArray[np.int64]:
        """tau per instant: everything that starts before it is dead."""
        window = self.plan.window
        if window is None:
            return np.full(len(clock), BEFORE_ALL, np.int64)
        if window.sliding:
            return clock - window.size
        start = 0 if window.events else self._start or 0
        return start + (clock - start) // window.size * window.size

    def _forget(self, clocks: NDArray[np.int64]) -> None:
        if self.plan.window is None:
            if self._rows.held > 4 * max(self._kept_rows, 1024):
                self._sequence.collect()
                self._rows.forget(BEFORE_ALL, self._sequence.oldest_row)
                self._kept_rows = self._rows.held
        elif len(clocks):
            self._rows.forget(int(self._floors(clocks[-1:])[0]), 0)


def _slice(instants: Instants, low: int, high: int) -> Instants:
    if low == 0 and high == len(instants.time):
        return instants
    batches, where = [], []
    for batch, at in zip(instants.batches, instants.where, strict=True):
        a, b = np.searchsorted(at, (low, high))
        batches.append(batch.slice(int(a), int(b)))
        where.append(at[a:b] - low)
    return Instants(instants.time[low:high], tuple(batches), tuple(where))
