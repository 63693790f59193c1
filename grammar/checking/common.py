"""Checks of what several languages have: columns, templates, a window, CONSUME BY, LIMIT (semantics.md 2.1 and 3)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from collections.abc import Set as AbstractSet
from itertools import chain
from typing import TypeVar

from pyoxigraph import Variable

from oxiseq.grammar.algebra import Expression, Limit, Projection, Query, Span, TriplePattern
from oxiseq.grammar.ceql_algebra import CeqlQuery
from oxiseq.grammar.errors import Finding, at_pattern, at_variable, error, lint_finding, variable_hint
from oxiseq.grammar.places import Variables

Q = TypeVar("Q")


def in_turn(*checks: Callable[[Q, str], Iterator[Finding]]) -> Callable[[Q, str], Iterator[Finding]]:
    """All checks of a query and its text, one after the other."""

    def check(query: Q, text: str) -> Iterator[Finding]:
        return chain.from_iterable(each(query, text) for each in checks)

    return check


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


def check_limit(limit: Limit | None, ordered: bool) -> Iterator[Finding]:
    """A match at least must be left, and OFFSET leaves out the first ones of an order."""
    if limit is not None and limit.count == 0:
        yield error("limit", "LIMIT 0 leaves no match", limit.span, "LIMIT takes a number above 0")
    if limit is not None and limit.offset and not ordered:
        yield error("limit", "OFFSET needs ORDER BY", limit.span, "add ORDER BY, or leave OFFSET out")


# --- what is shown ----------------------------------------------------------------------------------


def check_columns(
    columns: Iterable[Projection],
    bound: Variables,
    named: Iterable[Variable],
    text: str,
    binder: Callable[[Variable], str],
    missing: Callable[[Variable, Span], Finding],
    expression: Callable[[Expression, Span, AbstractSet[Variable]], Iterator[Finding]],
) -> Iterator[Finding]:
    """Columns of SELECT, or of a template, each of which sees those before it: a variable is bound, a name is new.
    `binder` says what binds a variable, `missing` that nothing does, `expression` what is wrong with one."""
    known = set(named)
    for column in columns:
        v = column.variable
        if column.expression is None:
            if v not in bound | known:
                yield missing(v, column.span)
            continue
        yield from expression(column.expression, column.span, known)
        if v in bound | known:
            place = at_pattern(rf"[?$]{v.value}\s*\)$", column.span, text)
            by = binder(v) if v in bound else "an earlier column is named so"
            yield error("select", f"?{v.value} cannot be a new name: {by}", place, "choose another name after AS")
        known.add(v)


def unbound(v: Variable, span: Span, bound: AbstractSet[Variable], text: str, where: str = "") -> Finding:
    """As in SPARQL a variable may be unbound (semantics.md 2.2). `where`: the part that does not bind it."""
    message = f"nothing{where} binds ?{v.value}"
    return lint_finding("unbound", message, at_variable(v, span, text), variable_hint(v, bound))


def template_variables(template: Iterable[TriplePattern]) -> Iterator[tuple[Variable, Span]]:
    """The variables of a template, with the places of their triples."""
    for triple in template:
        for term in (triple.subject, triple.predicate, triple.object):
            if isinstance(term, Variable):
                yield term, triple.span
