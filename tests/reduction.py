"""Making a failing situation small: lines are taken away as long as it still fails."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from strategies import Situation

Fails = Callable[[Situation], bool]


def reduce(found: Situation, fails: Fails) -> Situation:
    """A situation that still fails, with fewer events, triples and parts of the query."""
    found = _if_fails(found, replace(found, pauses=frozenset()), fails)
    while True:
        smaller = _fewer_lines(_fewer_triples(_fewer_events(found, fails), fails), fails)
        if smaller == found:
            return found
        found = smaller


def _if_fails(old: Situation, new: Situation, fails: Fails) -> Situation:
    return new if fails(new) else old


def _fewer_events(found: Situation, fails: Fails) -> Situation:
    for iri in found.streams:
        for index in reversed(range(len(found.streams[iri]))):
            events = found.streams[iri]
            found = _if_fails(found, with_events(found, iri, events[:index] + events[index + 1 :]), fails)
    return found


def _fewer_triples(found: Situation, fails: Fails) -> Situation:
    for iri in found.streams:
        for index in range(len(found.streams[iri])):
            for line in found.streams[iri][index][1].splitlines(keepends=True):
                events = list(found.streams[iri])
                time, text = events[index]
                events[index] = (time, text.replace(line, "", 1))
                found = _if_fails(found, with_events(found, iri, events), fails)
    for line in found.kb.splitlines(keepends=True):
        found = _if_fails(found, replace(found, kb=found.kb.replace(line, "", 1)), fails)
    return found


def _fewer_lines(found: Situation, fails: Fails) -> Situation:
    for index in reversed(range(found.text.count("\n"))):
        lines = found.text.split("\n")
        found = _if_fails(found, replace(found, text="\n".join(lines[:index] + lines[index + 1 :])), fails)
        if lines[index].startswith(("SELECT", "CONSTRUCT", "ASK")) and lines[index] != "SELECT *":
            lines[index] = "SELECT *"
            found = _if_fails(found, replace(found, text="\n".join(lines)), fails)
    return found


def with_events(found: Situation, iri: str, events: list[tuple[int, str]]) -> Situation:
    """The situation with other events on one stream."""
    streams = {**found.streams, iri: events}
    left = {i: len(e) for i, e in streams.items()}
    order = []
    for turn in (*found.order, *streams):
        if left[turn]:
            left[turn] -= 1
            order.append(turn)
    for turn, count in left.items():
        order += [turn] * count
    return replace(found, streams=streams, order=tuple(order), pauses=frozenset())
