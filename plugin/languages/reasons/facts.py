"""The facts of the knowledge base that an answer rests on."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, TypeAlias

from pyoxigraph import BlankNode, DefaultGraph, Literal, NamedNode, Quad, Variable

from oxiseq.engine.kb import KnowledgeBase
from oxiseq.engine.terms.texts import Term
from oxiseq.grammar.algebra import Filter, GraphPattern, Group, Minus, SubSelect, TriplePattern, Values
from oxiseq.grammar.parts import changed, parts
from oxiseq.grammar.render import render_group
from oxiseq.grammar.scope import visible_variables
from oxiseq.languages.reasons.where.parts import asked_alone

Graph: TypeAlias = NamedNode | Variable | DefaultGraph
HIDDEN: Final = (Minus, SubSelect, Filter)
"""What an answer does not rest on, or whose variables are its own."""


def facts_of(where: Group, values: Mapping[str, Term | None], kb: KnowledgeBase, *, default: bool) -> Iterator[Quad]:
    """The quads that the triple patterns of a WHERE match with these values (None: unbound): so of OPTIONAL and UNION
    the part that is there is found; of property paths nothing. `default`: patterns outside GRAPH read the knowledge
    base, too. Raises KbError."""
    joint: dict[tuple[object, ...], tuple[Graph, list[TriplePattern]]] = {}
    for holder, element in asked_alone(where, HIDDEN):
        graph = (
            DefaultGraph() if holder is None and default else holder.name if isinstance(holder, GraphPattern) else None
        )
        if graph is None or not isinstance(element, TriplePattern):
            continue
        variables = {v.value for v in visible_variables(element)}
        if all(values.get(name, graph) is not None for name in variables):
            loose = not variables <= values.keys() or any(parts(element, BlankNode))  # such patterns hold together
            joint.setdefault((holder, None if loose else element), (graph, []))[1].append(element)
    for graph, patterns in joint.values():
        yield from _quads(tuple(patterns), values, kb, graph)


def _quads(
    patterns: tuple[TriplePattern, ...], values: Mapping[str, Term | None], kb: KnowledgeBase, graph: Graph
) -> Iterator[Quad]:
    asked = changed(patterns, as_variable("blank"))
    group = Group(asked)
    given = {Variable(v): t for v, t in values.items() if isinstance(t, NamedNode | Literal)}
    before = (Values(tuple(given), (tuple(given.values()),)),) if given else ()
    element = group if isinstance(graph, DefaultGraph) else GraphPattern(graph, group)
    for row in kb.solutions(f"SELECT * WHERE {render_group(Group((*before, element)))}"):
        name: Any = row[graph] if isinstance(graph, Variable) else graph
        for pattern in asked:
            s, p, o = (
                row[t] if isinstance(t, Variable) else t for t in (pattern.subject, pattern.predicate, pattern.object)
            )
            yield Quad(s, p, o, name)  # type: ignore[arg-type]  # terms, each at its place


def as_variable(name: str) -> Callable[[Any], Any]:
    """A change of terms by which a pattern's blank node becomes a variable: the answer has what it stands for."""
    names: dict[BlankNode, Variable] = {}

    def change(node: Any) -> Any:
        if not isinstance(node, BlankNode):
            return node
        return names.setdefault(node, Variable(f"{name}_{len(names)}"))

    return change
