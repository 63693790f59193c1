"""New facts and earlier ones: rows that have an interval.

A row's interval is four raw columns, its first. Its changes come at the instant at which it ends, those of a row
without a time (times.NO_START, times.NO_END) when the knowledge base changes. So a row finds all that may pair with
it among the rows at the end of its tick: later rows end later.
"""

from __future__ import annotations

from typing import Literal

from pyoxigraph import NamedNode

from oxiseq.engine.terms.texts import Term
from oxiseq.grammar.records import dataclass


@dataclass(frozen=True, slots=True)
class Triples:
    """The triples that a pattern accepts, of rows (interval, subject, predicate, object, more): the interval and the
    columns at `columns`. equal: places of constants; same: places of equal terms; but: predicates that are
    not wanted; longest: of the interval; timed: not those without a time."""

    child: int
    columns: tuple[int, ...]
    equal: tuple[tuple[int, Term], ...] = ()
    same: tuple[tuple[int, int], ...] = ()
    but: tuple[NamedNode, ...] = ()
    longest: int | None = None
    timed: bool = False


@dataclass(frozen=True, slots=True)
class Look:
    """New rows, and those that they find in an arrangement at the end of their tick: PAIRS, all columns of both; those
    that find something (WITH) or nothing (WITHOUT). A found row has the same `key`, and `loose` where both have a
    value, has ended before (BEFORE) the start of the new one, or by its end (BY), and both together last `limit` at
    most. earlier: rows of the same tick are not found."""

    child: int
    kept: int
    key: tuple[int, ...]
    loose: tuple[int, ...] = ()
    order: Literal["ANY", "BEFORE", "BY"] = "ANY"
    what: Literal["PAIRS", "WITH", "WITHOUT"] = "PAIRS"
    limit: int | None = None
    earlier: bool = False


@dataclass(frozen=True, slots=True)
class Cover:
    """Rows with the least interval that holds those at `left` and `right`, as their first columns, and with others as
    Pick has them, if that lasts `limit` at most. Facts that ended before the instants in work do not change."""

    child: int
    left: int
    right: int
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
