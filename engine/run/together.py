"""Queries over the same windows, whose state is the same: they share it.

    events ─ arrivals of a group ─ complete events ─ one plan for all its queries ─ each query's own rows

Queries of one *kind* read the same streams through the same windows, with the same lateness and start. A kind's queries
are in one *group* as long as their states are the same, which hang on what the windows hold and on the knowledge base
(`why_alone` says which queries this does not hold for). One that is registered later, or has settled by itself, is
alone in a group until its windows hold the same as those of others. Whoever leaves a group makes its own state anew of
what the windows hold. So a query's matches are exactly those that it finds alone. One that settles by itself time and
again stays alone. An error ends the group: each of its queries goes on alone.

Each query asks the knowledge base itself, and knows what it has been told. So an error of the KB is its own, and a
change of the KB is seen by each at the instant at which it is seen alone. Those for which the KB has blank nodes stay
alone: in which order they stand is each query's own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from oxiseq.engine.errors import KbError, LimitError
from oxiseq.engine.events.batch import EventBatch
from oxiseq.engine.output.batch import MatchBatch
from oxiseq.engine.rsp.joint import JointAnswers, Part, why_alone
from oxiseq.engine.run.arrivals import Arrivals
from oxiseq.engine.run.recent import Recent
from oxiseq.engine.run.rsp import RspRun
from oxiseq.engine.run.shared import Outcome
from oxiseq.engine.terms.dictionary import TermDictionary

_GROWS: Final = 4
"""A group takes in others once they are a fourth of it, or when it has been at work for as long as its windows are."""
_OFTEN: Final = 3
_COMPARED: Final = 256
"""Events that are compared in the time of a step: states that differ are not compared at each."""
Kind: TypeAlias = tuple[Any, ...]


def kind_of(run: RspRun) -> Kind | None:
    """What queries that may share their state have in common; None: this one shares nothing."""
    plan = run.plan
    if why_alone(plan) is not None:
        return None
    contents = tuple((content.stream, content.window) for content in plan.contents)
    kb = id(run.kb_in_time.present) if plan.reads_kb else None
    return plan.streams, run.lateness, run.order.start, contents, kb


class PartError(Exception):
    """What queries see of the knowledge base is not the same any more."""


class _Group:
    """Queries in the same state, two at least."""

    def __init__(self, kind: Kind, order: Arrivals, recent: Recent, owner: Together) -> None:
        self.kind, self._owner = kind, owner
        self.runs: list[RspRun] = []
        self.order, self.recent = order, recent
        self.taken: Sequence[EventBatch] = ()
        """The events that have been worked on last."""
        self.events = 0
        """That have come since the answers were made."""
        self.found: dict[RspRun, list[MatchBatch]] = {}
        """What has been told of the events that came last."""
        self._version: int | None = None
        """Of the KB, that all have asked."""
        self._answers: JointAnswers | None = None
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
        """Made of the windows first, if somebody has come or gone since the last event."""
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

    def held_ids(self) -> Iterator[NDArray[np.uint32]]:
        """The terms of all that it may still look at."""
        yield from self.order.held_ids()
        yield from self.recent.held_ids()
        if self._answers is not None:
            yield from self._answers.held_ids()

    # --- events -------------------------------------------------------------------------------------

    def advance(self, terms: TermDictionary, late: EventBatch | None) -> list[Outcome]:
        """Work through what is complete by now. Raises KbError, PartError before events are taken. Another error loses
        what has been made of the windows, not what they hold, and tells nothing of `taken`."""
        self.found, self.taken = {}, ()
        for passed in self._stretches():
            if self.order.complete(passed):
                self._ask()
                self.taken = self.order.take(passed)
                found: dict[RspRun, list[MatchBatch]] = {}
                for part in self._at_work(terms).advance(self.taken):
                    self._deal(part, found, terms)
                before, self.found = self.found, found
                for run, batches in before.items():
                    found[run] = run.put_together([*batches, *found.get(run, ())])
                self.recent.add(self.taken)
                self.events += sum(map(len, self.taken))
                self.taken = ()
        for run, (batch,) in self.found.items():
            run.matches += len(batch.time)
        if late is None:
            return [Outcome(run, batches) for run, batches in self.found.items()]
        return [Outcome(run, self.found.get(run, []), late) for run in self.runs]

    # --- the KB -------------------------------------------------------------------------------------

    @property
    def _reads_kb(self) -> bool:
        return self.runs[0].reads_kb

    def _stretches(self) -> Iterable[int]:
        """As those of each query's KB, all of which go on."""
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

    def knows_all(self, recent: Recent) -> bool:
        """As that of each (`RspRun.knows_all`)."""
        return all(run.knows_all(recent) for run in self.runs)

    # --- what is at work ----------------------------------------------------------------------------

    def _at_work(self, terms: TermDictionary) -> JointAnswers:
        if self._answers is None:
            known = [run.knowledge for run in self.runs if run.reads_kb and run.knowledge is not None]
            answers, self._built = JointAnswers([run.plan for run in self.runs], terms, known), list(self.runs)
            numbers: dict[object, int] = {}
            shown = [tuple((told.place, told.expression) for told in run.plan.flow.told) for run in self.runs]
            self._ways = [numbers.setdefault(each, len(numbers)) for each in shown]
            for part in self.recent.parts():
                answers.pass_over(part)
            self._answers, self.events = answers, 0
        return self._answers

    def _deal(self, part: Part, found: dict[RspRun, list[MatchBatch]], terms: TermDictionary) -> None:
        """Each query of a part has its rows, in the columns that it shows."""
        shown: dict[int, _Shown] = {}
        for queries, low, high in part.pieces:
            mine: dict[int, MatchBatch] = {}
            for number in queries:
                run, way = self._built[number], self._ways[number]
                if run is None:
                    continue
                if way not in mine:
                    if way not in shown:
                        whole = run.batch(part.at, part.rows)
                        terms.hold(whole.values)
                        shown[way] = _Shown(whole)
                    mine[way] = shown[way].of(low, high)
                found[run] = [mine[way]]


class _Shown:
    """Matches without events, of several queries."""

    def __init__(self, whole: MatchBatch) -> None:
        self._whole = whole
        self._ends: dict[int, NDArray[np.int64]] = {}

    def of(self, low: int, high: int) -> MatchBatch:
        """Some of them, one after the other."""
        whole, count = self._whole, high - low
        if count == len(whole.time):
            return whole
        ends = self._ends.get(count)
        if ends is None:
            ends = self._ends[count] = whole.ends[: count + 1]
        return MatchBatch(whole.time[low:high], whole.values[low:high], ends, whole.event_letter, whole.event_time)


_Any: TypeAlias = _Group | RspRun
"""Queries in one state: several, or one that has it itself."""


class Together:
    """The queries of a store that may share states. Not safe for several threads. Outcomes come in any order."""

    def __init__(self, terms: TermDictionary) -> None:
        self.terms = terms
        self._states: dict[Kind, list[_Any]] = {}
        self._of: dict[RspRun, tuple[Kind, _Any]] = {}
        self._patience: dict[Kind, int] = {}
        """Steps until states of a kind that have differed are compared again, which costs as much as windows hold."""
        self._left: dict[RspRun, int] = {}
        """How often each has left others. To make its own state anew costs more than is won if it is done often; so
        those that have left too often, or because of an error, do not share again."""

    def __contains__(self, run: object) -> bool:
        return run in self._of

    def add(self, run: RspRun, kind: Kind) -> None:
        """A query, whatever it has seen."""
        states = self._states.setdefault(kind, [])
        self._put(kind, run)
        if len(states) > 1:
            for state in states:
                if isinstance(state, RspRun) and state.recent is None and self._left.get(state, 0) < _OFTEN:
                    state.remember()
            self._unite(kind)

    def remove(self, run: RspRun) -> None:
        """Forget a query; one that shares a state has none then."""
        kind, state = self._of.pop(run)
        self._left.pop(run, None)
        if isinstance(state, _Group):
            self._drop(state, run)
            return
        self._states[kind].remove(run)
        if not self._states[kind]:
            del self._states[kind]
            self._patience.pop(kind, None)

    def release(self, group: _Group, run: RspRun) -> None:
        """One that shares a state goes on by itself. Raises LimitError."""
        run.leave()
        self._count_left(run, 1)
        self._put(group.kind, run)
        self._drop(group, run)

    def _drop(self, group: _Group, run: RspRun) -> None:
        """Of two, the other one goes on by itself then."""
        group.drop(run)
        if len(group.runs) == 1:
            self._states[group.kind].remove(group)
            group.runs[0].leave()
            self._put(group.kind, group.runs[0])

    def _put(self, kind: Kind, run: RspRun) -> None:
        self._of[run] = kind, run
        self._states[kind].append(run)

    # --- events -------------------------------------------------------------------------------------

    def push(self, stream: str, batch: EventBatch, alone: Callable[[RspRun], Outcome]) -> list[Outcome]:
        """Events of a stream, in order of arrival; what that did for each query. alone: what it does for one that has
        its state itself."""

        def take(group: _Group) -> EventBatch | None:
            late = group.order.push(group.kind[0].index(stream), batch)
            return late if len(late) else None

        return self._step(stream, take, alone)

    def punctuate(self, stream: str, time: int, alone: Callable[[RspRun], Outcome]) -> list[Outcome]:
        """No event of a stream before a time will come."""

        def take(group: _Group) -> None:
            group.order.advance(group.kind[0].index(stream), time)

        return self._step(stream, take, alone)

    def _step(
        self, stream: str, take: Callable[[_Group], EventBatch | None], alone: Callable[[RspRun], Outcome]
    ) -> list[Outcome]:
        outcomes: list[Outcome] = []
        for kind in [kind for kind in self._states if stream in kind[0]]:
            for state in list(self._states[kind]):
                outcomes += [alone(state)] if isinstance(state, RspRun) else self._advance(state, take(state))
            if len(self._states[kind]) > 1:
                if self._patience.get(kind, 0):
                    self._patience[kind] -= 1
                else:
                    self._unite(kind)
        return outcomes

    def _advance(self, group: _Group, late: EventBatch | None) -> list[Outcome]:
        try:
            return group.advance(self.terms, late)
        except KbError:
            return self._part(group, late, often=0)
        except PartError:
            return self._part(group, late, often=1)
        except Exception:  # whosever it is, the others do not suffer
            return self._part(group, late, often=_OFTEN)

    def _part(self, group: _Group, late: EventBatch | None, often: int) -> list[Outcome]:
        """What is shared has failed, or is not the same any more: each query works by itself from now on, as if it had
        always done so. often: as how many times it counts that it has left others."""
        self._states[group.kind].remove(group)
        outcomes = []
        for run in group.runs:
            self._put(group.kind, run)
            found = group.found.get(run, [])
            try:
                run.leave()
                self._count_left(run, often)
                found = run.counted([*found, *run.worked(group.taken, group.order.passed)])
                outcomes.append(Outcome(run, run.put_together([*found, *run.advance()]), late))
            except Exception as error:
                later = found and isinstance(error, KbError)  # it is raised again
                outcomes.append(Outcome(run, found, late) if later else Outcome(run, [], None, error))
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
        group = max((state for state in states if isinstance(state, _Group)), key=_size, default=None)
        if group is None:
            one = states[0]
            assert one.recent is not None  # it is in the same state as others
            group = _Group(kind, one.order, one.recent, self)
            self.terms.register(group)
            self._states[kind].append(group)
        for state in states:
            if state is not group:
                self._states[kind].remove(state)
                for run in _runs(state):
                    group.take_in(run)
                    self._of[run] = kind, group


def _size(group: _Group) -> int:
    return len(group.runs)


def _runs(state: _Any) -> Sequence[RspRun]:
    return (state,) if isinstance(state, RspRun) else state.runs


def _may_share(state: _Any) -> bool:
    """Whether its state is known to be of what its windows hold, and of the KB that holds now."""
    recent = state.recent
    return recent is not None and recent.complete and state.knows_all(recent)


def _same(one: _Any, other: _Any) -> bool:
    assert one.recent is not None and other.recent is not None  # they are complete
    return one.order.same(other.order) and one.recent.same(other.recent)


def _worth_while(states: Sequence[_Any]) -> bool:
    """Whether it is time for them to share: all that windows hold is worked on once more then."""
    groups = [state for state in states if isinstance(state, _Group)]
    largest = max(groups, key=_size, default=None)
    if largest is None or not len(largest.recent):
        return True
    others = sum(len(_runs(state)) for state in states) - len(largest.runs)
    return _GROWS * others >= len(largest.runs) or largest.events >= len(largest.recent)
