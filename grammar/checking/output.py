"""SELECT and CONSTRUCT: what a match can show (semantics.md 2.1, 2.4)."""

from __future__ import annotations

from collections.abc import Iterator
from collections.abc import Set as AbstractSet

from pyoxigraph import Variable

from oxiseq.grammar.algebra import (
    DETECTTIME,
    Aggregate,
    Ask,
    Construct,
    Exists,
    Expression,
    MatchFunction,
    Prev,
    Span,
)
from oxiseq.grammar.checking.common import check_columns, template_variables
from oxiseq.grammar.checking.patterns import nested_aggregates
from oxiseq.grammar.errors import Finding
from oxiseq.grammar.finding_tools import (
    at_variable,
    close_name,
    error,
    listing,
    variable_hint,
)
from oxiseq.grammar.levels import is_over_matches, keys_of, repeated_gpms
from oxiseq.grammar.places import Overview
from oxiseq.grammar.scope import plain_variables, subexpressions


def check_output(seen: Overview) -> Iterator[Finding]:
    """The form that the query's results take, and the FILTERs behind SEQ."""
    yield from _filters(seen)
    yield from _detect_time(seen)
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


def _detect_time(seen: Overview) -> Iterator[Finding]:
    """When a match is decided is known after all that chooses among matches (semantics.md 2.6a)."""
    query, summary = seen.query, seen.query.summary
    columns = [c for c in getattr(query.form, "columns", ()) or () if c.expression is not None]
    told: set[Variable] = set()
    for column in columns:
        if any(e == DETECTTIME or e in told for e in subexpressions(column.expression)):
            told.add(column.variable)
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
            if isinstance(part, MatchFunction) and part == DETECTTIME:
                hint = "it can be used in SELECT and CONSTRUCT; ENDTIME() is the time of a match's last event"
                message = f"DETECTTIME() cannot be used in {place}: it is known after that has been applied"
                yield error("function", message, part.span, hint)
            elif isinstance(part, Variable) and part in told:
                message = f"?{part.value} is DETECTTIME(), which cannot be used in {place}: it is known after that"
                yield error(
                    "function", message, at_variable(part, span, seen.text), "order by ENDTIME(), or leave it out"
                )


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
    places = [p for p in seen.places if p.name == gpm]
    if not places:
        hint = close_name(gpm, [p.name for p in seen.places], f"{name} takes the name of a GPM in SEQ")
        yield error("gpm", f"{name}({gpm}): {gpm} is not in SEQ", span, hint)
    elif places[0].negated:
        yield error("gpm", f"{name}({gpm}): the negated {gpm} has no event in a match", span)
