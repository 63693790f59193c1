"""The form to which an EP-SPARQL pattern is compiled: a tree of operators over rows with intervals.

In the flow: algebra → **plan** → nodes.py at work. Immutable. `columns` of each operator are distinct; `certain`
are those that every row binds; `limit` is the longest hull of a row that can still be of use (NEVER: any).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import field
from typing import Final, TypeAlias

from pyoxigraph import Literal, NamedNode

from oxiseq.engine.flow.epsparql.rows import NEVER, Column, Hidden
from oxiseq.engine.flow.plan import Sign
from oxiseq.grammar.algebra import Expression, TimeOp
from oxiseq.grammar.records import dataclass

Place: TypeAlias = Column | NamedNode | Literal


@dataclass(frozen=True, slots=True)
class TriplePlan:
    """A triple pattern on the stream and on the statements and inferences of the knowledge base; `but`: predicates that
    it does not accept (of a negated property set); `use`: the column, its last, that says which triple it was."""

    places: tuple[Place, Place, Place]
    columns: tuple[Column, ...]
    limit: int = NEVER
    but: tuple[NamedNode, ...] = ()
    use: Hidden | None = None

    @property
    def certain(self) -> frozenset[Column]:
        return frozenset(self.columns) - {self.use}


@dataclass(frozen=True, slots=True)
class TimelessPlan:
    """Rows without a time: those of VALUES, of a GRAPH pattern (`asked`: its SELECT query), or one empty row."""

    columns: tuple[Column, ...]
    certain: frozenset[Column]
    rows: tuple[tuple[NamedNode | Literal | None, ...], ...] = ()
    asked: str = ""


@dataclass(frozen=True, slots=True)
class JoinPlan:
    """Pairs that agree: with the hull of both (`op` None), one before the other (SEQ), at the same time (EQUALS).

    `late`: the left operand of SEQ is evaluated when the instant is over, as rules may still derive what must be
    missing there; nothing that ends now is before anything that ends now.
    """

    op: TimeOp | None
    left: Plan
    right: Plan
    columns: tuple[Column, ...]
    certain: frozenset[Column]
    limit: int = NEVER
    late: bool = False


@dataclass(frozen=True, slots=True)
class ExistsTest:
    """EXISTS, or NOT EXISTS unless `wanted`: whether `other` has a row that agrees with a row, ended by then, and
    satisfies `conditions` and `tests` together with it, which allow a hull of `limit`."""

    other: Plan
    wanted: bool
    conditions: tuple[Expression, ...] = ()
    tests: tuple[ExistsTest, ...] = ()
    limit: int = NEVER


@dataclass(frozen=True, slots=True)
class OptionalPlan:
    """Rows of `main` with their partners, or alone. `op` None for OPTIONAL, whose partners end by then; else
    OPTIONALSEQ, whose partners end before, or EQUALSOPTIONAL. `conditions` and `tests` are evaluated on the pair."""

    op: TimeOp | None
    main: Plan
    other: Plan
    conditions: tuple[Expression, ...]
    tests: tuple[ExistsTest, ...]
    columns: tuple[Column, ...]
    certain: frozenset[Column]
    limit: int = NEVER
    """Of the partners."""
    late: bool = False
    """Of OPTIONALSEQ: see `JoinPlan`."""
    longest: int = NEVER
    """The longest duration of a useful row; a longer one still has its partner, and is not alone."""


class _OfMain:
    """Rows of `main`, or some of them."""

    __slots__ = ()
    main: Plan

    @property
    def columns(self) -> tuple[Column, ...]:
        return self.main.columns

    @property
    def certain(self) -> frozenset[Column]:
        return self.main.certain


@dataclass(frozen=True, slots=True)
class MinusPlan(_OfMain):
    """Rows of `main` for which `other` has none that agrees, shares a bound variable and ended by then."""

    main: Plan
    other: Plan


@dataclass(frozen=True, slots=True)
class TestPlan(_OfMain):
    """Rows of `main` that pass a test."""

    main: Plan
    test: ExistsTest


@dataclass(frozen=True, slots=True)
class UnionPlan:
    """Rows of each branch; the last column is the branch."""

    branches: tuple[Plan, ...]
    columns: tuple[Column, ...]
    certain: frozenset[Column]


@dataclass(frozen=True, slots=True)
class FilterPlan(_OfMain):
    """Rows of `main` that satisfy all conditions."""

    main: Plan
    conditions: tuple[Expression, ...]


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
    """Some columns of `child`, by their places, under the names `columns`; each row once if `distinct`; `same`: only
    rows whose first two columns are the same."""

    child: Plan
    places: tuple[int, ...]
    columns: tuple[Column, ...]
    certain: frozenset[Column]
    distinct: bool = False
    same: bool = False


@dataclass(frozen=True, slots=True)
class ClosurePlan:
    """One step or more of `step`, whose two columns are where it begins and ends; each hull once."""

    step: Plan
    columns: tuple[Column, ...]
    limit: int = NEVER

    @property
    def certain(self) -> frozenset[Column]:
        return frozenset(self.columns)


@dataclass(frozen=True, slots=True)
class TablePlan:
    """Rows of `child`, each with the rows of a table that agree on the columns of both, and on pairs of a column and
    the table's (`equal`). bound: a column, the table's, and how the one compares with the other as numbers; others may
    pass. The table is there before the first row comes, and does not change (alike.py)."""

    child: Plan
    table: TimelessPlan
    equal: tuple[tuple[Column, Column], ...] = ()
    bound: tuple[Column, Column, Sign] | None = None

    @property
    def columns(self) -> tuple[Column, ...]:
        return tuple(dict.fromkeys((*self.child.columns, *self.table.columns)))

    @property
    def certain(self) -> frozenset[Column]:
        return self.child.certain | self.table.certain


Plan: TypeAlias = (
    TriplePlan
    | TimelessPlan
    | TablePlan
    | JoinPlan
    | OptionalPlan
    | MinusPlan
    | TestPlan
    | UnionPlan
    | FilterPlan
    | ExtendPlan
    | ProjectPlan
    | ClosurePlan
)

_ROW_BY_ROW: Final = (TriplePlan, FilterPlan, ExtendPlan, ProjectPlan, UnionPlan)
"""Operators that make at most one row of a row."""


def below(plan: Plan) -> tuple[Plan, ...]:
    """The operators directly below."""
    match plan:
        case TablePlan(child, table):
            return child, table
        case JoinPlan(_, left, right):
            return left, right
        case OptionalPlan(_, main, other):
            return main, other, *(p for test in plan.tests for p in _below_test(test))
        case MinusPlan(main, other):
            return main, other
        case TestPlan(main, test):
            return main, *_below_test(test)
        case UnionPlan(branches):
            return branches
        case FilterPlan(child) | ExtendPlan(child) | ProjectPlan(child) | ClosurePlan(child):
            return (child,)
        case _:
            return ()


def _below_test(test: ExistsTest) -> Iterator[Plan]:
    yield test.other
    for inner in test.tests:
        yield from _below_test(inner)


def everything(plan: Plan) -> Iterator[Plan]:
    """The operator and all below it."""
    todo = [plan]
    while todo:
        yield (each := todo.pop())
        todo.extend(reversed(tuple(below(each))))


def looks(plan: Plan) -> bool:
    """Whether it depends on something that may be missing."""
    return any(isinstance(p, OptionalPlan | MinusPlan | TestPlan) for p in everything(plan))


def triples(plan: Plan, kept: bool = False) -> Iterator[tuple[TriplePlan, bool]]:
    """Its triple patterns, and whether their triples make no rows by themselves: they are only kept, one row or none
    each, until something comes behind them in a SEQ."""
    match plan:
        case TriplePlan():
            yield plan, kept
        case JoinPlan(TimeOp.SEQ, left, right):
            yield from triples(left, kept or all(isinstance(each, _ROW_BY_ROW) for each in everything(left)))
            yield from triples(right, kept)
        case _:
            for each in below(plan):
                yield from triples(each, kept)


def is_timeless(plan: Plan) -> bool:
    """Whether its rows come of no stream."""
    return not any(isinstance(p, TriplePlan) for p in everything(plan))


@dataclass(frozen=True, slots=True)
class SeqChoice:
    """A SEQ that chooses among its operands. `first`, `second`: the triples that they are made of. `own`: the columns
    that distinguish second operands; `shared`: those of them that the first operand binds too."""

    first: tuple[Hidden, ...]
    second: tuple[Hidden, ...]
    own: tuple[Column, ...]
    shared: tuple[Column, ...]


@dataclass(frozen=True, slots=True)
class UsePlan:
    """How triples are consumed (semantics.md 5): `columns` say which triples a solution is made of, `copies` what a
    second operand of SEQ binds by itself; the choices, innermost first, take the last operands if `recent`, else the
    first."""

    columns: tuple[Hidden, ...]
    copies: tuple[Hidden, ...]
    choices: tuple[SeqChoice, ...]
    recent: bool

    @property
    def unseen(self) -> frozenset[Column]:
        """The columns that are there for the choices only."""
        return frozenset((*self.columns, *self.copies))


@dataclass(frozen=True, slots=True)
class Answered:
    """A pattern and what is shown of it: columns of SELECT or of a template, with their expressions. `uses`: None where
    triples are not used up."""

    plan: Plan
    columns: tuple[tuple[Column, Expression | None], ...] = field(default=())
    uses: UsePlan | None = None
