"""What a match can show, and a group of matches: SELECT and CONSTRUCT, GROUP BY, HAVING, ORDER BY, REPORT, LIMIT and
SAMPLE (semantics.md 2.1, 2.4, 2.6b).
"""

from __future__ import annotations

from collections.abc import Iterator
from collections.abc import Set as AbstractSet
from typing import Final

from pyoxigraph import Variable

from oxiseq.grammar.algebra import (
    DETECTTIME,
    SUPPRESSED,
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
from oxiseq.grammar.checking.common import check_columns, check_sample, template_variables
from oxiseq.grammar.checking.patterns import nested_aggregates
from oxiseq.grammar.errors import Finding, at_pattern, at_variable, close_name, error, listing, variable_hint
from oxiseq.grammar.places import Overview, is_over_matches, keys_of, repeated_gpms, summarises
from oxiseq.grammar.render_sparql import SparqlWriter
from oxiseq.grammar.scope import plain_variables, subexpressions

# --- output ------------------------------------------------------------------------------------------


def check_output(seen: Overview) -> Iterator[Finding]:
    """The form that the query's results take, and the FILTERs behind SEQ."""
    yield from _filters(seen)
    yield from _known_last(seen)
    form, named = seen.query.form, keys_of(seen.query.summary).names
    if isinstance(form, Ask):
        return
    yield from check_columns(
        form.columns or (),
        seen.bound,
        named,
        seen.text,
        lambda v: f"{seen.binders(v)[0]} binds it",
        lambda v, span: _unbound(v, span, seen),
        lambda e, span, known: check_expression(e, span, known, seen),
    )
    made = seen.bound | named | {c.variable for c in form.columns or ()}
    for v, span in template_variables(form.template if isinstance(form, Construct) else ()):
        if v not in made:
            yield _unbound(v, at_variable(v, span, seen.text), seen)


def _filters(seen: Overview) -> Iterator[Finding]:
    """What a whole match must pass (semantics.md 2.5b)."""
    for each in seen.query.filters:
        yield from check_expression(each.condition, each.span, frozenset(), seen)
        for part in subexpressions(each.condition):
            if isinstance(part, Aggregate) and is_over_matches(seen, part):
                hint = "write HAVING after WHERE for a condition on the matches of a group"
                yield error("aggregate", "a FILTER after SEQ sees one match, not several", part.span, hint)


_KNOWN_LAST: Final = {
    DETECTTIME: ("ENDTIME() is the time of a match's last event", "order by ENDTIME(), or leave it out"),
    SUPPRESSED: ("count rows with COUNT(*)", "leave it out"),
}
"""What is known after all that chooses among matches → what is there before."""


def _known_last(seen: Overview) -> Iterator[Finding]:
    """When a match is decided, and how many SUPPRESS has dropped before it (semantics.md 2.6a, 2.6c)."""
    query, summary = seen.query, seen.query.summary
    columns = [c for c in getattr(query.form, "columns", ()) or () if c.expression is not None]
    told: dict[Expression, MatchFunction] = {function: function for function in _KNOWN_LAST}
    for column in columns:
        read = [told[e] for e in subexpressions(column.expression) if e in told]
        if read:
            told[column.variable] = read[0]
    keys = [key[0] if isinstance(key, tuple) else key for key in summary.group_by]
    where: list[tuple[str, Expression, Span]] = [
        *(("FILTER", each.condition, each.span) for each in query.filters),
        *(("GROUP BY", key, summary.span) for key in keys),
        *(("HAVING", condition, summary.span) for condition in summary.having),
        *(("ORDER BY", expression, summary.span) for expression, _ in summary.order_by),
        *(
            (part.name, part.arg, column.span)
            for column in columns
            for part in subexpressions(column.expression)
            if isinstance(part, Aggregate) and part.arg is not None
        ),
    ]
    for place, expression, span in where:
        for part in subexpressions(expression):
            function = told.get(part)
            if function is None:
                continue
            instead, hint = _KNOWN_LAST[function]
            if isinstance(part, MatchFunction):
                hint = f"it can be used in SELECT and CONSTRUCT; {instead}"
                message = f"{function.name}() cannot be used in {place}: it is known after that has been applied"
                yield error("function", message, part.span, hint)
            elif isinstance(part, Variable):
                message = f"?{part.value} is {function.name}(), which cannot be used in {place}: it is known after that"
                yield error("function", message, at_variable(part, span, seen.text), hint)


def _unbound(v: Variable, span: Span, seen: Overview) -> Finding:
    negated = seen.binders(v, negated=True)
    if negated:
        hint = "a negated GPM binds nothing outside itself"
        return error("scope", f"?{v.value} is bound only by the negated {listing(negated)}", span, hint)
    unused = [n for n in seen.gpms if v in seen.variables(n)]
    if unused:
        return error(
            "scope",
            f"?{v.value} is bound only by {unused[0]}, which is not in SEQ",
            span,
            f"put {unused[0]} into SEQ",
        )
    return error("scope", f"no GPM of SEQ binds ?{v.value}", span, variable_hint(v, seen.bound))


def check_expression(e: Expression, span: Span, named: AbstractSet[Variable], seen: Overview) -> Iterator[Finding]:
    """An expression of what a query shows; `named`: the columns before it, and group keys with names."""
    for part in subexpressions(e):
        match part:
            case Variable():
                if part not in seen.bound | named:
                    yield _unbound(part, at_variable(part, span, seen.text), seen)
            case Prev():
                hint = "SELECT shows the last iteration; aggregates see all of them"
                yield error("prev", "PREV can be used only in a GPM's FILTER", part.span, hint)
            case Exists():
                hint = "put EXISTS into a GPM's FILTER"
                yield error("exists", "a match has no graph for EXISTS to query", part.span, hint)
            case Aggregate():
                yield from _aggregate(part, seen)
            case MatchFunction("EVENTTIME"):
                hint = "write TIMEOF(A) for the time of a GPM's event, ENDTIME() for the last one's"
                yield error("function", "EVENTTIME() can be used in a GPM's FILTER only", part.span, hint)
            case MatchFunction(name, gpm) if gpm is not None:
                yield from _match_function(name, gpm, part.span, seen)


def _aggregate(aggregate: Aggregate, seen: Overview) -> Iterator[Finding]:
    """An aggregate over iterations runs over those of one GPM, and holds no other aggregate."""
    if is_over_matches(seen, aggregate):
        return
    yield from nested_aggregates(aggregate)
    over = repeated_gpms(seen, aggregate)
    if len(over) == 1 or not all(v in seen.bound for v in plain_variables(aggregate)):
        return  # an unbound variable is reported by itself
    repeated = [p.name for p in seen.places if p.repeats and not p.negated]
    if not over:
        hint = f"it can run over {listing(repeated)}" if repeated else "no GPM of this query is repeated"
        message = f"{aggregate.name} needs a variable of a repeated GPM"
    else:
        hint = "an aggregate runs over the iterations of one GPM"
        message = f"{aggregate.name} mixes variables of {listing(over)}"
    yield error("aggregate", message, aggregate.span, hint)


def _match_function(name: str, gpm: str, span: Span, seen: Overview) -> Iterator[Finding]:
    place = seen.place_of.get(gpm)
    if place is None:
        hint = close_name(gpm, list(seen.place_of), f"{name} takes the name of a GPM in SEQ")
        yield error("gpm", f"{name}({gpm}): {gpm} is not in SEQ", span, hint)
    elif place.negated:
        yield error("gpm", f"{name}({gpm}): the negated {gpm} has no event in a match", span)


# --- summary -----------------------------------------------------------------------------------------


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
        case MatchFunction(name, gpm) if e not in _KNOWN_LAST:
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


# --- ranking -----------------------------------------------------------------------------------------


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
