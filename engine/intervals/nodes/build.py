"""Plan → operators at work."""

from __future__ import annotations

from oxiseq.engine.intervals.nodes.joins import Closure, Join
from oxiseq.engine.intervals.nodes.leaves import Leaf, Timeless
from oxiseq.engine.intervals.nodes.missing import Minus, Optional, Test
from oxiseq.engine.intervals.nodes.node import Node
from oxiseq.engine.intervals.nodes.rowwise import Extend, Filter, Project, Union
from oxiseq.engine.intervals.plan import (
    ClosurePlan,
    ExtendPlan,
    FilterPlan,
    JoinPlan,
    MinusPlan,
    OptionalPlan,
    Plan,
    ProjectPlan,
    TestPlan,
    TimelessPlan,
    TriplePlan,
    UnionPlan,
)
from oxiseq.engine.terms.dictionary import TermDictionary


def build(plan: Plan, terms: TermDictionary) -> Node:
    """The operators of a plan, that have not seen anything."""
    match plan:
        case TriplePlan():
            return Leaf(plan, terms)
        case TimelessPlan():
            return Timeless(plan, terms)
        case JoinPlan():
            return Join(plan, build(plan.left, terms), build(plan.right, terms))
        case OptionalPlan():
            return Optional(plan, build(plan.main, terms), build(plan.other, terms), terms, build)
        case MinusPlan():
            return Minus(plan, build(plan.main, terms), build(plan.other, terms))
        case TestPlan():
            return Test(plan, build(plan.main, terms), terms, build)
        case UnionPlan():
            return Union(plan, [build(b, terms) for b in plan.branches], terms)
        case FilterPlan():
            return Filter(plan, build(plan.child, terms), terms)
        case ExtendPlan():
            return Extend(plan, build(plan.child, terms), terms)
        case ProjectPlan():
            return Project(plan, build(plan.child, terms))
        case ClosurePlan():
            return Closure(plan, build(plan.step, terms))
