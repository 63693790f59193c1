"""What was found, as Markdown, and what of it is not as asked."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

from benchmarks.operators.ways import Rate

TIMES: Final = 30
"""So many times the store that is queried again, from 10^4 triples on."""
GROWTH: Final = 3.0
"""Time per event at the largest window over that at a window of `GROWS_FROM`, at most."""
GROWS_FROM: Final = 1_000
SINGLE: Final = 60.0
"""Microseconds of a push of one event, at windows of 10^3 to 10^5 triples."""
MATCHED: Final = 60_000
"""Events per second of RSEP-QL's MATCH."""
CONSUMED: Final = 3.0
"""Time of a query that uses its triples up over that of the same query which does not."""


@dataclass(slots=True)
class Found:
    """An operator: rates by the window's triples, and the other way's events per second."""

    name: str
    rates: dict[int, Rate]
    asked: dict[int, float] = field(default_factory=dict)


def missed(found: Iterable[Found]) -> Iterator[str]:
    """What is not as asked."""
    every = {one.name: one for one in found}
    for one in every.values():
        for window, asked in one.asked.items():
            least = min(one.rates[window].batch, 1e6 / one.rates[window].single) / asked
            if least < (TIMES if window >= 10_000 else 1):
                yield f"{one.name}, {window:,} triples: {least:.1f} times the store, in single pushes or batches"
        if growth(one) > GROWTH:
            yield f"{one.name}: {growth(one):.1f} times more per event at the largest window"
        for window, rate in one.rates.items():
            if rate.single > SINGLE and window <= 100_000:
                yield f"{one.name}, {window:,} triples: {rate.single:.0f} us a push of one event"
    for window, rate in every["MATCH, three"].rates.items() if "MATCH, three" in every else ():
        if rate.batch < MATCHED:
            yield f"MATCH, {window:,} triples: {rate.batch:,.0f} events/s"
    for name, without in (("SEQ, CONSUME", "SEQ, two"), ("OPTIONAL, CONSUME", "OPTIONAL in time")):
        for window, rate in every[name].rates.items() if {name, without} <= every.keys() else ():
            times = every[without].rates[window].batch / rate.batch
            if times > CONSUMED:
                yield f"{name}, {window:,} triples: {times:.1f} times the cost without"


def growth(one: Found) -> float:
    """Of the time per event in large pushes, from a window of `GROWS_FROM` triples on; 1 if all are smaller."""
    first = min((window for window in one.rates if window >= GROWS_FROM), default=max(one.rates))
    return one.rates[first].batch / one.rates[max(one.rates)].batch


def page(found: list[Found], setting: str) -> str:
    """The whole page."""
    windows = sorted({window for one in found for window in one.rates})
    lines = [setting, "", "## Pushes of 1,000 events, thousand events/s", ""]
    lines += _table(found, windows, lambda one, w: _thousands(one.rates[w].batch), growths=True)
    lines += ["", "## Pushes of one event, microseconds", ""]
    lines += _table(found, windows, lambda one, w: f"{one.rates[w].single:.0f}")
    lines += ["", "## Times a store that is asked again: in large pushes, in single ones", ""]
    lines += _table([one for one in found if one.asked], windows, _against)
    lines += ["", "## Not as asked", "", *([f"- {line}" for line in missed(found)] or ["Nothing."])]
    return "\n".join(lines) + "\n"


def _table(
    found: Iterable[Found], windows: Sequence[int], cell: Callable[[Found, int], str], *, growths: bool = False
) -> Iterator[str]:
    yield "".join(["| operator |", *(f" {window:,} |" for window in windows), " growth |" if growths else ""])
    yield "|---|" + "---:|" * (len(windows) + growths)
    for one in found:
        cells = [cell(one, window) if window in one.rates else "" for window in windows]
        yield f"| {' | '.join([one.name, *cells, *([f'{growth(one):.1f}'] if growths else [])])} |"


def _thousands(rate: float) -> str:
    return f"{rate / 1e3:,.0f}"


def _against(one: Found, window: int) -> str:
    if window not in one.asked:
        return ""
    rate, asked = one.rates[window], one.asked[window]
    return f"{rate.batch / asked:,.0f}, {1e6 / rate.single / asked:,.1f}"
