"""Operators over rows that come and go (operators.md): of each its description, which is a part of a plan, and the
running one, which takes the rows of its inputs and puts its results into a buffer; their kernels are in kernels/flow.

    sources.py      where rows come from: patterns, the store, the knowledge base, VALUES
    rows.py         row by row: other columns, the opposite weight, UNION
    computing.py    FILTER, BIND
    arrange.py      rows kept to be found
    join.py         joins; new rows that look for kept ones; rows and the rows of a table that compare with them
    follow.py       pairs in order of time
    in_time.py      rows that happen at some time, row by row
    distinct.py     DISTINCT; equal rows of a tick as one
    group.py        GROUP BY; group_values.py: what of its sums is kept in Python
    best.py         ranks: ORDER BY with LIMIT, MIN, MAX, SAMPLE, FIRST, LAST
    reach.py        paths of any length; closure.py: in time
    node.py         the base of all that run; build.py: a plan's
"""

from oxiseq.engine.flow.operators.arrange import Arrange
from oxiseq.engine.flow.operators.best import Best, Rank, by_time
from oxiseq.engine.flow.operators.closure import Closure
from oxiseq.engine.flow.operators.computing import Extend, Filter
from oxiseq.engine.flow.operators.distinct import Consolidate, Distinct, Once
from oxiseq.engine.flow.operators.follow import Follow, Timed
from oxiseq.engine.flow.operators.group import Group, Sum
from oxiseq.engine.flow.operators.in_time import PREDICATE, Cover, Lasting, Sometime, TimeTerm, Triples
from oxiseq.engine.flow.operators.join import SIGNS, Bound, Join, JoinAll, Look, Lookup, Only, Sign
from oxiseq.engine.flow.operators.node import Lifetime
from oxiseq.engine.flow.operators.reach import Reach
from oxiseq.engine.flow.operators.rows import Negate, Pick, Union
from oxiseq.engine.flow.operators.sources import (
    MOST_PATTERNS,
    MOST_VARIABLES,
    Asked,
    Constant,
    Given,
    GraphPlace,
    Graphs,
    Patterns,
    Place,
    Quads,
    Source,
    WindowPlace,
    column,
)

__all__ = [
    "MOST_PATTERNS",
    "MOST_VARIABLES",
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
    "Follow",
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
]
