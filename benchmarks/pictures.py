"""Pictures of what was measured, one file for each name that charts give: `draw_all`. Needs matplotlib.

Colour says by whom, the same in every picture (Okabe and Ito's palette, distinguished by all kinds of colour sight);
marker and dash say what of it. A hollow point was stopped early.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any, Final

import numpy as np
from matplotlib import style
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.colors import to_rgba
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import FuncFormatter, NullFormatter, NullLocator

from benchmarks.charts import FLINK, OXISEQ, SPARQL, TEXTBOOK, Chart, Histogram, Line
from benchmarks.report import Result

COLOURS: Final = {OXISEQ: "#0072B2", TEXTBOOK: "#D55E00", SPARQL: "#009E73", FLINK: "#CC79A7"}
LOOKS: Final[tuple[tuple[str, Any], ...]] = (
    ("o", "-"),
    ("s", (0, (5, 2))),
    ("^", (0, (1, 1.5))),
    ("D", (0, (4, 1.5, 1, 1.5))),
)
GREY: Final = "#777777"
WIDTH: Final = 4.3
HEIGHT: Final = 3.4
"""Inches of a panel."""
STYLE: Final = Path(__file__).with_name("style.mplstyle")
_UNITS: Final = ((1_000_000, "M"), (1_000, "k"), (1, ""))


def draw_all(results: Iterable[Result], folder: Path) -> list[Path]:
    """Draw each picture into `folder`, which is made; the files, `<picture>.svg`."""
    folder.mkdir(parents=True, exist_ok=True)
    charts = sorted((chart for result in results for chart in result.charts), key=lambda chart: chart.picture)
    files = []
    with style.context(STYLE):
        for name, panels in groupby(charts, lambda chart: chart.picture):
            files.append(folder / f"{name}.svg")
            _draw(list(panels)).savefig(files[-1], metadata={"Date": None})
    return files


def _draw(charts: Sequence[Chart | Histogram]) -> Figure:
    panels = _merged(charts)
    rates = isinstance(panels[0], Chart)
    figure = Figure(figsize=(WIDTH * len(panels), HEIGHT))
    every = figure.subplots(1, len(panels), squeeze=False, sharey=rates, sharex=not rates)[0]
    figure.subplots_adjust(wspace=0.12 if rates else 0.2)
    for axes, panel in zip(every, panels, strict=True):
        axes.set_title(_quoted(panel.title))
        if isinstance(panel, Chart):
            _lines(axes, panel)
        else:
            _histogram(axes, panel)
    every[0].set_ylabel("events per second" if rates else "share of pushes")
    _alternatives(every[0], panels)
    return figure


def _merged(charts: Sequence[Chart | Histogram]) -> list[Chart | Histogram]:
    """Charts of one title are one panel; of lines about the same the first is kept."""
    panels: dict[str, Chart | Histogram] = {}
    for chart in charts:
        known = panels.setdefault(chart.title, chart)
        if known is not chart and isinstance(known, Chart) and isinstance(chart, Chart):
            there = {(line.by, line.what) for line in known.lines}
            new = tuple(line for line in chart.lines if (line.by, line.what) not in there)
            panels[chart.title] = Chart(known.picture, known.title, known.x, known.lines + new)
    return list(panels.values())


def _alternatives(axes: Axes, panels: Sequence[Chart | Histogram]) -> None:
    """Whose colour is whose, above the first panel."""
    there = {by for panel in panels for by in _names(panel)}
    for_each = [Patch(color=colour, label=by) for by, colour in COLOURS.items() if by in there]
    axes.figure.legend(
        handles=for_each,
        loc="lower left",
        bbox_to_anchor=(0, 1.13),
        borderaxespad=0,
        bbox_transform=axes.transAxes,
        ncols=4,
        handlelength=1.2,
        handleheight=0.5,
    )


def _names(panel: Chart | Histogram) -> Iterable[str]:
    return (line.by for line in panel.lines) if isinstance(panel, Chart) else panel.samples


def _lines(axes: Axes, chart: Chart) -> None:
    axes.set_xscale("log")
    axes.set_yscale("log")
    kinds = list(dict.fromkeys(line.what for line in chart.lines))
    for line in chart.lines:
        _line(axes, line, *LOOKS[kinds.index(line.what)])
    places = sorted({point.x for line in chart.lines for point in line.points})
    axes.set_xticks(places, [short(x) for x in places])
    axes.xaxis.set_minor_locator(NullLocator())
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: short(value)))
    axes.yaxis.set_minor_locator(NullLocator())
    axes.set_xlabel(chart.x)
    cut = any(not point.whole for line in chart.lines for point in line.points)
    _below(axes, _keys(kinds, cut), columns=len(kinds) + cut)


def _line(axes: Axes, line: Line, marker: str, dash: Any) -> None:
    colour = COLOURS[line.by]
    axes.plot([p.x for p in line.points], [p.rate for p in line.points], color=colour, linestyle=dash, marker=marker)
    cut = [point for point in line.points if not point.whole]
    axes.plot(
        [p.x for p in cut],
        [p.rate for p in cut],
        linestyle="none",
        marker=marker,
        color=colour,
        markerfacecolor="white",
        zorder=3,
    )


def _keys(kinds: Sequence[str], cut: bool) -> list[Artist]:
    """What marker and dash mean; none when there is only one kind of line."""
    keys: list[Artist] = []
    if len(kinds) > 1:
        keys += [
            Line2D([], [], color=GREY, linestyle=dash, marker=marker, label=_quoted(kind))
            for kind, (marker, dash) in zip(kinds, LOOKS, strict=False)
        ]
    if cut:
        keys.append(
            Line2D([], [], color=GREY, linestyle="none", marker="o", markerfacecolor="white", label="stopped early")
        )
    return keys


def _below(axes: Axes, keys: list[Artist], columns: int) -> None:
    if keys:
        axes.legend(handles=keys, loc="upper center", bbox_to_anchor=(0.5, -0.18), ncols=columns, columnspacing=1.2)


def _histogram(axes: Axes, chart: Histogram) -> None:
    every = np.concatenate(list(chart.samples.values()))
    low, high = np.log10(np.percentile(every, (0, 99.9)))
    edges = np.logspace(low, high, int(25 * (high - low)) + 2).tolist()
    keys: list[Artist] = []
    for by, times in chart.samples.items():
        share = np.full(len(times), 1 / len(times))
        axes.hist(
            times,
            edges,
            weights=share,
            histtype="stepfilled",
            facecolor=to_rgba(COLOURS[by], 0.35),
            edgecolor=COLOURS[by],
            linewidth=1.2,
        )
        median, late, last = np.percentile(times, (50, 95, 99))
        axes.axvline(last, color=COLOURS[by], linestyle=(0, (2, 2)), linewidth=1)
        figures = f"median {_micros(median)}, 95 % {_micros(late)}, 99 % {_micros(last)}"
        keys.append(Patch(facecolor=to_rgba(COLOURS[by], 0.35), edgecolor=COLOURS[by], label=figures))
    axes.set_xscale("log")
    axes.xaxis.set_minor_formatter(NullFormatter())
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: _micros(value)))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{100 * value:.0f} %"))
    axes.set_xlabel("CPU time of a push (dashed: 99 %)")
    _below(axes, keys, columns=1)


def _quoted(text: str) -> str:
    """Markdown's code in quotation marks."""
    return re.sub("`([^`]*)`", r"“\1”", text)


def short(value: float) -> str:
    """1 M, 20 k, 300."""
    for size, unit in _UNITS:
        if abs(value) >= size:
            return f"{value / size:g}{' ' if unit else ''}{unit}"
    return f"{value:g}"


def _micros(value: float) -> str:
    return f"{value / 1e3:.3g} ms" if value >= 1e3 else f"{value:.3g} µs"
