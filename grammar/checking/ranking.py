"""ORDER BY, LIMIT with OFFSET, and SAMPLE where the answer has a row per match (semantics.md 2.6b)."""

from __future__ import annotations

from collections.abc import Iterator

from oxiseq.grammar.algebra import Aggregate, Ask, Select
from oxiseq.grammar.checking.common import check_sample
from oxiseq.grammar.checking.output import check_expression
from oxiseq.grammar.errors import Finding
from oxiseq.grammar.finding_tools import error
from oxiseq.grammar.levels import is_over_matches, summarises
from oxiseq.grammar.places import Overview
from oxiseq.grammar.scope import subexpressions


def check_ranking(seen: Overview) -> Iterator[Finding]:
    """Check which of the matches that end at one instant are returned, and in what order."""
    yield from check_sample(seen.query)
    yield from _sample(seen)
    if summarises(seen):
        return
    query = seen.query
    order_by = query.summary.order_by
    if not order_by:
        return
    if isinstance(query.form, Ask):
        yield error("order", "ASK answers whether there is a match, in no order", query.summary.span, "write SELECT")
        return
    if isinstance(query.form, Select) and query.form.distinct:
        hint = "write GROUP BY with the shown variables and (ENDTIME()), ordered by an aggregate: MAX(?price)"
        yield error(
            "order",
            "DISTINCT merges matches into one row, but ORDER BY orders single matches",
            query.summary.span,
            hint,
        )
    names = frozenset(c.variable for c in query.form.columns or () if c.expression is not None)
    for expression, _ in order_by:
        yield from check_expression(expression, query.summary.span, names, seen)
        for part in subexpressions(expression):
            if isinstance(part, Aggregate) and is_over_matches(seen, part):
                hint = "add GROUP BY, or order by a value of each match: SUM(?p) of a repeated GPM, COUNT(B), ENDTIME()"
                yield error(
                    "order", f"{part.name} aggregates matches, but ORDER BY orders single ones", part.span, hint
                )


def _sample(seen: Overview) -> Iterator[Finding]:
    query, sample = seen.query, seen.query.sample
    if sample is None:
        return
    if summarises(seen):
        hint = "leave it out; SAMPLE(?v) is one of the values of a group"
        yield error("sample", "SAMPLE draws single matches, but the answer has a row per group", sample.span, hint)
    elif isinstance(query.form, Ask):
        yield error("sample", "ASK answers whether there is a match, not which one", sample.span, "write SELECT")
    elif isinstance(query.form, Select) and query.form.distinct:
        message = "DISTINCT merges matches into one row, but SAMPLE draws single matches"
        yield error("sample", message, sample.span, "leave one of them out")
