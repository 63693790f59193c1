"""Answers over matches: GROUP BY, HAVING, ORDER BY, REPORT, and aggregates over matches (semantics.md 2.6b).

What ORDER BY, LIMIT and SAMPLE mean in a query that has a row per match is checked in ranking.py.
"""

from __future__ import annotations

from collections.abc import Iterator

from pyoxigraph import Variable

from oxiseq.grammar.algebra import (
    DETECTTIME,
    Aggregate,
    Ask,
    Call,
    Construct,
    Every,
    Exists,
    Expression,
    FunctionCall,
    MatchFunction,
    OnClose,
    Prev,
    Select,
    Span,
)
from oxiseq.grammar.checking.common import template_variables
from oxiseq.grammar.checking.output import check_expression
from oxiseq.grammar.errors import Finding
from oxiseq.grammar.finding_tools import at_pattern, at_variable, error
from oxiseq.grammar.levels import is_over_matches, keys_of, repeated_gpms, summarises
from oxiseq.grammar.places import Overview
from oxiseq.grammar.render_sparql import SparqlWriter
from oxiseq.grammar.scope import subexpressions


def check_summary(seen: Overview) -> Iterator[Finding]:
    """The clauses behind WHERE, and with them what SELECT and CONSTRUCT show."""
    query, summary = seen.query, seen.query.summary
    if not summarises(seen):
        yield from _without_groups(seen)
        return
    if isinstance(query.form, Ask):
        yield error("group", "ASK has no groups", summary.span, "write SELECT")
        return
    yield from _keys(seen)
    yield from _report(seen)
    yield from _shown(seen)
    names = keys_of(summary).names
    columns = frozenset(c.variable for c in query.form.columns or () if c.expression is not None)
    for condition in summary.having:
        yield from _outside(condition, summary.span, names, seen)
        yield from check_expression(condition, summary.span, names, seen)
    for expression, _ in summary.order_by:
        yield from _outside(expression, summary.span, names | columns, seen)
        yield from check_expression(expression, summary.span, names | columns, seen)
    if query.partition is not None and query.window is not None and query.window.events:
        hint = "write WITHIN with a span of time, or GROUP BY without PARTITION BY"
        message = "windows of EVENTS count in each partition, but groups combine all partitions"
        yield error("group", message, query.window.span, hint)


def _without_groups(seen: Overview) -> Iterator[Finding]:
    """REPORT in a query that has a row per match."""
    query, report = seen.query, seen.query.summary.report
    if report is None:
        return
    if not isinstance(report, OnClose) or not (query.summary.order_by or query.sample):
        message = "REPORT is for groups of matches, and ON WINDOW CLOSE also for ORDER BY and SAMPLE"
        yield error("report", message, report.span, "each match is reported when it is complete")
        return
    yield from _closes(seen, "leave REPORT out, or write a WITHIN that is not SLIDING")
    if query.partition is not None and query.window is not None and query.window.events:
        hint = "write WITHIN with a span of time"
        message = "windows of EVENTS count in each partition, but REPORT ON WINDOW CLOSE combines all partitions"
        yield error("report", message, query.window.span, hint)


def _keys(seen: Overview) -> Iterator[Finding]:
    summary = seen.query.summary
    named: set[Variable] = set()
    for key in summary.group_by:
        expression, name = key if isinstance(key, tuple) else (key, None)
        for part in subexpressions(expression):
            match part:
                case Variable() if part not in seen.bound:
                    place = at_variable(part, summary.span, seen.text)
                    yield error("scope", f"GROUP BY: no GPM of SEQ binds ?{part.value}", place)
                case Aggregate():
                    hint = "keys are variables, STARTTIME(), ENDTIME(), TIMEOF(A), and expressions over them"
                    yield error("group", f"{part.name} cannot be used in GROUP BY", part.span, hint)
                case Prev() | Exists():
                    yield error("group", "PREV and EXISTS can be used only in a GPM's FILTER", part.span)
        if name is not None and (name in seen.bound or name in named):
            place = at_variable(name, summary.span, seen.text)
            yield error("group", f"?{name.value} cannot be a new name: it is taken", place, "choose another after AS")
        if name is not None:
            named.add(name)


def _report(seen: Overview) -> Iterator[Finding]:
    report, window = seen.query.summary.report, seen.query.window
    yield from _closes(seen, "write REPORT ON CONTENT CHANGE or REPORT EVERY 1 MINUTE, or a WITHIN that is not SLIDING")
    if isinstance(report, Every):
        if report.period < 1:
            yield error("report", "REPORT EVERY 0 never ends", report.span, "write a span above 0")
        if window is not None and window.events:
            hint = "write WITHIN with a span of time"
            yield error("report", "REPORT EVERY cannot be used with a window of EVENTS", report.span, hint)


def _closes(seen: Overview, hint: str) -> Iterator[Finding]:
    """REPORT ON WINDOW CLOSE needs windows that close."""
    report, window = seen.query.summary.report, seen.query.window
    if isinstance(report, OnClose) and (window is None or window.sliding):
        has = "a sliding window never closes" if window is not None else "there is no WITHIN"
        yield error("report", f"REPORT ON WINDOW CLOSE: {has}", report.span, hint)


def _shown(seen: Overview) -> Iterator[Finding]:
    form, names = seen.query.form, keys_of(seen.query.summary).names
    assert isinstance(form, Select | Construct)
    if form.columns is None:
        place = at_pattern(r"\*", seen.query.span, seen.text)
        yield error("select", "SELECT * cannot be used with groups of matches", place, "name the columns")
        return
    for column in form.columns:
        if column.expression is None:
            yield from _outside(column.variable, column.span, names, seen)
            continue
        yield from _outside(column.expression, column.span, names, seen)
        names |= {column.variable}
    if isinstance(form, Construct):
        for term, span in template_variables(form.template):
            yield from _outside(term, span, names, seen)


def _outside(e: Expression, span: Span, names: frozenset[Variable], seen: Overview) -> Iterator[Finding]:
    """Outside every aggregate over matches an expression may use keys only."""
    if e in keys_of(seen.query.summary).expressions:
        return
    match e:
        case Variable() if e not in names and e in seen.bound:
            place = at_variable(e, span, seen.text)
            yield error("group", f"?{e.value} is neither grouped nor aggregated", place, f"add GROUP BY ?{e.value}")
        case MatchFunction(name, gpm) if e != DETECTTIME:
            text = f"{name}({gpm or ''})"
            other = f"MAX({text})" if name == "COUNT" else f"GROUP BY ({text})"
            hint = f"write {'SUM' if name == 'COUNT' else 'MIN'}({text}), or {other}"
            yield error("group", f"{text} belongs to one match, but a row combines many", e.span, hint)
        case Aggregate() if is_over_matches(seen, e):
            yield from _inside(e, seen)
        case Aggregate(name):
            yield from _of_one_match(e, seen)
        case Call(_, args) | FunctionCall(_, args):
            for arg in args:
                yield from _outside(arg, span, names, seen)


def _inside(outer: Aggregate, seen: Overview) -> Iterator[Finding]:
    """What an aggregate over matches runs over must be of one match."""
    if outer.arg is None:
        if outer.distinct:
            yield error("aggregate", "COUNT(DISTINCT *) over matches", outer.span, "matches are distinct: COUNT(*)")
        return
    for part in subexpressions(outer.arg):
        if isinstance(part, Aggregate) and is_over_matches(seen, part):
            message = f"{part.name} already aggregates matches and cannot be used inside {outer.name}"
            yield error("aggregate", message, part.span)


def _of_one_match(e: Aggregate, seen: Overview) -> Iterator[Finding]:
    over = repeated_gpms(seen, e)
    if len(over) != 1:
        return  # reported by the checks of aggregates over iterations
    text = SparqlWriter(dict(seen.query.prefixes)).expression(e)
    of = "" if e.arg is None else text[text.index("(") :]
    message = f"{text} is one value per match, but a row combines many matches"
    yield error("group", message, e.span, f"write SUM({text}) for all iterations of all matches, or SUM(LAST{of})")
