"""Situations driven with and without a run that is saved and restored between events."""

from __future__ import annotations

import random
import sys
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from loaded import load
from pyoxigraph import Literal, NamedNode, RdfFormat, Store, parse
from strategies import Situation

sys.path.insert(0, str(Path(__file__).parent.parent / "engine"))
from engine_runs import Row

from oxiseq.engine.events.encode import encode_events
from oxiseq.engine.kb import StoreKb
from oxiseq.engine.output.batch import MatchBatch
from oxiseq.engine.plan.query import QueryPlan, compile_query
from oxiseq.engine.run.query import QueryRun
from oxiseq.engine.sequence.memory import Capacities
from oxiseq.engine.snapshot import saving
from oxiseq.engine.snapshot.saving import restore, save
from oxiseq.engine.terms.dictionary import TermDictionary

Counters = tuple[int, int, int, int, bool]


def knowledge(text: str) -> StoreKb:
    """A KB as another process would open it: its blank nodes have the same labels, which `load` would change."""
    store = Store()
    store.extend(parse(text.encode(), format=RdfFormat.N_QUADS))
    return StoreKb(store)


def crowded(dice: random.Random) -> TermDictionary:
    """A dictionary that holds terms already, blank nodes among them, and has free ids."""
    terms = TermDictionary()
    for i in range(dice.randint(0, 30)):
        kept = terms.constant if dice.random() < 0.5 else terms.intern
        kept(dice.choice([NamedNode(f"http://e/other{i}"), Literal(f"other {i}")]))
        if dice.random() < 0.3:
            terms.blank()
    terms.collect()
    return terms


@dataclass
class Life:
    """A query at work, which may move on into another dictionary at any time."""

    text: str
    kb_text: str = ""
    lateness: int = 0
    start: int | None = None
    capacities: Capacities | None = None
    found: list[Row] = field(default_factory=list)
    late: list[int] = field(default_factory=list)
    bytes: int = 0
    moves: int = 0

    def __post_init__(self) -> None:
        self.terms = TermDictionary()
        self.plan: QueryPlan = compile_query(load(self.text), self.terms)
        self.kb = knowledge(self.kb_text)
        self.run = QueryRun(self.plan, self.terms, self.kb, self.start, self.lateness, self.capacities)

    def move(self, terms: TermDictionary) -> None:
        """Go on as another process would."""
        data = save(self.run, self.terms)
        assert save(self.run, self.terms) == data
        self.bytes += len(data)
        self.moves += 1
        self.terms = terms
        self.plan = compile_query(load(self.text), terms)
        self.kb = knowledge(self.kb_text)
        with pytest.MonkeyPatch.context() as patch:
            if self.capacities is not None:
                patch.setattr(saving, "_run", lambda *of: QueryRun(*of, capacities=self.capacities))
            self.run = restore(data, self.plan, terms, self.kb)

    def push(self, iri: str, event: tuple[int, str]) -> None:
        if iri in self.plan.streams:
            late = self.run.push(iri, encode_events([event], self.terms))
            self.late += [] if late is None else late.time.tolist()

    def advance(self) -> None:
        """Take what is complete; afterwards free all terms that nobody holds."""
        self.found += [row for batch in self.run.advance() for row in self.rows(batch)]
        self.terms.collect()

    def rows(self, batch: MatchBatch) -> list[Row]:
        out: list[Row] = []
        for m in range(len(batch)):
            first, last = int(batch.ends[m]), int(batch.ends[m + 1])
            columns = tuple(self.shown(int(i)) if i else "" for i in batch.values[m])
            letters = ("&".join(self.plan.letters[int(x)].letter) for x in batch.event_letter[first:last])
            times = (int(t) for t in batch.event_time[first:last])
            out.append((int(batch.time[m]), columns, tuple(zip(letters, times, strict=True))))
        return out

    def shown(self, i: int) -> str:
        """A term; labels of blank nodes are a dictionary's, hence told apart by how often it has moved."""
        text = self.terms.text(i)
        return f"{text}@{self.moves}" if text.startswith("_:") else text

    def finish(self) -> None:
        self.run.close()
        self.advance()

    @property
    def counters(self) -> Counters:
        run = self.run
        return run.events, run.late, run.instants, run.matches, run.open


def unlabelled(rows: list[Row]) -> list[Row]:
    """Blank nodes numbered in order of appearance."""
    names: dict[str, str] = {}
    return [
        (time, tuple(names.setdefault(c, f"_:{len(names)}") if c.startswith("_:") else c for c in columns), events)
        for time, columns, events in rows
    ]


def assert_same(moving: Life, still: Life) -> None:
    """The same rows in the same order; between two moves each blank node stands for one of the other run's."""
    assert [unlabelled([row]) for row in moving.found] == [unlabelled([row]) for row in still.found]
    theirs: dict[str, str] = {}
    mine: dict[tuple[str, str], str] = {}
    for (_, here, _), (_, there, _) in zip(moving.found, still.found, strict=True):
        for a, b in zip(here, there, strict=True):
            if a.startswith("_:"):
                assert theirs.setdefault(a, b) == b
                assert mine.setdefault((a.split("@")[1], b), a) == a


def both(
    situation: Situation, dice: random.Random, crowd: bool, capacities: Capacities | None = None, often: float = 0.3
) -> tuple[Life, Life]:
    """The situation lived through by one run, and by one that moves now and then."""
    still, moving = (Life(situation.text, situation.kb, situation.lateness, capacities=capacities) for _ in range(2))
    left = {iri: iter(events) for iri, events in situation.streams.items()}
    for number, iri in enumerate(situation.order):
        event = next(left[iri])
        for life in (still, moving):
            life.push(iri, event)
            if number in situation.pauses:
                life.advance()
        if dice.random() < often:
            moving.move(crowded(dice) if crowd else TermDictionary())
        assert moving.counters == still.counters
    for life in (still, moving):
        life.finish()
    return still, moving
