"""Matches counted for a *family*: queries that differ in constants of thresholds, from the most lenient to the
strictest.

Query q takes a row if q is below the row's rank, so what it takes the ones before it take, too. A node has the *span*
of the queries for which it holds: [low, high). `high` is the least rank on its path; `low` rises where a row has
consumed the runs of the queries that took it, by `;` (sequence/writing.py). A union has the hull of what it unites.
Memory whose `spans` has no rows is of no family.
"""

from __future__ import annotations

from oxiseq.engine.kernels.compiling.options import inner
from oxiseq.engine.kernels.matches import records as v
from oxiseq.engine.kernels.matches.records import MatchMemory
from oxiseq.engine.kernels.memory.pointers import Ptr

EVERYBODY = 1 << 30
"""No query of a family has this number."""


@inner
def span(S: Ptr[MatchMemory], node: int, low: int, high: int) -> None:
    """The node holds for these queries."""
    if v.spans(S).shape[0]:
        v.spans(S)[node, 0], v.spans(S)[node, 1] = low, high
