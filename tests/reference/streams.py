"""What a query sees of its streams: watermarks, late events, merged graphs, instants (semantics.md 1, 2.7)."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from pyoxigraph import BlankNode, NamedNode, Triple

from reference.values import normal_triple

Arrival: TypeAlias = tuple[int, Iterable[Triple] | None]
"""A time and the triples of an event; without triples a punctuation: no earlier event comes after it."""
Moment: TypeAlias = float
"""A time in microseconds; -inf and inf stand for never."""


@dataclass(frozen=True)
class Event:
    """One graph of one stream at one time; literals in normal form, blank nodes its own."""

    stream: str
    time: int
    graph: frozenset[Triple]


@dataclass(frozen=True)
class Seen:
    """The events in order of time, and how many came late.

    `watermark`: the least of the streams' watermarks; instants before it are complete. `reached`: the greatest time
    of any stream, by an event or a punctuation.
    """

    events: tuple[Event, ...]
    late: int
    watermark: Moment
    reached: Moment


def observe(
    declared: Iterable[str],
    arrivals: Mapping[str, Sequence[Arrival]],
    lateness: int,
    start: int | None,
) -> Seen:
    """Each declared stream by itself: events older than its watermark (the largest time seen minus
    `lateness`, or a later punctuation) are late, the others are put in order; graphs of one time are merged."""
    late, events = 0, []
    watermarks: list[Moment] = []
    reached = -math.inf
    for stream in dict.fromkeys(declared):
        graphs: dict[int, set[Triple]] = {}
        watermark = -math.inf
        for number, (time, triples) in enumerate(arrivals.get(stream, ())):
            reached = max(reached, time)
            if triples is None:
                watermark = max(watermark, time)
            elif time < watermark:
                late += 1
            else:
                watermark = max(watermark, time - lateness)
                graphs.setdefault(time, set()).update(_own(t, f"{len(events)}x{number}") for t in triples)
        watermarks.append(watermark)
        events += [Event(stream, time, frozenset(graph)) for time, graph in graphs.items()]
    kept = [e for e in events if start is None or e.time >= start]
    return Seen(tuple(sorted(kept, key=lambda e: e.time)), late, min(watermarks, default=-math.inf), reached)


def _own(triple: Triple, scope: str) -> Triple:
    """The triple in normal form, its blank nodes renamed apart from all other graphs'."""
    return normal_triple(Triple(_renamed(triple.subject, scope), triple.predicate, _renamed(triple.object, scope)))


def _renamed(term: object, scope: str) -> object:
    return BlankNode(f"e{scope}x{term.value}") if isinstance(term, BlankNode) else term


def instants(events: Iterable[Event]) -> list[int]:
    """The times at which any of the query's streams has an event, in order."""
    return sorted({e.time for e in events})


def named(iri: NamedNode) -> str:
    return iri.value
