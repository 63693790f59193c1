"""The demonstration's output: the query, and the most striking matches as tables.

Real daily stock quotes, as RDF events.

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
import shlex
import time
from collections.abc import Callable, Iterator
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Final, TypeAlias

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from oxiseq.api.query import run
from oxiseq.engine.events.time import to_microseconds
from oxiseq.grammar.records import dataclass
from oxiseq.matches.match import Match, short
from oxiseq.warmup.first_run import prepare

# --- quotes ----------------------------------------------------------------------------------------------

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


# --- show ------------------------------------------------------------------------------------------------

HERE: Final = Path(__file__).parent
"""Where the queries and the knowledge base are."""
KB: Final = HERE / "companies.nq"
SHOWN: Final = 8
"""Rows of a table."""
COMPILING: Final = 500
"""Events that are run once before, to compile what the query needs."""
Event: TypeAlias = tuple[int, str]


@dataclass(frozen=True, slots=True)
class Shape:
    """A price pattern to look for, and how its matches are shown.

    `measure` says how striking a match is; of the matches with the same `peak` (company and a day) only the
    most striking one is shown. `columns`: heading → text of a match.
    """

    title: str
    file: str
    story: str
    peak: str
    peak_name: str
    measure: Callable[[Match], float]
    columns: dict[str, Callable[[Match], str]]

    @property
    def path(self) -> Path:
        """The query's file."""
        return HERE / self.file


def show(console: Console) -> None:
    """Find V-shapes and head-and-shoulders patterns in real quotes and print them."""
    events = daily_events()
    console.print(
        "[bold]Daily stock quotes[/] of Apple, Facebook, Google, IBM and Microsoft (Quandl WIKI "
        f"Prices, public domain): {len(events):,} events, one RDF graph per trading day, "
        "joined with a small knowledge base of the companies."
    )
    prepare(lambda note: console.print(f"[dim]{note.capitalize()}.[/]"))
    for shape in SHAPES:
        _show_shape(console, shape, events)
    _show_next(console)


def striking(shape: Shape, matches: list[Match]) -> list[Match]:
    """One match per company and `peak` day, the most striking first."""
    best: dict[tuple[str, str], Match] = {}
    for match in sorted(matches, key=shape.measure, reverse=True):
        best.setdefault((_text(match, "name"), _text(match, shape.peak)), match)
    return list(best.values())


def _show_shape(console: Console, shape: Shape, events: list[Event]) -> None:
    text = shape.path.read_text(encoding="utf-8")
    with console.status("compiling, if it is the first run ..."):
        run(text, streams={STREAM: events[:COMPILING]}, kb=KB)  # so that the time below is the query's own
    began = time.perf_counter()
    with console.status(f"{shape.title} ..."):
        matches = run(text, streams={STREAM: events}, kb=KB)
    seconds = time.perf_counter() - began
    rows = striking(shape, list(matches))
    console.print()
    console.rule(f"[bold]{shape.title}")
    console.print(shape.story)
    asked = [line.strip() for line in text.splitlines() if line.strip().startswith(("SEQ", "WITHIN"))]
    console.print(f"[cyan]{escape('   '.join(asked))}[/]   [dim]{escape(str(shape.path))}[/]", soft_wrap=True)
    table = Table(title=f"the {min(SHOWN, len(rows))} most striking")
    for heading in shape.columns:
        table.add_column(heading)
    for match in rows[:SHOWN]:
        table.add_row(*(escape(cell(match)) for cell in shape.columns.values()))
    console.print(table)
    console.print(f"{len(matches)} matches in all, with {len(rows)} different {shape.peak_name}; {seconds:.1f} s")


def _show_next(console: Console) -> None:
    query, kb = shlex.quote(str(SHAPES[0].path)), shlex.quote(str(KB))
    console.print()
    console.rule("[bold]What to try next")
    for command in (
        "python -m oxiseq.demo quotes.nq    # the events as a file",
        f"oxiseq run {query} --stream S1=quotes.nq --kb {kb} --format csv",
        f"oxiseq explain {query}",
    ):
        console.print(command, markup=False, highlight=False, soft_wrap=True)
    console.print("Then change a copy of the query, or see the folder examples/ of the source.")


def _text(match: Match, variable: str) -> str:
    term = match.get(variable)
    return "" if term is None else short(term)


def _number(match: Match, variable: str) -> float:
    return float(_text(match, variable))


def _column(variable: str) -> Callable[[Match], str]:
    return lambda match: _text(match, variable)


def _priced_day(day: str, price: str) -> Callable[[Match], str]:
    """A day and, below it, the price on it."""
    return lambda match: f"{_text(match, day)[:10]}\n{_number(match, price):10.2f}"


def _fall(match: Match) -> float:
    """How far the price fell, as a fraction of the first price."""
    return 1 - _number(match, "p2") / _number(match, "p1")


def _prominence(match: Match) -> float:
    """How far the head is above the higher shoulder, as a fraction of the shoulder."""
    return _number(match, "p4") / max(_number(match, "p2"), _number(match, "p6")) - 1


SHAPES: Final = (
    Shape(
        title="V-shape (SPAseq, Query 4)",
        file="v-shape.spaseq",
        story="A price falls by at least 15 % and is back where it was, within 30 days.",
        peak="low",
        peak_name="lows",
        measure=_fall,
        columns={
            "company": _column("name"),
            "exchange": _column("exchange"),
            "from": _priced_day("from", "p1"),
            "low": _priced_day("low", "p2"),
            "back": _priced_day("back", "p3"),
            "fall": lambda match: f"{_fall(match):.1%}",
        },
    ),
    Shape(
        title="Head and shoulders (SPAseq, Query 3)",
        file="head-and-shoulders.spaseq",
        story="A price rises and falls day by day over three peaks, the middle one the highest, within 60 days.",
        peak="head",
        peak_name="heads",
        measure=_prominence,
        columns={
            "company": _column("name"),
            "from": _priced_day("from", "p1"),
            "left shoulder": _priced_day("left", "p2"),
            "head": _priced_day("head", "p4"),
            "right shoulder": _priced_day("right", "p6"),
            "head above": lambda match: f"{_prominence(match):.1%}",
        },
    ),
)
"""What the demonstration looks for, in this order."""
