"""Checks of the clauses that SPAseq and CEQL share: a window, CONSUME BY, LIMIT (semantics.md 2.1 and 3)."""

from __future__ import annotations

from collections.abc import Iterator

from oxiseq.grammar.algebra import Limit, Query, Span
from oxiseq.grammar.ceql_algebra import CeqlQuery
from oxiseq.grammar.errors import Finding
from oxiseq.grammar.finding_tools import error, lint_finding


def check_window(query: Query | CeqlQuery, sequence: Span) -> Iterator[Finding]:
    """Without a window partial matches are kept for ever; `sequence` is the span of the pattern."""
    if query.window is None:
        yield lint_finding(
            "unbounded",
            "without WITHIN a match may take for ever, and its partial match is kept as long",
            sequence,
            "add WITHIN, for instance WITHIN 10 MINUTES",
        )


def check_consumption(query: Query | CeqlQuery) -> Iterator[Finding]:
    """CONSUME BY PARTITION needs PARTITION BY."""
    consumption = query.consumption
    if consumption is not None and not consumption.whole_query and query.partition is None:
        hint = "add PARTITION BY, or write CONSUME BY ANY"
        yield lint_finding("consume", "without PARTITION BY there is one partition only", consumption.span, hint)


def check_sample(query: Query | CeqlQuery) -> Iterator[Finding]:
    """SAMPLE draws at least one match, and excludes LIMIT."""
    sample = query.sample
    if sample is not None and sample.count == 0:
        yield error("sample", "SAMPLE 0 leaves no match", sample.span, "SAMPLE takes a number above 0")
    if sample is not None and query.limit is not None:
        message = "SAMPLE says how many matches there are, and so does LIMIT"
        yield error("sample", message, sample.span, "leave one of them out")


def check_limit(limit: Limit | None) -> Iterator[Finding]:
    """A match at least must be left."""
    if limit is not None and limit.count == 0:
        yield error("limit", "LIMIT 0 leaves no match", limit.span, "LIMIT takes a number above 0")
