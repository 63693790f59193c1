"""Below a GPM's top level: which variables are in places where SPARQL does not show them (semantics.md 2.2).

A nested group is answered by itself and then joined. What it sees of outside is little: the FILTER of an OPTIONAL sees
the pattern before it, and in EXISTS the values of the outer mapping replace their variables, however deep.
So a condition of a nested group on another GPM's variable is never true, and another GPM's variable that only MINUS or
the inside of a sub-SELECT names is a new variable.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from collections.abc import Set as AbstractSet
from typing import TypeAlias

from pyoxigraph import Variable

from oxiseq.grammar.algebra import (
    Bind,
    Exists,
    Expression,
    Filter,
    Gpm,
    GraphPattern,
    Group,
    Minus,
    OptionalPattern,
    PatternElement,
    Span,
    SubSelect,
    Union,
)
from oxiseq.grammar.errors import Finding
from oxiseq.grammar.finding_tools import at_variable, error, lint_finding, listing, variable_hint
from oxiseq.grammar.places import Overview, Place
from oxiseq.grammar.records import dataclass
from oxiseq.grammar.scope import (
    conjuncts,
    exists_in,
    nested_elements,
    plain_variables,
    reads_others,
    sub_select_expressions,
    visible_variables,
)


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
    for element in gpm.pattern.elements:
        if isinstance(element, Filter):
            yield from exists_in(element.condition)


def stateful_graphs(gpm: Gpm, others: AbstractSet[Variable]) -> Iterator[GraphPattern]:
    """GRAPH inside the EXISTS of stateful filters."""
    own = frozenset(visible_variables(gpm.pattern))
    for element in gpm.pattern.elements:
        for condition in conjuncts(element.condition) if isinstance(element, Filter) else ():
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
