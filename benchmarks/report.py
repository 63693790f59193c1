"""Results and their tables."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from benchmarks.charts import Chart, Histogram, Point
from benchmarks.measure import Measured


@dataclass(frozen=True, slots=True)
class Size:
    """How much is measured: events per run, rounds, triples of the KBs, events that SPARQL is asked about, tries
    after which the textbook's NFA stops, single pushes."""

    events: int
    rounds: int
    kb: tuple[int, ...]
    sparql_events: int
    tries: int
    pushes: int


FULL = Size(200_000, 7, (10_000, 100_000, 1_000_000), 10_000, 2_000_000, 20_000)
QUICK = Size(60_000, 3, (10_000, 100_000), 3_000, 300_000, 4_000)


@dataclass(frozen=True, slots=True)
class Row:
    """One way: `ns` per event, the median of the rounds; `spread`, slowest round over quickest;
    `whole`: not stopped early."""

    what: str
    where: str
    ns: float
    spread: float
    matches: int
    note: str = ""
    whole: bool = True

    @property
    def rate(self) -> float:
        """Events per second."""
        return 1e9 / self.ns if self.ns else 0.0

    def at(self, x: float) -> Point:
        """Its point in a chart."""
        return Point(x, self.rate, self.whole)

    @classmethod
    def of(cls, what: str, where: str, measured: Measured, events: int, note: str = "", whole: bool = True) -> Row:
        """From a measurement whose answer is the number of matches."""
        assert isinstance(measured.answer, int)
        spread = max(measured.seconds) / max(min(measured.seconds), 1e-9)
        return cls(what, where, 1e9 * measured.median / events, spread, measured.answer, note, whole)


@dataclass(frozen=True, slots=True)
class Figure:
    """A ratio; `at_most` is what is asked of it, if anything."""

    what: str
    ratio: float
    at_most: float | None = None

    @property
    def holds(self) -> bool:
        """Whether it is as asked."""
        return self.at_most is None or self.ratio <= self.at_most


@dataclass(frozen=True, slots=True)
class Result:
    """What one case found; `about` says in a sentence or two what was run."""

    name: str
    title: str
    about: str
    rows: tuple[Row, ...]
    figures: tuple[Figure, ...]
    charts: tuple[Chart | Histogram, ...] = ()


def markdown(results: Iterable[Result], setting: str) -> str:
    """Ratios first, then what they are made of."""
    every = list(results)
    lines = [setting, "", "| ratio | measured | asked |", "|---|---:|---:|"]
    lines += [_figure(figure) for result in every for figure in result.figures]
    for result in every:
        lines += [
            "",
            f"**{result.title}** (`--only {result.name}`). {result.about}",
            "",
            "| | | ns per event | events/s | matches | |",
            "|---|---|---:|---:|---:|---|",
        ]
        lines += [_row(row) for row in result.rows]
    return "\n".join(lines) + "\n"


def _figure(figure: Figure) -> str:
    asked = "" if figure.at_most is None else f"≤ {_times(figure.at_most)}"
    measured = f"{figure.ratio:.2f}×" if figure.ratio < 10 else f"{figure.ratio:,.0f}×"
    if figure.ratio < 0.1:
        measured = _times(figure.ratio)
    return f"| {figure.what} | {measured if figure.holds else f'**{measured}**'} | {asked} |"


def _times(ratio: float) -> str:
    return f"{ratio:g}×" if ratio >= 0.1 else f"1/{1 / ratio:.0f}"


def _row(row: Row) -> str:
    return f"| {row.what} | {row.where} | {row.ns:,.0f} | {_round(row.rate)} | {row.matches:,} | {row.note} |"


def _round(rate: float) -> str:
    """Three digits: the rest is noise."""
    digits = max(0, len(str(int(rate))) - 3)
    return f"{round(rate, -digits):,.0f}"
