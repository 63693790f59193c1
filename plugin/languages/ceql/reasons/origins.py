"""What complex events were made of, shown by the variables that users have named."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from oxiseq.languages.ceql.reasons.events import Events
from oxiseq.languages.ceql.reasons.reached import Ran
from oxiseq.languages.reasons.provenance import Provenance, Source
from oxiseq.matches.match import Positions


def held_by_name(match: Positions, events: Events) -> Mapping[str, tuple[int, ...]]:
    """Variable → positions; a type's name is left out where names given by AS hold all that it holds."""
    held = match.by
    types = {letter.type for letter in events.plan.runner.positions.letters}
    named = {p for name, positions in held.items() if name not in types for p in positions}
    return {name: of for name, of in held.items() if name not in types or not set(of) <= named}


def times_by_name(match: Positions, events: Events) -> dict[str, tuple[int, ...]]:
    """The same with times (µs)."""
    return {
        name: tuple(int(events.time[p]) for p in positions) for name, positions in held_by_name(match, events).items()
    }


def provenances(found: Ran, most: int, events: Events) -> Iterator[Provenance]:
    """Of the first complex events: the events of D, each under all variables that hold it."""
    for index in range(min(most, len(found.batch))):
        match = found.positions(index)
        held = held_by_name(match, events)
        sources = tuple(
            Source(
                ", ".join(name for name, of in held.items() if p in of),
                events.plan.streams[events.stream[p]],
                int(events.time[p]),
                events.graph(p),
                p,
            )
            for p in match.all
        )
        yield Provenance(int(found.batch.time[index]), {}, sources, ())
