"""What the runners of sequences have in common, by live keys (sequence/run.py) and by sets of states (cea/run.py): they
call a kernel, take what it has written and choose among what ends at an instant."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, ClassVar, Generic

from oxiseq.engine.errors import LimitError
from oxiseq.engine.extras import needed
from oxiseq.engine.kernels.matches import records as k
from oxiseq.engine.kernels.memory.pointers import PointerTables
from oxiseq.engine.matches.found import Found, without_last
from oxiseq.engine.matches.memory import M, begin_choice, more_out
from oxiseq.grammar.algebra import Strategy

if TYPE_CHECKING:
    from oxiseq.engine.matches import choice
else:
    choice = needed("oxiseq.engine.matches.choice")


class MatchRunner(Generic[M]):
    """A runner. Its kernel continues at the scalar `_AT`, an instant or event, in the phase of the scalar `_PHASE`."""

    _AT: ClassVar[int]
    _PHASE: ClassVar[int]
    _memory: M

    def __init__(self, strategy: Strategy | None, capacity: int, silent: int = -1) -> None:
        """`capacity`, `silent`: as of `Chooser`."""
        self._chooser = choice.Chooser(strategy, capacity, silent) if strategy is not None else None
        self._tables = PointerTables()
        self._parts: list[Found] = []
        self._too_much: LimitError | None = None

    def take_error(self) -> LimitError | None:
        """The first limit that has been passed since the last call; what comes behind it has been processed."""
        error, self._too_much = self._too_much, None
        return error

    def _choose(self, chosen: Callable[[], M]) -> None:
        """Have the kernel continue with what is chosen of an instant's matches, or behind the instant where that is too
        much. `chosen` raises LimitError then."""
        begin_choice(self._memory)
        try:
            self._memory = chosen()
        except LimitError as error:
            self._too_much = self._too_much or error
            scalars = self._memory.scalars
            scalars[k.NODE_TOP] = scalars[k.NODE_BASE]
            scalars[[k.CHOSEN, k.FINALS, self._PHASE]] = 0
            scalars[self._AT] += 1

    def _leave_out(self) -> None:
        """Nothing of the instant whose matches are being enumerated is emitted: there are too many."""
        self._drain()
        s = self._memory.scalars
        self._parts = without_last(self._parts, s.item(k.EMITTED))
        s[k.PROGRESS] = s[k.FINALS]
        s[[k.EMITTED, k.STACK]] = 0
        what = "matches that end at one instant (write LIMIT, or count them)"
        self._too_much = self._too_much or LimitError(k.MOST_EMITTED + 1, k.MOST_EMITTED, what)

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
