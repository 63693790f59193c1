"""Where the rows of a plan come from, and how long they are of use."""

from __future__ import annotations

from functools import lru_cache
from typing import Final, TypeAlias

from pyoxigraph import NamedNode, Variable

from oxiseq.engine.terms.texts import Term
from oxiseq.grammar.algebra import Expression, TermOrVariable, TriplePattern
from oxiseq.grammar.records import dataclass


@lru_cache(maxsize=256)
def column(place: int) -> Variable:
    """What stands for the column at a place in the expressions of a plan."""
    return Variable(f"c{place}")


@dataclass(frozen=True, slots=True)
class WindowPlace:
    """A window: the number of its content in the query."""

    content: int


@dataclass(frozen=True, slots=True)
class GraphPlace:
    """A graph of the knowledge base; None: its default graph."""

    name: NamedNode | None


Place: TypeAlias = WindowPlace | GraphPlace


MOST_PATTERNS: Final = 62
MOST_VARIABLES: Final = 62
"""Of a conjunction: bits of a mask."""


@dataclass(frozen=True, slots=True)
class Patterns:
    """A conjunction of triple patterns, each on the window or the graph of the knowledge base at its place, with
    FILTERs on their variables: each of its rows once. Columns: its variables in order of appearance, which are called
    `column(0)`, `column(1)`... there."""

    patterns: tuple[TriplePattern, ...]
    filters: tuple[Expression, ...]
    places: tuple[Place, ...]

    @property
    def keys(self) -> tuple[Variable, ...]:
        """What its columns are."""
        terms = (t for each in self.patterns for t in (each.subject, each.predicate, each.object))
        return tuple(dict.fromkeys(t for t in terms if isinstance(t, Variable)))


@dataclass(frozen=True, slots=True)
class Asked:
    """A SELECT to the knowledge base alone, queried again when that has changed; its rows with their multiplicity."""

    text: str
    width: int


@dataclass(frozen=True, slots=True)
class Quads:
    """The quads of a store that agree with a pattern, each once. graph: None its default graph, a variable any of its
    named ones. Columns: the variables in order of appearance, the graph's last, called `column(0)`... there."""

    pattern: TriplePattern
    graph: NamedNode | Variable | None

    @property
    def parts(self) -> tuple[TermOrVariable | None, ...]:
        """Subject, predicate, object, graph."""
        return (self.pattern.subject, self.pattern.predicate, self.pattern.object, self.graph)

    @property
    def width(self) -> int:
        """How many variables it has."""
        return len({part for part in self.parts if isinstance(part, Variable)})


@dataclass(frozen=True, slots=True)
class Graphs:
    """The named graphs of a store, the empty ones too. One column."""


@dataclass(frozen=True, slots=True)
class Given:
    """Rows that the plan's caller supplies. raw: places of columns that hold numbers; once: each comes once."""

    name: str
    width: int
    raw: tuple[int, ...] = ()
    once: bool = False


@dataclass(frozen=True, slots=True)
class Constant:
    """Rows that are there from the first tick on: VALUES; `{}` is one row without columns. None: unbound."""

    rows: tuple[tuple[Term | None, ...], ...]
    width: int


Source: TypeAlias = Patterns | Asked | Quads | Graphs | Given | Constant


@dataclass(frozen=True, slots=True)
class Lifetime:
    """How long rows are of use, whose interval is at `start`: while it begins at most `limit` microseconds
    before the instant in work. Then they are forgotten, and nothing is emitted about them. Rows without a time
    (times.NO_START) stay."""

    start: int
    limit: int = 0
