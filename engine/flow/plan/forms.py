"""A whole plan: its operators, and their properties."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TypeAlias

from oxiseq.engine.expressions.functions import is_pure
from oxiseq.engine.flow.plan.counted import Best, Consolidate, Distinct, Group, Once, Reach
from oxiseq.engine.flow.plan.happening import Closure, Cover, Look, Sometime, TimeTerm, Triples
from oxiseq.engine.flow.plan.pairs import Arrange, Extreme, Follow, Join, JoinAll, Lookup
from oxiseq.engine.flow.plan.row_by_row import Extend, Filter, Lasting, Negate, Pick, Union
from oxiseq.engine.flow.plan.sources import Asked, Constant, Given, Graphs, Patterns, Quads
from oxiseq.grammar.algebra import Call
from oxiseq.grammar.records import dataclass
from oxiseq.grammar.scope import subexpressions

Form: TypeAlias = (
    Patterns
    | Asked
    | Quads
    | Graphs
    | Given
    | Constant
    | Filter
    | Extend
    | Pick
    | Negate
    | Union
    | Lasting
    | Arrange
    | Join
    | JoinAll
    | Lookup
    | Follow
    | Extreme
    | Distinct
    | Consolidate
    | Once
    | Group
    | Best
    | Reach
    | Triples
    | Look
    | Cover
    | Sometime
    | TimeTerm
    | Closure
)


@dataclass(frozen=True, slots=True)
class FlowPlan:
    """Operators in an order in which each comes after its inputs; `widths`: how many columns each has; `root`: the one
    whose rows are the answer; `raw`: the places of each one's columns that hold numbers, ascending; `also`: others
    whose rows are read."""

    forms: tuple[Form, ...]
    widths: tuple[int, ...]
    root: int
    raw: tuple[tuple[int, ...], ...]
    also: tuple[int, ...] = ()


def inputs(form: Form) -> tuple[int, ...]:
    """The places of its inputs."""
    match form:
        case Patterns() | Asked() | Quads() | Graphs() | Given() | Constant():
            return ()
        case Union(children) | JoinAll(children):
            return children
        case Join(left, right):
            return left, right
        case Follow(left, right):
            return left.child, right.child
        case Look(child, kept) | Lookup(child, kept):
            return child, kept
        case _:
            return (form.child,)


def renamed(form: Form, places: Mapping[int, int]) -> Form:
    """A form with its inputs renumbered."""
    match form:
        case Patterns() | Asked() | Quads() | Graphs() | Given() | Constant():
            return form
        case Union(children) | JoinAll(children):
            return replace(form, children=tuple(places[c] for c in children))
        case Join(left, right):
            return Join(places[left], places[right])
        case Look(child, kept):
            return replace(form, child=places[child], kept=places[kept])
        case Lookup(child, table):
            return replace(form, child=places[child], table=places[table])
        case Follow(left, right):
            here = replace(left, child=places[left.child]), replace(right, child=places[right.child])
            return replace(form, left=here[0], right=here[1])
        case _:
            return replace(form, child=places[form.child])


def is_one_to_one(plan: FlowPlan) -> bool:
    """Whether each row of the root is one row of a conjunction of patterns, and no two are alike: then what is new
    there is new here, and nothing has to be counted."""
    place = plan.root
    while True:
        match plan.forms[place]:
            case Patterns() | JoinAll() | Quads() | Graphs():
                return True
            case Filter(child, conditions) if all(map(is_pure, conditions)):
                place = child
            case Extend(child, expression) if is_pure(expression):
                place = child
            case Pick(child, columns) if _keeps(columns, plan.widths[child]):
                place = child
            case _:
                return False


def is_consolidated(plan: FlowPlan) -> bool:
    """Whether no row of the root comes and goes within one tick."""
    return is_settled(plan.forms[plan.root]) or is_one_to_one(plan)


def is_settled(form: Form) -> bool:
    """Whether an operator passes on the outcome of a tick, whatever comes and goes within it."""
    return isinstance(form, Distinct | Consolidate | Group | Best | Reach)


def draws(plan: FlowPlan) -> bool:
    """Whether some value is drawn by chance."""
    drawn = (each.expression for each in plan.forms if isinstance(each, Extend))
    return not all(map(is_pure, drawn))


def draws_in_turn(plan: FlowPlan) -> bool:
    """Whether several operators make blank nodes, which sort by age: then each instant
    is processed alone, or their order would depend on how events are batched."""
    made = (each.expression for each in plan.forms if isinstance(each, Extend))
    return sum(any(isinstance(e, Call) and e.name == "BNODE" for e in subexpressions(each)) for each in made) > 1


def _keeps(columns: tuple[tuple[int, ...], ...], width: int) -> bool:
    """Whether all columns of the child are among these."""
    return {places[0] for places in columns if len(places) == 1} >= set(range(width))
