"""Checks of CEQL queries with joins or GRAPH, which live keys run (docs/languages/ceql.md): what they cannot say."""

from __future__ import annotations

from collections.abc import Iterator

from oxiseq.grammar.ceql_algebra import (
    AnyOf,
    AttributeWindow,
    CeqlQuery,
    Condition,
    EventType,
    Filtered,
    Formula,
    Holds,
    Named,
    atomic,
    first_join,
    joins_in,
    subformulas,
    variables,
)
from oxiseq.grammar.ceql_choices import twofold
from oxiseq.grammar.ceql_graphs import first_graph
from oxiseq.grammar.ceql_joins import JoinError, decided
from oxiseq.grammar.errors import Finding
from oxiseq.grammar.finding_tools import error


def check_joins(query: CeqlQuery, text: str) -> Iterator[Finding]:
    """No error where no condition compares events of two variables or queries the knowledge base."""
    if first_join(query.formula) is not None:
        has = "joins"
    elif first_graph(query.formula) is not None:
        has = "GRAPH"
    else:
        return
    yield from _decisions(query.formula)
    yield from _clauses(query, has)
    yield from _sets(query, has)


def _decisions(formula: Formula) -> Iterator[Finding]:
    if isinstance(formula, Filtered):
        yield from _alternatives(formula.condition)
        for test in atomic(formula.condition):
            if test.name not in variables(formula.formula) or not any(joins_in(test.predicate)):
                continue
            try:
                decided(test, formula.formula)
            except JoinError as refusal:
                yield error("join", refusal.reason, refusal.call.span, refusal.hint)
    for inner in subformulas(formula):
        yield from _decisions(inner)


def _alternatives(condition: Condition) -> Iterator[Finding]:
    """OR between conditions on several variables is about all events of each, so no one event decides it."""
    if isinstance(condition, Holds):
        return
    tests = atomic(condition)
    joined = next((test for test in tests if any(joins_in(test.predicate))), None)
    if isinstance(condition, AnyOf) and joined is not None:
        hint = f"write OR in the brackets: {joined.name}[... OR ...]"
        yield error("join", "a join cannot be one side of this OR", joined.span, hint)
        return
    for each in condition.conditions:
        yield from _alternatives(each)


def _clauses(query: CeqlQuery, has: str) -> Iterator[Finding]:
    if isinstance(query.window, AttributeWindow):
        hint = "WITHIN 30 SECONDS or WITHIN 10 EVENTS"
        yield error("join", f"a query with {has} has no window over an attribute", query.window.span, hint)
    elif query.window is not None and query.window.size == 0:
        yield error("join", f"a window of size 0 holds one event and is not supported with {has}", query.window.span)
    hint = f"SPAseq has GROUP BY, ORDER BY and SAMPLE with {has}: translate the query without them, then add them"
    if query.totals is not None:
        span = query.totals.columns[0].span if query.totals.columns else query.span
        yield error("join", f"a query with {has} returns single complex events", span, hint)
    for clause in (query.order, query.sample):
        if clause is not None:
            message = f"a query with {has} returns all complex events, in order of their ends"
            yield error("join", message, clause.span, hint)


def _sets(query: CeqlQuery, has: str) -> Iterator[Finding]:
    """A complex event is a set of events: live keys find each way to it, so there has to be one."""
    if two := twofold(query.formula):
        first, second = two
        ways = f"here and at another {first.name} of the same complex event"
        message = f"with {has}, an event {second.name} can match {ways}"
        yield error("join", message, second.span, "name each type so that only one way is left")
    if query.columns is None:
        return
    shown = {column.name for column in query.columns}
    for place in _hidden(query.formula, shown):
        message = f"with {has}, SELECT has to show every event, and does not show this {place.name}"
        yield error("join", message, place.span, "write SELECT *")


def _hidden(formula: Formula, shown: set[str]) -> Iterator[EventType]:
    match formula:
        case EventType(name) if name not in shown:
            yield formula
        case Named(_, name) if name in shown:
            return
        case _:
            for inner in subformulas(formula):
                yield from _hidden(inner, shown)
