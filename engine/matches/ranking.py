"""Which of the matches of one end are emitted, and what they are ordered by: one form for every language, and for both
runners (semantics.md 2.6b).

In the flow: algebra → **ranking** → (finals of an instant) → picker (output/picking.py) → the matches that are emitted.
The best are found on the compact set where each key is a sum over a match's events: what an event adds is known by
itself then, and a prefix that is better stays better whatever follows.
"""

from __future__ import annotations

from fractions import Fraction
from typing import TypeAlias

from pyoxigraph import Variable

from oxiseq.engine.matches.paging import Page
from oxiseq.grammar.algebra import Expression, Sample, Window
from oxiseq.grammar.records import dataclass


@dataclass(frozen=True, slots=True)
class RankOf:
    """The place of a variable's value among the values of it, in the order of terms; unbound is the least. The rows of
    one GPM have it, once in a match at most."""

    gpm: str
    variable: Variable


@dataclass(frozen=True, slots=True)
class TimeOf:
    """When the one row of a GPM happened; of None, the row that begins the match. `sign`: 1, or -1 for the reverse."""

    gpm: str | None
    sign: int = 1


@dataclass(frozen=True, slots=True)
class Amount:
    """A number for each event of a GPM, or of a variable of CEQL: `factor`, times the value of a variable, or of an
    attribute, if there is one."""

    gpm: str
    variable: Variable | None
    factor: Fraction


Summand: TypeAlias = RankOf | TimeOf | Amount


@dataclass(frozen=True, slots=True)
class RankKey:
    """For one key the summands that the events of a match add to it."""

    summands: tuple[Summand, ...]
    descending: bool


@dataclass(frozen=True, slots=True)
class Ranking:
    """Which of the matches of one end, or of one window, are emitted: a sample, in an order, so many behind the first
    `offset`."""

    order_by: tuple[tuple[Expression, bool], ...]
    """(expression over a match, descending) pairs."""
    offset: int
    limit: int | None
    sample: Sample | None
    seed: str
    """The seed of a sample's draws, besides the time of the end."""
    keys: tuple[RankKey, ...]
    """The keys compared on the compact set; none for SAMPLE."""
    listed: str | None
    """Why every match of an instant is listed; None: the emitted ones are found on the compact set."""
    window: Window | None = None
    """Not of one end, but of such a tumbling window, when it closes."""
    page: Page | None = None
    """Only of this end, from one match to another, in the order in which they are found."""

    @property
    def last(self) -> int | None:
        """How many matches are emitted or passed over; None: all."""
        return None if self.limit is None else self.offset + self.limit

    @classmethod
    def of_page(cls, page: Page) -> Ranking:
        """Only a page is wanted."""
        return cls((), page.offset, page.size, None, "", (), None, page=page)
