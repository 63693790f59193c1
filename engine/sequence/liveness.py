"""Live keys: for each edge, the values of its runs that are still needed.

In the flow: states → **live keys** → tables. For its future a run needs only where it waits and the
values that something later compares with; runs that agree on both are one group (engine.md, section 2).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from oxiseq.engine.sequence.states import (
    LAST_NEGATED,
    RUN_START,
    Check,
    Edge,
    Either,
    Folded,
    Kept,
    Source,
    StateGraph,
    Value,
)


def live_keys(graph: StateGraph, sliding: bool) -> tuple[tuple[Value, ...], ...]:
    """Per edge the values of its key, in a fixed order: a backward analysis to a fixpoint."""
    leaving = edges_by_source(graph)
    need: list[set[Value]] = [set(_reads(graph, leaving, edge, sliding)) for edge in graph.edges]
    for index, edge in enumerate(graph.edges):
        following = edge.then if edge.limit is not None else next((move.to for move in edge.moves), None)
        if following is not None:  # age segments, or steps of a group, have one key; what follows comes after its edge
            need[index] |= need[following]
            need[following] = need[index]
    changed = True
    while changed:
        changed = False
        for index, edge in enumerate(graph.edges):
            before = len(need[index])
            if edge.then is not None:
                need[index] |= need[edge.then]
            for arm in edge.arms:
                fill = dict(arm.fill)
                for following in leaving.get(arm.target, ()):
                    need[index].update(v for wanted in need[following] for v in kept_values(fill[wanted]))
            changed = changed or len(need[index]) > before
    return tuple(tuple(sorted(values, key=_order)) for values in need)


def edges_by_source(graph: StateGraph) -> Mapping[int, list[int]]:
    """State (or START) → the edges that leave it, of a gap's segments the first."""
    leaving: dict[int, list[int]] = {}
    for index, edge in enumerate(graph.edges):
        if not edge.follows:
            leaving.setdefault(edge.source, []).append(index)
    return leaving


def ends_here(graph: StateGraph, leaving: Mapping[int, list[int]], state: int) -> bool:
    """Whether a run in `state` is a match, or becomes one when its window closes."""
    edges = [graph.edges[e] for e in leaving.get(state, ())]
    return graph.states[state].final or any(edge.waits or edge.counts is not None for edge in edges)


def kept_values(source: Source) -> Iterator[Value]:
    """What `source` takes from the run."""
    if isinstance(source, Kept | Either | Folded) and source.value is not None:
        yield source.value


def _reads(graph: StateGraph, leaving: Mapping[int, list[int]], edge: Edge, sliding: bool) -> Iterator[Value]:
    for arm in edge.arms:
        yield from _check_reads(arm.check)
        if graph.states[arm.target].negated and ends_here(graph, leaving, arm.target):
            yield from kept_values(dict(arm.fill)[LAST_NEGATED])
    for check in (*(guard.check for guard in edge.guards), *(move.check for move in edge.moves)):
        yield from _check_reads(check)
    yield from edge.counts or ()
    yield from (value for value, _ in edge.lasting)
    if edge.waits and sliding:
        yield RUN_START  # a group must have one closing time


def _check_reads(check: Check) -> Iterator[Value]:
    for _, value in (*check.equal, *check.compatible):
        yield value
    for condition in check.filters:
        for _, source in condition.sources:
            yield from kept_values(source)


def _order(value: Value) -> tuple[str, int, str]:
    return value.kind.value, value.level, value.variable.value if value.variable else ""
