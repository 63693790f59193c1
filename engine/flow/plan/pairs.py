"""Operators of pairs: kept rows, and partners found among them; in order of time, too."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal, TypeAlias

from oxiseq.engine.flow.plan.sources import Lifetime
from oxiseq.grammar.algebra import Expression
from oxiseq.grammar.records import dataclass


@dataclass(frozen=True, slots=True)
class Arrange:
    """Rows kept, to be found by their columns at `key` (unbound being a value like others) and at `loose`, which agree
    where both sides have a value. coming: rows only come; memory: where these cannot be made of facts again, the name
    of the source by which they are passed on, if there is one."""

    child: int
    key: tuple[int, ...]
    loose: tuple[int, ...] = ()
    lifetime: Lifetime | None = None
    coming: bool = False
    memory: str = ""


@dataclass(frozen=True, slots=True)
class Join:
    """The pairs of two arrangements that agree: all columns of the left, then all of the right. `key` and `loose` of
    both are as long."""

    left: int
    right: int


Only: TypeAlias = Literal["", "COME", "GO"]
"""Which rows are needed: those that come, those that go, or all."""


@dataclass(frozen=True, slots=True)
class JoinAll:
    """The joined rows of several sources of one triple pattern each, all at once: nothing is kept of parts. columns: by
    source the variable that each of its columns is; a row has the variables in order. conditions: those for which some
    do not hold are left out, as soon as that is seen; a FILTER behind it decides."""

    children: tuple[int, ...]
    columns: tuple[tuple[int, ...], ...]
    only: Only = ""
    conditions: tuple[Expression, ...] = ()


Sign: TypeAlias = Literal["<", "=", ">"]
SIGNS: Final[Mapping[str, tuple[Sign, Sign]]] = {
    "<": ("<", ">"),
    "<=": ("<", ">"),
    ">": (">", "<"),
    ">=": (">", "<"),
    "=": ("=", "="),
}
"""By comparison: the first operand's relation to the second, and the converse."""


@dataclass(frozen=True, slots=True)
class Bound:
    """A condition on pairs: the row's column at `place` is above (">"), below or equal to the table's at `column`, as
    numbers. It may let others pass: a FILTER behind it decides."""

    place: int
    column: int
    sign: Sign


@dataclass(frozen=True, slots=True)
class Lookup:
    """The pairs of rows with those of an arrangement, in the order of one of its columns, that compare with them so:
    all columns of both. What is arranged is there before the first row comes, and does not change."""

    child: int
    table: int
    bound: Bound


# --- order of time --------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Timed:
    """Rows that agree in some columns, in order of a raw time. `loose`: they agree where both sides have a value."""

    child: int
    time: int
    key: tuple[int, ...] = ()
    loose: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Follow:
    """The pairs of rows that agree of which the time of the left is before that of the right, or (`meeting`) equal to
    it: all columns of the left, then all of the right. EARLIEST, LATEST: of a right row and all left rows with its key
    before it only those that are first, or last; loose columns are compared after that."""

    left: Timed
    right: Timed
    choice: Literal["ALL", "EARLIEST", "LATEST"] = "ALL"
    meeting: bool = False
