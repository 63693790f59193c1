"""New facts and earlier ones: rows that have an interval.

A row's interval is four raw columns, its first. Its changes come at the instant at which it ends, those of a row
without a time (times.NO_START, times.NO_END) when the knowledge base changes. So a row finds all that may pair with
it among the rows at the end of its tick: later rows end later.
"""

from __future__ import annotations

from typing import Final, Literal

from pyoxigraph import Variable

from oxiseq.engine.terms.texts import Term
from oxiseq.grammar.records import dataclass

PREDICATE: Final = 5
"""Column of a triple's predicate, behind its interval and its subject."""


@dataclass(frozen=True, slots=True)
class Triples:
    """The triples that a pattern accepts, of rows (interval, subject, predicate, object, more): the interval and the
    columns at `columns`. equal: places of constants; same: places of equal terms; longest: of the interval; timed: not
    those without a time."""

    child: int
    columns: tuple[int, ...]
    equal: tuple[tuple[int, Term | Variable], ...] = ()
    same: tuple[tuple[int, int], ...] = ()
    longest: int | None = None
    timed: bool = False

    @property
    def parts(self) -> tuple[int | Term | Variable, ...]:
        """Of its rows the columns of subject, predicate and object, or their constants."""
        constants, other = dict(self.equal), {second: first for first, second in self.same}
        places = (other.get(place, place) for place in range(PREDICATE - 1, PREDICATE + 2))
        return tuple(constants[at] if at in constants else PREDICATE - 1 + self.columns.index(at) for at in places)


@dataclass(frozen=True, slots=True)
class Look:
    """New rows, and those that they find in an arrangement at the end of their tick: PAIRS, all columns of both; those
    that find something (WITH) or nothing (WITHOUT). A found row has the same `key`, and `loose` where both have a
    value, has ended before (BEFORE) the start of the new one, or by its end (BY), and both together last `limit` at
    most: with neither an order nor a limit rows need no interval. earlier: rows of the same tick are not found; counts:
    that a pair is there counts, however long it lasts."""

    child: int
    kept: int
    key: tuple[int, ...]
    loose: tuple[int, ...] = ()
    order: Literal["ANY", "BEFORE", "BY"] = "ANY"
    what: Literal["PAIRS", "WITH", "WITHOUT"] = "PAIRS"
    limit: int | None = None
    earlier: bool = False
    counts: bool = False


@dataclass(frozen=True, slots=True)
class Cover:
    """Rows with the least interval that holds those at `first` and `second`, as their first columns, and with others as
    Pick has them, if that lasts `limit` at most. Facts that ended before the instants in work do not change."""

    child: int
    first: int
    second: int
    columns: tuple[tuple[int, ...], ...]
    limit: int | None = None


@dataclass(frozen=True, slots=True)
class Sometime:
    """The rows with an interval before all others if they have a time: that they have happened, not when."""

    child: int


@dataclass(frozen=True, slots=True)
class TimeTerm:
    """The rows with a function of their interval behind them, as a term: getDURATION, getSTARTTIME, getENDTIME; number:
    in microseconds. Unbound if they have no time."""

    child: int
    function: str
    number: bool = False


@dataclass(frozen=True, slots=True)
class Closure:
    """Paths of one step or more, each with the least interval that holds its steps, if that lasts `limit` at most;
    steps and paths are two columns behind their interval, each once."""

    child: int
    limit: int | None = None
