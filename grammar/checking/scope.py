"""Scope: what a GPM's conditions may mention of other GPMs (semantics.md 2.2, 2.4)."""

from __future__ import annotations

from collections.abc import Iterator

from pyoxigraph import Variable

from oxiseq.grammar.algebra import (
    Aggregate,
    Bind,
    Exists,
    Expression,
    Filter,
    Gpm,
    Group,
    MatchFunction,
    Prev,
    Span,
    SubSelect,
)
from oxiseq.grammar.checking.asked import check_asked
from oxiseq.grammar.checking.nested import check_nested, unbound
from oxiseq.grammar.errors import Finding
from oxiseq.grammar.finding_tools import at_pattern, at_variable, error, listing, variable_hint
from oxiseq.grammar.functions import OF_A_MATCH
from oxiseq.grammar.places import Overview, Place
from oxiseq.grammar.scope import (
    conjuncts,
    exists_in,
    expression_variables,
    inner_expressions,
    match_parts,
    nested_elements,
    plain_variables,
    prev_variables,
    sub_select_expressions,
    subexpressions,
)


def check_scope(seen: Overview) -> Iterator[Finding]:
    """FILTER, BIND, PREV and functions of the match inside GPMs."""
    for gpm in seen.gpms.values():
        yield from _out_of_place(gpm)
        yield from _binds(gpm, seen)
    for place in seen.places:
        if place.name in seen.gpms:
            yield from check_nested(place, seen)
            for element in seen.gpms[place.name].pattern.elements:
                if isinstance(element, Filter):
                    yield from _filter(element, place, seen)
                    yield from check_asked(element.condition, place, seen)


def _out_of_place(gpm: Gpm) -> Iterator[Finding]:
    """PREV, aggregates and functions of the match below the top level; functions of a whole match anywhere."""
    top = {id(e.condition) for e in gpm.pattern.elements if isinstance(e, Filter)}
    for condition in inner_expressions(gpm.pattern):
        for e in subexpressions(condition):
            if isinstance(e, Aggregate | Prev) and id(condition) not in top:
                name, code = ("PREV", "prev") if isinstance(e, Prev) else (e.name, "aggregate")
                hint = f"{name} can be used in a FILTER directly inside the GPM's braces"
                yield error(code, f"{name} cannot be used here", e.span, hint)
    inside = {id(part) for condition in _top_conditions(gpm) for part in match_parts(condition)}
    for e in pattern_expressions(gpm.pattern):
        if isinstance(e, MatchFunction) and e.name in OF_A_MATCH:
            hint = "it can be used in SELECT and CONSTRUCT; a GPM's FILTER has EVENTTIME() and TIMEOF(A)"
            yield error("function", f"{e.name}() cannot be used in a GPM", e.span, hint)
        elif isinstance(e, MatchFunction) and id(e) not in inside:
            hint = f"{e.name} can be used in a FILTER directly inside the GPM's braces"
            yield error("function", f"{e.name}({e.gpm or ''}) cannot be used here", e.span, hint)


def _top_conditions(gpm: Gpm) -> Iterator[Expression]:
    return (e.condition for e in gpm.pattern.elements if isinstance(e, Filter))


def pattern_expressions(pattern: Group) -> Iterator[Expression]:
    """Every expression in a pattern with its subexpressions, sub-queries' clauses included."""
    for condition in inner_expressions(pattern):
        yield from subexpressions(condition)
    for element in nested_elements(pattern):
        if isinstance(element, SubSelect):
            for e in sub_select_expressions(element):
                yield from subexpressions(e)


def _binds(gpm: Gpm, seen: Overview) -> Iterator[Finding]:
    """A top-level BIND is evaluated on the event: it cannot read another GPM's variable."""
    own = seen.variables(gpm.name)
    for element in gpm.pattern.elements:
        if isinstance(element, Bind):
            for v in sorted(expression_variables(element.expression) - own, key=str):
                others = [n for n in seen.gpms if n != gpm.name and v in seen.variables(n)]
                if others:
                    yield error(
                        "scope",
                        f"BIND cannot read ?{v.value}, which {others[0]} binds: it is evaluated on one event",
                        at_variable(v, element.span, seen.text),
                        "use the expression itself in a FILTER or in SELECT",
                    )


def _filter(element: Filter, place: Place, seen: Overview) -> Iterator[Finding]:
    own = seen.variables(place.name)
    for condition in conjuncts(element.condition):
        span = _span(condition, element)
        for v in sorted(plain_variables(condition) - own - place.seen, key=str):
            yield unbound(v, at_variable(v, span, seen.text), place, seen)
        for exists in exists_in(condition):
            yield from _rebound(exists, place, seen)
        for v in sorted(prev_variables(condition), key=str):
            place_of = at_pattern(rf"(?i:PREV)\s*\(\s*[?$]{v.value}\s*\)", span, seen.text)
            if not place.repeats:
                hint = f"write {place.name}+ in SEQ, or use the variable of an earlier GPM"
                yield error("prev", f"PREV(?{v.value}) needs iterations, {place.name} is not repeated", place_of, hint)
            elif v not in place.seen and v not in own | _inside(place, seen):
                yield error(
                    "prev",
                    f"no GPM of the iteration binds ?{v.value}",
                    place_of,
                    variable_hint(v, own | place.seen),
                )


def _inside(place: Place, seen: Overview) -> frozenset[Variable]:
    """What the innermost repeat around `place` binds."""
    repeat = place.repeats[-1]
    return frozenset(v for p in seen.places if repeat in p.repeats and not p.negated for v in seen.variables(p.name))


def _rebound(exists: Exists, place: Place, seen: Overview) -> Iterator[Finding]:
    """Inside EXISTS the variable of another GPM is replaced by its value, which BIND cannot replace."""
    for element in nested_elements(exists.pattern):
        if not isinstance(element, Bind):
            continue
        if element.variable in place.seen and element.variable not in seen.variables(place.name):
            v = element.variable
            others = listing([n for n in seen.binders(v) if n != place.name][:1])
            if seen.text[element.span.start : element.span.end].lstrip("?$") == v.value:  # made of a triple term
                yield error(
                    "triple-term",
                    f"?{v.value} cannot stand in a triple term here: inside EXISTS it is the value of {others}",
                    element.span,
                    f"write another variable in its place and compare it: FILTER(sameTerm(?x, ?{v.value}))",
                )
                continue
            yield error(
                "bind",
                f"BIND cannot bind ?{v.value}: inside EXISTS it is the value of {others}",
                at_pattern(rf"[?$]{v.value}\s*\)$", element.span, seen.text),
                "choose another variable, or compare with FILTER",
            )


def _span(condition: Expression, element: Filter) -> Span:
    if isinstance(condition, Variable) or not hasattr(condition, "span"):
        return element.span
    span = condition.span
    assert isinstance(span, Span)
    return span if span.end else element.span
