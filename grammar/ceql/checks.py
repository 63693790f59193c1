"""Checks of a CEQL query: names that mean something, and what is legal and perhaps not meant (semantics.md 3).

unbounded    no WITHIN: partial matches are kept for ever
constant     a condition that reads no attribute
name         AS gives a name that is also a type
consume      CONSUME BY PARTITION without partitions
select       a name is listed twice in SELECT, or means nothing there
group        an attribute by which complex events are not apart
order        a key of ORDER BY that a complex event does not have
graph        a condition on the knowledge base that does not use a value given to it, holds what EXISTS cannot evaluate
             with values, or reads the match or its iterations, which the knowledge base does not know
join         a comparison of two events that is not decided at one of them (joins.py), and what queries with joins or
             GRAPH, which live keys run, cannot say (docs/languages/ceql.md)
over-all     SELECT NEXT, LAST or MAX without PARTITION BY chooses among the complex events of all keys
itself, kinds, text    comparisons that can hardly be meant (checking/comparisons.py)
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final

from pyoxigraph import Variable

from oxiseq.grammar.algebra import (
    Aggregate,
    Call,
    Expression,
    GraphPattern,
    MatchFunction,
    Minus,
    PatternElement,
    Prev,
    Span,
    SubSelect,
)
from oxiseq.grammar.ceql.joins import GraphCondition, JoinError, conditions_in, decided, first_graph, twofold
from oxiseq.grammar.ceql_algebra import (
    START,
    AnyOf,
    AttributeWindow,
    CeqlQuery,
    Condition,
    EventType,
    Filtered,
    Follows,
    Formula,
    Holds,
    Iterated,
    Named,
    Totals,
    atomic,
    column_names,
    first_join,
    holds_of,
    joins_in,
    keys_of,
    measured_variable,
    subformulas,
    variables,
)
from oxiseq.grammar.checking.common import check_consumption, check_limit, check_sample, check_window, in_turn
from oxiseq.grammar.checking.patterns import check_every, check_pattern, check_size
from oxiseq.grammar.errors import Finding, at_pattern, close_name, error, lint_finding, listing
from oxiseq.grammar.functions import AGGREGATES
from oxiseq.grammar.parts import parts
from oxiseq.grammar.scope import expression_variables, nested_elements, subexpressions, visible_variables

# --- ceql --------------------------------------------------------------------------------------------


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


# --- ceql order --------------------------------------------------------------------------------------


def check_order(query: CeqlQuery, text: str) -> Iterator[Finding]:
    """Each key uses one complex event, and only what distinguishes it from others."""
    if query.totals is not None or query.order is None:
        return
    known = variables(query.formula)
    shown = known if query.columns is None else tuple(c.name for c in query.columns)
    hint = f"order by START, or by an aggregate of a variable: SUM({shown[-1]}[price]), COUNT({shown[-1]})"
    for expression, _ in query.order.keys:
        if expression == START:
            continue
        asked = [part for part in subexpressions(expression) if isinstance(part, Aggregate)]
        if not asked:
            yield error("order", "a constant does not order anything", query.order.span, hint)
        for aggregate in asked:
            if aggregate.arg is None:
                message = "COUNT(*) counts all complex events that end at one event, but ORDER BY compares single ones"
                yield error("order", message, aggregate.span, hint)
        yield from check_aggregates(expression, known)
        for aggregate in asked:
            if (name := measured_variable(aggregate)) in known and name not in shown:
                message = f"SELECT does not show {name}, so the events that it holds do not distinguish complex events"
                yield error("order", message, aggregate.span, f"add {name} to SELECT")


# --- ceql totals -------------------------------------------------------------------------------------


def check_totals(query: CeqlQuery, text: str) -> Iterator[Finding]:
    """Each name in SELECT and HAVING is defined, and no clause selects complex events that are not returned."""
    totals = query.totals
    if totals is None:
        return
    known: list[str] = []
    held = variables(query.formula)
    for column in totals.columns:
        if column.name in known:
            yield error("select", f"two columns are called {column.name}", column.span, "give one another name by AS")
        yield from _expression(query, column.expression, column.span, text)
        known.append(column.name)
    if totals.having is not None:
        yield from _expression(query, totals.having, totals.having_span, text)
        for name in column_names(totals.having):
            if name.value not in known:
                place = at_pattern(rf"\b{re.escape(name.value)}\b", totals.having_span, text)
                hint = f"write an attribute after a variable: SUM({held[-1]}[{name.value}])"
                yield error("select", f"no column is called {name.value}", place, close_name(name.value, known, hint))
    yield from _keys(query, totals, text)
    hint = "aggregates give one row for each event at which complex events end; HAVING filters these: leave this out"
    for code, word, clause in (
        ("order", "ORDER BY", query.order),
        ("limit", "LIMIT", query.limit),
        ("sample", "SAMPLE", query.sample),
    ):
        if clause is not None:
            yield error(code, f"{word} selects single complex events, but aggregates use them all", clause.span, hint)


def check_aggregates(expression: Expression, held: Sequence[str]) -> Iterator[Finding]:
    """Each aggregate is of an attribute of what one of these variables holds, or counts that."""
    for part in subexpressions(expression):
        match part:
            case Aggregate(name, Variable(value=variable)) if name != "COUNT":
                hint = f"write {name}({variable}[price]); COUNT({variable}) is the number of its events"
                if variable not in held:
                    hint = f"write {name}({held[-1]}[{variable}]), of the events that {held[-1]} holds"
                yield error("select", f"{name} needs the values of an attribute", part.span, hint)
            case Aggregate():
                asked = measured_variable(part)
                if asked is not None and asked not in held:
                    hint = close_name(asked, held, f"WHERE has {', '.join(held)}")
                    yield error("select", f"WHERE has no {asked}", part.span, hint)


def _expression(query: CeqlQuery, expression: Expression, span: Span, text: str) -> Iterator[Finding]:
    assert query.totals is not None
    yield from check_aggregates(expression, variables(query.formula))
    for key in keys_of(expression):
        if key not in query.totals.by:
            place = at_pattern(rf"(?<!\w)\[\s*{re.escape(key.value)}\s*\]", span, text)
            hint = f"add GROUP BY [{key.value}]"
            yield error("group", f"[{key.value}] is not in GROUP BY", place, hint)


def _keys(query: CeqlQuery, totals: Totals, text: str) -> Iterator[Finding]:
    by = query.partition.by if query.partition is not None else ()
    for number, key in enumerate(totals.by):
        place = at_pattern(rf"\[\s*{re.escape(key.value)}\s*\]", totals.by_span, text)
        if key not in by:
            known = f"groups are partitions: GROUP BY takes {listing(f'[{v.value}]' for v in by)}"
            hint = known if by else f"groups are partitions: add PARTITION BY [{key.value}]"
            yield error("group", f"PARTITION BY does not name [{key.value}]", place, hint)
        elif key in totals.by[:number]:
            yield error("group", f"GROUP BY names [{key.value}] twice", place, "once is enough")


# --- ceql graphs -------------------------------------------------------------------------------------


_REFUSED: Final[tuple[tuple[type[PatternElement], str, str], ...]] = (
    (GraphPattern, "GRAPH cannot be used inside GRAPH", "write a condition for each: y[GRAPH ... AND GRAPH ...]"),
    (Minus, "MINUS cannot be used in a condition", "write FILTER NOT EXISTS { ... }"),
    (SubSelect, "a sub-query cannot be used in a condition", "write its pattern"),
)


def check_graphs(query: CeqlQuery, text: str) -> Iterator[Finding]:
    """Each condition on the knowledge base."""
    for test in holds_of(query.formula):
        for condition in conditions_in(test.predicate):
            yield from _given(condition)
            yield from check_pattern(condition.pattern, text)
            yield from check_size(condition.pattern, condition.span)
            for element in nested_elements(condition.pattern):
                for kind, message, hint in _REFUSED:
                    if isinstance(element, kind):
                        yield error("graph", message, condition.span, hint)
            yield from _of_the_match(condition)


def _of_the_match(condition: GraphCondition) -> Iterator[Finding]:
    if any(isinstance(element, SubSelect) for element in nested_elements(condition.pattern)):
        return  # refused itself
    asked: list[Aggregate | MatchFunction] = [*parts(condition.pattern, Aggregate)]
    asked += parts(condition.pattern, MatchFunction)
    named = [*((call.name, call.span) for call in asked), *(("PREV", p.span) for p in parts(condition.pattern, Prev))]
    for name, span in named:
        hint = "conditions on the events come beside it: y[price > 100 AND GRAPH ...]"
        yield error("graph", f"{name} cannot be used inside GRAPH", span, hint)


def _given(condition: GraphCondition) -> Iterator[Finding]:
    names = [variable.value for variable, _ in condition.given]
    used = [v.value for v in visible_variables(condition.pattern)]
    for number, name in enumerate(names):
        if name in names[:number]:
            hint = "name one otherwise: x.company AS other"
            yield error("graph", f"two values are given as ?{name}", condition.span, hint)
        elif name not in used:
            hint = close_name(name, used, "the names in parentheses are those of variables in the pattern")
            yield error("graph", f"the pattern has no ?{name}", condition.span, hint)


# --- ceql joins --------------------------------------------------------------------------------------


def check_joins(query: CeqlQuery, text: str) -> Iterator[Finding]:
    """No error where no condition compares events of two variables or queries the knowledge base."""
    if first_join(query.formula) is not None:
        has = "joins"
    elif first_graph(query.formula) is not None:
        has = "GRAPH"
    else:
        return
    yield from _decisions(query.formula)
    yield from _clauses_of_joins(query, has)
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


def _clauses_of_joins(query: CeqlQuery, has: str) -> Iterator[Finding]:
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
