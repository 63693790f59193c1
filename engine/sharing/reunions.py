"""When the states of runs that are alike are compared, which may come to be the same (apart.py).

To compare them costs as much as they hold. So they are compared when one has come, and again after as many events as
they hold records, after twice as many as the last time at the least; a few at each push, so that none has to wait for
hundreds of them. Which ones are compared with each other is drawn in each round, so that any two meet.
"""

from __future__ import annotations

import heapq
from collections.abc import Hashable, Iterator
from dataclasses import field
from functools import partial
from itertools import count, islice
from random import Random
from typing import Final

from oxiseq.engine.sharing.member import Member
from oxiseq.grammar.records import dataclass

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
