"""One runner of sequences: it works through a batch instant by instant, gives the kernel what it lacks, takes what it
has written, and chooses among what ends at an instant.

    batch → **runner** ⇄ stepper: what an instant does to partial matches → matches

A stepper is a kernel and what only it needs: by live keys (sequence/run.py), or by determinised sets (cea/run.py).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import TYPE_CHECKING, ClassVar, Final, Generic, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from oxiseq.engine.bounds import BOUNDS, CHOICES, MATCHES, InstantBound, InstantBounds
from oxiseq.engine.errors import LimitError
from oxiseq.engine.extras import needed
from oxiseq.engine.kernels.matches import records as k
from oxiseq.engine.kernels.memory.pointers import PointerTables
from oxiseq.engine.matches.found import Found, without_last
from oxiseq.engine.matches.memory import M, begin_choice, more_out
from oxiseq.engine.omissions import InstantError, Streak
from oxiseq.engine.terms.saved import Stateful

if TYPE_CHECKING:
    from oxiseq.engine.matches import frozen
else:
    frozen = needed("oxiseq.engine.matches.frozen")

M_contra = TypeVar("M_contra", contravariant=True)
UNCOUNTED_MOST: Final = 1 << 14
"""Matches of an instant that are listed before it is known how many there are: to list so many takes as long as to
count those of a large set."""


class Weigher(Protocol[M_contra]):
    """Takes the finals of instants as they are."""

    def weigh(self, S: M_contra, found: Found, clock: NDArray[np.int64], time: NDArray[np.int64]) -> None:
        """The nodes in `found.rows` are finals of instants of these clocks and times (µs). Raises LimitError."""
        ...

    def moved(self) -> None:
        """Nodes have other numbers from now on."""
        ...


class MatchRunner(Stateful, ABC, Generic[M]):
    """A runner; its subclass is the stepper. Its kernel continues at the scalar `_AT`, an instant or event, in the
    phase of the scalar `_PHASE`."""

    _AT: ClassVar[int]
    _PHASE: ClassVar[int]
    _memory: M

    def __init__(self, weigher: Weigher[M] | None = None) -> None:
        self._weigher = weigher
        self._tables = PointerTables()
        self._times = np.zeros(0, np.int64)
        """Of the instants in work (µs)."""
        self._parts: list[Found] = []
        self.bounds: InstantBounds = BOUNDS
        self._omitted: list[InstantError] = []

    def _work(self, step: Callable[[], int]) -> None:
        """Work through a batch: `step` calls the kernel, and says why it returned."""
        self._begin_counting(self._memory)
        failed = -1
        while not self._halts:
            need = step()
            if need == k.DONE:
                break
            at = self._memory.scalars.item(self._AT)
            if need == k.NEED_NODES:
                self._free(again=failed == at, full=True)
                failed = at
            elif need == k.NEED_CHOICE:
                self._choose(self._time_of(at))
            elif need == k.OUT_FULL:
                self._drain(full=True)
            elif need == k.TOO_MANY:
                self._list(self._time_of(at))
            else:
                self._provide(need, at)
        self._drain()

    @abstractmethod
    def _provide(self, need: int, at: int) -> None:
        """What only this kernel may lack, at an instant of the batch."""

    @abstractmethod
    def _free(self, again: bool, *, full: bool = False) -> None:
        """Free dead nodes, in the midst of a batch or at its end. `again`: that has not helped just before; `full`:
        there was no room for more."""

    @abstractmethod
    def _chosen(self, instant: int) -> M:
        """What is kept of the matches of an instant (µs). Raises LimitError."""

    @property
    @abstractmethod
    def _limit(self) -> int:
        """How many matches of an instant the query lists at most."""

    @property
    def _halts(self) -> bool:
        """Whether the rest of the batch is not worked through."""
        return self.over

    @property
    def _waited(self) -> bool:
        """Whether what ends has waited for time to decide it."""
        return False

    def _time_of(self, at: int) -> int:
        """The time (µs) of what ends at an instant of the batch."""
        return self._times.item(at)

    def take_omitted(self) -> list[InstantError]:
        """The instants that have been left out since the last call. What comes behind them has been processed, unless
        the last one is final."""
        omitted, self._omitted = self._omitted, []
        return omitted

    @property
    def over(self) -> bool:
        """Whether the query is to be stopped."""
        return bool(self._omitted) and self._omitted[-1].final

    def _note(self, bound: InstantBound, given: int | LimitError, instant: int, *, final: bool = False) -> None:
        """An instant (µs) is left out: it has so many, or is beyond a limit. `final`: its state cannot be mended."""
        scalars = self._memory.scalars
        streak = Streak(self.bounds, scalars.item(k.OMITTED))
        if final and isinstance(given, LimitError):
            streak.give_up(bound, given, instant)
        else:
            streak.leave_out(bound, given, instant)
        scalars[k.OMITTED] = streak.running
        self._omitted += streak.take()

    def _weigh(self) -> None:
        """Hand on the finals of instants since the last time."""
        if self._weigher is None:
            return
        self._drain()
        found = self._taken()
        if len(found):
            at = found.marks[:, 0]
            try:
                self._weigher.weigh(self._memory, found, self._clocks_of(at), self._times[at])
            except LimitError as error:
                self._note(CHOICES, error, int(self._times[at[-1]]))

    @abstractmethod
    def _clocks_of(self, at: NDArray[np.int64]) -> NDArray[np.int64]:
        """The clocks of instants of the batch; positions, where those of events tell ends apart."""

    def _begin_counting(self, memory: M) -> None:
        """Before a batch: how many matches of an instant may be listed without knowing how many there are."""
        most = self.bounds.matches
        memory.scalars[k.UNCOUNTED] = most if most < UNCOUNTED_MOST else UNCOUNTED_MOST

    def _choose(self, instant: int) -> None:
        """Have the kernel continue with what is chosen of an instant's matches, or behind the instant (µs) where that
        is too much."""
        begin_choice(self._memory)
        try:
            self._memory = self._chosen(instant)
        except LimitError as error:
            self._note(CHOICES, error, instant)
            self._pass_by()

    def _pass_by(self) -> None:
        """Have the kernel continue behind the instant, as if nothing had ended there."""
        scalars = self._memory.scalars
        if scalars[k.CHOSEN]:
            scalars[k.NODE_TOP] = scalars[k.NODE_BASE]
        scalars[[k.CHOSEN, k.FINALS, k.STACK, k.EMITTED, self._PHASE]] = 0
        scalars[self._AT] += 1

    def _list(self, instant: int) -> None:
        """More matches of an instant (µs) are to be listed than may be without counting them: if too many end there,
        none is, as if nothing had ended."""
        scalars, most = self._memory.scalars, self.bounds.matches
        given = self._count(self._memory.finals[: scalars.item(k.FINALS)])
        given = max(scalars.item(k.EMITTED) + 1, min(k.NO_LIMIT if self._waited else self._limit, given))
        if given <= most:
            scalars[k.ALLOWED] = most
            return
        self._drain()
        self._parts = without_last(self._parts, scalars.item(k.EMITTED))
        self._note(MATCHES, given, instant)
        if self._waited:  # the kernel has not come to the instant yet
            scalars[[k.FINALS, k.PROGRESS, k.EMITTED, k.STACK]] = 0
        else:
            self._pass_by()

    def _count(self, finals: NDArray[np.int64]) -> int:
        """How many matches are below some finals, NO_LIMIT for more; none is listed for it."""
        memory, total = self._memory, 0
        for cut in np.unique(finals[:, 1]):
            of_cut = np.ascontiguousarray(finals[finals[:, 1] == cut])
            scalars = memory.scalars.copy()
            scalars[k.FINALS] = len(of_cut)
            found = frozen.FrozenMatches(memory._replace(scalars=scalars, finals=of_cut))
            if found.exceeds(k.NO_LIMIT):
                return k.NO_LIMIT
            total += found.count
        return min(total, k.NO_LIMIT)

    def _drain(self, *, full: bool = False) -> None:
        """Take what the kernel has written; more room if it was `full`."""
        memory = self._memory
        if full:
            self._memory = more_out(memory)
        s = memory.scalars
        if count := s.item(k.OUT_MATCHES):
            rows = s.item(k.OUT_ROWS)
            marks = memory.out_marks[:count].copy()
            self._parts.append(Found(memory.out_rows[:rows].copy(), memory.out_ends[: count + 1].copy(), marks))
            s[k.OUT_ROWS] = s[k.OUT_MATCHES] = 0

    def _taken(self) -> Found:
        """What has been drained since the last call."""
        parts, self._parts = self._parts, []
        return Found.joined(parts)
