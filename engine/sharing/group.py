"""Queries over the same windows whose state is one: events in, each query's own rows out (together.py).

In the flow: arrivals of a group → complete events → **one plan for all its queries** → their rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from oxiseq.engine.errors import LimitError
from oxiseq.engine.events.batch import EventBatch
from oxiseq.engine.order.arrivals import Arrivals
from oxiseq.engine.output.batch import MatchBatch
from oxiseq.engine.rsp.held import Held
from oxiseq.engine.rsp.joint import JointAnswers, JointGeneral, Part, why_alone
from oxiseq.engine.rsp.steady import is_steady
from oxiseq.engine.run.recent import Recent
from oxiseq.engine.run.rsp import RspRun
from oxiseq.engine.sharing.dispatching import Outcome
from oxiseq.engine.sharing.equal import why_unequal
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


class Owner(Protocol):
    """Lets queries continue alone."""

    terms: TermDictionary

    def release(self, group: Group, run: RspRun) -> None:
        """One that shares a state continues alone. Raises LimitError."""


class Group(Stateful):
    """Queries in the same state, two at least."""

    made_of = unsaved("order"), unsaved("recent"), unsaved("_answers")

    def __init__(self, kind: Kind, order: Arrivals, recent: Recent | Held, owner: Owner) -> None:
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
