"""The facts on a query besides its text, and its compiled form."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import field

from pyoxigraph import NamedNode, Variable

from oxiseq.engine.flow.events import EventRows, Used
from oxiseq.engine.flow.plan import FlowPlan, Quads, Rank
from oxiseq.engine.flow.relations import Relation, Relations
from oxiseq.engine.flow.sparql.leaves import Leaves
from oxiseq.grammar.algebra import EventPattern, Expression, MatchPattern
from oxiseq.grammar.records import dataclass


@dataclass(frozen=True, slots=True)
class Matched:
    """A MATCH: its pattern, in which FIRST ON and LAST ON are FIRST and LAST of the event; its variables; `timed`:
    whether hidden columns behind them say which times a row has: start and end, two each (flow/times.py)."""

    pattern: EventPattern
    variables: tuple[Variable, ...]
    timed: bool = False


@dataclass(frozen=True, slots=True)
class Around:
    """windows: window's name → number of its content; default: contents in the default graph; `default_graphs` and
    `named_graphs`: FROM and FROM NAMED; matches: what MATCH stands for, `timed` what the one MATCH of WHERE itself
    does if its rows carry times; `events`: by name the rows of their events, `items`: whether these say which item they
    are of, for queries that consume; `asks_kb`: whether parts of the query may be queried from the knowledge base;
    `alone`: nothing but the store is read, quad by quad: FROM and FROM NAMED, if there are any, are the whole dataset,
    as for the store's own queries, and nothing is queried; `size`: about how many quads agree with a pattern; `leaves`:
    makes the leaves of triple patterns, where others are wanted than those of windows and of stores; `event`: the
    variable of the GRAPH block that is matched on each event, of which `Graphs` has the names."""

    windows: Mapping[NamedNode, int] = field(default_factory=dict)
    default: tuple[int, ...] = ()
    default_graphs: tuple[NamedNode, ...] = ()
    named_graphs: tuple[NamedNode, ...] = ()
    matches: Mapping[MatchPattern, Matched] = field(default_factory=dict)
    timed: Matched | None = None
    events: Mapping[str, EventRows] = field(default_factory=dict)
    items: bool = False
    asks_kb: bool = True
    alone: bool = False
    size: Callable[[Quads], int] | None = None
    leaves: Callable[[Relations], Leaves] | None = None
    event: Variable | None = None

    @property
    def whole_dataset(self) -> bool:
        """Whether FROM and FROM NAMED are all that there is."""
        return self.alone and bool(self.default_graphs or self.named_graphs)


@dataclass(frozen=True, slots=True)
class Told:
    """A column of the answer: its name and its place in the root's rows; or (place None) an expression over them with
    NOW() in it, whose value is that of the instant at which the row is emitted. Its variables are `column(place)`."""

    name: str
    place: int | None
    expression: Expression | None = None


@dataclass(frozen=True, slots=True)
class Lowered:
    """A query's plan, and how its answer is emitted.

    relation: the root's columns. `compared`: how many of them, from the first, identify a row; those behind only sort.
    `told`: the emitted columns and their names, none for ASK, whose answer is one row of width 0 or no row. `order`:
    how the rows emitted at one instant are sorted. `times`: the place of the columns that say which times a row has
    (Matched). `used`: the items behind the rows of MATCH, if requested; their nodes are `plan.also`.
    """

    plan: FlowPlan
    relation: Relation
    compared: int
    told: tuple[Told, ...]
    order: tuple[Rank, ...]
    times: int | None
    used: tuple[Used, ...] = ()
