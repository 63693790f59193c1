"""Queries over the same windows, whose state is the same: they share it.

    events ─ arrivals of a group ─ complete events ─ one plan for all its queries ─ each query's own rows

Queries of one *kind* read the same streams through the same windows, with the same lateness and start. A kind's queries
are in one *group* as long as their states are the same, which hang on what the windows hold alone (`why_alone` says
which queries this does not hold for). One that is registered later, or has settled by itself, is alone in a group until
its windows hold the same as those of others. Whoever leaves a group makes its own state anew of what the windows hold.
So a query's matches are exactly those that it finds alone. An error ends the group: each of its queries goes on alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from oxiseq.engine.events.batch import EventBatch
from oxiseq.engine.output.batch import MatchBatch
from oxiseq.engine.rsp.joint import JointAnswers, Part, why_alone
from oxiseq.engine.rsp.plan import RspPlan
from oxiseq.engine.run.arrivals import Arrivals
from oxiseq.engine.run.recent import Recent
from oxiseq.engine.run.rsp import RspRun
from oxiseq.engine.run.shared import Outcome
from oxiseq.engine.terms.dictionary import TermDictionary

_GROWS: Final = 4
"""A group takes in others once they are a fourth of it, or when it has been at work for as long as its windows are."""
Kind: TypeAlias = tuple[Any, ...]


def kind_of(plan: RspPlan, lateness: int, start: int | None) -> Kind | None:
    """What queries that may share their state have in common; None: this one shares nothing."""
    if why_alone(plan) is not None:
        return None
    return plan.streams, lateness, start, tuple((content.stream, content.window) for content in plan.contents)


class _Group:
    """Queries in the same state, in order of registration, two at least."""

    def __init__(
        self, kind: Kind, runs: Sequence[RspRun], arrivals: Arrivals, recent: Recent, owner: Together
    ) -> None:
        self.kind, self._owner = kind, owner
        self.runs = list(runs)
        self.arrivals, self.recent = arrivals, recent
        self.taken: Sequence[EventBatch] = ()
        """The events that have been worked on last."""
        self.events = 0
        """That have come since the answers were made."""
        self._answers: JointAnswers | None = None
        self._built: list[RspRun | None] = []
        """The queries by their numbers in the answers; those that have left are None."""
        self._ways: list[int] = []
        """Of each the number of the columns that it shows: equal for those that show the same."""
        for run in runs:
            run.join(self)

    # --- a share ------------------------------------------------------------------------------------

    @property
    def others(self) -> int:
        return len(self.runs) - 1

    def release(self, run: RspRun) -> None:
        self._owner.release(self, run)

    @property
    def state(self) -> dict[str, int]:
        whole = {} if self._answers is None else self._answers.state
        return {what: -(-count // len(self.runs)) for what, count in whole.items()}

    @property
    def bytes(self) -> int:
        return 0 if self._answers is None else -(-self._answers.bytes // len(self.runs))

    def drop(self, run: RspRun) -> None:
        """One has left."""
        self.runs.remove(run)
        if run in self._built:
            self._built[self._built.index(run)] = None
        if 2 * len(self.runs) < len(self._built):
            self._answers = None

    def held_ids(self) -> Iterator[NDArray[np.uint32]]:
        """The terms of all that it may still look at."""
        yield from self.arrivals.held_ids()
        yield from self.recent.held_ids()
        if self._answers is not None:
            yield from self._answers.held_ids()

    # --- events -------------------------------------------------------------------------------------

    def advance(self, terms: TermDictionary, late: EventBatch | None) -> list[Outcome]:
        """Work through what is complete by now. An error loses what has been made of the windows, not what they hold,
        and tells nothing of `taken`."""
        passed = self.arrivals.passed
        found: dict[RspRun, MatchBatch] = {}
        if self.arrivals.complete(passed):
            self.taken = self.arrivals.take(passed)
            for part in self._at_work(terms).advance(self.taken):
                self._deal(part, found)
            self.recent.add(self.taken)
            self.events += sum(map(len, self.taken))
        for run, batch in found.items():
            run.matches += len(batch)
            terms.hold(batch.values)
        if late is None:
            return [Outcome(run, [batch]) for run, batch in found.items()]
        return [Outcome(run, [found[run]] if run in found else [], late) for run in self.runs]

    def _at_work(self, terms: TermDictionary) -> JointAnswers:
        if self._answers is None:
            answers, self._built = JointAnswers([run.plan for run in self.runs], terms), list(self.runs)
            numbers: dict[object, int] = {}
            shown = [tuple((told.place, told.expression) for told in run.plan.flow.told) for run in self.runs]
            self._ways = [numbers.setdefault(each, len(numbers)) for each in shown]
            for part in self.recent.parts():
                answers.pass_over(part)
            self._answers, self.events = answers, 0
        return self._answers

    def _deal(self, part: Part, found: dict[RspRun, MatchBatch]) -> None:
        """Each query of a part has its rows, in the columns that it shows."""
        shown: dict[int, MatchBatch] = {}
        for number in part.queries:
            run = self._built[number]
            if run is not None:
                way = self._ways[number]
                if way not in shown:
                    shown[way] = run.batch(part.at, part.rows)
                found[run] = shown[way]


_Any: TypeAlias = _Group | RspRun
"""Queries in one state: several, or one that has it itself."""


class Together:
    """The queries of a store that may share states. Not safe for several threads. number: of a query, in the order of
    registration."""

    def __init__(self, terms: TermDictionary, number: Mapping[Any, int]) -> None:
        self._terms, self._number = terms, number
        self._states: dict[Kind, list[_Any]] = {}
        self._of: dict[RspRun, tuple[Kind, _Any]] = {}
        self._failed: set[RspRun] = set()
        """Those that have shared a state until an error; they do not share again."""

    def __contains__(self, run: object) -> bool:
        return run in self._of

    def add(self, run: RspRun, kind: Kind) -> None:
        """A query, whatever it has seen."""
        states = self._states.setdefault(kind, [])
        self._put(kind, run)
        if len(states) > 1:
            for state in states:
                if isinstance(state, RspRun) and state.recent is None and state not in self._failed:
                    state.remember()
            self._unite(kind)

    def remove(self, run: RspRun) -> None:
        """Forget a query; one that shares a state has none then."""
        kind, state = self._of.pop(run)
        self._failed.discard(run)
        if isinstance(state, _Group):
            self._drop(state, run)
            return
        self._states[kind].remove(run)
        if not self._states[kind]:
            del self._states[kind]

    def release(self, group: _Group, run: RspRun) -> None:
        """One that shares a state goes on by itself. Raises LimitError."""
        run.leave()
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
            late = group.arrivals.push(group.kind[0].index(stream), batch)
            return late if len(late) else None

        return self._step(stream, take, alone)

    def punctuate(self, stream: str, time: int, alone: Callable[[RspRun], Outcome]) -> list[Outcome]:
        """No event of a stream before a time will come."""

        def take(group: _Group) -> None:
            group.arrivals.advance(group.kind[0].index(stream), time)

        return self._step(stream, take, alone)

    def _step(
        self, stream: str, take: Callable[[_Group], EventBatch | None], alone: Callable[[RspRun], Outcome]
    ) -> list[Outcome]:
        outcomes: list[Outcome] = []
        for kind in [kind for kind in self._states if stream in kind[0]]:
            for state in list(self._states[kind]):
                outcomes += [alone(state)] if isinstance(state, RspRun) else self._advance(state, take(state))
            if len(self._states[kind]) > 1:
                self._unite(kind)
        return outcomes

    def _advance(self, group: _Group, late: EventBatch | None) -> list[Outcome]:
        try:
            return group.advance(self._terms, late)
        except Exception:  # whosever it is, the others do not suffer
            return self._part(group, late)

    def _part(self, group: _Group, late: EventBatch | None) -> list[Outcome]:
        """What is shared has failed: each query works by itself from now on, as if it had always done so."""
        self._states[group.kind].remove(group)
        outcomes = []
        for run in group.runs:
            self._put(group.kind, run)
            self._failed.add(run)
            try:
                run.leave()
                run.recent = None
                outcomes.append(Outcome(run, run.worked(group.taken, group.arrivals.passed), late))
            except Exception as error:
                outcomes.append(Outcome(run, [], None, error))
        return outcomes

    # --- states that have come to be the same ---------------------------------------------------------

    def _unite(self, kind: Kind) -> None:
        """Have those share that are in the same state."""
        left = [state for state in self._states[kind] if state.recent is not None and state.recent.complete]
        while left:
            first, *others = left
            same = [first, *(other for other in others if _same(first, other))]
            left = [other for other in others if other not in same]
            if len(same) > 1 and _worth_while(same):
                self._make_one(kind, same)

    def _make_one(self, kind: Kind, states: Sequence[_Any]) -> None:
        runs = sorted((run for state in states for run in _runs(state)), key=self._number.__getitem__)
        one = states[0]
        assert one.recent is not None  # it is in the same state as others
        group = _Group(kind, runs, one.arrivals, one.recent, self)
        self._terms.register(group)
        self._states[kind] = [state for state in self._states[kind] if state not in states] + [group]
        self._of.update(dict.fromkeys(runs, (kind, group)))


def _runs(state: _Any) -> Sequence[RspRun]:
    return (state,) if isinstance(state, RspRun) else state.runs


def _same(one: _Any, other: _Any) -> bool:
    assert one.recent is not None and other.recent is not None  # they are complete
    return one.arrivals.same(other.arrivals) and one.recent.same(other.recent)


def _worth_while(states: Sequence[_Any]) -> bool:
    """Whether it is time for them to share: all that windows hold is worked on once more then."""
    groups = [state for state in states if isinstance(state, _Group)]
    largest = max(groups, key=lambda group: len(group.runs), default=None)
    if largest is None or not len(largest.recent):
        return True
    others = sum(len(_runs(state)) for state in states) - len(largest.runs)
    return _GROWS * others >= len(largest.runs) or largest.events >= len(largest.recent)
