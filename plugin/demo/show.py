"""The demonstration's output: the query, and the most striking matches as tables."""

from __future__ import annotations

import shlex
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final, TypeAlias

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from oxiseq.api.query import run
from oxiseq.demo.quotes import STREAM, daily_events
from oxiseq.grammar.records import dataclass
from oxiseq.matches.match import Match, short
from oxiseq.warmup.first_run import prepare

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
