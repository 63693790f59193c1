"""A standing query as a graph of operators over rows that come and go (operators.md).

In the flow: algebra → **plan** → nodes at work. Immutable. A plan is a table: each operator names its inputs by
their places in it, so equal operators on equal inputs are one, and columns are places, not names, so what variables are
called does not distinguish operators. In expressions the column at place 3 is the variable `column(3)`.

Most columns hold ids of terms. Some are *raw*: numbers (`FlowPlan.raw` says where). An i64, a time for instance, is two
of them, one behind the other (times.py): so rows are hashed, compared, kept and passed on in one way. Expressions and
orders of terms do not look at raw columns.

    Patterns, Asked, Given, Constant      where rows come from
    Quads, Graphs                         a store's content, followed quad by quad
    Triples, Cover, Sometime, TimeTerm    rows that happen at some time, row by row
    Look, Closure                         pairs of new facts with earlier ones; paths in time
    Filter, Extend, Pick, Negate, Union   row by row, without memory
    Lasting                               intervals, row by row
    Arrange, Join, JoinAll                joined rows; the memory of joins is in the arrangements
    Lookup                                rows and the rows of a table that compare with them
    Follow                                pairs in order of time
    Distinct, Consolidate, Once, Group    rows counted
    Best                                  ranks
    Reach                                 paths of any length

    operators/       of each its description, and the running one
    forms.py         a whole plan, and one in the making
"""

from oxiseq.engine.expressions.functions import is_pure
from oxiseq.engine.flow.operators import (
    MOST_PATTERNS,
    MOST_VARIABLES,
    PREDICATE,
    SIGNS,
    Arrange,
    Asked,
    Best,
    Bound,
    Closure,
    Consolidate,
    Constant,
    Cover,
    Distinct,
    Extend,
    Filter,
    Follow,
    Given,
    GraphPlace,
    Graphs,
    Group,
    Join,
    JoinAll,
    Lasting,
    Lifetime,
    Look,
    Lookup,
    Negate,
    Once,
    Only,
    Patterns,
    Pick,
    Place,
    Quads,
    Rank,
    Reach,
    Sign,
    Sometime,
    Source,
    Sum,
    Timed,
    TimeTerm,
    Triples,
    Union,
    WindowPlace,
    by_time,
    column,
)
from oxiseq.engine.flow.plan.forms import (
    NUMBER,
    FlowPlan,
    Form,
    Sheet,
    draws,
    draws_in_turn,
    inputs,
    is_consolidated,
    is_one_to_one,
    is_settled,
    origins,
    renamed,
)

__all__ = [
    "MOST_PATTERNS",
    "MOST_VARIABLES",
    "NUMBER",
    "PREDICATE",
    "SIGNS",
    "Arrange",
    "Asked",
    "Best",
    "Bound",
    "Closure",
    "Consolidate",
    "Constant",
    "Cover",
    "Distinct",
    "Extend",
    "Filter",
    "FlowPlan",
    "Follow",
    "Form",
    "Given",
    "GraphPlace",
    "Graphs",
    "Group",
    "Join",
    "JoinAll",
    "Lasting",
    "Lifetime",
    "Look",
    "Lookup",
    "Negate",
    "Once",
    "Only",
    "Patterns",
    "Pick",
    "Place",
    "Quads",
    "Rank",
    "Reach",
    "Sheet",
    "Sign",
    "Sometime",
    "Source",
    "Sum",
    "TimeTerm",
    "Timed",
    "Triples",
    "Union",
    "WindowPlace",
    "by_time",
    "column",
    "draws",
    "draws_in_turn",
    "inputs",
    "is_consolidated",
    "is_one_to_one",
    "is_pure",
    "is_settled",
    "origins",
    "renamed",
]
