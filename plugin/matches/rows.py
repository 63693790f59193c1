"""A match as a row of named cells, so that rows can be compared and shown.

In the flow: Match → **row** → tests of patterns, comparisons.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Literal, TypeAlias

from pyoxigraph import BlankNode

from oxiseq.engine.events.time import to_text
from oxiseq.engine.terms.texts import Term, term_text
from oxiseq.grammar.records import dataclass
from oxiseq.matches.match import Match
from oxiseq.matches.shape import Shape

EVENTS = "@"
"""Before the name of a GPM: the column of its events' times."""


@dataclass(frozen=True, slots=True)
class Times:
    """Times of events, in microseconds since 1970 UTC, in order."""

    of: tuple[int, ...]


Cell: TypeAlias = Term | Times | int | None
"""A term, times, a number (a position of CEQL), or nothing."""
Row: TypeAlias = Mapping[str, Cell]
Kind: TypeAlias = Literal["times", "number", "term"]


def row_of(match: Match) -> dict[str, Cell]:
    """`at`, then what it binds, and `@A` with the times of A's events; where it has none, `start` and `end` of its
    span; `first` and `last` where it has positions."""
    events = match.events
    row: dict[str, Cell] = {"at": Times((match.at_us,))}
    if not events and match.start_us is not None:
        row |= {"start": Times((match.start_us,)), "end": Times((match.end_us,))}
    elif match.end_us != match.at_us:
        row["end"] = Times((match.end_us,))
    if match.positions is not None:
        row |= {"first": match.positions.first, "last": match.positions.last}
    return {**row, **match, **{EVENTS + name: Times(tuple(time for _, time in of)) for name, of in events.items()}}


def columns_of(shape: Shape) -> dict[str, Kind]:
    """The columns that rows may have, and what their cells hold."""
    times: tuple[str, ...] = ("at", "start", "end") if shape.spans and not shape.lanes else ("at",)
    if shape.later and "end" not in times:
        times = (*times, "end")
    columns: dict[str, Kind] = dict.fromkeys(times, "times")
    if shape.form == "EVENTS":
        columns |= {"first": "number", "last": "number"}
    columns |= dict.fromkeys(shape.index, "term")
    return columns | dict.fromkeys((EVENTS + name for name in shape.lanes), "times")


def cell_key(cell: Cell) -> str:
    """Equal for equal cells; all blank nodes are equal, since their labels mean nothing."""
    if isinstance(cell, BlankNode):
        return "_:"
    return cell_text(cell)


def cell_text(cell: Cell) -> str:
    """A cell for people."""
    match cell:
        case None:
            return ""
        case Times(of):
            return " ".join(to_text(t) for t in of)
        case int():
            return str(cell)
        case _:
            return term_text(cell)


def surplus(rows: Sequence[Row], others: Sequence[Row], columns: Sequence[str]) -> tuple[Row, ...]:
    """Those of `rows` that `others` do not have, each as often as it is one too many."""

    def key(row: Row) -> tuple[str, ...]:
        return tuple(cell_key(row.get(name)) for name in columns)

    theirs = Counter(map(key, others))
    left = []
    for row in rows:
        if theirs[key(row)]:
            theirs[key(row)] -= 1
        else:
            left.append(row)
    return tuple(left)
