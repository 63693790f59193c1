"""CORE's evaluation: Figures 7, 8, 9 and 11, over the streams and queries of `benchmarks.core`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from typing import Final

from benchmarks.core.queries import LENGTHS, Query, every, seconds_of
from benchmarks.core.run import Found, found
from benchmarks.core.streams import EVENTS, stream
from benchmarks.core.ways import TABLE
from benchmarks.papers.figures import Curve, Panel, PaperFigure, Scale

STREAMS: Final = {"S": "stocks", "H": "homes", "T": "taxis"}
LAST_WINDOWS: Final = 4
"""The paper's windows are T, 2T, 3T and 4T."""
COUNTED: Final = 50_000
"""Events of the prefix whose complex events are counted a second time."""


@cache
def _found(names: tuple[str, ...], scale: Scale) -> dict[str, Found]:
    by_name = {query.name: query for query in every()}
    queries: list[Query] = [by_name[name] for name in names]
    name = queries[0].stream
    table = stream(name, min(EVENTS[name], scale.of(EVENTS[name], 30_000)))
    results = found(queries, table, None, scale.rounds, COUNTED)
    faults = [fault for one in results.values() for fault in one.faults]
    if faults:
        raise AssertionError("; ".join(faults))
    return results


def _panel(title: str, lines: dict[str, Sequence[tuple[float | str, str]]], scale: Scale) -> Panel:
    """lines: by curve the x values with the queries' names."""
    names = tuple(dict.fromkeys(name for points in lines.values() for _, name in points))
    results = _found(names, scale)
    curves, facts = [], {}
    for curve, points in lines.items():
        xs = tuple(x for x, _ in points)
        curves.append(Curve(curve, xs, tuple(results[name].rates[TABLE] for _, name in points)))
        facts[f"complex events, {curve}"] = tuple(f"{results[name].matches:,}" for _, name in points)
    return Panel(title, tuple(curves), facts)


def _lengths(scale: Scale, prime: str) -> Iterator[Panel]:
    for letter, title in STREAMS.items():
        points = [(n, f"{letter}{n}{prime}") for n in scale.some(LENGTHS)]
        yield _panel(title, {f"oxiseq, {letter}n{prime}": points}, scale)


def lengths(scale: Scale) -> Iterator[Panel]:
    """Figure 7, left."""
    yield from _lengths(scale, "")


def primed(scale: Scale) -> Iterator[Panel]:
    """Figure 7, right."""
    yield from _lengths(scale, "'")


def _windows(scale: Scale, last: bool) -> Iterator[Panel]:
    for letter, title in STREAMS.items():
        usual, *others = seconds_of(letter)[:LAST_WINDOWS]
        points = [(usual, f"LAST {letter}3' {usual} s" if last else f"{letter}3'")]
        points += [(s, f"{'LAST ' * last}{letter}3' {s} s") for s in others]
        some = tuple(points) if scale.share >= 1 else (points[0], points[-1])
        yield _panel(title, {f"oxiseq, {letter}3'": some}, scale)


def windows(scale: Scale) -> Iterator[Panel]:
    """Figure 8."""
    yield from _windows(scale, last=False)


def strategies(scale: Scale) -> Iterator[Panel]:
    """Figure 11."""
    yield from _windows(scale, last=True)


def operators(scale: Scale) -> Iterator[Panel]:
    """Figure 9."""
    yield _panel("stocks", {"oxiseq": [(f"Q{n}", f"Q{n}") for n in range(1, 8)]}, scale)


_SAME: Final = (
    "The queries, attributes, numbers of events, windows and the protocol are the paper's "
    "(benchmarks/core/__init__.py): input loaded before, one thread, partial matches forgotten when a match is "
    "found, at most 1,000 complex events for an event that completes some. The streams are drawn, since no package "
    "has the originals. CPU time instead of the paper's clock; events are taken from columns in batches, and the "
    "machine is newer, so levels are no comparison. "
)
FIGURES: Final = (
    PaperFigure(
        "core-7",
        "Figure 7, left: the number of steps",
        "steps",
        "events/s",
        lengths,
        "Sequences of 3 to 24 events over stock trades, a house's plugs and taxi trips, windows of 10 s (taxis "
        "10,000 s).",
        f"{_SAME}The homes here complete fewer sequences than the paper's H9 and H12, which enumerate about a million.",
        log="xy",
    ),
    PaperFigure(
        "core-7-primed",
        "Figure 7, right: the number of steps, without matches",
        "steps",
        "events/s",
        primed,
        "The same with a last step that no event fits.",
        f"{_SAME}The published band is of the taxis.",
        log="xy",
    ),
    PaperFigure(
        "core-8",
        "Figure 8: the window",
        "window (s)",
        "events/s",
        windows,
        "Three steps and one that nothing fits, windows of T to 4T.",
        f"{_SAME}CORE is flat, and so are we.",
        log="xy",
    ),
    PaperFigure(
        "core-9",
        "Figure 9: operators",
        "query",
        "events/s",
        operators,
        "Q1 to Q7: alternatives, filters, PARTITION BY, a repeat; windows of 30 s.",
        f"{_SAME}The paper's values are about 10^6 for CORE on all, which is drawn nowhere since it is a phrase.",
        "bars",
        "y",
    ),
    PaperFigure(
        "core-11",
        "Figure 11: LAST",
        "window (s)",
        "events/s",
        strategies,
        "Figure 8's queries with the selection strategy LAST.",
        _SAME,
        log="xy",
    ),
)
