"""Real daily stock quotes, as RDF events.

Apple, Facebook, Google, IBM and Microsoft, trading days up to 1 March 2013, in quotes.csv.gz. One event holds a
trading day's quotes of all companies, so that companies do not interrupt each other and `,` means the next trading day.

The data are in the public domain: Quandl, which collected them as its WIKI Prices, declared them so
(https://web.archive.org/web/20150411011214/https://www.quandl.com/data/WIKI). They were taken from the PyPI package
`bokeh_sampledata` (its module `stocks`): the columns ticker, date, adj_close rounded to four decimals, and volume. A
test compares the two.
"""

from __future__ import annotations

import csv
import gzip
from collections.abc import Iterator
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Final

from oxiseq.engine.events.time import to_microseconds
from oxiseq.grammar.records import dataclass

STREAM: Final = "http://stockmarket.org/stocks"
"""The stream's IRI."""
TICKERS: Final = ("AAPL", "FB", "GOOG", "IBM", "MSFT")
"""The companies, as in `company_iri`."""
FILE: Final = Path(__file__).with_name("quotes.csv.gz")
"""ticker, day, price, volume: company after company, each by day."""

_EVENT_LINES: Final = """\
<{company}> <http://example/price> "{price}"^^<http://www.w3.org/2001/XMLSchema#decimal> .
<{company}> <http://example/volume> "{volume}"^^<http://www.w3.org/2001/XMLSchema#integer> .
"""


@dataclass(frozen=True, slots=True)
class Quote:
    """One company's trading day.

    `price`: the closing price in US dollars, adjusted for splits and dividends (else a split would look like
    a crash), rounded to four decimals; `volume`: shares traded.
    """

    ticker: str
    day: date
    price: Decimal
    volume: int


def quotes() -> Iterator[Quote]:
    """All quotes, company after company, each by day."""
    with gzip.open(FILE, "rt", encoding="ascii", newline="") as lines:
        for row in csv.DictReader(lines):
            yield Quote(row["ticker"], date.fromisoformat(row["day"]), Decimal(row["price"]), int(row["volume"]))


def company_iri(ticker: str) -> str:
    """The IRI of a company, in the events and in companies.nq."""
    return f"http://stockmarket.org/company/{ticker}"


def midnight(day: date) -> int:
    """The time of a day's event: its midnight in UTC, in microseconds."""
    return to_microseconds(datetime(day.year, day.month, day.day, tzinfo=UTC))


def daily_events() -> list[tuple[int, str]]:
    """The quotes as events (microseconds, N-Triples), one per trading day, in order."""
    graphs: dict[date, list[str]] = {}
    for quote in quotes():
        lines = _EVENT_LINES.format(company=company_iri(quote.ticker), price=quote.price, volume=quote.volume)
        graphs.setdefault(quote.day, []).append(lines)
    return [(midnight(day), "".join(graphs[day])) for day in sorted(graphs)]
