"""What the conditions of a GPM may read: variables of other GPMs, PREV, times, aggregates over iterations, the
knowledge base (semantics.md 2.2, 2.4, 2.5b).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from collections.abc import Set as AbstractSet
from typing import TypeAlias

from pyoxigraph import Variable

from oxiseq.grammar.algebra import (
    Aggregate,
    Bind,
    Exists,
    Expression,
    Filter,
    Gpm,
    GraphPattern,
    Group,
    MatchFunction,
    Minus,
    OptionalPattern,
    PatternElement,
    Prev,
    Span,
    SubSelect,
    Union,
)
from oxiseq.grammar.checking.patterns import check_size, nested_aggregates, nested_groups
from oxiseq.grammar.errors import (
    Finding,
    at_pattern,
    at_variable,
    close_name,
    error,
    lint_finding,
    listing,
    variable_hint,
)
from oxiseq.grammar.functions import OF_A_MATCH
from oxiseq.grammar.name_chars import NAME_CHARS
from oxiseq.grammar.places import Overview, Place, repeated_gpms
from oxiseq.grammar.records import dataclass
from oxiseq.grammar.scope import (
    conjuncts,
    exists_in,
    expression_variables,
    holds_exists,
    inner_expressions,
    match_parts,
    nested_elements,
    pattern_expressions,
    plain_variables,
    prev_variables,
    reads_others,
    sub_select_expressions,
    subexpressions,
    visible_variables,
)

# --- scope -------------------------------------------------------------------------------------------


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
    top = {id(condition) for condition in _top_conditions(gpm)}
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
                if place.name in seen.until:
                    hint = "in UNTIL the variable of a repeated GPM is that of its last iteration: use it without PREV"
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


def check_patterns(seen: Overview) -> Iterator[Finding]:
    """Each GPM's pattern."""
    for gpm in seen.query.gpms:
        yield from _graphs(gpm, seen)
        for group in (gpm.pattern, *nested_groups(gpm.pattern)):
            graphs = tuple(each for each in group.elements if isinstance(each, GraphPattern))
            if graphs:
                yield from check_size(Group(graphs), graphs[0].span)


def _graphs(gpm: Gpm, seen: Overview) -> Iterator[Finding]:
    """GRAPH ?g must be split off: nested it would need every graph of the KB beside each event."""
    if gpm.name not in seen.parts:
        return
    place = seen.place_of.get(gpm.name)
    parts, others = seen.parts[gpm.name], place.seen if place is not None else frozenset()
    nested = nested_elements(parts.pattern) if parts.in_place else ()
    for element in (*nested, *stateful_graphs(gpm, others)):
        if isinstance(element, GraphPattern) and isinstance(element.name, Variable):
            yield error(
                "graph",
                f"GRAPH ?{element.name.value} is supported only directly inside the GPM's braces",
                at_pattern(rf"(?i)GRAPH\s+[?$][{NAME_CHARS}]+", element.span, seen.text),
                "name the graph: GRAPH <iri> { ... }",
            )


# --- asked -------------------------------------------------------------------------------------------


def check_asked(condition: Expression, place: Place, seen: Overview) -> Iterator[Finding]:
    """A condition of the GPM at `place`, which is in SEQ."""
    for part in match_parts(condition):
        match part:
            case Aggregate():
                yield from _aggregate(part, place, seen)
            case MatchFunction(name, str(gpm)):
                yield from _function(name, gpm, part.span, place, seen)


def _function(name: str, gpm: str, span: Span, place: Place, seen: Overview) -> Iterator[Finding]:
    """TIMEOF(A) or COUNT(A)."""
    text = f"{name}({gpm})"
    if gpm not in seen.place_of:
        hint = close_name(gpm, list(seen.place_of), f"{name} takes the name of a GPM in SEQ")
        yield error("gpm", f"{text}: {gpm} is not in SEQ", span, hint)
    elif name == "TIMEOF" and gpm == place.name:
        hint = "write EVENTTIME() for the time of the present event"
        yield error("gpm", f"{text} cannot be used in a FILTER of {gpm} itself", span, hint)
    elif name == "TIMEOF" and gpm not in place.earlier and gpm not in place.beside:
        yield _not_before(text, gpm, place, span)
    elif name == "COUNT":
        yield from _iterated(text, gpm, place, span, seen)


def _aggregate(aggregate: Aggregate, place: Place, seen: Overview) -> Iterator[Finding]:
    text = aggregate.name
    if aggregate.arg is None:
        hint = "write COUNT(B) for the iterations of a repeated GPM"
        yield error("aggregate", "COUNT(*) runs over matches, and a FILTER sees a part of one", aggregate.span, hint)
        return
    if aggregate.distinct:
        hint = "leave DISTINCT out, or put the condition into a FILTER behind SEQ"
        yield error("aggregate", f"{text}(DISTINCT ...) cannot be used in a GPM's FILTER", aggregate.span, hint)
    yield from nested_aggregates(aggregate)
    if holds_exists(aggregate.arg) or any(isinstance(e, Prev) for e in subexpressions(aggregate.arg)):
        hint = "an aggregate takes variables of one GPM, and expressions over them"
        yield error("aggregate", f"{text} cannot take PREV or EXISTS", aggregate.span, hint)
    over, used = repeated_gpms(seen, aggregate), expression_variables(aggregate.arg)
    repeated = [p.name for p in seen.places if p.repeats and not p.negated]
    if not over:
        hint = f"it can run over {listing(repeated)}" if repeated else "no GPM of this query is repeated"
        yield error("aggregate", f"{text} needs a variable of a repeated GPM", aggregate.span, hint)
    elif len(over) > 1 or not used <= seen.variables(over[0]):
        hint = f"in a FILTER an aggregate takes variables of one GPM: {listing(over)}"
        yield error("aggregate", f"{text} mixes variables of several GPMs", aggregate.span, hint)
    else:
        yield from _iterated(text, over[0], place, aggregate.span, seen)


def _iterated(text: str, gpm: str, place: Place, span: Span, seen: Overview) -> Iterator[Finding]:
    """Something about the iterations so far of a GPM."""
    of = seen.place_of[gpm]
    if not of.repeats or of.negated:
        hint = f"write {gpm}+ in SEQ" if not of.negated else "a negated GPM has no event in a match"
        yield error("aggregate", f"{text} needs iterations, {gpm} is not repeated", span, hint)
    elif gpm not in place.earlier and gpm != place.name:
        yield _not_before(text, gpm, place, span)
    elif len(of.repeats) > 1 and set(of.repeats) & set(place.repeats):
        message = f"{text} cannot be used inside a repeat in which {gpm} is itself repeated"
        hint = "it could mean the inner iterations or all of them: ask it behind the outer repeat"
        yield error("aggregate", message, span, hint)


def _not_before(text: str, gpm: str, place: Place, span: Span) -> Finding:
    hint = f"move the condition to {gpm}, or to a FILTER behind SEQ"
    return error("scope", f"{text} in a FILTER of {place.name}: {gpm} does not come before it", span, hint)


# --- nested ------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Mention:
    """A variable out of its scope: in a condition, or `local`, in a pattern that keeps it to itself."""

    variable: Variable
    span: Span
    inside: str
    local: bool = False


def check_nested(place: Place, seen: Overview) -> Iterator[Finding]:
    """Conditions of nested groups that can never be true, and what is a new variable though it looks like another's."""
    gpm = seen.gpms[place.name]
    own = seen.variables(gpm.name)
    for mention in mentions(gpm, (own, place.seen)):
        v = mention.variable
        if v in place.seen and not (mention.local and v in own):
            yield _out_of_scope(mention, place, seen)
        elif not mention.local and v not in own:
            yield unbound(v, at_variable(v, mention.span, seen.text), place, seen)
        elif not mention.local:
            message = f"?{v.value} is not in scope inside {mention.inside}, so this is never true"
            hint = f"put the condition after {mention.inside}, directly inside the braces of {gpm.name}"
            yield lint_finding("unbound", message, at_variable(v, mention.span, seen.text), hint)
    yield from _new_in_exists(place, seen)


def _out_of_scope(mention: Mention, place: Place, seen: Overview) -> Finding:
    v, name = mention.variable, place.name
    others = listing([n for n in seen.binders(v) if n != name][:1])
    message = f"?{v.value} of {others} is not in scope inside {mention.inside}"
    if mention.inside == "MINUS":
        hint = "write FILTER NOT EXISTS { ... } in place of MINUS"
    elif mention.inside == "a sub-SELECT":
        hint = f"compare in a FILTER directly inside the braces of {name}; a new variable needs another name"
    else:
        hint = f"write the FILTER directly inside the braces of {name}, or in FILTER EXISTS {{ ... }} there"
    return error("scope", message, at_variable(v, mention.span, seen.text), hint)


def unbound(v: Variable, span: Span, place: Place, seen: Overview) -> Finding:
    """The error that says why a FILTER cannot see a variable."""
    positive = seen.binders(v)
    if positive and place.negated and place.first:
        return error(
            "scope",
            f"{place.name} comes first and is negated: its FILTER cannot see ?{v.value} of {listing(positive)}",
            span,
            f"the FILTER of a leading {place.name}! sees only what {place.name} binds",
        )
    order = [p.name for p in seen.places]
    right = [n for n in positive if order.index(n) > order.index(place.name)]
    if right:
        return error(
            "scope",
            f"?{v.value} is bound only by {listing(right)}, which comes after {place.name}",
            span,
            f"put the FILTER into {right[0]}",
        )
    if positive:
        return error(
            "scope",
            f"?{v.value} is bound only by {listing(positive)}, in another alternative than {place.name}",
            span,
        )
    negated = [n for n in seen.binders(v, negated=True) if n != place.name]
    if negated:
        hint = f"a negated GPM binds nothing for others; put the FILTER into {negated[0]}"
        return error("scope", f"?{v.value} is bound only by the negated {listing(negated)}", span, hint)
    return error("scope", f"nothing binds ?{v.value}", span, variable_hint(v, seen.variables(place.name) | place.seen))


def _new_in_exists(place: Place, seen: Overview) -> Iterator[Finding]:
    """A variable of a GPM that this one does not see is a new one inside EXISTS."""
    for e in _top_exists(seen.gpms[place.name]):
        for v in sorted(frozenset(visible_variables(e.pattern)) - seen.variables(place.name) - place.seen, key=str):
            others = [n for n in seen.binders(v) if n != place.name]
            if others:
                yield lint_finding(
                    "local",
                    f"?{v.value} is a new variable inside EXISTS: {place.name} does not see {listing(others)}",
                    at_variable(v, e.span, seen.text),
                    f"give it another name, or put the FILTER into {others[0]}",
                )


def _top_exists(gpm: Gpm) -> Iterator[Exists]:
    return (e for condition in _top_conditions(gpm) for e in exists_in(condition))


def stateful_graphs(gpm: Gpm, others: AbstractSet[Variable]) -> Iterator[GraphPattern]:
    """GRAPH inside the EXISTS of stateful filters."""
    own = frozenset(visible_variables(gpm.pattern))
    for top in _top_conditions(gpm):
        for condition in conjuncts(top):
            if reads_others(condition, own, others):
                for e in exists_in(condition):
                    yield from (x for x in nested_elements(e.pattern) if isinstance(x, GraphPattern))


# --- the walk -------------------------------------------------------------------------------------

_Scope: TypeAlias = tuple[AbstractSet[Variable], ...]
"""What is seen: sets that are looked into one after the other, since making one of them at each place would take the
square of the query's length."""


def mentions(gpm: Gpm, known: _Scope) -> Iterator[Mention]:
    """The variables out of scope in a GPM's nested groups; `known`: what the top level's FILTERs see."""
    for element, before in _with_before(gpm.pattern):
        match element:
            case Filter(condition):
                yield from _exists(condition, known)
            case Bind(expression):
                yield from _exists(expression, (before,))
            case _:
                yield from _nested(element, (), before)


def _with_before(group: Group) -> Iterator[tuple[PatternElement, AbstractSet[Variable]]]:
    """Each element with the variables bound before it; the set is another one at the next element."""
    before: set[Variable] = set()
    for element in group.elements:
        yield element, before
        before.update(visible_variables(element))


def _missing(variables: Iterable[Variable], scope: _Scope) -> Iterator[Variable]:
    return (v for v in sorted(set(variables), key=str) if not any(v in part for part in scope))


def _group(group: Group, inside: str, given: _Scope, left: _Scope = ()) -> Iterator[Mention]:
    """`given`: variables that a value replaces; `left`: what the group's own FILTERs see besides."""
    scope: _Scope = (frozenset(visible_variables(group)), *given)
    for element, before in _with_before(group):
        match element:
            case Filter(condition):
                yield from _condition(condition, (*scope, *left), element.span, inside)
            case Bind(expression):
                yield from _condition(expression, scope, element.span, inside)
            case _:
                yield from _nested(element, given, before)


def _nested(element: PatternElement, given: _Scope, before: AbstractSet[Variable]) -> Iterator[Mention]:
    match element:
        case OptionalPattern(inner):
            yield from _group(inner, "OPTIONAL", given, (before,))
        case Minus(inner):
            for v in _missing(visible_variables(inner), (before, *given)):
                yield Mention(v, element.span, "MINUS", local=True)
            yield from _group(inner, "MINUS", given)
        case Union(branches):
            for branch in branches:
                yield from _group(branch, "UNION", given)
        case GraphPattern(_, inner):
            yield from _group(inner, "GRAPH", given)
        case Group():
            yield from _group(element, "a nested group", given)
        case SubSelect(_, where):
            shown = frozenset(visible_variables(element))
            for v in _missing(visible_variables(where), (shown,)):
                yield Mention(v, element.span, "a sub-SELECT", local=True)
            yield from _group(where, "a sub-SELECT", (shown.difference(_missing(shown, given)),))
            named = frozenset(k[1] for k in element.group_by if isinstance(k, tuple))
            scope = (frozenset(visible_variables(where)), shown, named)
            for expression in sub_select_expressions(element):
                yield from _condition(expression, scope, element.span, "a sub-SELECT")
        case _:
            return


def _condition(condition: Expression, scope: _Scope, span: Span, inside: str) -> Iterator[Mention]:
    for v in _missing(plain_variables(condition), scope):
        yield Mention(v, span, inside)
    for e in exists_in(condition):
        for v in _missing(visible_variables(e.pattern), scope):
            yield Mention(v, e.span, inside, local=True)
    yield from _exists(condition, scope)


def _exists(condition: Expression, known: _Scope) -> Iterator[Mention]:
    for e in exists_in(condition):
        yield from _group(e.pattern, "EXISTS", known)
