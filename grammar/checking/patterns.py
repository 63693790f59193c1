"""What all languages check of their patterns and expressions, whatever these are parts of.

cross-product   the parts of one pattern share no variable
kb-unjoined     a GRAPH pattern shares no variable with the pattern around it
function        a function called by IRI that the store does not know: it would fail when the first event comes
foreign         a function that another language has
itself, kinds, text   comparisons that can hardly be meant: see `checking.comparisons`

And SPARQL's own rules for patterns, which its grammar does not say.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from typing import Final
from zoneinfo import available_timezones

from pyoxigraph import BlankNode, Literal, Variable

from oxiseq.grammar.algebra import (
    Aggregate,
    Bind,
    Expression,
    Filter,
    FunctionCall,
    GraphPattern,
    Group,
    MatchFunction,
    PathPattern,
    PatternElement,
    Prev,
    Span,
    SubSelect,
    TriplePattern,
    Values,
)
from oxiseq.grammar.checking.comparisons import check_comparisons
from oxiseq.grammar.errors import Finding, at_pattern, at_variable, close_name, error, lint_finding, named
from oxiseq.grammar.functions import CASTS, GEO_FUNCTIONS, GEOSPARQL, LOCAL, OWN_FUNCTIONS
from oxiseq.grammar.name_chars import NAME_CHARS
from oxiseq.grammar.places import Variables
from oxiseq.grammar.scope import (
    expression_variables,
    inner_groups,
    nested_elements,
    outside_aggregates,
    sub_select_expressions,
    subexpressions,
    visible_variables,
)

# --- every -------------------------------------------------------------------------------------------


def check_every(
    patterns: Iterable[tuple[Group, str]],
    expressions: Sequence[Expression],
    text: str,
    mark: str = "?",
    foreign: tuple[type[Prev | MatchFunction], ...] = (),
    instead: str = "",
) -> Iterator[Finding]:
    """Patterns with what people call them, and all expressions with their subexpressions; `mark` stands before the
    names of variables. `foreign`: functions that SPAseq has and this language has not, `instead`: what it has."""
    for pattern, name in patterns:
        yield from check_pattern(pattern, text)
        yield from products(pattern, name, text)
    for e in expressions:
        yield from check_function(e)
        if isinstance(e, foreign):
            name = "PREV" if isinstance(e, Prev) else e.name
            yield error("function", f"{name} is a function of SPAseq", e.span, instead)
    yield from check_comparisons(expressions, mark)


def check_function(e: Expression) -> Iterator[Finding]:
    """A call by IRI, if it is one."""
    if isinstance(e, FunctionCall):
        iri = e.function.value
        if iri in CASTS and (len(e.args) != 1 or e.distinct):
            yield error("function", f"the cast <{iri}> takes one argument", e.span)
        elif iri in OWN_FUNCTIONS:
            yield from _check_own(e, OWN_FUNCTIONS[iri])
        elif iri not in CASTS and iri not in GEO_FUNCTIONS:
            known = GEO_FUNCTIONS if iri.startswith(GEOSPARQL) else CASTS | OWN_FUNCTIONS.keys()
            hint = close_name(
                iri, known, "a function with an IRI is a cast to an XSD type, a GeoSPARQL function or one of oxiseq's"
            )
            yield error("function", f"there is no function <{iri}>", e.span, hint)


def _check_own(e: FunctionCall, arguments: int) -> Iterator[Finding]:
    if len(e.args) != arguments or e.distinct:
        count = "one argument" if arguments == 1 else f"{arguments} arguments"
        yield error("function", f"the function <{e.function.value}> takes {count}", e.span)
    elif e.function.value == LOCAL and isinstance(zone := e.args[1], Literal) and zone.value not in _zones():
        hint = close_name(zone.value, _zones(), 'write a name of the IANA database, such as "Europe/Berlin"')
        yield error("function", f"there is no time zone {zone.value!r}", e.span, hint)


@cache
def _zones() -> frozenset[str]:
    """The names of time zones; to find them is to walk through a folder."""
    return frozenset(available_timezones())


def products(pattern: Group, name: str, text: str) -> Iterator[Finding]:
    """Parts of a pattern (`name` for people), its top level, that share nothing; filters count as links."""
    clusters: list[tuple[set[Variable | BlankNode], list[PatternElement]]] = []
    links: list[Variables] = []
    for element in pattern.elements:
        if isinstance(element, Filter):
            links.append(expression_variables(element.condition))
            continue
        names = _names(element)
        if names:
            _merge(clusters, names, [element])
    for link in links:
        touched = [c for c in clusters if c[0] & link]
        if len(touched) > 1:
            _merge(clusters, {v for c in touched for v in c[0]}, [])
    for names, members in clusters[1:]:
        variables = (
            named(n for n in names if isinstance(n, Variable)) if any(isinstance(n, Variable) for n in names) else "it"
        )
        if all(isinstance(m, GraphPattern) for m in members):
            yield lint_finding(
                "kb-unjoined",
                f"this GRAPH pattern shares no variable with the rest of {name}",
                at_pattern(r"(?i)GRAPH\s+\S+", members[0].span, text),
                "every event combines with every answer of the knowledge base",
            )
        else:
            yield lint_finding(
                "cross-product",
                f"{variables} shares nothing with the pattern before it in {name}"
                if variables == "it" or " and " not in variables
                else f"{variables} share nothing with the pattern before them in {name}",
                members[0].span,
                "all combinations are matches; link them by a variable",
            )


def _merge(
    clusters: list[tuple[set[Variable | BlankNode], list[PatternElement]]],
    names: set[Variable | BlankNode],
    members: list[PatternElement],
) -> None:
    """Put `names` into the first cluster that shares one, folding in the others."""
    touched = [c for c in clusters if c[0] & names]
    if not touched:
        clusters.append((set(names), members))
        return
    first = touched[0]
    first[0].update(names)
    for other in touched[1:]:
        first[0].update(other[0])
        first[1].extend(other[1])
        clusters.remove(other)
    first[1].extend(members)


def _names(element: PatternElement) -> set[Variable | BlankNode]:
    if isinstance(element, TriplePattern | PathPattern):
        terms = {element.subject, element.object}
        if isinstance(element, TriplePattern):
            terms.add(element.predicate)
        return {t for t in terms if isinstance(t, Variable | BlankNode)}
    if isinstance(element, Bind):
        return {element.variable, *expression_variables(element.expression)}
    return set(visible_variables(element))


# --- patterns ----------------------------------------------------------------------------------------


MAX_JOINED_PATTERNS: Final = 100
"""Triple patterns of the knowledge base in one join: Oxigraph plans a hundred in 0.8 s, twice as many in 13 s."""


def check_size(asked: Group, span: Span) -> Iterator[Finding]:
    """Check that a pattern over the knowledge base is one that can be planned."""
    groups = (asked, *nested_groups(asked))  # each again: its part may be below an OPTIONAL
    most = max(map(_joined_patterns, groups))
    if most > MAX_JOINED_PATTERNS:
        message = f"{most} triple patterns of the knowledge base are joined; {MAX_JOINED_PATTERNS} are allowed"
        yield error("size", message, span, "ask for less, or join parts of it in GPMs of their own")


def _joined_patterns(group: Group) -> int:
    """How many triple patterns, paths and sub-queries one join of the group has, those of groups and graphs in it
    included."""
    inner = [each.pattern if isinstance(each, GraphPattern) else each for each in group.elements]
    here = sum(isinstance(each, TriplePattern | PathPattern | SubSelect) for each in inner)
    return here + sum(_joined_patterns(each) for each in inner if isinstance(each, Group))


def check_pattern(pattern: Group, text: str) -> Iterator[Finding]:
    """Check what SPARQL requires of any pattern."""
    groups = [pattern, *nested_groups(pattern)]
    for group in groups:
        yield from _scoped_binds(group, text)
    yield from _blank_labels(groups, text)
    for element in nested_elements(pattern):
        if isinstance(element, SubSelect):
            yield from check_select(element, text)
        elif isinstance(element, Values):
            yield from _values(element, text)


def nested_groups(pattern: Group) -> Iterator[Group]:
    """Every group below, however deep."""
    for element in pattern.elements:
        for inner in inner_groups(element):
            yield inner
            yield from nested_groups(inner)


def _scoped_binds(group: Group, text: str) -> Iterator[Finding]:
    for i, element in enumerate(group.elements):
        if isinstance(element, Bind) and element.variable in visible_variables(Group(group.elements[:i])):
            v = element.variable
            yield error(
                "bind",
                f"BIND cannot bind ?{v.value}: the pattern before it does already",
                at_pattern(rf"[?$]{v.value}\s*\)$", element.span, text),
                "choose another variable, or compare with FILTER",
            )


def _blank_labels(groups: list[Group], text: str) -> Iterator[Finding]:
    """A label belongs to one basic graph pattern (SPARQL 1.1, 5.1.1); FILTER does not end one."""
    home: dict[BlankNode, int] = {}
    pattern = 0
    for group in groups:
        pattern += 1
        for element in group.elements:
            if isinstance(element, TriplePattern | PathPattern):
                for node in (element.subject, element.object):
                    if isinstance(node, BlankNode) and home.setdefault(node, pattern) != pattern:
                        yield error(
                            "blank",
                            f"the label _:{node.value} is used in two basic graph patterns",
                            at_pattern(rf"_:{re.escape(node.value)}(?![{NAME_CHARS}\-])", element.span, text),
                            "use a variable",
                        )
            elif not isinstance(element, Filter):
                pattern += 1


def _values(values: Values, text: str) -> Iterator[Finding]:
    for i, v in enumerate(values.variables):
        if v in values.variables[:i]:
            yield error("values", f"VALUES names ?{v.value} twice", at_variable(v, values.span, text))


def check_select(query: SubSelect, text: str) -> Iterator[Finding]:
    """What a query lists, with its grouping; its WHERE is not looked into."""
    taken = set(visible_variables(query.where))
    for column in query.projection or ():
        if isinstance(column, tuple):
            v = column[1]
            if v in taken:
                place = at_pattern(rf"[?$]{v.value}\s*\)", query.span, text)
                yield error("select", f"?{v.value} is bound already", place, "choose another name after AS")
            taken.add(v)
    for e in sub_select_expressions(query):
        for outer in subexpressions(e):
            if isinstance(outer, Aggregate) and outer.arg is not None:
                yield from nested_aggregates(outer)
    yield from _grouping(query, text)


def nested_aggregates(outer: Aggregate) -> Iterator[Finding]:
    """Aggregates directly inside an aggregate."""
    if outer.arg is not None:
        for e in subexpressions(outer.arg):
            if isinstance(e, Aggregate):
                yield error("aggregate", f"{e.name} cannot be used inside {outer.name}", e.span)


def _grouping(query: SubSelect, text: str) -> Iterator[Finding]:
    """With GROUP BY or an aggregate, SELECT may show keys and aggregates only."""
    grouped = bool(query.group_by) or any(
        isinstance(e, Aggregate) for x in sub_select_expressions(query) for e in subexpressions(x)
    )
    if not grouped:
        return
    if query.projection is None:
        yield error(
            "select",
            "SELECT * cannot be used with GROUP BY",
            at_pattern(r"\*", query.span, text),
            "name the columns",
        )
        return
    keys = {k[1] if isinstance(k, tuple) else k for k in query.group_by}
    for column in query.projection:
        used = {column} if isinstance(column, Variable) else set(outside_aggregates(column[0]))
        for v in sorted(used - keys, key=str):
            place = at_variable(v, query.span, text)
            yield error("select", f"?{v.value} is neither grouped nor aggregated", place, f"add GROUP BY ?{v.value}")
        if isinstance(column, tuple):
            keys.add(column[1])
