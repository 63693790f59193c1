"""What a query sees of its streams: watermarks, late events, merged graphs, instants (semantics.md 1, 2.7)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from pyoxigraph import BlankNode, NamedNode, Triple

from reference.values import normal_triple


@dataclass(frozen=True)
class Event:
    """One graph of one stream at one time; literals in normal form, blank nodes its own."""

    stream: str
    time: int
    graph: frozenset[Triple]


@dataclass(frozen=True)
class Seen:
    """The events in order of time, and how many came late."""

    events: tuple[Event, ...]
    late: int


def observe(
    declared: Iterable[str],
    arrivals: Mapping[str, Sequence[tuple[int, Iterable[Triple]]]],
    lateness: int,
    start: int | None,
) -> Seen:
    """Each declared stream by itself: events older than its watermark (the largest time seen minus
    `lateness`) are late, the others are put in order; graphs of one time are merged."""
    late, events = 0, []
    for stream in dict.fromkeys(declared):
        graphs: dict[int, set[Triple]] = {}
        largest: int | None = None
        for number, (time, triples) in enumerate(arrivals.get(stream, ())):
            if largest is not None and time < largest - lateness:
                late += 1
                continue
            largest = time if largest is None else max(largest, time)
            graphs.setdefault(time, set()).update(_own(t, f"{len(events)}x{number}") for t in triples)
        events += [Event(stream, time, frozenset(graph)) for time, graph in graphs.items()]
    kept = [e for e in events if start is None or e.time >= start]
    return Seen(tuple(sorted(kept, key=lambda e: e.time)), late)


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
