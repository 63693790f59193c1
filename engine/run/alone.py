"""A run that shares neither clock nor matching with others, of a language other than SPAseq: it may be
in the state of an equal one."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Hashable, Mapping, Sequence
from copy import deepcopy
from typing import Any, Self

from oxiseq.engine.run.run import Run
from oxiseq.engine.terms.dictionary import TermDictionary
from oxiseq.engine.terms.saved import SameTerms, SavedTerms


class AloneRun(Run):
    """The running state of a query with an order of its own.

    Runs in one state have one `__dict__` (`share`): what one of them sets, all of them see. What a query has for
    itself, whatever state it is in, its class declares in `__slots__`.
    """

    __slots__ = ("_before", "_elsewhere")
    _before: int
    """Matches that its state does not count, or (below 0) counts, though this query has not had them."""
    _elsewhere: tuple[int, int]
    """The same of events and of late ones, which its order counts."""

    def __init__(self) -> None:
        self._before, self._elsewhere = 0, (0, 0)
        self._had: dict[int, int] = {}
        """How many matches those in its state have had, by number."""

    # --- counters, which continue wherever it has its state -----------------------------------------------

    @property
    def events(self) -> int:
        return super().events + self._elsewhere[0]

    @property
    def late(self) -> int:
        return super().late + self._elsewhere[1]

    @property
    def matches(self) -> int:
        """How many it has had."""
        return self._had.get(self.number, 0) + self._before

    @matches.setter
    def matches(self, count: int) -> None:
        self._had[self.number] = count - self._before

    def _go_on(self, events: int, late: int) -> None:
        """With counters of a state of before, in another one."""
        self._elsewhere = 0, 0
        self._elsewhere = events - self.events, late - self.late

    # --- others in its state ------------------------------------------------------------------------------

    @abstractmethod
    def another(self) -> Self:
        """One of the same plan that has not seen anything."""

    @property
    def idles(self) -> bool:
        """Whether it has nothing to remember: no event that waits, no partial match."""
        return False

    def pass_by(self, events: int, last: int) -> None:
        """Events of its only stream that came in order, the last one at `last` (µs), of which only that they came
        matters (`Concern`)."""
        self.order.pass_by(0, events, last)

    @property
    def alike(self) -> Hashable | None:
        """The same in runs that may share a state although they are not equal; None: there are none."""
        return None

    def may_share(self, other: Self) -> bool:
        """Whether it can be in the state of one that is equal, or alike."""
        return True

    def advance_all(self) -> Sequence[Any]:
        """As `advance`, for all that are in its state."""
        return self.advance()

    def of_each(self, found: Sequence[Any]) -> Mapping[int, Sequence[Any]] | None:
        """Of what `advance_all` has found what each has, by `number`; None: all of them have all of it."""
        return None

    def errors_of_each(self) -> Mapping[int, Exception]:
        """Errors since the last call that concern some of those in its state alone, by `number`."""
        return {}

    @property
    def number(self) -> int:
        """What distinguishes the runs that are in its state and not equal."""
        return 0

    def narrow(self, others: Sequence[Self]) -> None:
        """Only these are in its state now."""

    def share(self, other: Self) -> None:
        """Takes over the state of an equal one: from now on both see what either gets."""
        events, late = self.events, self.late
        self.__dict__ = other.__dict__
        self._go_on(events, late)

    @property
    def unites(self) -> bool:
        """Whether its state may come to be the same as that of others that are alike (`unite`)."""
        return False

    def expect(self, others: Sequence[Self]) -> None:
        """Called before it gets anything: there are others that are alike, with which it may come to share a state."""

    def unite(self, others: Sequence[Self]) -> Sequence[Sequence[Self]]:
        """Of this one and others that are alike, and have got everything, those that have come to be in one
        state: groups, of which the first now has what all have. The others are to `share` it."""
        return ()

    def move_to(self, other: Self) -> None:
        """Takes over the state of another that has become one with its own (`unite`); its counters continue."""
        matches = self.matches
        self.share(other)
        self._before = 0
        self._before = matches - self.matches

    def part(self, terms: TermDictionary) -> None:
        """Continue by itself from the state that it has shared. terms: its dictionary."""
        alone = self.another()
        alone.restore(deepcopy(self.save(SavedTerms(terms))), SameTerms(terms))
        self.share(alone)
        self._before = 0
