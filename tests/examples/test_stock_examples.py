"""The examples on real quotes, against plain loops over prices."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from datetime import timedelta
from decimal import Decimal
from itertools import groupby

from example_loading import load

from oxiseq.demo.show import Quote, company_iri, midnight, quotes

NAMES = {"AAPL": "Apple", "FB": "Facebook", "GOOG": "Google", "IBM": "IBM", "MSFT": "Microsoft"}
SERIES: list[list[Quote]] = [list(group) for _, group in groupby(quotes(), key=lambda quote: quote.ticker)]
"""Each company's quotes by day; no company misses a day between its first and its last (checked below)."""


def test_no_company_misses_a_trading_day() -> None:
    days = sorted({quote.day for quote in quotes()})
    for series in SERIES:
        first, last = days.index(series[0].day), days.index(series[-1].day)
        assert [quote.day for quote in series] == days[first : last + 1]


def test_head_and_shoulders_as_printed() -> None:
    expected: Counter[tuple[object, ...]] = Counter()
    for series in SERIES:
        for i in range(len(series) - 6):
            days = series[i : i + 7]
            p1, p2, p3, p4, p5, p6, p7 = (quote.price for quote in days)
            near = days[-1].day - days[0].day <= timedelta(days=14)
            if near and p2 > p1 and p1 < p3 < p2 < p4 and p3 < p5 < p4 and p5 < p6 < p4 and p5 < p7 < p6:
                volumes = (str(quote.volume) for quote in days)
                prices = (f"{quote.price.normalize():f}" for quote in days)
                expected[midnight(days[-1].day), company_iri(days[0].ticker), *prices, *volumes] += 1
    matches = load("03-head-and-shoulders").main()
    found = Counter((match.at_us, *(term.value for term in match.values())) for match in matches)
    assert found == expected
    assert len(found) == 3


def runs(prices: list[Decimal], start: int, sign: int) -> Iterator[int]:
    """The days at which a run of strict rises (sign 1) or falls (-1) that begins after `start` may end."""
    for day in range(start + 1, len(prices)):
        if sign * (prices[day] - prices[day - 1]) <= 0:
            return
        yield day


def shoulders(p: list[Decimal]) -> Iterator[tuple[int, ...]]:
    """Head and shoulders over runs: the days of p1 to p7."""
    for a in range(len(p)):
        for b in runs(p, a, 1):
            for c in (c for c in runs(p, b, -1) if p[c] > p[a]):
                for d in (d for d in runs(p, c, 1) if p[d] > p[b]):
                    for e in (e for e in runs(p, d, -1) if p[e] > p[c]):
                        for f in (f for f in runs(p, e, 1) if p[f] < p[d]):
                            if f + 1 < len(p) and p[e] < p[f + 1] < p[f]:
                                yield a, b, c, d, e, f, f + 1


def test_head_and_shoulders_over_runs_of_days() -> None:
    expected: Counter[tuple[object, ...]] = Counter()
    for series in SERIES:
        for days in shoulders([quote.price for quote in series]):
            found = [series[i] for i in days]
            if found[-1].day - found[0].day <= timedelta(days=60):
                key = [NAMES[found[0].ticker], *(quote.price for quote in found)]
                expected[*(midnight(found[i].day) for i in (0, 1, 3, 5, 6)), *key] += 1
    got: Counter[tuple[object, ...]] = Counter()
    for match in load("03-head-and-shoulders").main("runs"):
        times = (match.events[letter][-1][1] for letter in "ABDFG")
        prices = (Decimal(match[f"p{n}"].value) for n in range(1, 8))
        got[*times, match["name"].value, *prices] += 1
    assert got == expected
    assert sum(got.values()) > 200


def test_rise_and_fall_as_printed() -> None:
    expected: Counter[tuple[object, ...]] = Counter()
    for series in SERIES:
        for a, b, c in zip(series, series[1:], series[2:], strict=False):
            if a.price < b.price > c.price and c.day - a.day <= timedelta(days=14):
                expected[midnight(c.day), company_iri(a.ticker), a.price, b.price, c.price, a.volume] += 1
    matches = load("04-v-shape").main()
    got = Counter(
        (
            match.at_us,
            match["company"].value,
            *(Decimal(match[v].value) for v in ("p1", "p2", "p3")),
            int(match["vol1"].value),
        )
        for match in matches
    )
    assert got == expected
    assert sum(got.values()) > 3000


def test_deep_v_shape() -> None:
    expected: Counter[tuple[object, ...]] = Counter()
    for series in SERIES:
        for i, first in enumerate(series):
            low = next((n for n in range(i + 1, len(series)) if series[n].price <= Decimal("0.85") * first.price), None)
            if low is None:
                continue
            back = next((quote for quote in series[low + 1 :] if quote.price >= first.price), None)
            if back is not None and back.day - first.day <= timedelta(days=30):
                days = tuple(f"{quote.day}T00:00:00Z" for quote in (first, series[low], back))
                expected[NAMES[first.ticker], *days] += 1
    variables = ("name", "from", "low", "back")
    got = Counter(tuple(match[v].value for v in variables) for match in load("04-v-shape").main("deep"))
    assert got == expected
    assert got["Microsoft", "2000-09-26T00:00:00Z", "2000-10-16T00:00:00Z", "2000-10-20T00:00:00Z"] == 1
