"""Queries that stand over the store: how long an update takes to reach a subscriber.

    python -m benchmarks.standing [--triples 1000000] [--queries 1000] [--updates 1000]

A knowledge base of sensors in rooms; as many queries as are asked for, of twenty templates with constants of their own,
each with a subscriber. An update replaces five values, states or places of sensors: five triples go, five come. Timed
from before the update is called to each callback, and to the last one of the update.
"""

from __future__ import annotations

import argparse
import random
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
from pyoxigraph import DefaultGraph, Literal, NamedNode, Quad

import oxiseq
from benchmarks.machine import machine

E = "http://example.org/"
PREFIX = f"PREFIX : <{E}> "
_PER_SENSOR = 8
_WANTED = 25.0
"""Milliseconds that 99 of 100 updates may take."""

TEMPLATES = (
    "SELECT ?s ?v {{ ?s :in :room{r} ; :value ?v }}",
    "SELECT ?s ?v {{ ?s :in :room{r} ; :value ?v FILTER(?v > 90) }}",
    "SELECT ?s {{ ?s a :Type{t} ; :state :failed ; :in :room{r} }}",
    "SELECT (COUNT(*) AS ?n) {{ ?s :in :room{r} ; :state :ok }}",
    "SELECT (AVG(?v) AS ?mean) (MAX(?v) AS ?most) {{ ?s :in :room{r} ; :value ?v }}",
    "ASK {{ ?s :in :room{r} ; :state :failed }}",
    "CONSTRUCT {{ ?s :alarmIn :room{r} }} WHERE {{ ?s :in :room{r} ; :state :failed }}",
    "SELECT ?s ?o {{ ?s :in :room{r} OPTIONAL {{ ?s :owner ?o }} }}",
    "SELECT ?s {{ ?s :in :room{r} MINUS {{ ?s :state :ok }} }}",
    "SELECT ?s {{ ?s :in :room{r} FILTER NOT EXISTS {{ ?s :owner ?o }} }}",
    "SELECT ?s ?v {{ ?s :in :room{r} ; :value ?v }} ORDER BY DESC(?v) LIMIT 3",
    "SELECT ?s {{ {{ ?s :in :room{r} }} UNION {{ ?s :owner :owner{r} }} }}",
    "SELECT ?s ?v {{ ?s :owner :owner{r} ; :value ?v }}",
    "SELECT ?r ?s {{ :owner{r} :manages ?r . ?s :in ?r . ?s :state :failed }}",
    "SELECT ?s ?n {{ ?s :next ?n . ?n :in :room{r} ; :state :failed }}",
    "SELECT ?b {{ :room{r} :partOf+ ?b }}",
    "SELECT DISTINCT ?o {{ ?s :in :room{r} ; :owner ?o }}",
    "SELECT ?g ?n {{ GRAPH ?g {{ :owner{r} :note ?n }} }}",
    "SELECT ?s ?r {{ VALUES ?r {{ :room{r} :room{t} }} ?s :in ?r }}",
    "SELECT ?s (?v * 2 AS ?w) {{ ?s :in :room{r} ; :value ?v FILTER(?v * 2 > 150) }}",
)


def iri(name: str) -> NamedNode:
    """Of the example's vocabulary."""
    return NamedNode(E + name)


@dataclass
class World:
    """Sensors, and where each is now."""

    sensors: int
    rooms: int
    dice: random.Random = field(default_factory=lambda: random.Random(7))
    now: dict[tuple[int, str], Literal | NamedNode] = field(default_factory=dict)

    def quads(self) -> Iterator[Quad]:
        """The knowledge base at first."""
        dice, default = self.dice, DefaultGraph()
        kind = NamedNode("http://www.w3.org/1999/02/22-rdf-syntax-ns#type")
        for i in range(self.sensors):
            sensor = iri(f"sensor{i}")
            for name in ("value", "state", "in"):
                self.now[i, name] = self.drawn(name)
                yield Quad(sensor, iri(name), self.now[i, name], default)
            yield Quad(sensor, kind, iri(f"Type{dice.randrange(20)}"), default)
            yield Quad(sensor, iri("owner"), iri(f"owner{dice.randrange(self.rooms)}"), default)
            yield Quad(sensor, iri("next"), iri(f"sensor{dice.randrange(self.sensors)}"), default)
            yield Quad(sensor, iri("label"), Literal(f"sensor {i}"), default)
            yield Quad(sensor, iri("unit"), iri(f"unit{i % 10}"), default)
        for room in range(self.rooms):
            yield Quad(iri(f"room{room}"), iri("partOf"), iri(f"floor{room // 20}"), default)
            yield Quad(iri(f"owner{room}"), iri("manages"), iri(f"room{(room * 7) % self.rooms}"), default)
            yield Quad(iri(f"owner{room}"), iri("note"), Literal(f"note {room}"), iri(f"graph{room % 10}"))
        for floor in range(self.rooms // 20 + 1):
            yield Quad(iri(f"floor{floor}"), iri("partOf"), iri(f"house{floor // 5}"), default)

    def drawn(self, name: str) -> Literal | NamedNode:
        """A value of a property."""
        if name == "value":
            return Literal(self.dice.randrange(100))
        if name == "state":
            return iri("failed" if self.dice.random() < 0.05 else "ok")
        return iri(f"room{self.dice.randrange(self.rooms)}")

    def update(self) -> str:
        """Five triples that go, five that come."""
        gone, come = [], []
        while len(gone) < 5:
            i = self.dice.randrange(self.sensors)
            name = self.dice.choice(("value", "value", "value", "state", "in"))
            after = self.drawn(name)
            if after != self.now[i, name]:
                gone.append(f"{iri(f'sensor{i}')} {iri(name)} {self.now[i, name]} .")
                come.append(f"{iri(f'sensor{i}')} {iri(name)} {after} .")
                self.now[i, name] = after
        return f"DELETE DATA {{ {' '.join(gone)} }} ; INSERT DATA {{ {' '.join(come)} }}"


@dataclass
class Timed:
    """Milliseconds."""

    made: list[float] = field(default_factory=list)
    """Until the update's call returned."""
    told: list[float] = field(default_factory=list)
    """Until each callback."""
    last: list[float] = field(default_factory=list)
    """Until the last callback of an update."""


def registered(store: oxiseq.Store, count: int, rooms: int) -> list[oxiseq.StandingQuery]:
    """The queries, whose constants differ."""
    texts = [
        PREFIX + TEMPLATES[i % len(TEMPLATES)].format(r=(i * 13 // len(TEMPLATES)) % rooms, t=i % 20)
        for i in range(count)
    ]
    return [store.register(text, language="sparql") for text in texts]


def timed(store: oxiseq.Store, queries: Sequence[oxiseq.StandingQuery], world: World, updates: int) -> Timed:
    """Each update for itself: the next one is made when all has been told, a moment later."""
    found, begun = Timed(), 0.0
    arrived: list[float] = []
    lock = threading.Lock()

    def told(_: oxiseq.StoreChange) -> None:
        with lock:
            arrived.append((time.perf_counter() - begun) * 1000)

    for query in queries:
        query.on_change(told)
    for number in range(updates + 20):
        text = world.update()
        arrived.clear()
        begun = time.perf_counter()
        store.update(text)
        made = (time.perf_counter() - begun) * 1000
        queries[0].catch_up()
        time.sleep(0.002)  # callbacks are another thread's
        if number >= 20:  # the first ones are to warm up
            found.made.append(made)
            found.told += arrived
            found.last += [max(arrived)] if arrived else []
    return found


def main() -> None:
    """The table."""
    options = argparse.ArgumentParser(prog="python -m benchmarks.standing")
    for name, usual in (("triples", 1_000_000), ("queries", 1_000), ("updates", 1_000)):
        options.add_argument(f"--{name}", type=int, default=usual)
    chosen = options.parse_args()
    sensors = chosen.triples // _PER_SENSOR
    world = World(sensors, max(sensors // 100, 20))
    store = oxiseq.Store()
    store.bulk_extend(world.quads())
    begun = time.perf_counter()
    queries = registered(store, chosen.queries, world.rooms)
    seconds = time.perf_counter() - begun
    found = timed(store, queries, world, chosen.updates)
    states = sorted({query.state for query in queries})
    print(f"{machine()}\n")
    print(
        f"{len(store):,} triples, {len(queries):,} queries of {len(TEMPLATES)} templates, {', '.join(states)}, "
        f"registered in {seconds:.1f} s; "
        f"{chosen.updates:,} updates of ten triples, {len(found.told):,} changes told\n"
    )
    print("| milliseconds from before the update | p50 | p90 | p99 | most |\n|---|---:|---:|---:|---:|")
    rows = {"to a subscriber": found.told, "to the last subscriber": found.last, "the update itself": found.made}
    for name, taken in rows.items():
        points = [*np.percentile(taken, [50, 90, 99]), max(taken)]
        print(f"| {name} | " + " | ".join(f"{point:.2f}" for point in points) + " |")
    p99 = float(np.percentile(found.told, 99))
    print(f"\n{'within' if p99 <= _WANTED else 'not within'} {_WANTED:g} ms at the 99th percentile")


if __name__ == "__main__":
    main()
