"""Queries with GRAPH ?n written out, graph by graph."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import fields, is_dataclass, replace
from typing import Any

from pyoxigraph import BlankNode, NamedNode, Variable

from oxiseq.grammar.algebra import GraphPattern, Group, Union, Values
from oxiseq.grammar.rsp_algebra import RspQuery


def inside(value: Any, change: Callable[[Any], Any]) -> Any:
    """With other parts."""
    if isinstance(value, tuple):
        return tuple(map(change, value))
    if is_dataclass(value) and not isinstance(value, type):
        return replace(value, **{f.name: change(getattr(value, f.name)) for f in fields(value) if f.init})
    return value


def by_graph(query: RspQuery, graphs: Sequence[NamedNode]) -> RspQuery:
    """GRAPH ?n as a union over the graphs: Oxigraph takes ?n for a variable of MINUS and sub-queries inside, too, and
    leaves it unbound over VALUES alone."""

    def change(value: Any) -> Any:
        if isinstance(value, GraphPattern) and isinstance(value.name, Variable):
            if not graphs:
                return Values((value.name,), ())
            return Union(tuple(Group((branch(value.name, g, value.pattern),)) for g in graphs))
        return inside(value, change)

    def branch(name: Variable, graph: NamedNode, pattern: Group) -> GraphPattern:
        def own(value: Any) -> Any:
            return BlankNode(value.value + graph.value[-1]) if isinstance(value, BlankNode) else inside(value, own)

        return GraphPattern(graph, Group((own(change(pattern)), Values((name,), ((graph,),)))))

    found: RspQuery = change(query)
    return found
