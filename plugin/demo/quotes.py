"""Real daily stock quotes, as RDF events.

The quotes come with the PyPI package `bokeh_sampledata` (nothing is downloaded): Apple, Facebook, Google, IBM
and Microsoft, trading days up to 1 March 2013. One event holds a trading day's quotes of all companies, so
that companies do not interrupt each other and `,` means the next trading day.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal
from importlib import import_module
from typing import Final

from oxiseq.engine.errors import OxiseqError
from oxiseq.engine.events.time import to_microseconds

STREAM: Final = "http://stockmarket.org/stocks"
"""The stream's IRI."""
TICKERS: Final = ("AAPL", "FB", "GOOG", "IBM", "MSFT")
"""The companies, as in `company_iri`."""

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
    """All quotes, company after company, each by day. Raises OxiseqError where the data are not installed."""
    try:
        stocks = import_module("bokeh_sampledata.stocks")
    except ImportError as error:
        raise OxiseqError("the stock quotes are not installed; try: pip install 'oxiseq[examples]'") from error
    for ticker in TICKERS:
        table = getattr(stocks, ticker)
        for day, price, volume in zip(table["date"], table["adj_close"], table["volume"], strict=True):
            yield Quote(ticker, date.fromisoformat(day), Decimal(f"{price:.4f}"), int(volume))


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
        lines = _EVENT_LINES.format(
            company=company_iri(quote.ticker), price=quote.price, volume=quote.volume
        )
        graphs.setdefault(quote.day, []).append(lines)
    return [(midnight(day), "".join(graphs[day])) for day in sorted(graphs)]
