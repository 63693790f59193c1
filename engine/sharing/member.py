"""Equal runs in one state, and when they must get events (apart.py).

    equal runs ─ one state, which each of them has ─ asleep or awake

The first works for all. One that goes another way than the others (it takes what has come as complete, it
forgets) gets a copy of the state; those that do the same next, before anything else happens, join it. So a hundred that
do it one after the other are one again.

Queries are equal if from the same state on they find the same, for ever. States of runs that are alike may come to be
the same. To compare them costs as much as they hold. So they are compared when one has come, and again after as many
events as they hold records, after twice as many as the last time at the least; a few at each push, so that none has to
wait for hundreds of them. Which ones are compared with each other is drawn in each round, so that any two meet.
"""

from __future__ import annotations

import heapq
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from functools import partial
from itertools import count, islice
from random import Random
from typing import Any, Final

from oxiseq.engine.expressions.functions import IMPURE
from oxiseq.engine.flow.epsparql.query import IntervalPlan
from oxiseq.engine.order.watermarks import BEFORE_ALL
from oxiseq.engine.run.alone import AloneRun
from oxiseq.engine.run.concern import Concern
from oxiseq.engine.run.fingerprints import fingerprint, text_of
from oxiseq.engine.run.with_kb import KbRun
from oxiseq.engine.sharing.dispatching import Outcome
from oxiseq.engine.terms.dictionary import TermDictionary
from oxiseq.grammar.algebra import Call
from oxiseq.grammar.parts import parts
from oxiseq.grammar.records import dataclass


@dataclass(slots=True, eq=False)
class Member:
    """Runs in one state. equal: the fingerprint of equal ones; lineage: that of equal states. `seen`:
    of one asleep, by stream the position up to which it has got events.

    It is awake while not everything up to the time `until` is complete, or no event newer than `woken` has come.
    `last`: `until` is an instant behind all that concerns it, at which it may emit retractions; where events linger,
    it is awake until there is one.
    """

    runs: list[AloneRun]
    number: int
    concern: Concern | None
    seen: dict[str, int]
    equal: Hashable
    lineage: Hashable
    until: int = BEFORE_ALL
    woken: int | None = BEFORE_ALL
    last: bool = False
    owing: set[AloneRun] = field(default_factory=set)
    """Those that do not know yet that answers of the KB are kept."""
    ended: Sequence[Outcome] = ()
    """The results of the step by which it has left others, for all that are in its state."""
    _by_number: dict[int, list[AloneRun]] | None = None

    @property
    def run(self) -> AloneRun:
        """The one that is at work."""
        return self.runs[0]

    @property
    def rests(self) -> bool:
        """Whether it may sleep."""
        waits = self.concern is None or self.woken is not None or (self.concern.linger and not self.last)
        return not waits and self.run.order.passed > self.until

    def called(self, last: int) -> None:
        """Events up to this time concern it."""
        if self.concern is not None:
            self.until, self.last = max(self.until, last + self.concern.linger), False

    def wake(self) -> None:
        """The next event concerns it, whatever it is."""
        self.woken = self.run.order.accepted

    def stepped(self) -> None:
        """Called when it has got something."""
        order, accepted = self.run.order, self.run.order.accepted
        if self.woken is not None and accepted > self.woken:
            self.called(accepted)
            self.woken = None
        lingers = self.concern is not None and self.concern.linger and not self.last
        if lingers and order.passed > self.until and accepted > self.until:  # a punctuation is no instant
            self.until, self.last = accepted, True

    # --- several runs -------------------------------------------------------------------------------

    def take_in(self, run: AloneRun) -> None:
        """Another run, which is in the same state or has none."""
        run.share(self.run)
        self.runs.append(run)
        self.concern, self._by_number = self.run.concern, None

    def take_over(self, other: Member) -> None:
        """Those of another, which have come to be in the same state; that has none then."""
        for run in other.runs:
            run.move_to(self.run)
        self.runs += other.runs
        self.owing |= other.owing
        self.until, self.last = max(self.until, other.until), self.last and other.last
        self.number = min(self.number, other.number)
        if other.woken is not None:
            self.wake()
        self.concern, self._by_number = self.run.concern, None

    def part(self, run: AloneRun, terms: TermDictionary) -> Member:
        """One run with a state of its own, which is the same."""
        run.part(terms)
        self.runs.remove(run)
        self.owing.discard(run)
        self._by_number = None
        return replace(self, runs=[run], seen=dict(self.seen), owing=set(), ended=())

    def drop(self, run: AloneRun) -> None:
        """Forget a run; if there are others, it has no state then."""
        if len(self.runs) > 1:
            run.share(run.another())
        self.runs.remove(run)
        self.owing.discard(run)
        self._by_number = None
        if self.runs:
            self.run.narrow(self.runs)

    def keep_answers(self, run: AloneRun) -> bool:
        """As `AloneRun.keep_answers`: for each of the runs. Raises KbError."""
        kept = run.keep_answers()
        if kept:
            self.owing = set(self.runs)
        owed = run in self.owing
        self.owing.discard(run)
        return owed

    def told(self, outcomes: Sequence[Outcome], *, quiet: bool = True) -> list[Outcome]:
        """The results of a step, for each run; `quiet`: only for those that have some."""
        return [each for outcome in outcomes for each in self._told(outcome, quiet)]

    def _told(self, outcome: Outcome, quiet: bool) -> Iterator[Outcome]:
        found = self.run.of_each(outcome.matches)
        if found is None:
            yield from (outcome._replace(run=run) for run in self.runs)
            return
        every = not quiet or outcome.late is not None or outcome.error is not None or outcome.ignored
        errors = outcome.errors
        for number in self._numbered if every else {**found, **errors}:
            for run in self._numbered.get(number, ()):
                error = errors.get(number, outcome.error)
                yield outcome._replace(run=run, matches=found.get(number, ()), error=error, errors={})

    def told_to(self, run: AloneRun) -> list[Outcome]:
        """The results for one of the runs of the step by which it has left others."""
        found = [(outcome, run.of_each(outcome.matches)) for outcome in self.ended]
        return [
            outcome._replace(run=run, matches=outcome.matches if each is None else each.get(run.number, ()))
            for outcome, each in found
        ]

    @property
    def _numbered(self) -> Mapping[int, Sequence[AloneRun]]:
        """The runs, by their numbers."""
        if self._by_number is None:
            self._by_number = {}
            for run in self.runs:
                self._by_number.setdefault(run.number, []).append(run)
        return self._by_number


AT_ONCE: Final = 32
"""So many are compared at one push."""


@dataclass(slots=True)
class _Alike:
    """Runs that are, those that are compared next first. pause: events from one round to the next; due: the number of
    the event of the next time; left: how many are to be compared in this round still; records: those of the others;
    dice: draws the order of each round."""

    members: dict[Member, None] = field(default_factory=dict)
    pause: int = 0
    due: int = 0
    left: int = 0
    records: int = 0
    dice: Random = field(default_factory=partial(Random, 0))

    def next(self) -> tuple[Member, ...]:
        """Some that have not been compared in this round."""
        if self.left <= 0:
            self.left, self.records = len(self.members), 0
            self.members = dict.fromkeys(self.dice.sample([*self.members], self.left))
        some = tuple(islice(self.members, AT_ONCE))
        for member in some:
            self.members[member] = self.members.pop(member)
        self.left -= len(some)
        return some

    def compared(self, some: tuple[Member, ...]) -> None:
        """Wait for the next time."""
        self.records += sum(member.run.records for member in some if member in self.members)
        self.pause = self.pause if self.left > 0 else max(2 * self.pause, self.records, 1)


class Reunions:
    """The runs of a store that `unite`."""

    def __init__(self) -> None:
        self._alike: dict[Hashable, _Alike] = {}
        self._due: list[tuple[int, int, Hashable]] = []
        """In order of time; those that are not of the time of their kind count no more."""
        self._events = 0
        self._order = count()

    def enter(self, member: Member) -> None:
        """One more."""
        if not member.run.unites:
            return
        alike = self._alike.setdefault(member.equal, _Alike())
        if alike.members:
            member.run.expect([each.run for each in alike.members])
            self._put(member.equal, alike)
        alike.members[member] = None

    def leave(self, member: Member) -> None:
        """One is there no more, or in the state of another."""
        alike = self._alike.get(member.equal)
        if alike is not None:
            alike.members.pop(member, None)
            if not alike.members:
                del self._alike[member.equal]

    def due(self, events: int) -> Iterator[tuple[Member, ...]]:
        """So many events have come: those that are to be compared. Ask for all of them."""
        self._events += events
        while self._due and self._due[0][0] <= self._events:
            due, _, equal = heapq.heappop(self._due)
            alike = self._alike.get(equal)
            if alike is None or alike.due != due or len(alike.members) < 2:
                continue
            some = alike.next()
            yield some
            if len(alike.members) > 1:
                alike.compared(some)
                self._put(equal, alike)

    def _put(self, equal: Hashable, alike: _Alike) -> None:
        alike.due = self._events + (1 if alike.left > 0 else alike.pause)
        heapq.heappush(self._due, (alike.due, next(self._order), equal))


_DRAWN: Final = IMPURE - {"NOW"}


def why_unequal(plan: Any) -> str | None:
    """Why no query is equal to one of this plan, not even one of the same text; None: those of the same plan are."""
    rules = plan.rules if isinstance(plan, IntervalPlan) else ()
    drawn = any(each.name in _DRAWN for whole in (plan.query, *rules) for each in parts(whole, Call))
    return "it draws values by chance" if drawn else None


def equal_by(run: AloneRun, bounds: Hashable) -> Hashable | None:
    """The common part of equal queries, or of alike ones (family.py); None: there are none. bounds: those of
    its state, None without any."""
    if why_unequal(run.plan) is not None:
        return None
    kb = id(run.kb_in_time.present) if isinstance(run, KbRun) else None
    alike = run.alike if bounds is None else None
    what = fingerprint(run.plan) if alike is None else text_of(alike)
    return what, run.lateness, run.order.start, kb, bounds
