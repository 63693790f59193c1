"""Events as columns: stock events and quotes, drawn with a seed and coded with NumPy."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pyoxigraph import Literal, NamedNode

from oxiseq.engine import kinds
from oxiseq.engine.events.batch import EventBatch
from oxiseq.engine.terms.dictionary import TermDictionary

BATCH = 8192
"""Events of a batch, as the readers make them."""
NS = "http://example.org/"
STREAM = NS + "stocks"
START = 1_700_000_000_000_000
"""Time of the first event, microseconds since 1970."""
SECOND = 1_000_000
RATE = 4.8
"""Stock events in a second, on average: CORE's stock data."""
NAMES = ("AMAT", "CSCO", "DELL", "INTC", "IPIX", "MSFT", "ORCL", "QQQ", "RIMM", "YHOO")
TYPES = ("SELL", "BUY")
STEPS = (3, 6, 12, 24)
"""Lengths of the sequences that the stock events hold an instance of."""
PLANTED = 24
RARE_PRICE = 1_000
"""Only a planted last step has a price above it."""
DECIMAL = NamedNode("http://www.w3.org/2001/XMLSchema#decimal")
_INTEGER = NamedNode("http://www.w3.org/2001/XMLSchema#integer")

Ids = NDArray[np.uint32]


@dataclass(frozen=True, slots=True, eq=False)
class Events:
    """A stream for one query: `batches` in order of time, ids of `terms`."""

    terms: TermDictionary
    batches: tuple[EventBatch, ...]

    def __len__(self) -> int:
        return sum(len(batch) for batch in self.batches)

    def first(self, count: int) -> Events:
        """The first events."""
        return Events(self.terms, tuple(_cut(EventBatch.concat(self.batches).slice(0, count))))


def plain(events: Events, by_number: bool) -> list[tuple[Any, ...]]:
    """Star-shaped events as plain tuples: time, or number of the event if `by_number`; then each object, a literal
    with a number as float, any other term as text."""
    result: list[tuple[Any, ...]] = []
    for batch in events.batches:
        ids = batch.object.reshape(len(batch), -1)
        clock = len(result) + np.arange(len(batch)) if by_number else batch.time
        columns = [_values(events.terms, column) for column in ids.T]
        result += zip(clock.tolist(), *columns, strict=True)
    return result


def _values(terms: TermDictionary, ids: Ids) -> list[Any]:
    if kinds.INTEGER <= terms.columns.kind[ids[0]] <= kinds.DOUBLE:
        return list(terms.columns.number[ids].tolist())
    distinct, inverse = np.unique(ids, return_inverse=True)
    data, ends = terms.plain_texts(distinct)
    texts = [data[a:b].tobytes().decode() for a, b in pairwise(ends.tolist())]
    return [texts[place] for place in inverse.tolist()]


def iri(name: str) -> NamedNode:
    """A name of the benchmarks' vocabulary."""
    return NamedNode(NS + name)


def decimal(cents: int) -> Literal:
    """A price."""
    return Literal(f"{cents // 100}.{cents % 100:02d}", datatype=DECIMAL)


def integer(value: int) -> Literal:
    """A volume."""
    return Literal(str(value), datatype=_INTEGER)


def step(number: int) -> tuple[str, str]:
    """Type and name of a step, counted from 0; steps 20 apart are alike."""
    return TYPES[number % 2], NAMES[number % 20 // 2]


def stock_events(terms: TermDictionary, count: int, seed: int = 1, every: int = 25_000) -> Events:
    """Star-shaped stock events: type, name, price 0 to 50, volume.

    Every `every` events the stream is silent for longer than any window and then brings the 24 steps of the
    sequences in order, once. There and only there the last steps of the queries have their price, so each
    such place completes one match, while everything else makes partial matches only.
    """
    random = np.random.default_rng(seed)
    kind, name = random.integers(0, 2, count), random.integers(0, 10, count)
    cents, volume = random.integers(0, 5000, count), random.integers(1, 1000, count)
    gaps = np.maximum(1, random.exponential(SECOND / RATE, count).astype(np.int64))
    planted = np.flatnonzero(np.arange(count) % every < PLANTED)
    number = planted % every
    kind[planted], name[planted] = number % 2, number % 20 // 2
    cents[planted] = np.where(np.isin(number + 1, STEPS), 100 * RARE_PRICE + 100, 4999)
    gaps[planted] = np.where(number == 0, 1_000 * SECOND, 100_000)
    prices = number_ids(terms, cents, decimal)
    columns = {
        "type": _choice(terms, kind, [iri(t) for t in TYPES]),
        "name": _choice(terms, name, [Literal(n) for n in NAMES]),
        "price": prices,
        "volume": number_ids(terms, volume, integer),
    }
    return _star(terms, START + np.cumsum(gaps) - int(gaps[0]), columns)


def quotes(
    terms: TermDictionary,
    count: int,
    companies: int = 110,
    moves: str = "walk",
    seed: int = 2,
    known: int | None = None,
) -> Events:
    """Quotes one second apart: company, price, kind (Open, Trade or Close, so that a query can tell them apart).

    `moves`: "walk", each company's price goes up or down by up to 1.00; "falling", by 0.01 to 0.50 down.
    The companies are spread evenly over the numbers below `known` (default: 0, 1, ...).
    """
    random = np.random.default_rng(seed)
    company = random.integers(0, companies, count)
    change = random.integers(-100, 101, count) if moves == "walk" else -random.integers(1, 51, count)
    cents = along(company, change)
    cents += 1_000 - int(cents.min(initial=0))
    spread = np.arange(companies) * (1 if known is None else known // companies)
    columns = {
        "company": _choice(terms, company, [iri(f"company/{c}") for c in spread]),
        "price": number_ids(terms, cents, decimal),
        "kind": _choice(terms, random.integers(0, 3, count), [iri(k) for k in ("Open", "Trade", "Close")]),
    }
    return _star(terms, START + SECOND * np.arange(count), columns)


def along(group: NDArray[np.int64], change: NDArray[np.int64]) -> NDArray[np.int64]:
    """Running sums within each group."""
    order = np.argsort(group, kind="stable")
    total = np.cumsum(change[order])
    first = np.searchsorted(group[order], group[order], "left")
    before = np.where(first > 0, total[first - 1], 0)
    result = np.empty_like(change)
    result[order] = total - before
    return result


def _choice(terms: TermDictionary, index: NDArray[np.int64], of: list[NamedNode] | list[Literal]) -> Ids:
    return terms.intern_all(of)[index]


def number_ids(terms: TermDictionary, values: NDArray[np.int64], make: Callable[[int], Literal]) -> Ids:
    """The ids of the terms that `make` makes of whole numbers."""
    distinct, inverse = np.unique(values, return_inverse=True)
    return terms.intern_all(make(int(v)) for v in distinct)[inverse]


def _star(terms: TermDictionary, time: NDArray[np.int64], columns: Mapping[str, Ids]) -> Events:
    each = terms.blanks(len(time))
    batch = events_of(terms, time, [(each, iri(name), ids) for name, ids in columns.items()])
    return Events(terms, tuple(_cut(batch)))


def events_of(
    terms: TermDictionary, time: NDArray[np.int64], triples: Sequence[tuple[Ids, NamedNode, Ids]]
) -> EventBatch:
    """Events of the same triples each: subjects, a predicate, objects, an id for each event."""
    count, width = len(time), len(triples)
    predicates = terms.intern_all(predicate for _, predicate, _ in triples)
    subject, objects = (np.stack([each[i] for each in triples], axis=1).ravel() for i in (0, 2))
    batch = EventBatch(time, width * np.arange(count + 1), subject, np.tile(predicates, count), objects)
    terms.hold(*batch.ids)
    return batch


def _cut(batch: EventBatch) -> Iterator[EventBatch]:
    for start in range(0, len(batch), BATCH):
        yield batch.slice(start, start + BATCH)
