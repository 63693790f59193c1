"""What an EP-SPARQL pattern is compiled to: a tree of operators over rows with intervals.

Where it stands: algebra → **plan** → nodes.py at work. Immutable. `columns` of each operator are distinct; `certain`
are those that every row binds; `limit` is the longest hull of a row that can still be of use (NEVER: any).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TypeAlias

from pyoxigraph import Literal, NamedNode

from oxiseq.engine.intervals.rows import NEVER, Column
from oxiseq.grammar.algebra import Expression, TimeOp

Place: TypeAlias = Column | NamedNode | Literal


@dataclass(frozen=True, slots=True)
class TriplePlan:
    """A triple pattern on the stream and on the knowledge base's default graph; `but`: predicates that it does not
    accept (of a negated property set)."""

    places: tuple[Place, Place, Place]
    columns: tuple[Column, ...]
    limit: int = NEVER
    but: tuple[NamedNode, ...] = ()

    @property
    def certain(self) -> frozenset[Column]:
        return frozenset(self.columns)


@dataclass(frozen=True, slots=True)
class TimelessPlan:
    """Rows without a time: those of VALUES, of a GRAPH pattern (`asked`: its SELECT query), or one empty row."""

    columns: tuple[Column, ...]
    certain: frozenset[Column]
    rows: tuple[tuple[NamedNode | Literal | None, ...], ...] = ()
    asked: str = ""


@dataclass(frozen=True, slots=True)
class JoinPlan:
    """Pairs that agree: with the hull of both (`op` None), one before the other (SEQ), at the same time (EQUALS)."""

    op: TimeOp | None
    left: Plan
    right: Plan
    columns: tuple[Column, ...]
    certain: frozenset[Column]
    limit: int = NEVER


@dataclass(frozen=True, slots=True)
class OptionalPlan:
    """Rows of `main` with their partners, or alone. `op` None for OPTIONAL, whose partners end by then; else
    OPTIONALSEQ, whose partners end before, or EQUALSOPTIONAL. `conditions` are asked of the pair."""

    op: TimeOp | None
    main: Plan
    other: Plan
    conditions: tuple[Expression, ...]
    columns: tuple[Column, ...]
    certain: frozenset[Column]
    limit: int = NEVER
    """Of the partners."""


@dataclass(frozen=True, slots=True)
class WithoutPlan:
    """Rows of `main` for which `other` has none that agrees and ended by then: MINUS (`minus`), NOT EXISTS; or that
    have one (`wanted`): EXISTS."""

    main: Plan
    other: Plan
    conditions: tuple[Expression, ...] = ()
    minus: bool = False
    wanted: bool = False

    @property
    def columns(self) -> tuple[Column, ...]:
        return self.main.columns

    @property
    def certain(self) -> frozenset[Column]:
        return self.main.certain


@dataclass(frozen=True, slots=True)
class UnionPlan:
    """Rows of each branch; the last column is the branch."""

    branches: tuple[Plan, ...]
    columns: tuple[Column, ...]
    certain: frozenset[Column]


@dataclass(frozen=True, slots=True)
class FilterPlan:
    """Rows that satisfy all conditions."""

    child: Plan
    conditions: tuple[Expression, ...]

    @property
    def columns(self) -> tuple[Column, ...]:
        return self.child.columns

    @property
    def certain(self) -> frozenset[Column]:
        return self.child.certain


@dataclass(frozen=True, slots=True)
class ExtendPlan:
    """Rows with one more column, computed; unbound where that is an error."""

    child: Plan
    expression: Expression
    columns: tuple[Column, ...]

    @property
    def certain(self) -> frozenset[Column]:
        return self.child.certain


@dataclass(frozen=True, slots=True)
class ProjectPlan:
    """Some columns of `child`, by their places, under the names `columns`; each row once if `distinct`."""

    child: Plan
    places: tuple[int, ...]
    columns: tuple[Column, ...]
    certain: frozenset[Column]
    distinct: bool = False


@dataclass(frozen=True, slots=True)
class ClosurePlan:
    """One step or more of `step`, whose two columns are where it begins and ends; each hull once."""

    step: Plan
    columns: tuple[Column, ...]
    limit: int = NEVER

    @property
    def certain(self) -> frozenset[Column]:
        return frozenset(self.columns)


Plan: TypeAlias = (
    TriplePlan | TimelessPlan | JoinPlan | OptionalPlan | WithoutPlan | UnionPlan | FilterPlan | ExtendPlan
    | ProjectPlan | ClosurePlan
)  # fmt: skip


def below(plan: Plan) -> tuple[Plan, ...]:
    """The operators directly below."""
    match plan:
        case JoinPlan(_, left, right):
            return left, right
        case OptionalPlan(_, main, other) | WithoutPlan(main, other):
            return main, other
        case UnionPlan(branches):
            return branches
        case FilterPlan(child) | ExtendPlan(child) | ProjectPlan(child) | ClosurePlan(child):
            return (child,)
        case _:
            return ()


def everything(plan: Plan) -> Iterator[Plan]:
    """The operator and all below it."""
    yield plan
    for inner in below(plan):
        yield from everything(inner)


def is_timeless(plan: Plan) -> bool:
    """Whether its rows come of no stream."""
    return not any(isinstance(p, TriplePlan) for p in everything(plan))


@dataclass(frozen=True, slots=True)
class Answered:
    """A pattern and what is shown of it: columns of SELECT or of a template, with their expressions."""

    plan: Plan
    columns: tuple[tuple[Column, Expression | None], ...] = field(default=())
