"""Operators that work row by row, without memory."""

from __future__ import annotations

from oxiseq.engine.flow.plan.sources import Lifetime
from oxiseq.grammar.algebra import Expression
from oxiseq.grammar.records import dataclass


@dataclass(frozen=True, slots=True)
class Filter:
    """The rows for which all conditions hold. Without EXISTS."""

    child: int
    conditions: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class Extend:
    """The rows with the value of an expression behind them, unbound where it is an error. Without EXISTS. lifetime: of
    values drawn once for equal rows."""

    child: int
    expression: Expression
    lifetime: Lifetime | None = None


@dataclass(frozen=True, slots=True)
class Pick:
    """Other columns: each is the first of some places that is bound; of none: unbound. Projections, what fills a joined
    row's columns from both sides, the columns that a branch of UNION has not."""

    child: int
    columns: tuple[tuple[int, ...], ...]


@dataclass(frozen=True, slots=True)
class Negate:
    """What comes, goes, and the other way about."""

    child: int


@dataclass(frozen=True, slots=True)
class Union:
    """The rows of all children, which are of one width; `marked`: with the number of the child behind them."""

    children: tuple[int, ...]
    marked: bool = False


# --- intervals, row by row --------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Lasting:
    """The rows whose interval from `start` to `end` lasts from `least` to `most` microseconds, both included. None of
    those whose start is after their end: they have no time."""

    child: int
    start: int
    end: int
    least: int
    most: int
