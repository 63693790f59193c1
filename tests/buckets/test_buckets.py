"""Buckets together find what one engine finds, however events are cut into micro-batches and dealt (no Spark here)."""

from __future__ import annotations

import random
from collections import Counter

from bucketed import Buckets, Event, alone, blankless
from hypothesis import given
from hypothesis import strategies as st
from loaded import load
from profiles import drawn
from strategies import Situation, situations

from oxiseq.engine.plan.correlation import Correlation, correlation
from oxiseq.engine.plan.query import compile_query
from oxiseq.engine.terms.dictionary import TermDictionary
from oxiseq.spark.order import Order
from oxiseq.spark.work import Work


def key_of(text: str) -> Correlation:
    return correlation(compile_query(load(text), TermDictionary()))


def events_of(situation: Situation, streams: tuple[str, ...]) -> list[Event]:
    """In order of arrival; an event has its time in its stream to itself."""
    left = {iri: iter(events) for iri, events in situation.streams.items()}
    arrived = [(iri, *next(left[iri])) for iri in situation.order]
    known: dict[tuple[str, int], Event] = {}
    for event in arrived:
        known.setdefault(event[:2], event)
    return [event for event in known.values() if event[0] in streams]


def compare(situation: Situation, seed: int, buckets: int, fresh: bool) -> None:
    key = key_of(situation.text)
    if not key.by:
        buckets = 1
    dice = random.Random(seed)
    streams = compile_query(load(situation.text), TermDictionary()).streams
    events = events_of(situation, streams)
    start = min((e[1] for e in events), default=0) if key.needs_start and buckets > 1 else None
    given = tuple(iri for iri in streams if any(e[0] == iri for e in events))
    order = Order(situation.text, situation.kb or None, start, given, buckets)
    bucketed = Buckets(order, dice, None if fresh else Work(order))
    taken, late = [], []
    while events:
        size = dice.randint(1, len(events))
        batch, events = events[:size], events[size:]
        bucketed.micro_batch(batch, bucketed.watermark)
        taken += [e for e in batch if e[1] >= bucketed.watermark]
        late += [e for e in batch if e[1] < bucketed.watermark]
        bucketed.watermark = max(bucketed.watermark, max(e[1] for e in batch) - dice.choice([0, 1, 3, 100]))
    bucketed.micro_batch([], bucketed.watermark, close=True)
    if start is None and key.needs_start:
        start = min((e[1] for e in taken), default=None)
    expected = alone(situation.text, taken, situation.kb or None, start)
    assert blankless(Counter(bucketed.rows)) == blankless(expected)
    told = Counter(bucketed.late)
    assert told <= Counter(e[:2] for e in late)
    if buckets == 1:
        assert told == Counter(e[:2] for e in late)


@drawn(20)
@given(situations(clauses=True), st.integers(0, 1 << 30), st.integers(2, 5))
def test_buckets_find_what_one_engine_finds(situation: Situation, seed: int, buckets: int) -> None:
    """Many of the queries have no key: they run in one bucket."""
    compare(situation, seed, buckets, fresh=seed % 8 == 0)
