"""A query over buckets in plain Python, as Spark would run it: micro-batches, shuffled rows, states as bytes."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache

from loaded import load

from oxiseq.engine.events.encode import encode_events
from oxiseq.engine.order.watermarks import BEFORE_ALL
from oxiseq.grammar.languages import AnyQuery
from oxiseq.journal import pack_events
from oxiseq.languages.registry import language_named
from oxiseq.matches.match import Match
from oxiseq.matches.shape import Block
from oxiseq.options import Options
from oxiseq.spark.answers import decided_after, tables
from oxiseq.spark.bucket import Packed
from oxiseq.spark.dealing import Dealer
from oxiseq.spark.kept import Change, keep, take
from oxiseq.spark.order import Order
from oxiseq.spark.steps import fit
from oxiseq.spark.work import Work

Event = tuple[str, int, str]
"""Stream IRI, µs, N-Triples."""
Row = tuple[int, tuple[str, ...], tuple[tuple[str, tuple[int, ...]], ...]]
"""End time, shown values, times by GPM."""


@dataclass
class State:
    """As Spark stores it."""

    token: bytes | None = None
    data: bytes | None = None
    since: list[bytes] = field(default_factory=list)

    def snapshot(self) -> bytes | None:
        return self.data

    def steps(self) -> Iterator[bytes]:
        return iter(self.since)

    def take_in(self, change: Change) -> None:
        self.token = change.token
        if change.snapshot is None:
            self.since.append(change.step)
        else:
            self.data, self.since = change.snapshot, []


@dataclass
class Buckets:
    """All buckets of a query; each step is done by a process that has only what it is given."""

    order: Order
    dice: random.Random
    shared: Work | None = None
    """One process for all steps; else every step has one of its own."""
    ordered: bool = False
    """Whether events of a micro-batch are dealt in their order, as those of one partition are."""
    states: dict[int, State] = field(default_factory=dict)
    rows: list[Row] = field(default_factory=list)
    late: list[tuple[str, int]] = field(default_factory=list)
    watermark: int = BEFORE_ALL
    waits: dict[int, bool] = field(default_factory=dict)
    """Whether a bucket has asked to be called without rows."""
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
        if not self.ordered:
            self.dice.shuffle(pieces)
        for place in range(len(pieces)):
            size = self.dice.randint(1, max(len(pieces), 1))
            for number, packed in self._dealt(pieces[:size], place):
                shares.setdefault(number, []).append(packed)
            pieces = pieces[size:]
        for number in range(self.order.buckets) if close else sorted({*shares, *self.states}):
            self._step(number, shares.get(number, []), close)

    def _dealt(self, events: Sequence[Event], place: int) -> list[tuple[int, Packed]]:
        work, out = self.work(), []
        for stream, iri in enumerate(work.plan.streams):
            mine = [(time, graph) for each, time, graph in events if each == iri]
            if mine:
                fitting = fit(work, stream, encode_events(mine, work.terms))
                for bucket, batch, home in Dealer(work, stream).deal(fitting):
                    out.append((bucket, Packed(stream, pack_events(batch, work.terms), home.tobytes(), place)))
        return out

    def _step(self, number: int, rows: list[Packed], close: bool) -> None:
        work = self.work()
        self.dice.shuffle(rows)
        if self.dice.random() < 0.3:
            work.kept.clear()  # it has moved to another worker
        state = self.states.setdefault(number, State())
        kept = take(work, number, state)
        done = kept.bucket.step(rows, self.watermark, close=close)
        state.take_in(kept.store(rows, self.watermark))
        keep(work, number, kept, self.watermark)
        form = self.dice.choice(("text", "ntriples", "terms"))
        told = list(tables(work, done, form, late=True))
        assert sum(map(len, told)) == len(done.matches) + sum(len(events) for _, events in done.late)
        mine = rows_of(work, done.matches)
        assert rows or close or not mine or self.waits[number], "Spark would not have called"
        self.waits[number] = done.waits_for is not None
        assert [row[0] for row in mine] == sorted(row[0] for row in mine)
        if (wait := decided_after(work.plan)) is not None:  # or Spark refuses the rows
            assert all(row[0] + wait >= self.before for row in mine)
        self.rows += mine
        for stream, batch in done.late:
            self.late += [(work.plan.streams[stream], int(t)) for t in batch.time]
        work.terms.collect()


def rows_of(work: Work, found: Block) -> list[Row]:
    shown = () if work.shape.form == "CONSTRUCT" else work.shape.variables[: work.shown]
    return [row_of(found.match(i), shown) for i in range(len(found))]


def row_of(match: Match, shown: Sequence[str]) -> Row:
    values = tuple(str(match.get(name)) for name in shown)
    events = [(name, tuple(t for _, t in seen)) for name, seen in match.events.items()]
    if not events and match.start_us is not None and match.end_us is not None:
        events = [("", (match.start_us, match.end_us))]
    return match.at_us, values, tuple(sorted(events))


@cache
def parsed(text: str, language: str = "spaseq") -> AnyQuery:
    return load(text, language)


def alone(
    text: str, events: Sequence[Event], kb: str | None, start: int | None, language: str = "spaseq"
) -> Counter[Row]:
    """What one engine finds in the events."""
    streams: dict[str, list[tuple[int, str]]] = {}
    for iri, time, graph in sorted(events, key=lambda e: e[1]):
        streams.setdefault(iri, []).append((time, graph))
    driver = language_named(language).driver(parsed(text, language), kb, Options(origin=start))
    for iri, pairs in streams.items():
        driver.attach(iri, pairs)
    found = driver.matches()
    shown = found.variables if driver.shape.form == "SELECT" else ()
    return Counter(row_of(match, shown) for match in found)


def blankless(rows: Mapping[Row, int]) -> Counter[Row]:
    """Blank nodes alike: their labels are each process's own."""
    out: Counter[Row] = Counter()
    for (time, values, events), count in rows.items():
        out[time, tuple("_:" if v.startswith("_:") else v for v in values), events] += count
    return out
