"""What queries find whose sliding windows differ in length: the longest finds all, each takes what fits.

    matches of the longest window ─ how long each match lasts ─ **matches of a shorter one**

A sliding window only cuts: what `;`, `,` and negations between look at lies between a match's first event and its last,
hence inside every window that holds the match (answers.md 5.2). `why_not_narrowed` says where that is not all. What is
only counted is apart by starts: counted_part.py.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from oxiseq.engine.kernels.matches.cutting import cut
from oxiseq.engine.kernels.matches.records import NO_LIMIT, NOTHING, PLACE_BITS
from oxiseq.engine.matches.found import Found
from oxiseq.engine.output.rows import RowStore
from oxiseq.engine.plan.query import QueryPlan
from oxiseq.engine.plan.thresholds import thresholds


def why_not_narrowed(plan: QueryPlan) -> str | None:
    """Why a query cannot take its matches from those of a longer window; None: it can."""
    if plan.window is None or not plan.window.sliding:
        return "its window does not slide"
    return why_not_cut(plan, counted=True)


def why_not_cut(plan: QueryPlan, *, counted: bool = False) -> str | None:
    """Why a query's matches cannot be some of those found for others, too; None: they can. `counted`: even if they are
    only counted, as they can where counts are apart by what decides."""
    clauses, sequence = plan.clauses, plan.runner.sequence
    graph = sequence.graph
    if (sequence.counted and not counted) or plan.runner.folding is not None or plan.runner.composing is not None:
        return "its matches are not listed"
    if clauses.strategy is not None or clauses.consumes != NOTHING:
        return "what is kept or forgotten depends on all matches of the window"
    listed = plan.summary is None or not sequence.counted
    if listed and (clauses.limit != NO_LIMIT or plan.runner.limit is not None or plan.runner.written.distinct):
        return "LIMIT or DISTINCT emit those that are found first"
    if any(edge.waits for edge in graph.edges) or any(state.negated for state in graph.states):
        return "a negation at an end of the sequence reads the whole window"
    return None


def finds_for_others(plan: QueryPlan) -> bool:
    """Whether a query's matches may be listed among those of a longer window or of more lenient thresholds, or were
    once. How such matches lie in memory depends on the others; so they come in an order that each one's rows fix, also
    while the query is alone."""
    if plan.runner.family is not None:
        return not plan.runner.sequence.counted
    if plan.runner.written.distinct:  # those that differ in that find together (sharing/alike.py)
        plan = replace(plan, runner=replace(plan.runner, written=replace(plan.runner.written, distinct=False)))
    cuts = plan.ranking is None and why_not_cut(plan) is None
    return cuts and ((plan.window is not None and plan.window.sliding) or bool(thresholds(plan)))


class Cuts:
    """Matches found for several queries, how long each lasts in the window's unit, and whose they are."""

    def __init__(self, found: Found, rows: RowStore, *, family: bool) -> None:
        self._found = found
        first, last = (found.rows[at] >> PLACE_BITS for at in (found.ends[:-1], found.ends[1:] - 1))
        self._lengths = rows.clocks(last) - rows.clocks(first)
        self._spans = found.marks if family else found.marks[:0]

    def of(self, member: int, size: int) -> Found:
        """Those that last no longer than `size`, in their order; if there is a family, of its query `member`."""
        found = self._found
        rows, ends = np.empty(len(found.rows), np.int64), np.zeros(len(found.ends), np.int64)
        kept = cut(found.rows, found.ends, self._lengths, size, self._spans, member, rows, ends)
        return Found(rows[: ends[kept]], ends[: kept + 1], found.marks[:kept])
