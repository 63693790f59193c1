"""Checks of a CEQL query: names that mean something, and what is legal and perhaps not meant (semantics.md 3).

unbounded    no WITHIN: partial matches are kept for ever
constant     a condition that reads no attribute
name         AS gives a name that is also a type
consume      CONSUME BY PARTITION without partitions
select       a name is listed twice in SELECT, or means nothing there
group        an attribute by which complex events are not apart
order        a key of ORDER BY that a complex event does not have
graph        a condition on the knowledge base that does not use what is given to it
join         a comparison of two events that is not decided at one of them (grammar/ceql_joins.py)
over-all     SELECT NEXT, LAST or MAX without PARTITION BY chooses among the complex events of all keys
itself, kinds, text    comparisons that can hardly be meant (checking/comparisons.py)
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from pyoxigraph import Variable

from oxiseq.grammar.algebra import Call
from oxiseq.grammar.ceql_algebra import (
    CeqlQuery,
    EventType,
    Filtered,
    Follows,
    Formula,
    Holds,
    Iterated,
    Named,
    atomic,
    holds_of,
    joins_in,
    subformulas,
    variables,
)
from oxiseq.grammar.checking.ceql_graphs import check_graphs
from oxiseq.grammar.checking.ceql_joins import check_joins
from oxiseq.grammar.checking.ceql_order import check_order
from oxiseq.grammar.checking.ceql_totals import check_totals
from oxiseq.grammar.checking.common import check_consumption, check_limit, check_sample, check_window, in_turn
from oxiseq.grammar.checking.every import check_every
from oxiseq.grammar.errors import Finding
from oxiseq.grammar.finding_tools import at_pattern, close_name, error, lint_finding, listing
from oxiseq.grammar.functions import AGGREGATES
from oxiseq.grammar.scope import expression_variables, subexpressions


def _names(query: CeqlQuery, text: str) -> Iterator[Finding]:
    if query.vocab is None:
        hint = "put VOCAB <http://example.org/stock#> at the top: the namespace of types, attributes and streams"
        yield error("vocab", "the query has no VOCAB", query.span, hint)
    for number, stream in enumerate(query.streams):
        if stream.name in {s.name for s in query.streams[:number]}:
            yield error("stream", f"the stream {stream.name} is named twice", stream.span)
    known = variables(query.formula)
    for number, column in enumerate(query.columns or ()):
        if column.name not in known:
            hint = close_name(column.name, known, f"WHERE has {', '.join(known)}")
            yield error("select", f"WHERE has no {column.name}", column.span, hint)
        elif column.name in {c.name for c in (query.columns or ())[:number]}:
            yield lint_finding("select", f"{column.name} is listed twice in SELECT", column.span, "once is enough")


def _formula(query: CeqlQuery, text: str) -> Iterator[Finding]:
    types = {f.name for f in _all(query.formula) if isinstance(f, EventType)}
    for formula in _all(query.formula):
        match formula:
            case Filtered(inner, condition):
                known = variables(inner)
                for test in atomic(condition):
                    yield from _test(test, known)
            case Named(_, name) if name in types:
                span = at_pattern(rf"\b{name}$", formula.span, text)
                hint = "one variable would hold the events of the type and those of the name: choose another name"
                yield lint_finding("name", f"{name} is also the name of a type", span, hint)


def _test(test: Holds, known: tuple[str, ...]) -> Iterator[Finding]:
    if test.name not in known:
        hint = close_name(test.name, known, f"FILTER can use {', '.join(known)}")
        yield error("filter", f"the formula before FILTER has no variable {test.name}", test.span, hint)
    for name in (v.value for v in expression_variables(test.predicate) if v.value.upper() in AGGREGATES):
        hint = "aggregates are over the complex events of one end, after WHERE: HAVING COUNT(*) > 100"
        yield lint_finding("constant", f"{name} here is an attribute of that name, not an aggregate", test.span, hint)
    if not expression_variables(test.predicate):
        hint = "compare an attribute: x[price > 100]; a name in quotes is a text"
        yield lint_finding("constant", "this condition uses no attribute", test.span, hint)


def _compared(query: CeqlQuery, text: str) -> Iterator[Finding]:
    tests = holds_of(query.formula)
    return check_every((), [e for test in tests for e in subexpressions(test.predicate)], text, mark="")


def _clauses(query: CeqlQuery, text: str) -> Iterator[Finding]:
    if any(isinstance(f, Follows | Iterated) for f in _all(query.formula)):
        yield from check_window(query, query.formula.span)
    if query.partition is not None:
        by = query.partition.by
        for v in dict.fromkeys(v for number, v in enumerate(by) if v in by[:number]):
            span = at_pattern(
                rf"\[\s*{re.escape(v.value)}\s*\](?!.*\[\s*{re.escape(v.value)}\s*\])", query.partition.span, text
            )
            yield error("partition", f"PARTITION BY names [{v.value}] twice", span)
    elif query.selection is not None and (keys := [*dict.fromkeys(_equated(query.formula))]):
        yield lint_finding(
            "over-all",
            f"SELECT {query.selection.strategy.value} chooses among all complex events that end together, whatever "
            f"{listing(keys)} is",
            query.selection.span,
            f"to choose for each value write PARTITION BY {', '.join(f'[{key}]' for key in keys)}",
        )
    yield from check_consumption(query)
    yield from check_limit(query.limit, query.order is not None or query.totals is not None)
    yield from check_sample(query)


def _equated(formula: Formula) -> Iterator[str]:
    """The attributes that a FILTER asks to be equal in two events: `y[truck = x.truck]`."""
    for test in holds_of(formula):
        for call in subexpressions(test.predicate):
            if isinstance(call, Call) and call.name == "=":
                for one, other in (call.args, call.args[::-1]):
                    if isinstance(one, Variable) and any(one == its for _, its, _ in joins_in(other)):
                        yield one.value


def _all(formula: Formula) -> Iterator[Formula]:
    """`formula` and everything below it, outermost first."""
    yield formula
    for inner in subformulas(formula):
        yield from _all(inner)


check_ceql = in_turn(
    _names,
    _formula,
    _clauses,
    check_graphs,
    check_joins,
    check_totals,
    check_order,
    _compared,
)
"""All of them."""
