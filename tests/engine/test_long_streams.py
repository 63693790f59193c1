"""Streams long enough to fill, empty and reorder the indexes, against the reference evaluator."""

from __future__ import annotations

from collections import Counter
from typing import TypeAlias

import pytest
from engine_cases import CASES
from engine_runs import STREAM, Driven, E, Reading, random_readings
from loaded import load
from pyoxigraph import Literal, NamedNode, Store, Triple
from reference.evaluate import evaluate

from oxiseq.engine.sequence.memory import Capacities

Found: TypeAlias = Counter[tuple[int, tuple[tuple[str, int], ...]]]
"""End time and (GPM, time) of the events, in order of time."""
_INTEGER = NamedNode("http://www.w3.org/2001/XMLSchema#integer")


def triples(reading: Reading) -> list[Triple]:
    thing = NamedNode(f"{E}{reading.kind}{reading.time}-{reading.key}-{reading.value}")
    objects: dict[str, NamedNode | Literal] = {
        "kind": NamedNode(E + reading.kind),
        "k": Literal(str(reading.key), datatype=_INTEGER),
        "v": Literal(str(reading.value), datatype=_INTEGER),
    }
    return [Triple(thing, NamedNode(E + name), each) for name, each in objects.items()]


def by_reference(text: str, readings: list[Reading]) -> Found:
    streams = {STREAM: [(r.time, triples(r)) for r in readings]}
    rows = evaluate(load(text), streams, Store(), lateness=0).rows
    return Counter(
        (row.end, tuple(sorted(((name, at) for name, events in row.events.items() for _, at in events), key=_by_time)))
        for row in rows
    )


def _by_time(event: tuple[str, int]) -> int:
    return event[1]


@pytest.mark.parametrize("name", CASES)
def test_long_streams_agree_with_the_reference(name: str) -> None:
    text = CASES[name][1]
    for seed in range(3):
        readings = random_readings(seed, 200, "abcn")
        found = Counter((time, events) for time, _, events in Driven(text, Capacities.smallest()).answer(readings))
        assert found == by_reference(text, readings)
