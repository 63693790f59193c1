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

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Final, TypeAlias

from oxiseq.engine.errors import KbError
from oxiseq.engine.events.batch import EventBatch
from oxiseq.engine.omissions import InstantError
from oxiseq.engine.order.watermarks import BEFORE_ALL
from oxiseq.engine.rsp.held import Held
from oxiseq.engine.run.recent import Recent
from oxiseq.engine.run.rsp import RspRun
from oxiseq.engine.sharing.dispatching import Dispatcher, Outcome, stepped_alone
from oxiseq.engine.sharing.group import Group, Kind, PartError
from oxiseq.engine.terms.dictionary import TermDictionary

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
