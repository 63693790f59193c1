"""What was found, as Markdown."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from benchmarks.spectra.queries import WindowQuery
from benchmarks.spectra.ways import AGAIN, DELTA, ENDED, NEW, RDFLIB, WHOLE, Rate, Setting

LEAST: Final = 1e6
"""Triples per second that are asked for, of every query at every window."""
TIMES: Final = 30
"""So many times pyoxigraph's best use, sliding by one event."""
GROWTH: Final = 2.5
"""Time per triple at the largest window over the smallest, at most."""


@dataclass(slots=True)
class Found:
    """One query in one setting: a rate by way, and what does not agree."""

    query: WindowQuery
    setting: Setting
    rates: dict[str, Rate] = field(default_factory=dict)
    faults: list[str] = field(default_factory=list)

    @property
    def name(self) -> str:
        """For messages."""
        kind = "tumbling" if self.setting.tumbling else "sliding"
        return f"{self.query.name}, {kind}, {self.setting.triples:,} triples, events of {self.setting.size}"

    def times(self, way: str) -> float | None:
        """How many times quicker new rows are than another way."""
        return self.rates[NEW].rate / self.rates[way].rate if way in self.rates else None


def missed(found: Iterable[Found]) -> list[str]:
    """What is not as asked."""
    every = list(found)
    lines = [f"{one.name}: {one.rates[NEW].rate / 1e6:.2f} M triples/s" for one in every if one.rates[NEW].rate < LEAST]
    for one in every:
        times = one.times(DELTA)
        if times is not None and times < TIMES and not one.setting.tumbling:
            lines.append(f"{one.name}: {times:.0f} times pyoxigraph's best use")
    lines += [
        f"{name}: {growth:.1f} times more per triple" for name, growth in growths(every).items() if growth > GROWTH
    ]
    return lines


def growths(found: Iterable[Found]) -> Mapping[str, float]:
    """By query and kind of window the time per triple of new rows at the largest window over that at the smallest."""
    series: dict[str, dict[int, float]] = {}
    for one in found:
        kind = "tumbling" if one.setting.tumbling else "sliding"
        series.setdefault(f"{one.query.name}, {kind}, events of {one.setting.size}", {})[one.setting.triples] = (
            one.rates[NEW].rate
        )
    return {name: rates[min(rates)] / rates[max(rates)] for name, rates in series.items() if len(rates) > 1}


def page(found: list[Found], setting: str) -> str:
    """The whole page."""
    lines = [setting, ""]
    for tumbling in (False, True):
        for size in sorted({one.setting.size for one in found}):
            chosen = [one for one in found if (one.setting.tumbling, one.setting.size) == (tumbling, size)]
            if chosen:
                title = "Tumbling" if tumbling else "Sliding by one event"
                lines += [f"## {title}, {_triples(size)} per event", "", *_table(chosen), ""]
    lines += ["## Growth", "", "Time per triple of new rows, the largest window over the smallest:", ""]
    lines += [f"- {name}: {growth:.2f}" for name, growth in growths(found).items()]
    short = missed(found)
    lines += ["", "## Not as asked", "", *([f"- {line}" for line in short] or ["Nothing."])]
    return "\n".join(lines) + "\n"


def _triples(size: int) -> str:
    return "1 triple" if size == 1 else f"{size} triples"


def _table(found: list[Found]) -> Iterable[str]:
    yield (
        "| query | window | rows at the end | new | ended | again | whole | delta | rdflib | "
        "times again | times whole | times delta |"
    )
    yield "|---|---|---|" + "---:|" * 9
    for one in found:
        cells = [_rate(one.rates.get(way)) for way in (NEW, ENDED, AGAIN, WHOLE, DELTA, RDFLIB)]
        times = [_times(one.times(way)) for way in (AGAIN, WHOLE, DELTA)]
        rows = f"{one.rates[NEW].rows:,}"
        yield f"| {one.query.name} | {one.setting.triples:,} | {rows} | {' | '.join([*cells, *times])} |"


def _rate(rate: Rate | None) -> str:
    if rate is None:
        return ""
    thousands = rate.rate / 1e3
    return f"{thousands:,.0f}" if thousands >= 10 else f"{thousands:.2g}"


def _times(times: float | None) -> str:
    return "" if times is None else f"{times:,.0f}" if times >= 10 else f"{times:.1f}"
