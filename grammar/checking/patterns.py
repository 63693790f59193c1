"""Graph patterns: SPARQL's own rules that its grammar does not say, and where GRAPH is allowed."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from pyoxigraph import BlankNode, Variable

from oxiseq.grammar.algebra import (
    Aggregate,
    Bind,
    Filter,
    Gpm,
    GraphPattern,
    Group,
    PathPattern,
    Span,
    SubSelect,
    TriplePattern,
    Values,
)
from oxiseq.grammar.checking.nested import stateful_graphs
from oxiseq.grammar.errors import Finding
from oxiseq.grammar.finding_tools import at_pattern, at_variable, error
from oxiseq.grammar.name_chars import NAME_CHARS
from oxiseq.grammar.places import Overview
from oxiseq.grammar.scope import (
    inner_groups,
    nested_elements,
    outside_aggregates,
    sub_select_expressions,
    subexpressions,
    visible_variables,
)

MAX_JOINED_PATTERNS: Final = 100
"""Triple patterns of the knowledge base in one join: Oxigraph plans a hundred in 0.8 s, twice as many in 13 s."""


def check_patterns(seen: Overview) -> Iterator[Finding]:
    """Each GPM's pattern."""
    for gpm in seen.query.gpms:
        yield from _graphs(gpm, seen)
        for group in (gpm.pattern, *_groups(gpm.pattern)):
            graphs = tuple(each for each in group.elements if isinstance(each, GraphPattern))
            if graphs:
                yield from check_size(Group(graphs), graphs[0].span)


def check_size(asked: Group, span: Span) -> Iterator[Finding]:
    """Check that a pattern over the knowledge base is one that can be planned."""
    most = max(map(_joined_patterns, (asked, *_groups(asked))))  # each group again: its part may be below an OPTIONAL
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
    groups = [pattern, *_groups(pattern)]
    for group in groups:
        yield from _scoped_binds(group, text)
    yield from _blank_labels(groups, text)
    for element in nested_elements(pattern):
        if isinstance(element, SubSelect):
            yield from check_select(element, text)
        elif isinstance(element, Values):
            yield from _values(element, text)


def _groups(pattern: Group) -> Iterator[Group]:
    """Every group below, however deep."""
    for element in pattern.elements:
        for inner in inner_groups(element):
            yield inner
            yield from _groups(inner)


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
