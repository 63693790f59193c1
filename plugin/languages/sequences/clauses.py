"""The clauses by which a sequence of whatever language leaves out whole matches."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from oxiseq.grammar.algebra import Limit, Query, Strategy
from oxiseq.grammar.ceql_algebra import CeqlQuery
from oxiseq.grammar.render import render_clause
from oxiseq.languages.reasons.why import WhyCondition


def without_clauses(query: Query | CeqlQuery, most: int) -> Iterator[WhyCondition]:
    """Each one left out; `most` matches of an end are found then. STRICT is none of them: it is about the events of a
    match."""
    capped = query if query.limit is not None else replace(query, limit=Limit(most))
    if query.selection is not None and query.selection.strategy is not Strategy.STRICT:
        yield WhyCondition("strategy", f"SELECT {query.selection.strategy.value}", _every(capped))
    if query.consumption is not None:
        yield WhyCondition("consumption", render_clause(query.consumption), replace(capped, consumption=None))
    if query.limit is not None:
        yield WhyCondition("limit", render_clause(query.limit), replace(query, limit=Limit(most)))
    if isinstance(capped, Query) and capped.suppression is not None:
        yield WhyCondition("suppression", render_clause(capped.suppression), replace(capped, suppression=None))
    if query.sample is not None:
        yield WhyCondition("sample", render_clause(query.sample), replace(capped, sample=None))


def _every(query: Any) -> Any:
    """Without its strategy."""
    if isinstance(query, CeqlQuery):
        return replace(query, selection=None)
    return replace(query, form=replace(query.form, selection=None))
