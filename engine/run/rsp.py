"""One query over windows and its streams: events in, answers out. All its state is here.

    push ─ arrivals ─ events in order ┬ all instants at once (rsp/steady.py)         ┬ rows to emit ─ answers
                                      └ one instant after the other (rsp/general.py) ┘

An operator that goes beyond a bound has taken in its batch by half. All state of operators is a function of what
windows hold, so they are made again of that, and the batch is halved down to the instant, which is left out.

Queries of one store may share their state, as long as it is the same (sharing/together.py): then none of this is here,
but a `Share` in it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final, Protocol, Self, TypeAlias

import numpy as np
from numpy.typing import NDArray

from oxiseq.engine.bounds import MADE, MAPPINGS, ROWS
from oxiseq.engine.errors import KbError, LimitError
from oxiseq.engine.events.batch import EventBatch
from oxiseq.engine.flow.delta import MOST_ROWS
from oxiseq.engine.flow.knowledge import KbAnswers, Knowledge
from oxiseq.engine.flow.plan import draws_in_turn
from oxiseq.engine.kb import KnowledgeBase
from oxiseq.engine.omissions import LeftOut, raised
from oxiseq.engine.order.arrivals import Arrivals
from oxiseq.engine.order.watermarks import AFTER_ALL, BEFORE_ALL
from oxiseq.engine.output.batch import MatchBatch
from oxiseq.engine.rsp.event_mappings import EventMappings
from oxiseq.engine.rsp.full_rows import NO_ROWS, Columns, FullRows
from oxiseq.engine.rsp.general import GeneralAnswers, repeated
from oxiseq.engine.rsp.held import Held
from oxiseq.engine.rsp.plan import RspPlan
from oxiseq.engine.rsp.schedule import Schedule, Stretches
from oxiseq.engine.rsp.steady import SteadyAnswers, is_steady
from oxiseq.engine.run.concern import Concern
from oxiseq.engine.run.recent import Recent, between, times_of
from oxiseq.engine.run.resets import Resets
from oxiseq.engine.run.window_concern import concern_of
from oxiseq.engine.run.with_kb import KbRun
from oxiseq.engine.terms.dictionary import TermDictionary
from oxiseq.engine.terms.saved import KnownTerms, SavedTerms, State, unsaved, value

MOST_INSTANTS: Final = 1 << 13
"""Instants processed at once, unless windows are steady: operators hold their rows in memory."""
START, END = 0, 1
"""Letters of the two times that a row of an event mapping has."""
_NO_LETTERS: Final = np.zeros(0, np.int32)
_NO_TIMES: Final = np.zeros(0, np.int64)


class Share(Protocol):
    """A query's part of a state that it shares with others."""

    order: Arrivals

    def release(self, run: RspRun) -> None:
        """Lets a run of those that share continue alone."""

    @property
    def others(self) -> int:
        """How many others share the state."""

    @property
    def recent(self) -> Recent | Held:
        """The events that are in the windows."""

    @property
    def state(self) -> dict[str, int]:
        """Its part of the numbers of live records."""

    @property
    def bytes(self) -> int:
        """Its part of how large it is."""


_Instants: TypeAlias = Stretches | Sequence[EventBatch]
"""Some instants to answer; of steady windows the events that come at them, by stream."""
_INSTANTS: Final = 1 << 8
"""Instants of steady windows that are taken in again at a time."""


class RspRun(KbRun):
    """The running state of a query over windows. `lateness` in microseconds; events before `start` are not seen.

    Its matches are rows: `time` is the instant at which a row is emitted; a row that carries an event mapping has two
    events, with the letters START and END and the mapping's times.
    """

    made_of = *KbRun.made_of, value("matches"), unsaved("_own"), unsaved("_kept"), unsaved("recent")

    def __init__(
        self, plan: RspPlan, terms: TermDictionary, kb: KnowledgeBase, start: int | None = None, lateness: int = 0
    ) -> None:
        super().__init__(terms, kb, plan.streams, start, lateness)
        self._plan = plan
        self._newest: int | None = None
        self.schedule = Schedule(plan.rhythm)
        self._in_turn = draws_in_turn(plan.flow.plan)
        self._told = Columns(plan.flow.told, terms)
        self._emitted: list[MatchBatch] = []
        """What `advance` had found when it raised an error."""
        self.resets = Resets()
        """How often it has forgotten its windows."""
        self.recent: Recent | Held | None = None
        """The contents of its windows, where others may come to share its state."""
        self._shared: Share | None = None
        self._read = plan.predicates(terms)
        self._lost = False
        """Whether operators are to be made again of what windows hold."""
        self._begin()
        terms.register(self)

    def _begin(self) -> None:
        """Nothing has been seen."""
        self._kept = Recent(self._plan, read=self._read) if is_steady(self._plan) else None
        """What steady windows hold."""
        self._make(None, None if self._kept is not None else Held(self._plan.contents, self._read, self.schedule))

    def _make(self, known: Knowledge | None, held: Held | None = None, mappings: EventMappings | None = None) -> None:
        """Operators that have seen nothing but answers of the KB, and events held, with their mappings."""
        given = self._plan, self._terms, self._kb, self._blanks
        self._own: SteadyAnswers | GeneralAnswers | None
        self._own = SteadyAnswers(*given, known) if held is None else GeneralAnswers(*given, held, known, mappings)
        self.knowledge = self._own.knowledge
        """Its answers of the KB."""

    @property
    def _answers(self) -> SteadyAnswers | GeneralAnswers:
        """Its own state."""
        assert self._own is not None  # a query that shares one leaves it first
        return self._own

    @property
    def plan(self) -> RspPlan:
        return self._plan

    @property
    def concern(self) -> Concern | None:
        return concern_of(self._plan, self._terms)

    def another(self) -> Self:
        return type(self)(self._plan, self._terms, self._kb.present, self.order.start, self.lateness)

    # --- a state that is shared ---------------------------------------------------------------------

    @property
    def shares_with(self) -> int:
        """With how many others it shares its state now."""
        return 0 if self._shared is None else self._shared.others

    def remember(self) -> None:
        """Remember the contents of the windows from now on."""
        if isinstance(self._answers, GeneralAnswers):
            self.recent = self._answers.held
            self.recent.remember()
        else:
            since = None if self._newest is None else self._arrivals.passed
            self.recent = Recent(self._plan, since, self._answers.instants)

    def knows_all(self, recent: Recent | Held) -> bool:
        """Whether its state is of the KB that holds now and of the contents of its windows, and of nothing else. Blank
        nodes of the KB are in the order in which each query meets them."""
        if not self.reads_kb:
            return True
        current = recent.last is None or self.knowledge.version == self._kb.present.version
        return current and not self._kb.waits and not self.meets_blanks

    @property
    def meets_blanks(self) -> bool:
        """Whether the KB has blank nodes for it."""
        return len(self._blanks.ids) > 0

    def join(self, share: Share) -> None:
        """Share a state that is the same as its own."""
        events, late = self.events, self.late
        self._arrivals, self._shared, self._own, self.recent, self._kept = share.order, share, None, None, None
        self._go_on(events, late)

    def leave(self) -> None:
        """Go on by itself from the state that it has shared."""
        assert self._shared is not None
        recent = self._shared.recent.copy()
        self._arrivals, self._shared = self._arrivals.copy(), None
        self._be_as(recent)

    def _be_as(self, recent: Recent | Held) -> None:
        """Have windows that hold these events."""
        self.recent = recent
        if recent.last is not None:
            self._newest = recent.last if self._newest is None else max(self._newest, recent.last)
        if isinstance(recent, Held):
            self.schedule = recent.schedule
            self._make(self.knowledge, recent)
            self._of_events.mappings.take_up()
            self._of_events.mappings.beyond = {}  # they have been noted
        else:
            self._kept = recent.copy(self._read)
            self._make(self.knowledge)
        self._lost = True
        self._made_again()

    # --- operators that are made again --------------------------------------------------------------

    @property
    def _rebuilds(self) -> bool:
        """Whether operators can be made again of what windows hold."""
        return self._of_events.rebuilds if self._kept is None else self._kept.complete

    def _lose(self, version: int | None, told: KbAnswers | None) -> None:
        """Operators have gone beyond a bound, and knew this of the KB before."""
        self.knowledge.version, self.knowledge.told = version, told
        if told is None and self._newest is not None:  # since a restart; before, it knew what holds now
            self.knowledge.changed()
        self._make_anew()
        self._lost = True

    def _make_anew(self) -> None:
        answers = self._answers
        if isinstance(answers, GeneralAnswers):
            self._make(self.knowledge, answers.held, answers.mappings)
        else:
            self._make(self.knowledge)

    def _made_again(self) -> LimitError | None:
        """Has operators that have seen nothing take in what windows hold; why that is impossible."""
        answers = self._answers
        try:
            if isinstance(answers, GeneralAnswers):
                answers.pass_over()
            else:
                assert self._kept is not None
                answers.start(self._kept.before)
                for part in self._kept.parts(_INSTANTS):
                    answers.pass_over(part)
        except LimitError as error:
            self._make_anew()
            return error
        self._lost = False
        return None

    @property
    def _of_events(self) -> GeneralAnswers:
        """Its own state, where windows are not steady."""
        assert isinstance(self._answers, GeneralAnswers)
        return self._answers

    def _on_its_own(self) -> None:
        if self._shared is not None:
            self._shared.release(self)

    # --- events in, answers out ---------------------------------------------------------------------

    def push(self, stream: str, batch: EventBatch) -> Any:
        self._on_its_own()
        if self.omitted.over:
            return None
        return super().push(stream, batch)

    def punctuate(self, stream: str, time: int) -> None:
        self._on_its_own()
        super().punctuate(stream, time)

    def settle(self) -> None:
        self._on_its_own()
        super().settle()

    def close(self) -> None:
        self._on_its_own()
        super().close()

    def advance(self) -> list[MatchBatch]:
        self._on_its_own()
        found = super().advance()
        if self._emitted:
            found = self.left() + found
        if self._streak.omitted:
            omitted = self._streak.take()
            self.omitted, self._emitted = self.omitted.more(omitted), found
            self.matches -= sum(map(len, found))  # they are counted when they are returned
            raise raised(omitted)
        return found

    def left(self) -> list[MatchBatch]:
        found, self._emitted = self._emitted, []
        self.matches += sum(map(len, found))
        return found

    def worked(self, batches: Sequence[EventBatch], passed: int) -> list[MatchBatch]:
        """The answers for complete events by stream that it has not seen yet; `counted` counts it. Raises LimitError,
        KbError."""
        return self._worked(batches, passed)

    def _asks(self, passed: int) -> bool:
        return not self._plan.rhythm.every_instant or self._arrivals.complete(passed)

    def _through(self, passed: int) -> list[MatchBatch]:
        return self._worked(self._arrivals.take(passed), passed)

    def _worked(self, batches: Sequence[EventBatch], passed: int) -> list[MatchBatch]:
        self._see(batches)
        found: list[MatchBatch] = []
        told = 0
        for instants in self._due(batches, passed):
            waiting = [instants]
            while waiting and not self._streak.over:
                at, rows = self._answer(waiting)
                if count := len(at):
                    told += count
                    if told <= MOST_ROWS:
                        found.append(self.batch(at, rows))
        if isinstance(self.recent, Recent):
            self.recent.add(batches)
        if told > MOST_ROWS:  # of all instants together: none of them is to blame
            raise LimitError(told, MOST_ROWS, "rows that are emitted for one batch; push smaller batches")
        return found

    def _unmatched(self, until: int) -> LeftOut:
        """Instants up to a time with an event that has too many mappings."""
        beyond = None if self._kept is not None else self._of_events.mappings.beyond
        if not beyond:
            return {}
        return {time: (MAPPINGS, beyond.pop(time)) for time in sorted(beyond) if time <= until}

    def _see(self, batches: Sequence[EventBatch]) -> None:
        """How far streams have come."""
        for batch in batches:
            if len(batch):
                last = batch.time.item(-1)
                self._newest = last if self._newest is None else max(self._newest, last)

    def _due(self, batches: Sequence[EventBatch], passed: int) -> Iterable[_Instants]:
        """All instants to answer, some at a time."""
        some = any(map(len, batches))
        if self._kept is not None:
            return (batches,) if some else ()
        if self._streak.over or not (some or passed != BEFORE_ALL):
            return ()
        self._of_events.add(batches)
        held = self._of_events.held
        due = held.due(batches, passed, ended=passed == AFTER_ALL)
        held.schedule.go_on(due)
        most = 1 if self._in_turn else MOST_INSTANTS
        return (due.slice(low, low + most) for low in range(0, len(due), most))

    def _answer(self, waiting: list[_Instants]) -> tuple[NDArray[np.int64], FullRows]:
        """The last of the instants that wait: what is emitted, and at which times. Where operators go beyond a bound,
        nothing is, and one half waits before the other; an instant that is beyond it by itself is left out."""
        part, final = waiting.pop(), False
        error = self._made_again() if self._lost else None
        if error is None:
            knew = self.knowledge.version, self.knowledge.told
            try:
                return self._tell(part)
            except LimitError as raised_error:
                error, final = raised_error, not self._rebuilds
            count = len(_times(part))
            if not final:
                self._lose(*knew)
                if count > 1:
                    waiting += [_cut(part, count // 2, count), _cut(part, 0, count // 2)]
                    return _NO_TIMES, NO_ROWS
        elif (count := len(_times(part))) > 1:
            waiting.append(_cut(part, 1, count))
            part = _cut(part, 0, 1)
        self._pass_by(part)
        time = int(_times(part)[0])
        return self._bounded(_NO_TIMES, NO_ROWS, {time: (MADE, error)}, time, final)

    def _tell(self, instants: _Instants) -> tuple[NDArray[np.int64], FullRows]:
        """Answer some instants. Raises LimitError, KbError; windows are where they were before then."""
        answers, until = self._answers, None
        if isinstance(answers, SteadyAnswers):
            assert self._kept is not None and not isinstance(instants, Stretches)
            at, rows = answers.advance(instants)
            self._kept.add(instants)
        else:
            assert isinstance(instants, Stretches)
            held = answers.held
            places, begun = held.places, held.begun
            try:
                if self._plan.volatile:
                    held.schedule.check(instants)
                stretches, number, rows = answers.told(instants)
                at, rows = repeated(self._plan.report, held.schedule, stretches, number, rows)
            except LimitError:
                held.put_back(places)
                held.begun = begun
                raise
            answers.forget()
            until = int(instants.until[-1])
        left_out = {time: (ROWS, given) for time, given in answers.too_many.items()} if answers.too_many else {}
        return self._bounded(at, rows, left_out, until)

    def _bounded(
        self, at: NDArray[np.int64], rows: FullRows, left_out: LeftOut, until: int | None, final: bool = False
    ) -> tuple[NDArray[np.int64], FullRows]:
        """What is emitted, and at which times: nothing behind an instant that stops the query. Notes the instants
        that are left out (µs, and by which bound), and those that are answered. `until`: the last of the instants,
        where windows are not steady; `final`: the state that those leave cannot be made again."""
        if until is not None and (unmatched := self._unmatched(until)):
            kept = np.flatnonzero(~np.isin(at, [*unmatched]))
            at, rows, left_out = at[kept], rows.take(kept), {**left_out, **unmatched}
        if not left_out and not self._streak.running:
            return at, rows
        last = self._streak.note(at.tolist(), left_out, final=final)
        if last is None:
            return at, rows
        kept = np.flatnonzero(at < last)
        return at[kept], rows.take(kept)

    def _pass_by(self, instants: _Instants) -> None:
        """Have windows move through instants, for operators that are lost."""
        if isinstance(instants, Stretches):
            self._of_events.held.through(instants.at)
            self._of_events.forget()
        else:
            assert self._kept is not None
            self._kept.add(instants)

    def batch(self, at: NDArray[np.int64], rows: FullRows) -> MatchBatch:
        """Full rows as they are emitted: i64[n], ascending, their instants."""
        values = self._told.of(rows.values, at)
        events = rows.span.shape[1]
        if not events:
            return MatchBatch(at, values, np.zeros(len(rows) + 1, np.int64), _NO_LETTERS, _NO_TIMES)
        letters = np.tile(np.array([START, END][:events], np.int32), len(rows))
        ends = np.arange(len(rows) + 1, dtype=np.int64) * events
        return MatchBatch(at, values, ends, letters, rows.span.reshape(-1).copy())

    def forget(self, at: int) -> None:
        """Between batches: windows and event mappings are empty from now on; waiting events stay."""
        self._on_its_own()
        self.resets = self.resets.another(at, 0 if self._newest is None else self._newest, self.records)
        self.schedule.forget()
        remembers, self.recent, self._lost = self.recent is not None, None, False
        self._begin()
        if isinstance(self._own, GeneralAnswers):
            self._own.held.newest = self._newest
        if remembers:
            self.recent = Recent(self._plan)
            if isinstance(self._own, GeneralAnswers):
                self.remember()

    def collect(self) -> None:
        if isinstance(self._own, GeneralAnswers):
            self._own.held.collect()

    # --- the KB, state ------------------------------------------------------------------------------

    @property
    def reads_kb(self) -> bool:
        return self._plan.reads_kb

    def keep_answers(self) -> bool:
        try:
            return super().keep_answers()
        except KbError:  # later events are its own
            self._on_its_own()
            raise

    def save(self, terms: SavedTerms) -> State:
        shared = self._shared
        recent = None if shared is None else shared.recent
        return {
            **super().save(terms),
            "schedule": (recent if isinstance(recent, Held) else self).schedule.save(terms),
            "newest": recent.newest if isinstance(recent, Held) else self._newest,
            "recent": self._kept.save(terms) if self._kept is not None and self._kept.complete else None,
            "lost": self._lost,
            "answers": self._answers.save(terms) if shared is None else self._save_shared(shared, terms),
        }

    def _save_shared(self, shared: Share, terms: SavedTerms) -> State:
        recent = shared.recent
        saved = recent.save_whole(terms) if isinstance(recent, Held) else recent.save(terms)
        return {"recent": saved, "known": self.knowledge.save_told(terms)}

    def restore(self, state: State, terms: KnownTerms) -> None:
        super().restore(state, terms)
        self.schedule.restore(state["schedule"], terms)
        self._newest = None if state["newest"] is None else int(state["newest"])
        if "recent" in state["answers"]:
            self._restore_shared(state["answers"], terms)
        else:
            self._answers.restore(state["answers"], terms)
            self._lost = bool(state.get("lost", False))
            if isinstance(self._answers, GeneralAnswers):
                self._answers.held.newest = self._newest
                self._answers.held.begun |= self._lost
            else:
                self._restore_kept(self._answers, state.get("recent"), terms)

    def _restore_kept(self, answers: SteadyAnswers, kept: State | None, terms: KnownTerms) -> None:
        """What windows hold; None: an earlier version has not saved it, so that it is known once windows have moved."""
        since = self._arrivals.passed if kept is None and self._newest is not None else None
        self._kept = Recent(self._plan, since, answers.instants, self._read)
        if kept is not None:
            self._kept.restore(kept, terms)

    def _restore_shared(self, state: State, terms: KnownTerms) -> None:
        if self.reads_kb:
            self.knowledge.restore_told(state["known"], terms)
        if isinstance(self._answers, GeneralAnswers):
            held = self._answers.held
            held.restore_whole(state["recent"], terms)
            self._be_as(held)
            return
        recent = Recent(self._plan)
        recent.restore(state["recent"], terms)
        self._be_as(recent)

    # --- its state and counters ---------------------------------------------------------------------

    @property
    def waits(self) -> bool:
        return self._plan.rhythm.ticks and self._newest is not None

    @property
    def state(self) -> dict[str, int]:
        return self._shared.state if self._shared is not None else self._answers.state

    @property
    def bytes(self) -> int:
        """About how large its state is."""
        if self._shared is not None:
            return self._shared.bytes
        return self._answers.bytes + (0 if self._kept is None else self._kept.bytes)


def _times(instants: _Instants) -> NDArray[np.int64]:
    """When they are."""
    return instants.at if isinstance(instants, Stretches) else times_of(instants)


def _cut(instants: _Instants, low: int, high: int) -> _Instants:
    """Those from a number to another, its end excluded."""
    if isinstance(instants, Stretches):
        return instants.slice(low, high)
    times = times_of(instants)
    return between(instants, times[low], times[high - 1])
