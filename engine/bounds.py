"""How much a query may do within one instant, in numbers that are counted, never in time: the same events lead to the
same answers on any machine, in any batches, and after a restart.

Beyond a bound the instant is left out for that query: nothing of it is emitted, the state goes on as documented in
docs/explanation/limits.md, and an `InstantError` says so. After `running` such instants with none answered in between
the query is set aside: the error is `final`, and the query gets nothing more.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from oxiseq.engine.errors import LimitError
from oxiseq.engine.events.time import to_text
from oxiseq.grammar.records import dataclass

if TYPE_CHECKING:
    from oxiseq.engine.terms.saved import State

_NAMED: Final = 10
"""Instants that are named; all are counted."""


class Bound(NamedTuple):
    """What is counted within an instant: `name` is a field of `Bounds`, `what` says it in an error."""

    name: str
    what: str


MATCHES: Final = Bound("matches", "matches that end at one instant (write LIMIT, or count them)")
CHOICES: Final = Bound("choices", "what is to be chosen from at one instant")
ROWS: Final = Bound("rows", "rows emitted at one instant (write ISTREAM or LIMIT, or join by a variable)")
ROUNDS: Final = Bound("rounds", "rounds of rules at one instant; do they make new terms for ever?")
TRIPLES: Final = Bound("triples", "triples that rules derive at one instant; do they make new terms for ever?")


@dataclass(frozen=True, slots=True)
class Bounds:
    """Most of each at one instant; `choices` has limits of its own by what is chosen. `running`: instants left out one
    after the other until the query is set aside."""

    matches: int = 1 << 20
    rows: int = 1 << 20
    rounds: int = 1000
    triples: int = 1 << 20
    running: int = 3

    def exceeded(self, bound: Bound, given: int, instant: int, running: int) -> InstantError:
        """The error of an instant (µs) that has `given`; it is the one of this number running."""
        return self.of(bound, LimitError(given, getattr(self, bound.name), bound.what), instant, running)

    def of(self, bound: Bound, error: LimitError, instant: int, running: int) -> InstantError:
        """A limit that has been exceeded at an instant (µs)."""
        return InstantError(error.given, error.limit, error.what, bound.name, instant, running >= self.running)


class Row:
    """The instants of one query that are left out one after the other, with none answered in between. `running`: how
    many those are; it is part of the query's state."""

    def __init__(self, bounds: Bounds, running: int = 0) -> None:
        self.bounds, self.running = bounds, running
        self._omitted: list[InstantError] = []

    def answered(self) -> None:
        """Something has been emitted at an instant."""
        self.running = 0

    def leave_out(self, bound: Bound, given: int, instant: int) -> None:
        """An instant (µs) has so many."""
        self.running += 1
        self._omitted.append(self.bounds.exceeded(bound, given, instant, self.running))

    @property
    def over(self) -> bool:
        """Whether the query is to be set aside."""
        return self.running >= self.bounds.running

    def take(self) -> list[InstantError]:
        """The instants that have been left out since the last call."""
        omitted, self._omitted = self._omitted, []
        return omitted


class InstantError(LimitError):
    """A query is beyond a bound at an instant (µs), which is left out for it. `final`: it is one too many, so that the
    query is set aside. `query` is its name, where it has one."""

    def __init__(self, given: int, limit: int, what: str, bound: str, instant: int, final: bool = False) -> None:
        super().__init__(given, limit, what)
        self.bound, self.instant, self.final = bound, instant, final
        self.query = ""

    def __str__(self) -> str:
        of = f" of the query {self.query}" * bool(self.query)
        ends = "; it is one of several running, so the query is set aside" * self.final
        return f"{super().__str__()}; the instant {to_text(self.instant)}{of} is left out{ends}"

    def __reduce__(self) -> tuple[type[InstantError], tuple[object, ...]]:
        return InstantError, (self.given, self.limit, self.what, self.bound, self.instant, self.final)


@dataclass(frozen=True, slots=True)
class Omissions:
    """How many instants were left out for a query, and why the last ones were; `over`: it has been set aside."""

    count: int = 0
    last: tuple[str, ...] = ()
    over: bool = False

    def more(self, errors: Sequence[InstantError], count: int | None = None) -> Omissions:
        """These, too; `count`: how many they stand for, None: themselves."""
        if not errors:
            return self
        last = (*self.last, *map(str, errors))[-_NAMED:]
        return Omissions(self.count + (len(errors) if count is None else count), last, self.over or errors[-1].final)

    def save(self) -> State:
        """As a saved state."""
        return {"count": self.count, "last": list(self.last), "over": self.over}

    @property
    def lines(self) -> tuple[str, ...]:
        """A line for each that is named, and one for those before."""
        more = [f"left out: {self.count - len(self.last):,} instants before"] * (self.count > len(self.last))
        return (*more, *(f"left out: {each}" for each in self.last))

    @classmethod
    def restored(cls, state: State) -> Omissions:
        """Saved ones."""
        return cls(int(state["count"]), tuple(state["last"]), bool(state["over"]))


def raised(errors: Sequence[InstantError]) -> InstantError:
    """The one of several that says most: that the query is set aside, or what was first."""
    return errors[-1] if errors[-1].final else errors[0]


BOUNDS: Final = Bounds()
"""Those of a store in Python, and of a run over whole streams."""
SERVED: Final = Bounds(matches=1 << 14, rows=1 << 14, triples=1 << 16)
"""Those of a server, whose queries wait for each other, and which stores what is found."""
NO_OMISSIONS: Final = Omissions()
