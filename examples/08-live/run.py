"""Live queries: one query's matches are another query's events.

A store is given its knowledge base and two continuous queries; meter readings are pushed one by one, as a server
would do. `surges` writes its matches into a stream that `streets` reads. One house moves into the knowledge base
while the stream runs: from then on it takes part.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyoxigraph as ox

import oxiseq

HERE = Path(__file__).parent
HOME = "http://example.org/home#"
STREETS = {"h1": "Mill Lane", "h2": "Mill Lane", "h3": "High Street", "h4": "High Street"}
MOVES = {14: ("h5", "Mill Lane")}
"""Before the reading of this minute, the store learns where a house is."""
EIGHT = datetime(2026, 1, 5, 8, 0, tzinfo=UTC)

# (minute after eight, house, watts); surges are at 2 (h1), 4 (h2), 5 (h3), 14 (h5), 16 (h1), 30 (h4)
READINGS = [
    (0, "h1", 900),
    (1, "h2", 1100),
    (2, "h1", 4100),
    (3, "h3", 1200),
    (4, "h2", 3900),
    (5, "h3", 5000),
    (7, "h5", 800),
    (8, "h1", 1000),
    (14, "h5", 3800),
    (16, "h1", 3500),
    (20, "h4", 2000),
    (25, "h4", 2500),
    (30, "h4", 4200),
]


def home(name: str) -> ox.NamedNode:
    """A term of the example's vocabulary."""
    return ox.NamedNode(HOME + name)


def settle_in(store: oxiseq.Store, house: str, street: str) -> None:
    """Note in the knowledge base where a house is."""
    store.add(ox.Quad(home(house), home("street"), ox.Literal(street), home("streets")))


def push(store: oxiseq.Store) -> Iterator[datetime]:
    """Push the readings one by one; yields the time after each."""
    meters = store.stream("http://example.org/meters")
    for minute, house, watts in READINGS:
        if minute in MOVES:
            settle_in(store, *MOVES[minute])
        time = EIGHT + timedelta(minutes=minute)
        meters.push([ox.Triple(home(house), home("watts"), ox.Literal(watts))], time)
        yield time


def main() -> tuple[list[oxiseq.Match], list[oxiseq.Match]]:
    """Run both queries over the readings; the surges and the pairs of a street."""
    store = oxiseq.Store()
    for house, street in STREETS.items():
        settle_in(store, house, street)
    surges = store.register((HERE / "surges.spaseq").read_text(encoding="utf-8"))
    streets = store.register((HERE / "streets.spaseq").read_text(encoding="utf-8"))
    pairs: list[oxiseq.Match] = []
    streets.subscribe(pairs.append)
    for _ in push(store):
        pass  # a server would wait for the next reading here
    surges.close()
    streets.close()
    return list(surges.poll()), pairs


if __name__ == "__main__":
    found, pairs = main()
    for match in found:
        print(f"{match.at:%H:%M} surge:", *match.graph[1:], sep="\n    ")
    for match in pairs:
        print(f"{match.at:%H:%M} {match['street'].value}: {match['first'].value} and {match['second'].value}")
