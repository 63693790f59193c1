"""Queries over the same windows, whose state is the same: they share it.

    events ─ arrivals of a group ─ complete events ─ one plan for all its queries ─ each query's own rows

Queries of one *kind* read the same streams through the same windows, with the same lateness and start. A kind's queries
are in one *group* as long as their states are the same, which depend on the windows' contents and on the knowledge base
(`why_alone` says which queries this does not hold for). One that is registered later, or has settled by itself, is
alone in a group until its windows hold the same as those of others. A query that leaves a group makes its own state
again from the contents of the windows. So a query's matches are exactly those that it finds alone. One that settles
alone repeatedly stays alone. An error ends the group: each of its queries continues alone.

Each query asks the knowledge base itself, and knows what it has received. So an error of the KB is its own, and a
change of the KB is seen by each at the instant at which it is seen alone. Those for which the KB has blank nodes stay
alone: their order is each query's own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from oxiseq.engine.errors import KbError, LimitError
from oxiseq.engine.events.batch import EventBatch
from oxiseq.engine.omissions import InstantError
from oxiseq.engine.order.arrivals import Arrivals
from oxiseq.engine.order.watermarks import BEFORE_ALL
from oxiseq.engine.output.batch import MatchBatch
from oxiseq.engine.rsp.held import Held
from oxiseq.engine.rsp.joint import JointAnswers, JointGeneral, Part, why_alone
from oxiseq.engine.rsp.steady import is_steady
from oxiseq.engine.run.recent import Recent
from oxiseq.engine.run.rsp import RspRun
from oxiseq.engine.sharing.dispatching import Dispatcher, Outcome, stepped_alone
from oxiseq.engine.sharing.member import why_unequal
from oxiseq.engine.terms.dictionary import TermDictionary
from oxiseq.engine.terms.saved import Stateful, unsaved

Kind: TypeAlias = tuple[Any, ...]


def kind_of(run: RspRun) -> Kind | None:
    """What queries that may share their state have in common; None: this one shares nothing."""
    plan = run.plan
    if why_alone(plan) is not None or why_unequal(plan) is not None:
        return None
    contents = tuple((content.stream, content.window) for content in plan.contents)
    kb = id(run.kb_in_time.present) if plan.reads_kb else None
    return plan.streams, run.lateness, run.order.start, contents, plan.rhythm, is_steady(plan), kb


class PartError(Exception):
    """What queries see of the knowledge base is not the same any more."""


class Group(Stateful):
    """Queries in the same state, two at least."""

    made_of = unsaved("order"), unsaved("recent"), unsaved("_answers")

    def __init__(self, kind: Kind, order: Arrivals, recent: Recent | Held, owner: Together) -> None:
        self.kind, self._owner = kind, owner
        self.runs: list[RspRun] = []
        self.order, self.recent = order, recent
        self.taken: Sequence[EventBatch] = ()
        """The events that have been taken and not been processed: by stream, none for none."""
        self.until = order.passed
        """The time before which events have been taken."""
        self.events = self.steps = 0
        """That have come since the answers were made; steps in all."""
        self.found: dict[RspRun, list[MatchBatch]] = {}
        """What has been emitted for the events that came last."""
        self._version: int | None = None
        """The KB version that all have queried."""
        self._answers: JointAnswers | JointGeneral | None = None
        self._built: list[RspRun | None] = []
        """The queries by their numbers in the answers; those that have left are None."""
        self._ways: list[int] = []
        """Of each the number of the columns that it shows: equal for those that show the same."""

    # --- a share ------------------------------------------------------------------------------------

    @property
    def others(self) -> int:
        return len(self.runs) - 1

    def release(self, run: RspRun) -> None:
        self._owner.release(self, run)

    @property
    def state(self) -> dict[str, int]:
        """Made of the windows first, if somebody has come or gone since the last event and they hold something."""
        if self._answers is None and not len(self.recent):
            return {"triples": 0, "rows": 0}
        try:
            whole = self._at_work(self._owner.terms).state
        except LimitError:  # the next event has them part
            whole = {"triples": 0, "rows": 0}
        return {what: -(-count // len(self.runs)) for what, count in whole.items()}

    @property
    def bytes(self) -> int:
        return 0 if self._answers is None else -(-self._answers.bytes // len(self.runs))

    def take_in(self, run: RspRun) -> None:
        """Another one, whose state is the same."""
        run.join(self)
        self.runs.append(run)
        self._answers = None

    def drop(self, run: RspRun) -> None:
        """One has left."""
        self.runs.remove(run)
        if run in self._built:
            number = self._built.index(run)
            self._built[number] = None
            if self._answers is not None:
                self._answers.knowledge.forget(number)
        if 2 * len(self.runs) < len(self._built):
            self._answers = None

    # --- events -------------------------------------------------------------------------------------

    def advance(self, terms: TermDictionary, late: EventBatch | None) -> list[Outcome]:
        """Processes the events that are complete. Raises KbError, PartError before events are taken. Another error
        loses what has been derived from the windows, not what they hold, and emits nothing for `taken`."""
        self.found, self.taken = {}, ()
        for passed in self._stretches():
            if self.order.complete(passed) or isinstance(self.recent, Held):
                self._ask()
                self._work(passed, terms)
        outcomes = []
        for run, batches in self.found.items():  # of thousands of queries
            run.matches += len(batches[0].time)
            outcomes.append(Outcome(run, batches))
        if late is None:
            return outcomes
        return [Outcome(run, self.found.get(run, []), late) for run in self.runs]

    def _work(self, passed: int, terms: TermDictionary) -> None:
        """Processes the complete events before a time."""
        self.taken, self.until = self.order.take(passed), passed
        found: dict[RspRun, list[MatchBatch]] = {}
        answers = self._at_work(terms)
        answers.knowledge.mark()
        for part in answers.advance(self.taken, passed):
            self._deal(part, found, terms)
        before, self.found = self.found, found
        for run, batches in before.items():
            found[run] = [*batches, *found.get(run, ())]
        for run in [run for run, batches in found.items() if len(batches) > 1]:
            found[run] = run.put_together(found[run])
        if isinstance(self.recent, Recent):
            self.recent.add(self.taken)
        self.events += sum(map(len, self.taken))
        self.taken = ()

    def give_up(self) -> None:
        """An error has come while `taken` was processed: the queries know of the KB what they knew before."""
        if self.taken and self._answers is not None:
            self._answers.knowledge.back_to_mark()

    # --- the KB -------------------------------------------------------------------------------------

    @property
    def _reads_kb(self) -> bool:
        return self.runs[0].reads_kb

    def _stretches(self) -> Iterable[int]:
        """As those of each query's KB, all of which continue."""
        passed = self.order.passed
        if not self._reads_kb:
            return (passed,)
        first, *others = (run.kb_in_time for run in self.runs)
        if not all(map(first.same, others)):
            raise PartError
        if not first.waits:
            return first.stretches(passed)
        every = (kb.stretches(passed) for kb in (first, *others))
        return (stretch for stretch, *_ in zip(*every, strict=True))

    def _ask(self) -> None:
        """Have each query ask the KB, if that has changed. Raises KbError, PartError."""
        if not self._reads_kb:
            return
        version = self.runs[0].kb_in_time.version
        if version != self._version:
            for run in self.runs:
                run.kb_in_time.ask()
                if run.meets_blanks:
                    raise PartError
            self._version = version

    def knows_all(self, recent: Recent | Held) -> bool:
        """As that of each (`RspRun.knows_all`)."""
        return all(run.knows_all(recent) for run in self.runs)

    # --- its operators -------------------------------------------------------------------------------

    def _at_work(self, terms: TermDictionary) -> JointAnswers | JointGeneral:
        if self._answers is None:
            self._built = list(self.runs)
            numbers: dict[object, int] = {}
            shown = [tuple((told.place, told.expression) for told in run.plan.flow.told) for run in self.runs]
            self._ways = [numbers.setdefault(each, len(numbers)) for each in shown]
            self._answers, self.events = self._made(terms), 0
        return self._answers

    def _made(self, terms: TermDictionary) -> JointAnswers | JointGeneral:
        """All operators, as they are with the contents of the windows."""
        plans = [run.plan for run in self.runs]
        known = [run.knowledge for run in self.runs if run.reads_kb]
        if isinstance(self.recent, Held):
            general = JointGeneral(plans, terms, self.recent, known)
            general.take_up()
            return general
        steady = JointAnswers(plans, terms, known)
        steady.take_up(self.recent.parts(), self.recent.before)
        return steady

    def _deal(self, part: Part, found: dict[RspRun, list[MatchBatch]], terms: TermDictionary) -> None:
        """Each query of a part has its rows, in the columns that it shows."""
        shown: dict[int, _Shown] = {}
        built, ways = self._built, self._ways
        for queries, low, high in part.pieces:
            for number in queries:
                run, way = built[number], ways[number]
                if run is None:
                    continue
                if way not in shown:
                    whole = run.batch(part.at, part.rows)
                    terms.hold(whole.values)
                    shown[way] = _Shown(whole)
                found.setdefault(run, []).append(shown[way].of(low, high))


class _Shown:
    """Matches without events, of several queries."""

    def __init__(self, whole: MatchBatch) -> None:
        self._whole, self._count = whole, len(whole.time)
        self._ends: dict[int, NDArray[np.int64]] = {}
        self._last, self._low, self._high = whole, 0, self._count

    def of(self, low: int, high: int) -> MatchBatch:
        """Some of them, one after the other; equal queries ask for the same, one after the other."""
        if low == self._low and high == self._high:
            return self._last
        whole, count = self._whole, high - low
        ends = self._ends.get(count)
        if ends is None:
            ends = self._ends[count] = whole.ends[: count + 1]
        self._low, self._high = low, high
        self._last = MatchBatch(
            whole.time[low:high], whole.values[low:high], ends, whole.event_letter, whole.event_time
        )
        return self._last


_GROWS: Final = 4
"""A group takes in others once they are a fourth of it, or when it has been at work for as long as its windows are."""
_OFTEN: Final = 3
_TOLD: Final = 64
"""Steps of a group after which one of its queries stands for them in `stepped`."""
_COMPARED: Final = 256
"""Events that are compared in the time of a step: states that differ are not compared at each."""
_Any: TypeAlias = Group | RspRun
"""Queries in one state: several, or one that has it itself."""


class Together(Dispatcher[RspRun]):
    """The queries of a store that may share states. Outcomes come in any order, where there is something to emit."""

    def __init__(self, terms: TermDictionary) -> None:
        super().__init__()
        self.terms = terms
        self._states: dict[Kind, list[_Any]] = {}
        self._reading: dict[str, dict[Kind, None]] = {}
        """By stream the kinds of queries that read it."""
        self._of: dict[RspRun, tuple[Kind, _Any]] = {}
        self._patience: dict[Kind, int] = {}
        """Steps until states of a kind that have differed are compared again, which costs as much as windows hold."""
        self._left: dict[RspRun, int] = {}
        """How often each has left others. To make its own state again costs more than is won if it is done often; so
        those that have left too often, or because of an error, do not share again."""

    def knows(self, kind: Kind) -> bool:
        """Whether there are queries of a kind."""
        return kind in self._states

    def add(self, run: RspRun, kind: Kind) -> None:
        """A query, whatever it has seen."""
        states = self._states.setdefault(kind, [])
        for stream in kind[0]:
            self._reading.setdefault(stream, {})[kind] = None
        self._put(kind, run)
        if len(states) > 1:
            for state in states:
                if isinstance(state, RspRun) and state.recent is None and self._left.get(state, 0) < _OFTEN:
                    state.remember()
            self._unite(kind)

    def tells_steps(self, run: RspRun) -> bool:
        """Whether `stepped` tells of each step: now and then one stands for all that share a state."""
        return False

    def remove(self, run: RspRun) -> None:
        """One that shares a state has none then."""
        kind, state = self._of.pop(run)
        self._left.pop(run, None)
        self._stepped.discard(run)
        if isinstance(state, Group):
            self._drop(state, run)
            return
        self._states[kind].remove(run)
        if not self._states[kind]:
            del self._states[kind]
            self._patience.pop(kind, None)
            for stream in {*kind[0]}:
                del self._reading[stream][kind]
                if not self._reading[stream]:
                    del self._reading[stream]

    def release(self, group: Group, run: RspRun) -> None:
        """One that shares a state continues alone. Raises LimitError."""
        run.leave()
        self._count_left(run, 1)
        self._put(group.kind, run)
        self._drop(group, run)

    def _drop(self, group: Group, run: RspRun) -> None:
        """Of two, the other one continues alone then."""
        group.drop(run)
        if len(group.runs) == 1:
            self._states[group.kind].remove(group)
            group.runs[0].leave()
            self._put(group.kind, group.runs[0])

    def _put(self, kind: Kind, run: RspRun) -> None:
        self._of[run] = kind, run
        self._states[kind].append(run)

    # --- events -------------------------------------------------------------------------------------

    def push(self, stream: str, batch: EventBatch) -> list[Outcome]:
        if not self._states:
            return []

        def take(group: Group) -> EventBatch | None:
            late = group.order.push(group.kind[0].index(stream), batch)
            return late if len(late) else None

        return self._step(stream, take, lambda run: run.push(stream, batch))

    def punctuate(self, stream: str, time: int) -> list[Outcome]:
        def take(group: Group) -> None:
            group.order.advance(group.kind[0].index(stream), time)

        return self._step(stream, take, lambda run: run.punctuate(stream, time))

    def _step(
        self, stream: str, take: Callable[[Group], EventBatch | None], alone: Callable[[RspRun], Any]
    ) -> list[Outcome]:
        """A step. take: to a group, whose late events it gives; alone: to one that has its state itself."""
        outcomes: list[Outcome] = []
        for kind in tuple(self._reading.get(stream, ())):
            for state in list(self._states[kind]):
                if isinstance(state, RspRun):
                    self._stepped.add(state)
                    outcomes.append(stepped_alone(state, partial(alone, state)))
                else:
                    state.steps += 1
                    if state.steps % _TOLD == 0:
                        self._stepped.add(state.runs[0])
                    outcomes += self._advance(state, take(state))
            if len(self._states[kind]) > 1:
                if self._patience.get(kind, 0):
                    self._patience[kind] -= 1
                else:
                    self._unite(kind)
        return [outcome for outcome in outcomes if not outcome.is_nothing]

    def settle(self, run: RspRun, until: int = BEFORE_ALL) -> list[Outcome]:
        return [stepped_alone(run, run.settle)]

    def close(self, run: RspRun) -> list[Outcome]:
        return [stepped_alone(run, run.close)]

    def forget(self, run: RspRun, at: int) -> None:
        run.forget(at)

    def _advance(self, group: Group, late: EventBatch | None) -> list[Outcome]:
        try:
            return group.advance(self.terms, late)
        except KbError:
            return self._part(group, late, often=0)
        except PartError:
            return self._part(group, late, often=1)
        except Exception:  # whosever it is, the others do not suffer
            return self._part(group, late, often=_OFTEN)

    def _part(self, group: Group, late: EventBatch | None, often: int) -> list[Outcome]:
        """The shared part has failed, or differs: each query works alone from now on, as if it had
        always done so. often: as how many times it counts that it has left others."""
        self._states[group.kind].remove(group)
        group.give_up()
        outcomes = []
        for run in group.runs:
            self._put(group.kind, run)
            found = group.found.get(run, [])
            try:
                run.leave()
                self._count_left(run, often)
                if group.taken:
                    found = [*found, *run.worked(group.taken, group.until)]
                found = run.counted(found)
                outcomes.append(Outcome(run, run.put_together([*found, *run.advance()]), late))
            except InstantError as error:
                outcomes.append(Outcome(run, [*found, *run.left()], late, error))
            except Exception as error:
                later = found and isinstance(error, KbError)  # it is raised again
                outcomes.append(Outcome(run, found, late) if later else Outcome(run, [], late, error))
        return outcomes

    def _count_left(self, run: RspRun, times: int) -> None:
        self._left[run] = self._left.get(run, 0) + times
        if self._left[run] >= _OFTEN:
            run.recent = None

    # --- states that have come to be the same ---------------------------------------------------------

    def _unite(self, kind: Kind) -> None:
        """Have those share that are in the same state."""
        left = [state for state in self._states[kind] if _may_share(state)]
        while left:
            first, *others = left
            same = [first, *(other for other in others if _same(first, other))]
            left = [other for other in others if other not in same]
            if len(same) > 1 and _worth_while(same):
                self._make_one(kind, same)
        held = sum(len(state.recent) for state in self._states[kind] if state.recent is not None)
        self._patience[kind] = held // _COMPARED

    def _make_one(self, kind: Kind, states: Sequence[_Any]) -> None:
        """The largest group takes in the others."""
        group = max((state for state in states if isinstance(state, Group)), key=_size, default=None)
        if group is None:
            one = states[0]
            assert one.recent is not None  # it is in the same state as others
            group = Group(kind, one.order, one.recent, self)
            self.terms.register(group)
            self._states[kind].append(group)
        for state in states:
            if state is not group:
                self._states[kind].remove(state)
                for run in _runs(state):
                    group.take_in(run)
                    self._of[run] = kind, group


def _size(group: Group) -> int:
    return len(group.runs)


def _runs(state: _Any) -> Sequence[RspRun]:
    return (state,) if isinstance(state, RspRun) else state.runs


def _may_share(state: _Any) -> bool:
    """Whether its state is known to be of the contents of its windows, and of the KB that holds now."""
    recent = state.recent
    return recent is not None and recent.complete and state.knows_all(recent)


def _same(one: _Any, other: _Any) -> bool:
    mine, others = one.recent, other.recent
    if not one.order.same(other.order):
        return False
    if isinstance(mine, Held):
        return isinstance(others, Held) and mine.same(others)
    assert isinstance(mine, Recent) and isinstance(others, Recent)  # they are of one kind, and complete
    return mine.same(others)


def _worth_while(states: Sequence[_Any]) -> bool:
    """Whether it is time for them to share: all that windows hold is processed again then."""
    groups = [state for state in states if isinstance(state, Group)]
    largest = max(groups, key=_size, default=None)
    if largest is None or not len(largest.recent):
        return True
    others = sum(len(_runs(state)) for state in states) - len(largest.runs)
    return _GROWS * others >= len(largest.runs) or largest.events >= len(largest.recent)
