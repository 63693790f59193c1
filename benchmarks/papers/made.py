"""Seeded data of the same make as the papers': stocks (SMD), cards (CCD), homes (SHD), traffic (TD), and their KBs.

No package ships the originals, so shapes, rates and shares follow what the papers print (design/papers.md has them).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from pyoxigraph import Literal, NamedNode, RdfFormat, Store

from benchmarks.data import BATCH, SECOND, START, Ids, along, decimal, events_of, integer, number_ids
from oxiseq.engine.events.batch import EventBatch
from oxiseq.engine.terms.dictionary import TermDictionary

PRED = "http://example/"
SMD, CCD = "http://example.org/main", "http://creditcard.org/payments"
SHD = tuple(f"http://www.smart.com/{name}" for name in ("power", "environmental", "generation"))
TD = tuple(
    f"http://www.insight-centre.org/dataset/SampleEventService#AarhusTrafficData{sensor}"
    for sensor in (182955, 195578, 195446)
)
COMPANIES = 110
CARDS = 10_000
I64 = NDArray[np.int64]
Triples = Sequence[tuple[Ids, str, Ids]]
"""The triples of an event: subjects, a predicate, objects, an id for each event."""


@dataclass(frozen=True, slots=True, eq=False)
class MadeStreams:
    """Streams by IRI, each in order of time; `triples` of an event on average. plain: columns for a second count."""

    terms: TermDictionary
    streams: Mapping[str, EventBatch]
    plain: Mapping[str, I64]

    def __len__(self) -> int:
        return sum(map(len, self.streams.values()))

    @property
    def triples(self) -> int:
        """Of all streams."""
        return sum(len(batch.subject) for batch in self.streams.values())

    @property
    def minutes(self) -> float:
        """From the first event to the last."""
        times = [batch.time for batch in self.streams.values()]
        return float(max(t[-1] for t in times) - min(t[0] for t in times)) / (60 * SECOND)

    def pushes(self) -> list[tuple[str, EventBatch]]:
        """Batches of all streams in order of time."""
        times = np.sort(np.concatenate([batch.time for batch in self.streams.values()]))
        edges = [*times[BATCH::BATCH].tolist(), int(times[-1]) + 1]
        made, low = [], int(times[0])
        for high in edges:
            for stream, batch in self.streams.items():
                first, last = np.searchsorted(batch.time, (low, high)).tolist()
                if last > first:
                    made.append((stream, batch.slice(first, last)))
            low = high
        return made


def smd(terms: TermDictionary, count: int, seed: int = 11) -> MadeStreams:
    """Trades of 110 companies, 57 a second; the subject is the company. Seven triples each."""
    random = np.random.default_rng(seed)
    company = random.integers(0, COMPANIES, count)
    cents = along(company, random.integers(-100, 101, count))
    cents += 1_000 - int(cents.min(initial=0))
    time = START + np.cumsum(np.maximum(1, random.exponential(SECOND / 57, count)).astype(np.int64))
    names = terms.intern_all(NamedNode(f"{PRED}company/{c}") for c in range(COMPANIES))
    subject = names[company]
    triples = [
        (subject, "price", number_ids(terms, cents, decimal)),
        (subject, "volume", number_ids(terms, 100 * random.integers(1, 60, count), integer)),
        (subject, "sector", terms.intern_all(Literal(f"sector {s}") for s in range(11))[company % 11]),
        (subject, "id", number_ids(terms, np.arange(count), integer)),
        (subject, "side", terms.intern_all((Literal("BUY"), Literal("SELL")))[random.integers(0, 2, count)]),
        (subject, "market", terms.intern_all((Literal("NYSE"),))[np.zeros(count, np.int64)]),
        (subject, "lot", number_ids(terms, random.integers(1, 10, count), integer)),
    ]
    return MadeStreams(terms, {SMD: laid(terms, time, triples)}, {"time": time, "company": company, "cents": cents})


def ccd(terms: TermDictionary, count: int, seed: int = 12) -> MadeStreams:
    """Payments of 10,000 cards, 20 a second, most of few cards; one in fifty is much larger. Four triples each."""
    random = np.random.default_rng(seed)
    share = 1 / np.arange(10, CARDS + 10)
    card = random.choice(CARDS, count, p=share / share.sum())
    cents = np.round(100 * random.lognormal(3, 1, count)).astype(np.int64) + 1
    cents[random.random(count) < 0.02] *= 20
    time = START + np.cumsum(np.maximum(1, random.exponential(SECOND / 20, count)).astype(np.int64))
    subject = terms.intern_all(NamedNode(f"http://creditcard.org/card/{c}") for c in range(CARDS))[card]
    account = terms.intern_all(NamedNode(f"http://creditcard.org/id/{c}") for c in range(CARDS))[card]
    places = terms.intern_all(Literal(f"place {p}") for p in range(500))
    triples = [
        (subject, "id", account),
        (subject, "amount", number_ids(terms, cents, decimal)),
        (subject, "loc", places[random.integers(0, 500, count)]),
        (subject, "time", number_ids(terms, time // SECOND, integer)),
    ]
    return MadeStreams(terms, {CCD: laid(terms, time, triples)}, {"time": time, "card": card, "cents": cents})


def shd(terms: TermDictionary, count: int, seed: int = 13) -> MadeStreams:
    """Power, weather and generation of 200 homes in 20 places, five triples each, in turns: 3 events a second."""
    random = np.random.default_rng(seed)
    each = count // 3
    homes = terms.intern_all(NamedNode(f"http://www.smart.com/home/{h}") for h in range(200))
    places = terms.intern_all(NamedNode(f"http://www.smart.com/place/{p}") for p in range(20))
    streams = {}
    for number, stream in enumerate(SHD):
        time = START + SECOND * (np.arange(each)) + number * (SECOND // 3)
        home = random.integers(0, 200, each)
        node = terms.blanks(each)
        if number == 1:
            weather = terms.blanks(each)
            triples: Triples = [
                (weather, "http://www.smart.com/environmental#hasvalue", node),
                (node, "http://www.smart.com/windspeed", number_ids(terms, random.integers(0, 40, each), integer)),
                (node, "http://www.smart.com/heatindex", number_ids(terms, random.integers(0, 3000, each), decimal)),
                (node, "http://www.smart.com/gustspeed", number_ids(terms, random.integers(0, 60, each), integer)),
                (weather, "http://www.smart.com/environmental#haslocation", places[home % 20]),
            ]
        else:
            renewable = random.random(each) < 0.5
            price = np.where(renewable, random.integers(30, 36, each), random.integers(40, 46, each))
            source = terms.intern_all((Literal("fuel"), Literal("solar")))
            triples = [
                (homes[home], "http://www.smart.com/power#haspower", node),
                (node, "http://www.smart.com/watt", number_ids(terms, random.integers(50, 3000, each), integer)),
                (node, "http://www.smart.com/price", number_ids(terms, price, integer)),
                (node, "http://www.smart.com/source", source[renewable.astype(np.int64)]),
                (homes[home], "http://www.smart.com/power#haslocation", places[home % 20]),
            ]
        streams[stream] = laid(terms, time, triples)
    return MadeStreams(terms, streams, {})


def td(terms: TermDictionary, count: int, seed: int = 14) -> MadeStreams:
    """Readings of three traffic sensors at one time, each five minutes: property and value; two triples each."""
    random = np.random.default_rng(seed)
    each = count // 3
    time = START + 300 * SECOND * np.arange(each)
    road = terms.intern_all((NamedNode("http://example.org/road"),))[np.zeros(each, np.int64)]
    observed = terms.intern_all(NamedNode(f"http://example.org/{p}") for p in ("speed", "count"))
    which = np.arange(each) % 2
    daily = 8 + np.round(6 * np.sin(np.arange(each) / 46)).astype(np.int64)
    streams = {
        stream: laid(
            terms,
            time,
            [
                (road, "http://purl.oclc.org/NET/ssnx/ssn#observedProperty", observed[which]),
                (
                    road,
                    "http://purl.oclc.org/NET/sao/ssn#hasValue",
                    number_ids(terms, daily + random.integers(0, 8, each), integer),
                ),
            ],
        )
        for stream in TD
    }
    return MadeStreams(terms, streams, {})


def companies_kb(triples: int) -> Store:
    """Name, address, URL and phone of companies; those of the stream first."""
    return _kb("http://stockmarket.org/db", triples // 4, f"{PRED}company/", ("name", "address", "url", "phone"))


def cards_kb(triples: int) -> Store:
    """Holder, bank and type of cards, and each bank's address."""
    count = triples // 3
    store = Store()
    graph = "<http://creditcard.org/db>"
    lines = [f'<http://creditcard.org/bank/{b}> <{PRED}address> "{b} Main Street" {graph} .' for b in range(50)]
    for number in range(count):
        account = f"<http://creditcard.org/id/{number}>"
        lines.append(f'{account} <{PRED}cardHolder> "Holder {number}" {graph} .')
        lines.append(f"{account} <{PRED}issuedBy> <http://creditcard.org/bank/{number % 50}> {graph} .")
        lines.append(f'{account} <{PRED}type> "{("debit", "credit")[number % 2]}" {graph} .')
    store.bulk_load("\n".join(lines).encode(), format=RdfFormat.N_QUADS)
    return store


def _kb(graph: str, count: int, prefix: str, names: Sequence[str]) -> Store:
    store = Store()
    store.bulk_load("\n".join(_lines(graph, count, prefix, names)).encode(), format=RdfFormat.N_QUADS)
    return store


def _lines(graph: str, count: int, prefix: str, names: Sequence[str]) -> Iterator[str]:
    for number in range(count):
        for name in names:
            yield f'<{prefix}{number}> <{PRED}{name}> "{name} {number}" <{graph}> .'


def laid(terms: TermDictionary, time: I64, triples: Triples) -> EventBatch:
    """Events with the same number of triples each; a predicate without a scheme is one of `PRED`."""
    return events_of(terms, time, [(s, NamedNode(p if ":" in p else PRED + p), o) for s, p, o in triples])
