"""Patterns that the knowledge base answers as a whole: those that read nothing else, and are no triple patterns.

In the flow: elements of a group → a SELECT → `Asked`. A pattern in GRAPH <g> {...} is evaluated there; one in the
GRAPH ?g {...} of a larger pattern with the graph's name as a column, its context.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from pyoxigraph import NamedNode, Variable

from oxiseq.engine.expressions.functions import is_pure
from oxiseq.engine.flow import plan as p
from oxiseq.engine.flow.relations import Relation, Relations
from oxiseq.engine.flow.sparql.around import Around
from oxiseq.engine.flow.sparql.existence import correlated
from oxiseq.engine.flow.sparql.grounds import EachEvent, EachGraph, Ground, Merge, Scope
from oxiseq.engine.flow.sparql.rebuilding import among_named
from oxiseq.grammar.algebra import (
    Bind,
    Call,
    Expression,
    Filter,
    GraphPattern,
    Group,
    MatchPattern,
    Minus,
    PathPattern,
    PatternElement,
    SubSelect,
    TriplePattern,
    Values,
    WindowPattern,
)
from oxiseq.grammar.render_sparql import SparqlWriter, base_clause
from oxiseq.grammar.scope import (
    certain_variables,
    inner_groups,
    nested_elements,
    sub_select_expressions,
    visible_variables,
)

_GRAPH: Final = Variable("oxiseq_graph")
_NOTHING: Final = "(1 AS ?oxiseq_one)"


class Asking:
    """What may be queried, and how."""

    def __init__(self, relations: Relations, around: Around) -> None:
        self._relations = relations
        self._around = around

    def may(self, elements: Sequence[PatternElement], scope: Scope) -> bool:
        """Whether some elements of a group can be queried together, and read the knowledge base at all."""
        pattern = Group(tuple(elements))
        inside = list(nested_elements(pattern))
        return (
            self._around.asks_kb
            and any(isinstance(e, TriplePattern | PathPattern | GraphPattern) for e in inside)
            and not any(isinstance(e, WindowPattern | MatchPattern) for e in inside)
            and not any(isinstance(e, GraphPattern) and e.name == self._around.event for e in inside)
            and not _impure(inside)
            and self._on_kb(pattern, scope.ground)
            and not _names_go_astray(pattern, scope.ground)
            and not correlated(pattern, scope.given)
        )

    def _on_kb(self, pattern: Group, ground: Ground) -> bool:
        """A query names one graph, or each, unless all of its patterns are in GRAPH."""
        if isinstance(ground, EachGraph) or not touches(pattern):
            return True
        return isinstance(ground, Merge) and len(ground.places) == 1 and not ground.windows

    def asked(self, elements: Sequence[PatternElement], ground: Ground) -> Relation:
        """The answers: columns for the variables that they bind, and for the graph of `EachGraph`."""
        pattern = Group(tuple(elements))
        shown = visible_variables(pattern)
        named = self._around.named_graphs
        wanted = Group(tuple(among_named(e, named) for e in elements))
        certain = certain_variables(pattern)
        match ground:
            case EachGraph(context):
                within: PatternElement = GraphPattern(_GRAPH, wanted)
                if named:
                    within = Group((within, Filter(Call("IN", (_GRAPH, *named)))))
                form = question(within, (_GRAPH, *shown))
                return self._relations.source(form, (context, *shown), {context, *certain})
            case Merge(places):
                return self._relations.source(question(within_graph(wanted, places), shown), shown, certain)
            case EachEvent():  # all of its patterns are in GRAPH
                return self._relations.source(question(wanted, shown), shown, certain)

    def graphs(self, ground: EachGraph | EachEvent) -> Relation:
        """The named graphs, or events, each a row: the context."""
        if isinstance(ground, EachGraph) and not self._around.alone:
            return self.asked((), ground)
        named = self._around.named_graphs
        form = p.Constant(tuple((name,) for name in named), 1) if self._around.whole_dataset else p.Graphs()
        return self._relations.source(form, (ground.context,), (ground.context,))

    def is_there(self, name: NamedNode) -> Relation:
        """One row without columns if the knowledge base has this graph. Where it cannot be queried, an empty graph is
        none."""
        if self._around.asks_kb:
            within = GraphPattern(name, Group(()))
            return self._relations.source(question(within, ()), (), ())
        if self._around.alone:
            graph = Variable("graph")
            whole = self._relations.source(p.Graphs(), (graph,), (graph,))
            this = self._relations.filter(whole, [Call("SAMETERM", (graph, name))])
            return self._relations.project(this, ())
        s, o = (p.column(i) for i in (0, 2))
        found = p.Patterns((TriplePattern(s, p.column(1), o),), (), (p.GraphPlace(name),))
        whole = self._relations.source(found, (Variable("s"), Variable("p"), Variable("o")), ())
        return self._relations.distinct(self._relations.project(whole, ()))


def within_graph(pattern: Group, places: Sequence[p.Place]) -> PatternElement:
    """A pattern in the one graph of the knowledge base that it is about."""
    if len(places) == 1 and isinstance(places[0], p.GraphPlace) and places[0].name is not None:
        return GraphPattern(places[0].name, pattern)
    return pattern


def question(element: PatternElement, shown: Sequence[Variable]) -> p.Asked:
    """A SELECT of these variables."""
    body = SparqlWriter().group(Group((element,)), "")
    columns = " ".join(f"?{v.value}" for v in shown) or _NOTHING
    return p.Asked(f"{base_clause(element)}SELECT {columns} WHERE {body}", len(shown))


def touches(pattern: Group) -> bool:
    """Whether it reads the graph around it."""
    return any(
        isinstance(e, TriplePattern | PathPattern)
        or (not isinstance(e, GraphPattern) and any(touches(inner) for inner in inner_groups(e)))
        for e in pattern.elements
    )


def expressions_of(elements: Iterable[PatternElement]) -> Iterator[Expression]:
    """The expressions of elements, not of nested ones."""
    for element in elements:
        match element:
            case Filter(condition):
                yield condition
            case Bind(expression):
                yield expression
            case SubSelect():
                yield from sub_select_expressions(element)


def _impure(elements: Iterable[PatternElement]) -> bool:
    return not all(map(is_pure, expressions_of(elements)))


def _names_go_astray(pattern: Group, ground: Ground) -> bool:
    """Whether GRAPH ?g encloses a part where the store takes ?g for a variable, though it is none (MINUS), a
    sub-query, where it forgets ?g, or over VALUES alone."""
    if isinstance(ground, EachGraph):
        return _hides(pattern)
    return any(
        isinstance(e, GraphPattern) and isinstance(e.name, Variable) and _hides(e.pattern)
        for e in nested_elements(pattern)
    )


def _hides(pattern: Group) -> bool:
    binding = [e for e in pattern.elements if not isinstance(e, Filter)]
    return (bool(binding) and all(isinstance(e, Values) for e in binding)) or any(
        isinstance(e, Minus | SubSelect) for e in nested_elements(pattern)
    )
