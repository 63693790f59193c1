"""Instants that are left out for a query, since it is beyond a bound there (bounds.py).

Nothing of such an instant is emitted, the state goes on as documented in docs/explanation/limits.md, and an
`InstantError` says so. After `running` of them with none answered in between the query is stopped: the error is
`final`, and the query gets nothing more.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, TypeAlias

from oxiseq.engine.bounds import InstantBound, InstantBounds
from oxiseq.engine.errors import LimitError
from oxiseq.engine.events.time import to_text
from oxiseq.engine.terms.saved import Stateful, value
from oxiseq.grammar.records import dataclass

LeftOut: TypeAlias = Mapping[int, tuple[InstantBound, int | LimitError]]
"""Instants (µs) that are beyond a bound: how many there are of what, or the limit that has been exceeded."""
_NAMED: Final = 10
"""Instants that are named; all are counted."""


class Streak(Stateful):
    """The instants of one query that are left out one after the other, with none answered in between. `running`: how
    many those are; it is part of the query's state."""

    made_of = (value("running", missing=0),)

    def __init__(self, bounds: InstantBounds, running: int = 0) -> None:
        self.bounds, self.running = bounds, running
        self.omitted: list[InstantError] = []
        """Since the last `take`."""

    def answered(self) -> None:
        """Something has been emitted at an instant."""
        self.running = 0

    def leave_out(self, bound: InstantBound, given: int | LimitError, instant: int) -> None:
        """An instant (µs) has so many, or is beyond a limit."""
        self.running += 1
        error = given
        if isinstance(error, int):
            error = LimitError(error, getattr(self.bounds, bound.name), bound.what)
        self.omitted.append(InstantError(error.given, error.limit, error.what, bound.name, instant, self.over))

    def give_up(self, bound: InstantBound, error: LimitError, instant: int) -> None:
        """An instant (µs) is beyond a limit, and the state that it has left cannot be mended: it is the last one."""
        self.running = max(self.running, self.bounds.running - 1)
        self.leave_out(bound, error, instant)

    def note(self, answered: Iterable[int], left_out: LeftOut, *, final: bool = False) -> int | None:
        """Instants that are answered and instants that are left out, in order of time, up to the one that stops the
        query, which is returned. `final`: the state that a limit has left cannot be mended."""
        if not left_out and not self.running:
            return None
        for time in sorted({*left_out, *answered}):
            if time not in left_out:
                self.answered()
                continue
            bound, given = left_out[time]
            if final and isinstance(given, LimitError):
                self.give_up(bound, given, time)
            else:
                self.leave_out(bound, given, time)
            if self.over:
                return time
        return None

    @property
    def over(self) -> bool:
        """Whether the query is to be stopped."""
        return self.running >= self.bounds.running

    def take(self) -> list[InstantError]:
        """The instants that have been left out since the last call."""
        omitted, self.omitted = self.omitted, []
        return omitted


class InstantError(LimitError):
    """A query is beyond a bound at an instant (µs), which is left out for it. `final`: it is one too many, so that the
    query is stopped. `query` is its name, where it has one."""

    def __init__(self, given: int, limit: int, what: str, bound: str, instant: int, final: bool = False) -> None:
        super().__init__(given, limit, what)
        self.bound, self.instant, self.final = bound, instant, final
        self.query = ""

    def __str__(self) -> str:
        of = f" of the query {self.query}" * bool(self.query)
        ends = "; it is one of several running, so the query is stopped" * self.final
        return f"{super().__str__()}; the instant {to_text(self.instant)}{of} is left out{ends}"

    def __reduce__(self) -> tuple[type[InstantError], tuple[object, ...]]:
        return InstantError, (self.given, self.limit, self.what, self.bound, self.instant, self.final)


@dataclass(frozen=True, slots=True)
class Omissions:
    """How many instants were left out for a query, and why the last ones were; `over`: it has been stopped."""

    count: int = 0
    last: tuple[str, ...] = ()
    over: bool = False

    def more(self, errors: Sequence[InstantError], count: int | None = None) -> Omissions:
        """These, too; `count`: how many they stand for, None: themselves."""
        if not errors:
            return self
        last = (*self.last, *map(str, errors))[-_NAMED:]
        return Omissions(self.count + (len(errors) if count is None else count), last, self.over or errors[-1].final)

    @property
    def lines(self) -> tuple[str, ...]:
        """A line for each that is named, and one for those before."""
        more = [f"left out: {self.count - len(self.last):,} instants before"] * (self.count > len(self.last))
        return (*more, *(f"left out: {each}" for each in self.last))

    def save(self) -> dict[str, Any]:
        """As a query's record has them."""
        return {"count": self.count, "last": list(self.last), "over": self.over}

    @classmethod
    def restored(cls, saved: Mapping[str, Any] | None) -> Omissions:
        """Those of a query's record, which may have none."""
        return NO_OMISSIONS if saved is None else cls(int(saved["count"]), tuple(saved["last"]), bool(saved["over"]))


def raised(errors: Sequence[InstantError]) -> InstantError:
    """The one of several that says most: that the query is stopped, or what was first."""
    return errors[-1] if errors[-1].final else errors[0]


NO_OMISSIONS: Final = Omissions()
