"""Operators of an EP-SPARQL plan in the making, with what their columns are.

In the flow: algebra → **relations** → plan (lowering.py).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, TypeAlias

from oxiseq.engine.flow import plan as p
from oxiseq.engine.flow.epsparql.rows import NEVER, Column, Hidden
from oxiseq.grammar.records import dataclass

INTERVAL: Final = 4
"""Columns of an interval, the first of each row."""


@dataclass(frozen=True, slots=True)
class Low:
    """The lower half of a triple's number; the upper half, its instant, is the column."""

    use: Hidden


@dataclass(frozen=True, slots=True)
class Guard:
    """Half of the number under which the partners of a row are kept that it may be without: it counts once none of them
    does (kernels/flow/using.py)."""

    number: int
    low: bool = False


SolutionColumn: TypeAlias = Column | Low | Guard


@dataclass(frozen=True, slots=True)
class Rel:
    """An operator, and its columns behind the interval. timed: whether all rows have a time; longest: what none of them
    outlasts; mixed: whether it depends on the knowledge base which rows with a time there are."""

    node: int
    columns: tuple[SolutionColumn, ...]
    certain: frozenset[Column]
    timed: bool = False
    longest: int = NEVER
    mixed: bool = False

    def places(self, columns: Iterable[SolutionColumn]) -> tuple[int, ...]:
        """The places of columns."""
        return tuple(INTERVAL + self.columns.index(c) for c in columns)

    @property
    def uses(self) -> tuple[int, ...]:
        """The places of the upper halves of the numbers of the triples that rows are made of."""
        return tuple(i - 1 for i, c in enumerate(self.columns, INTERVAL) if isinstance(c, Low))


def lifetime(limit: int | None) -> p.Lifetime | None:
    """Of rows that are kept for so long; None: for ever."""
    return None if limit is None else p.Lifetime(0, limit)
