"""A query over buckets in plain Python, as Spark would run it: micro-batches, shuffled rows, states as bytes."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache

from oxiseq.engine.events.encode import encode_events
from oxiseq.engine.output.batch import MatchBatch
from oxiseq.engine.run.watermarks import BEFORE_ALL
from oxiseq.grammar import load
from oxiseq.grammar.algebra import Query
from oxiseq.journal import pack_events
from oxiseq.languages.registry import language_named
from oxiseq.options import Options
from oxiseq.spark.answers import decided_after
from oxiseq.spark.bucket import Bucket, Packed
from oxiseq.spark.dealing import Dealer
from oxiseq.spark.order import Order
from oxiseq.spark.work import Work

Event = tuple[str, int, str]
"""Stream IRI, µs, N-Triples."""
Row = tuple[int, tuple[str, ...], tuple[tuple[str, tuple[int, ...]], ...]]
"""End time, shown values, times by GPM."""


@dataclass
class Buckets:
    """All buckets of a query; each step is done by a process that has only what it is given."""

    order: Order
    dice: random.Random
    shared: Work | None = None
    """One process for all steps; else every step has one of its own."""
    states: dict[int, bytes] = field(default_factory=dict)
    rows: list[Row] = field(default_factory=list)
    late: list[tuple[str, int]] = field(default_factory=list)
    watermark: int = BEFORE_ALL
    passed: int = BEFORE_ALL
    """The watermark of the last micro-batch, `before`: of the one before that."""
    before: int = BEFORE_ALL

    def work(self) -> Work:
        return Work(self.order) if self.shared is None else self.shared

    def micro_batch(self, events: Sequence[Event], watermark: int, close: bool = False) -> None:
        """Deal the events in random pieces, then let each bucket that has rows, or is waiting, take its step."""
        self.before, self.watermark = self.passed, max(self.watermark, watermark)
        self.passed = self.watermark
        shares: dict[int, list[Packed]] = {}
        pieces = list(events)
        self.dice.shuffle(pieces)
        while pieces:
            size = self.dice.randint(1, len(pieces))
            for number, packed in self._dealt(pieces[:size]):
                shares.setdefault(number, []).append(packed)
            pieces = pieces[size:]
        for number in range(self.order.buckets) if close else sorted({*shares, *self.states}):
            self._step(number, shares.get(number, []), close)

    def _dealt(self, events: Sequence[Event]) -> list[tuple[int, Packed]]:
        work, out = self.work(), []
        for stream, iri in enumerate(work.plan.streams):
            mine = [(time, graph) for each, time, graph in events if each == iri]
            if mine:
                for bucket, batch, home in Dealer(work, stream).deal(encode_events(mine, work.terms)):
                    out.append((bucket, Packed(stream, pack_events(batch, work.terms), home.tobytes())))
        return out

    def _step(self, number: int, rows: list[Packed], close: bool) -> None:
        work = self.work()
        self.dice.shuffle(rows)
        bucket = Bucket(work, number, self.states.get(number))
        done = bucket.step(rows, self.watermark, close=close)
        self.states[number] = bucket.save()
        mine = [row for batch in done.matches for row in rows_of(work, batch)]
        assert [row[0] for row in mine] == sorted(row[0] for row in mine)
        if (wait := decided_after(work.plan)) is not None:  # or Spark refuses the rows
            assert all(row[0] + wait >= self.before for row in mine)
        self.rows += mine
        for stream, batch in done.late:
            self.late += [(work.plan.streams[stream], int(t)) for t in batch.time]
        work.terms.collect()


def rows_of(work: Work, batch: MatchBatch) -> list[Row]:
    out: list[Row] = []
    for i in range(len(batch)):
        match = work.shape.block([batch]).match(i)
        values = tuple(str(match.get(name)) for name in work.shape.variables[: work.shown])
        events = tuple(sorted((gpm, tuple(t for _, t in seen)) for gpm, seen in match.events.items()))
        out.append((match.at_us, values, events))
    return out


@cache
def parsed(text: str) -> Query:
    return load(text)


def alone(text: str, events: Sequence[Event], kb: str | None, start: int | None) -> Counter[Row]:
    """What one engine finds in the events."""
    streams: dict[str, list[tuple[int, str]]] = {}
    for iri, time, graph in sorted(events, key=lambda e: e[1]):
        streams.setdefault(iri, []).append((time, graph))
    driver = language_named("spaseq").driver(parsed(text), kb, Options(origin=start))
    for iri, pairs in streams.items():
        driver.attach(iri, pairs)
    found = driver.matches()
    rows: Counter[Row] = Counter()
    for match in found:
        values = tuple(str(match.get(name)) for name in found.variables) if "CONSTRUCT" not in text else ()
        gpms = tuple(sorted((gpm, tuple(t for _, t in seen)) for gpm, seen in match.events.items()))
        rows[match.at_us, values, gpms] += 1
    return rows


def blankless(rows: Mapping[Row, int]) -> Counter[Row]:
    """Blank nodes alike: their labels are each process's own."""
    out: Counter[Row] = Counter()
    for (time, values, events), count in rows.items():
        out[time, tuple("_:" if v.startswith("_:") else v for v in values), events] += count
    return out
