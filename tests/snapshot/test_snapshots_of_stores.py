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
from loaded import load
from moved_runs import moved
from pyoxigraph import BlankNode, NamedNode, Quad, Store
from saved_runs import crowded

sys.path.insert(0, str(Path(__file__).parent.parent / "engine"))
from engine_runs import STREAM, E, query
from test_shared_runs import KEYED, OTHER, TAGGED, WINDOWS, random_query

from oxiseq.engine.cea.plan import CeaPlan, DeterminisedSets, compile_ceql
from oxiseq.engine.events.encode import encode_events
from oxiseq.engine.kb import StoreKb
from oxiseq.engine.output.batch import MatchBatch
from oxiseq.engine.plan.query import QueryPlan, compile_query
from oxiseq.engine.run.query import QueryRun
from oxiseq.engine.run.run import Run
from oxiseq.engine.run.tuples import TupleRun
from oxiseq.engine.sharing.dispatching import Outcome
from oxiseq.engine.sharing.runs import Runs
from oxiseq.engine.terms.dictionary import TermDictionary

Given = list[tuple[object, ...]]
"""What a step did: the query's number, its matches, late events."""


class World:
    """A store's queries, dictionary and KB."""

    def __init__(self) -> None:
        self.terms, self.store = TermDictionary(), Store()
        self.kb = StoreKb(self.store)
        self.runs = Runs(self.terms)
        self.texts: list[str] = []

    def plan(self, text: str) -> QueryPlan | CeaPlan:
        return compile_ceql(load(text, "ceql")) if text.startswith("VOCAB") else compile_query(load(text), self.terms)

    def register(self, text: str, lateness: int, start: int | None) -> Given:
        plan = self.plan(text)
        run: Run
        if isinstance(plan.runner, DeterminisedSets):
            run = TupleRun(plan, self.terms, start, lateness)
        else:
            run = QueryRun(plan, self.terms, self.kb, start, lateness)
        self.runs.add(run, start)
        self.texts.append(text)
        return []

    def move(self, terms: TermDictionary) -> None:
        """Go on as another process would, over the same KB."""
        store = Store()
        store.extend(self.store)
        old, self.terms, self.store, self.kb = self.terms, terms, store, StoreKb(store)
        self.runs = moved(self.runs, [self.plan(text) for text in self.texts], old, terms, self.kb)

    def push(self, stream: str, events: list[tuple[int, str]]) -> Given:
        return self.given([*self.runs.push(stream, encode_events(events, self.terms)), *self.runs.catch_up()])

    def punctuate(self, stream: str, time: int) -> Given:
        return self.given([*self.runs.punctuate(stream, time), *self.runs.catch_up()])

    def settle(self, number: int) -> Given:
        return self.given(self.runs.settle(self.runs.registered[number]))

    def close(self, number: int) -> Given:
        run = self.runs.registered[number]
        found = self.given(self.runs.close(run))
        self.runs.remove(run)
        del self.texts[number]
        return found

    def change_kb(self, quad: Quad) -> Given:
        for run in self.runs.registered:
            self.runs.keep_answers(run)
        self.store.add(quad)
        self.kb.touch()
        return []

    def given(self, outcomes: list[Outcome]) -> Given:
        """Blank nodes of events by order of appearance in what a query finds, those of the KB by their labels."""
        number, found = {run: i for i, run in enumerate(self.runs.registered)}, []
        of_kb = {term: f"_:of the KB {label}" for label, term in self.terms.kb_blanks.items()}
        for outcome in sorted(outcomes, key=lambda outcome: number[outcome.run]):
            assert outcome.error is None
            matches: list[object] = []
            blanks: dict[int, str] = {}
            for batch in outcome.matches:
                if isinstance(batch, MatchBatch):
                    columns = [[self.text(i, of_kb, blanks) for i in row] for row in batch.values.tolist()]
                    matches += zip(batch.time.tolist(), columns, strict=True)
                    matches += [batch.ends.tolist(), batch.event_letter.tolist(), batch.event_time.tolist()]
                else:
                    matches += [batch.start.tolist(), batch.end.tolist(), batch.positions.tolist()]
            late = None if outcome.late is None else outcome.late.time.tolist()
            found.append((number[outcome.run], matches, late))
        return found

    def text(self, term: int, of_kb: dict[int, str], blanks: dict[int, str]) -> str:
        text = self.terms.text(term) if term else ""
        if not text.startswith("_:"):
            return text
        return of_kb.get(term) or blanks.setdefault(term, f"_:{len(blanks)}")

    @property
    def counters(self) -> list[tuple[object, ...]]:
        return [(run.events, run.late, run.matches, run.open, run.lateness) for run in self.runs.registered]


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
