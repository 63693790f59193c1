"""The algebra of queries over windows of graphs: continuous SPARQL (SPECTRA, RSP-QL) and RSEP-QL (semantics.md 4, 6).

In the flow: text → **algebra** → plan. As in `algebra.py` all values are frozen and a `span` takes no part in
comparison. The two languages share one algebra; `language` says how windows are counted and when the query is
answered if the text does not say so. Times and spans of time are microseconds (the caller's integers).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import field
from enum import Enum
from typing import Literal, TypeAlias

from pyoxigraph import NamedNode

from oxiseq.grammar.algebra import (
    EventName,
    EventPattern,
    FirstOf,
    Following,
    Group,
    LastOf,
    Span,
    SubSelect,
    TriplePattern,
    When,
    span_field,
)
from oxiseq.grammar.records import dataclass

RspLanguage: TypeAlias = Literal["rspql", "spectra", "rsepql"]

# --- windows --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class RangeWindow:
    """`[RANGE size SLIDE slide]`: microseconds, or events of the stream (its instants) if `events`."""

    size: int
    slide: int = 1
    events: bool = False
    span: Span = span_field()


@dataclass(frozen=True, slots=True)
class LandmarkWindow:
    """`[LND start]`: everything since `start`, that time included."""

    start: int
    span: Span = span_field()


@dataclass(frozen=True, slots=True)
class IntervalWindow:
    """`[INTERVAL start end]`: both times included."""

    start: int
    end: int
    span: Span = span_field()


@dataclass(frozen=True, slots=True)
class IdentityWindow:
    """`[ID]`: everything so far."""

    span: Span = span_field()


WindowOperator: TypeAlias = RangeWindow | LandmarkWindow | IntervalWindow | IdentityWindow


@dataclass(frozen=True, slots=True)
class NamedWindow:
    """A window on a stream; `operators` are applied from left to right. Without a name its content is part of the
    default graph."""

    stream: NamedNode
    operators: tuple[WindowOperator, ...]
    name: NamedNode | None = None
    span: Span = span_field()


# --- clauses --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class EventDefinition:
    """`EVENT ON window {...} AS name`: the pattern's mappings on each item of the window (Eq. 4)."""

    name: str
    window: NamedNode
    pattern: Group
    choice: Literal["", "FIRST", "LAST"] = ""
    """Of `FIRST ON window {...} AS name`: the name stands for FIRST of the mappings."""
    span: Span = span_field()


class Report(Enum):
    """Which answers are emitted at an instant: all, the new ones since the previous instant, or the removed ones."""

    RSTREAM = "RSTREAM"
    ISTREAM = "ISTREAM"
    DSTREAM = "DSTREAM"


class Consume(Enum):
    """What happens to the items that justified an answer (Defs 8 to 10)."""

    UNRESTRICTED = "UNRESTRICTED"
    CHRONOLOGICAL = "CHRONOLOGICAL"
    RECENT = "RECENT"


# --- queries --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class RspQuery:
    """A query over windows.

    `body` is WHERE with the solution modifiers, and what SELECT lists (`*` for the other forms). `report`, `consume`
    and `when` are None where the text leaves them open. `default_graphs` and `named_graphs` are FROM and FROM NAMED
    of graphs of the KB.
    """

    language: RspLanguage
    form: Literal["SELECT", "CONSTRUCT", "ASK"]
    body: SubSelect
    windows: tuple[NamedWindow, ...]
    events: tuple[EventDefinition, ...] = ()
    template: tuple[TriplePattern, ...] = ()
    report: Report | None = None
    into: NamedNode | None = None
    """The stream that REGISTER names."""
    consume: Consume | None = None
    when: When | None = None
    default_graphs: tuple[NamedNode, ...] = ()
    named_graphs: tuple[NamedNode, ...] = ()
    prefixes: tuple[tuple[str, str], ...] = ()
    base: str | None = None
    span: Span = span_field()
    text: str = field(default="", compare=False, repr=False)
    """What it was parsed from, so that later errors can show the place."""

    @property
    def streams(self) -> tuple[str, ...]:
        """The streams' IRIs, in the order of the text."""
        return tuple(dict.fromkeys(window.stream.value for window in self.windows))


def event_names(pattern: EventPattern) -> Iterator[EventName]:
    """The events that an event pattern names, left to right."""
    match pattern:
        case EventName():
            yield pattern
        case FirstOf(inner) | LastOf(inner):
            yield from event_names(inner)
        case Following(first, second):
            yield from event_names(first)
            yield from event_names(second)
