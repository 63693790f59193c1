"""Runs of queries over made-up readings, pushed straight into a `QueryRun`: no threads, no clock of the machine.

A reading is one event: a thing of some kind (`:a`, `:b`, `:c`, `:n`) with a key and a value. Queries have a GPM
for each kind, named by its capital letter.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from typing import NamedTuple, TypeAlias

import numpy as np
from loaded import load
from pyoxigraph import Literal, NamedNode, RdfFormat, Store

from oxiseq.engine.events.batch import EventBatch
from oxiseq.engine.events.encode import encode_events
from oxiseq.engine.kb import StoreKb
from oxiseq.engine.plan.query import QueryPlan, compile_query
from oxiseq.engine.run.query import QueryRun
from oxiseq.engine.sequence.memory import Capacities
from oxiseq.engine.terms.dictionary import TermDictionary

E = "http://e/"
STREAM = E + "s1"
_XSD = "http://www.w3.org/2001/XMLSchema#"

Row: TypeAlias = tuple[int, tuple[str, ...], tuple[tuple[str, int], ...]]
"""A match: end time, columns in N-Triples form, (letter, time) of its events."""


class Reading(NamedTuple):
    """One event: at `time` (µs) a thing of `kind` has `key` and `value`."""

    time: int
    kind: str
    key: int = 1
    value: int = 1


def query(sequence: str, window: str = "", select: str = "SELECT *", **filters: str) -> str:
    """A query over readings. `filters`: what a GPM has besides its own pattern; `KEYED` in front joins on ?k."""
    gpms = []
    for name in sorted({c for c in sequence if c.isupper()}):
        extra = filters.get(name, "")
        low = name.lower()
        key = "?k" if extra.startswith("KEYED") else f"?{low}k"
        own = f"?{low} :kind :{low} ; :k {key} ; :v ?{low}v ."
        gpms.append(f"  DEFINE GPM {name} ON S1 {{ {own} {extra.removeprefix('KEYED')} }}")
    body = "\n".join(gpms)
    return f"PREFIX : <{E}>\n{select} {window}\nFROM STREAM S1 <{STREAM}>\nWHERE {{\n  SEQ({sequence})\n{body}\n}}"


class Driven:
    """A query and its run."""

    def __init__(
        self,
        text: str,
        capacities: Capacities | None = None,
        *,
        start: int | None = None,
        lateness: int = 0,
        kb: str = "",
    ) -> None:
        self.terms = TermDictionary()
        self.plan: QueryPlan = compile_query(load(text), self.terms)
        store = Store()
        store.load(kb.encode(), format=RdfFormat.N_QUADS)
        self.kb = StoreKb(store)
        self.run = QueryRun(self.plan, self.terms, self.kb, start, lateness, capacities)

    def push(self, readings: Sequence[Reading], stream: str = STREAM) -> EventBatch:
        """Push readings; returns the late events."""
        return self.run.push(stream, readings_batch(self.terms, readings)) or EventBatch.empty()

    def push_text(self, events: Iterable[tuple[int, str]], stream: str = STREAM) -> EventBatch:
        """Push (time, RDF text) pairs; returns the late events."""
        return self.run.push(stream, encode_events(events, self.terms)) or EventBatch.empty()

    def advance(self) -> list[Row]:
        """The matches that are complete by now."""
        rows: list[Row] = []
        for batch in self.run.advance():
            for m in range(len(batch)):
                first, last = int(batch.ends[m]), int(batch.ends[m + 1])
                columns = tuple(self.terms.text(int(i)) if i else "" for i in batch.values[m])
                letters = ("&".join(self.plan.letters[int(x)].letter) for x in batch.event_letter[first:last])
                times = (int(t) for t in batch.event_time[first:last])
                rows.append((int(batch.time[m]), columns, tuple(zip(letters, times, strict=True))))
        return rows

    def count(self) -> int:
        """How many matches are complete by now; cheaper than `advance`."""
        return sum(len(batch) for batch in self.run.advance())

    def finish(self) -> list[Row]:
        """The rest, after the streams have ended."""
        self.run.close()
        return self.advance()

    def answer(self, readings: Sequence[Reading]) -> list[Row]:
        """All matches of one stream."""
        self.push(readings)
        return self.advance() + self.finish()

    @property
    def indexes(self) -> set[str]:
        """How the sequence's probes find groups, in words."""
        return {word for words in self.plan.runner.sequence.indexes for word in words}


def readings_batch(terms: TermDictionary, readings: Sequence[Reading]) -> EventBatch:
    """Readings as a batch, each about a thing of its own. Readings of one time merge to one event."""
    predicates = [terms.intern(NamedNode(E + name)) for name in ("kind", "k", "v")]
    kinds = {kind: terms.intern(NamedNode(E + kind)) for kind in {r.kind for r in readings}}
    numbers = {n: terms.intern(_integer(n)) for n in {n for r in readings for n in (r.key, r.value)}}
    count = len(readings)
    things = [terms.intern(NamedNode(f"{E}{r.kind}{r.time}-{r.key}-{r.value}")) for r in readings]
    objects = [(kinds[r.kind], numbers[r.key], numbers[r.value]) for r in readings]
    return EventBatch(
        np.array([r.time for r in readings], np.int64),
        np.arange(0, 3 * count + 1, 3, dtype=np.int64),
        np.repeat(np.array(things, np.uint32), 3),
        np.tile(np.array(predicates, np.uint32), count),
        np.array(objects, np.uint32).reshape(-1),
    )


def _integer(number: int) -> Literal:
    return Literal(str(number), datatype=NamedNode(_XSD + "integer"))


def random_readings(seed: int, count: int, kinds: str, keys: int = 3, values: int = 20) -> list[Reading]:
    """Readings in order of time: mostly one a microsecond, now and then two at one instant or a gap."""
    dice = random.Random(seed)
    clock, made = 0, []
    for _ in range(count):
        clock += dice.choice([1, 1, 1, 1, 0, 2])
        made.append(Reading(clock, dice.choice(kinds), dice.randint(1, keys), dice.randint(1, values)))
    return made
