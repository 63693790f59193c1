"""Operators that count rows, rank them, or connect them."""

from __future__ import annotations

from typing import Literal

from oxiseq.engine.flow.plan.sources import Lifetime
from oxiseq.grammar.records import dataclass


@dataclass(frozen=True, slots=True)
class Distinct:
    """Each row once, as long as its weight is above 0."""

    child: int
    lifetime: Lifetime | None = None


@dataclass(frozen=True, slots=True)
class Consolidate:
    """The same rows, those that come and go within a tick left out. Without memory."""

    child: int


@dataclass(frozen=True, slots=True)
class Once:
    """Each row of a tick once, where rows only come. Without memory. numbered: two columns behind it are the halves of
    a number that no other row has and is higher than those of earlier ticks, EVERY row; or those that are
    TIMED, by the interval that is their first columns: the others have 0."""

    child: int
    numbered: Literal["", "TIMED", "EVERY"] = ""


@dataclass(frozen=True, slots=True)
class Sum:
    """An aggregate of a group that is a sum: COUNT of rows (`place` None) or of bound values, SUM, AVG; or all its
    values (GROUP_CONCAT, which are written in term order)."""

    name: Literal["COUNT", "SUM", "AVG", "GROUP_CONCAT"]
    place: int | None
    separator: str = " "


@dataclass(frozen=True, slots=True)
class Group:
    """A row for each group: its key, unbound being a value like others, then its sums, unbound where SPARQL has an
    error. Without keys there is one group, also of no rows, from the first tick on."""

    child: int
    key: tuple[int, ...]
    sums: tuple[Sum, ...]


# --- ranks ----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Rank:
    """A column to order by, as ORDER BY does."""

    place: int
    descending: bool = False


def by_time(place: int, latest: bool) -> tuple[Rank, Rank]:
    """The order of a time, which is two raw columns."""
    return Rank(place, latest), Rank(place + 1, latest)


@dataclass(frozen=True, slots=True)
class Best:
    """By key the rows of the ranks [start, stop), or (`ties`) all that are equal to the first in `order`. Ranks go by
    `order`, then by the other columns, in term order, so that they are a function of what there is. A row of weight 3
    has three ranks. stop None: to the end."""

    child: int
    key: tuple[int, ...]
    order: tuple[Rank, ...]
    start: int = 0
    stop: int | None = None
    ties: bool = False


# --- paths ----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Reach:
    """Edges (the last two columns of the child) → each pair of nodes that one step or more connect, once. Columns
    before those are context: paths stay within one."""

    child: int
