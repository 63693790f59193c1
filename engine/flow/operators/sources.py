"""Where the rows of a plan come from: the caller supplies them, or they are there from the first tick on."""

from __future__ import annotations

from functools import lru_cache
from typing import Final, TypeAlias

import numpy as np
from pyoxigraph import NamedNode, Variable

from oxiseq.engine.flow.delta import Delta
from oxiseq.engine.flow.operators.arrange import Arrange, ArrangeNode
from oxiseq.engine.flow.operators.node import Node
from oxiseq.engine.terms.dictionary import TermDictionary
from oxiseq.engine.terms.saved import unsaved
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
_ROOM: Final = 16


class Fed(Node):
    """`Flow.feed` puts a delta into `out`."""

    def step(self) -> None:
        """There is nothing to be done."""


class Windowed(Fed):
    """The rows of a triple pattern, which the caller keeps as well (engine/flow/leaves.py), by whatever joins ask
    for."""

    made_of = (unsaved("rows"),)

    def __init__(self, width: int) -> None:
        super().__init__(width)
        self.rows = ArrangeNode(Arrange(0, (), tuple(range(width))), self.out, _ROOM, listed=True)


class ConstantNode(Node):
    def __init__(self, form: Constant, terms: TermDictionary) -> None:
        super().__init__(form.width)
        ids = [[0 if t is None else terms.constant(t) for t in row] for row in form.rows]
        self._rows = np.array(ids, np.uint32).reshape(len(form.rows), form.width)
        self._first: int | None = None

    def begin(self, tick: int) -> bool:
        self._first = tick
        return True

    def step(self) -> None:
        if self._first is not None:
            count = len(self._rows)
            self.out.put(Delta(np.full(count, self._first), np.ones(count, np.int64), self._rows))
            self._first = None
