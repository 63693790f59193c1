"""All queries of a store, of both languages, saved and restored together, against a store that goes on.

Queries come and go at random moments, also in the one restored; events are late and simultaneous; one query settles by
itself; the KB, which holds blank nodes, changes while events wait. After each step both stores have given the same.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyoxigraph import BlankNode, NamedNode, Quad
from saved_runs import crowded
from store_worlds import Given, World

sys.path.insert(0, str(Path(__file__).parent.parent / "engine"))
from engine_runs import STREAM, E, query
from test_shared_runs import KEYED, OTHER, TAGGED, WINDOWS, random_query

CEQL = [
    "SELECT * FROM S1 WHERE A; B",
    "SELECT * FROM S1, S2 WHERE A AS x; (B)+ FILTER x[v > 5]",
    "SELECT * FROM S1 WHERE A; B WITHIN 4 EVENTS PARTITION BY [k]",
    "SELECT NEXT * FROM S2 WHERE A; A; B",
    "SELECT * FROM S1 WHERE A; B WITHIN 5 [v]",
    "SELECT * FROM S1 WHERE A OR (B; B) CONSUME BY ANY",
]


def any_query(dice: random.Random) -> str:
    kind = dice.randrange(10)
    if kind < 3:
        names = {"FROM S1, S2": "FROM s1, s2", "FROM S1": "FROM s1", "FROM S2": "FROM s2"}
        text = dice.choice(CEQL)
        for old, new in names.items():
            text = text.replace(old, new)
        return f"VOCAB <{E}> {text}"
    if kind < 6:
        window = dice.choice(WINDOWS)
        same = "FILTER(sameTerm(?tag, PREV(?tag)))"
        return dice.choice(
            [
                query("A; B", window, A=f"{KEYED} {TAGGED}", B=KEYED),
                query("B; A+", window, A=f"{KEYED} {TAGGED} {same}", B=KEYED),
                query("A: B", window, "SELECT DISTINCT ?tag", A=f"{KEYED} {TAGGED}"),
                query("A: B", window, "SELECT DISTINCT ?tag", A="KEYED GRAPH ?g { ?k :tag ?tag }"),
                query("A: B", window, A="KEYED OPTIONAL { GRAPH :tags { ?k :tag ?tag } }", B="?b :v ?k"),
            ]
        )
    return random_query(dice)


class Drill:
    """The same random steps in two stores, of which one moves."""

    def __init__(self, seed: int) -> None:
        self.dice = random.Random(seed)
        self.worlds = World(), World()
        self.now = self.tagged = 0

    def both(self, step: Callable[[World], Given]) -> None:
        still, moving = (step(world) for world in self.worlds)
        assert moving == still
        assert all(error is None for *_, error in still)
        assert self.worlds[1].counters == self.worlds[0].counters

    def event(self) -> tuple[int, str]:
        self.now += self.dice.choice([0, 1, 1, 1, 2, 7])
        time = self.now - self.dice.choice([0, 0, 0, 0, 0, 1, 3])
        kind, thing = self.dice.choice("abn"), self.dice.choice(["_:e", f"<{E}thing{self.dice.randint(1, 3)}>"])
        integer = "<http://www.w3.org/2001/XMLSchema#integer>"
        return time, (
            f"{thing} <http://www.w3.org/1999/02/22-rdf-syntax-ns#type> <{E}{kind.upper()}> .\n"
            f"{thing} <{E}kind> <{E}{kind}> .\n"
            f'{thing} <{E}k> "{self.dice.randint(1, 3)}"^^{integer} .\n'
            f'{thing} <{E}v> "{self.dice.randint(1, 20)}"^^{integer} .\n'
        )

    def tag(self) -> Quad:
        self.tagged += 1
        subject = NamedNode(f"{E}thing{self.dice.randint(1, 3)}")
        tag = self.dice.choice([BlankNode(f"tag{self.dice.randint(1, 2)}"), NamedNode(f"{E}tag{self.tagged}")])
        return Quad(subject, NamedNode(E + "tag"), tag, NamedNode(E + "tags"))

    def step(self) -> None:
        dice, count = self.dice, len(self.worlds[0].texts)
        kind = dice.choice(["register", "move", "punctuate", "settle", "close", "kb", *["push"] * 6])
        if kind == "register" or count < 2:
            text, lateness = any_query(dice), dice.choice([0, 0, 4])
            start = dice.choice([None, None, None, self.now + 3])
            self.both(lambda world: world.register(text, lateness, start))
        elif kind == "push":
            stream = dice.choice([STREAM, STREAM, OTHER])
            events = []
            for _ in range(dice.choice([1, 1, 2, 5])):
                events.append(self.event())
            self.both(lambda world: world.push(stream, events))
            for world in self.worlds:
                world.terms.collect()
        elif kind == "punctuate":
            stream, time = dice.choice([STREAM, OTHER]), self.now + dice.randint(-2, 3)
            self.both(lambda world: world.punctuate(stream, time))
        elif kind == "move":
            self.worlds[1].move(crowded(dice))
        elif kind == "kb":
            quad = self.tag()
            self.both(lambda world: world.change_kb(quad))
        else:
            number = dice.randrange(count)
            self.both(lambda world: world.settle(number) if kind == "settle" else world.close(number))


@given(st.integers(0, 2**62))
@pytest.mark.slow
def test_a_store_goes_on(seed: int) -> None:
    drill = Drill(seed)
    for _ in range(40):
        drill.step()
    while drill.worlds[0].texts:
        drill.both(lambda world: world.close(0))
