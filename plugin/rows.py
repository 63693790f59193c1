"""A match of any language as a row of named cells, so that rows can be compared and shown.

Where it stands: Match, ComplexEvent or Answer → **row** → tests of patterns, what-if.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from pyoxigraph import BlankNode

from oxiseq.ceql.event import ComplexEvent
from oxiseq.engine.events.time import to_text
from oxiseq.engine.terms.texts import Term, term_text
from oxiseq.epsparql.answer import IntervalMatch
from oxiseq.rsp.answer import Answer

EVENTS = "@"
"""Before the name of a GPM: the column of its events' times."""


@dataclass(frozen=True, slots=True)
class Times:
    """Times of events, in microseconds since 1970 UTC, in order."""

    of: tuple[int, ...]


Cell: TypeAlias = Term | Times | int | None
"""A term, times, a number (a position of CEQL), or nothing."""
Row: TypeAlias = Mapping[str, Cell]


def row_of(match: Any) -> dict[str, Cell]:
    """`time`, then a cell per variable; for SPAseq `@A` with the times of A's events, for CEQL `start` and `end` as
    positions and each variable's events as times, for queries over windows and EP-SPARQL `start` and `end` as times."""
    time = Times((match.time,))
    if isinstance(match, ComplexEvent):
        held = {v: Times(tuple(t for _, t in events)) for v, events in match.events.items()}
        return {"time": time, "start": match.start, "end": match.end, **held}
    if isinstance(match, Answer | IntervalMatch):
        own = {name: Times((t,)) for name, t in zip(("start", "end"), match.hull, strict=False)}
        return {"time": time, **own, **match.bindings}
    events = {EVENTS + gpm: Times(tuple(t for _, t in found)) for gpm, found in match.events.items()}
    return {"time": time, **match.bindings, **events}


def cell_key(cell: Cell) -> str:
    """Equal for cells that are the same; blank nodes are not told apart, since their labels mean nothing."""
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
