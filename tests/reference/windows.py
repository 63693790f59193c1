"""Conjunctive patterns over windows (semantics.md, section 6), from scratch at every instant.

An instant is all events of one time, or one event number for windows that count. The window holds the events with
τ_b < τ' ≤ τ, τ_b = ⌈τ/x⌉·x − ω, and its graph is the set of their triples. A match is a full mapping, blank nodes of
the pattern included.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

from pyoxigraph import BlankNode, Variable

from oxiseq.grammar.algebra import Expression, Term, TriplePattern
from reference.values import holds, normal_term

Key = Variable | BlankNode
Match = frozenset[tuple[Key, Term]]
Graph = frozenset[tuple[Term, Term, Term]]
"""Terms in normal form; blank nodes of different events have different names."""


@dataclass(frozen=True)
class At:
    """One evaluation: its time, what is new since the one before, what has ended, all."""

    time: int
    new: frozenset[Match]
    ended: frozenset[Match]
    all: frozenset[Match]


@dataclass(frozen=True)
class Instant:
    """Events that are merged, by clock, and evaluated at `time`: what has a clock up to `low` is out by then."""

    time: int
    low: int | None
    events: tuple[tuple[int, Graph], ...]


def sliding(events: Iterable[tuple[int, Graph]], range_: int | None, slide: int, counted: bool) -> Iterator[Instant]:
    """The instants of events, which come in order of time."""
    for number, (time, together) in enumerate(groupby(events, key=lambda event: event[0]), start=1):
        clock = number if counted else time
        low = None if range_ is None else -(-clock // slide) * slide - range_
        yield Instant(time, low, tuple((clock, graph) for _, graph in together))


def evaluate(
    patterns: Sequence[TriplePattern], filters: Sequence[Expression], instants: Iterable[Instant]
) -> Iterator[At]:
    """The evaluation at each instant."""
    before: frozenset[Match] = frozenset()
    seen: list[tuple[int, Graph]] = []
    for instant in instants:
        seen += instant.events
        window = Graph().union(*(graph for clock, graph in seen if instant.low is None or clock > instant.low))
        found = matches(patterns, filters, window)
        yield At(instant.time, found - before, before - found, found)
        before = found


def matches(patterns: Sequence[TriplePattern], filters: Sequence[Expression], graph: Graph) -> frozenset[Match]:
    """All mappings of the patterns into the graph that pass the filters."""
    found: list[dict[Key, Term]] = [{}]
    for pattern in patterns:
        found = [
            {**bound, **more}
            for bound in found
            for triple in graph
            if (more := _agrees(pattern, triple, bound)) is not None
        ]
    return frozenset(frozenset(m.items()) for m in found if all(_holds(f, m) for f in filters))


def _holds(condition: Expression, mapping: Mapping[Key, Term]) -> bool:
    return holds(condition, {v: t for v, t in mapping.items() if isinstance(v, Variable)})


def _agrees(
    pattern: TriplePattern, triple: tuple[Term, Term, Term], bound: Mapping[Key, Term]
) -> dict[Key, Term] | None:
    """What the pattern binds more on this triple; None if it does not agree."""
    more: dict[Key, Term] = {}
    for asked, given in zip((pattern.subject, pattern.predicate, pattern.object), triple, strict=True):
        if isinstance(asked, Variable | BlankNode):
            if bound.get(asked, more.get(asked, given)) != given:
                return None
            more[asked] = given
        elif normal_term(asked) != given:
            return None
    return more
