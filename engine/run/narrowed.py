"""What queries find whose sliding windows differ in length alone: the longest finds all, each takes what fits.

    what the longest window finds ─ how long each match lasts ─ **what a shorter one finds**

A sliding window only cuts: what `;`, `,` and negations between look at lies between a match's first event and its last,
hence inside every window that holds the match (answers.md 5.2). `why_not_narrowed` says where that is not all.
"""

from __future__ import annotations

import numpy as np

from oxiseq.engine.kernels.matches.records import NO_LIMIT, PLACE_BITS
from oxiseq.engine.kernels.sequence.records import NOTHING
from oxiseq.engine.output.rows import RowStore
from oxiseq.engine.plan.query import QueryPlan
from oxiseq.engine.sequence.run import Found


def why_not_narrowed(plan: QueryPlan) -> str | None:
    """Why a query cannot take its matches from those of a longer window; None: it can."""
    clauses, graph = plan.sequence.clauses, plan.sequence.graph
    if plan.window is None or not plan.window.sliding:
        return "its window does not slide"
    if plan.sequence.counted or plan.folding is not None:
        return "its matches are not listed"
    if clauses.strategy is not None or clauses.consumes != NOTHING:
        return "what is kept or forgotten depends on all matches of the window"
    if clauses.limit != NO_LIMIT or plan.limit is not None or plan.written.distinct:
        return "LIMIT or DISTINCT tell those that are found first"
    if any(edge.waits for edge in graph.edges) or any(state.negated for state in graph.states):
        return "a negation at an end of the sequence looks at the whole window"
    return None


class Lasting:
    """Matches, and how long each lasts in the window's unit."""

    def __init__(self, found: Found, rows: RowStore) -> None:
        self._found = found
        first, last = (found.rows[at] >> PLACE_BITS for at in (found.ends[:-1], found.ends[1:] - 1))
        self._spans = rows.clocks(last) - rows.clocks(first)

    def within(self, size: int) -> Found:
        """Those that last no longer than `size`, in their order."""
        fits = self._spans <= size
        return self._found if fits.all() else self._found.take(np.flatnonzero(fits))
