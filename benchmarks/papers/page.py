"""A paper's page: for each figure a picture, a table, and what is the same and what is not."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import cycle
from pathlib import Path
from typing import Any, Final

from matplotlib import style
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Drawing
from matplotlib.ticker import FuncFormatter, NullLocator

from benchmarks.papers.figures import Curve, Panel, PaperFigure
from benchmarks.pictures import GREY, HEIGHT, STYLE, WIDTH, short

TITLES: Final = {
    "spaseq": "SPAseq's evaluation (Gillani et al., Semantic Web 2017)",
    "rsepql": "RSEP-QL's tables (Dell'Aglio et al., 2016)",
    "epsparql": "EP-SPARQL's evaluation (Anicic et al., WWW 2011)",
    "core": "CORE's evaluation (Bucchi et al., PVLDB 2022)",
    "spectra": "SPECTRA's evaluation (Gillani et al., SSDBM 2016)",
}
OURS: Final = ("#0072B2", "#009E73", "#D55E00", "#CC79A7", "#56B4E9", "#E69F00")
"""Okabe and Ito's palette."""


def page(paper: str, found: Sequence[tuple[PaperFigure, list[Panel]]], setting: str, folder: Path) -> Path:
    """Draws the figures into `folder` and writes the paper's page there; its path."""
    folder.mkdir(parents=True, exist_ok=True)
    lines = [f"# {TITLES[paper]}", "", setting]
    for figure, panels in found:
        lines += ["", f"## {figure.title}", "", figure.about]
        if figure.kind != "table":
            _drawn(figure, panels).savefig(folder / f"{figure.name}.svg", metadata={"Date": None})
            lines += ["", f"![{figure.title}]({figure.name}.svg)"]
        for panel in panels:
            lines += ["", *_table(figure, panel)]
        lines += ["", figure.differs]
    made = folder / f"{paper}.md"
    made.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return made


# --- table -----------------------------------------------------------------------------------------------


def _table(figure: PaperFigure, panel: Panel) -> list[str]:
    if panel.head:
        rows = [f"| {name} | {' | '.join(cells)} |" for name, cells in panel.facts.items()]
        return [f"| {' | '.join(('', *panel.head))} |", "|---" * (len(panel.head) + 1) + "|", *rows]
    ours = [curve for curve in panel.curves if curve.provenance == "ours"]
    theirs = [curve for curve in panel.curves if curve.provenance not in ("ours", "band")]
    every = [*ours, *theirs]
    columns = list(dict.fromkeys(x for curve in every for x in curve.x))
    if not any(isinstance(x, str) for x in columns):
        columns.sort()
    lines = [
        f"**{panel.title}**; {figure.y}, by {figure.x}",
        "",
        f"| | {' | '.join(map(_cell, columns))} | last / first |",
    ]
    lines.append("|---|" + "---:|" * (len(columns) + 1))
    for curve in every:
        at = dict(zip(curve.x, curve.y, strict=True))
        cells = [_cell(at.get(x)) for x in columns]
        name = curve.name if curve.provenance == "ours" else f"*{curve.name}, published ({curve.provenance})*"
        growth = curve.growth if figure.kind == "lines" else None
        lines.append(f"| {name} | {' | '.join(cells)} | {'' if growth is None else f'{growth:.2f}'} |")
    for name, facts in panel.facts.items():
        known = dict(zip(ours[0].x, facts, strict=True))
        lines.append(f"| {name} | {' | '.join(known.get(x, '') for x in columns)} | |")
    lines += [
        f"\n*{band.name}, published (band): {f'{_cell(band.y[0])} to' if band.y[0] else 'below'} {_cell(band.y[1])}.*"
        for band in panel.curves
        if band.provenance == "band"
    ]
    return lines


def _cell(value: float | str | None) -> str:
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    if value == 0:
        return "0"
    if abs(value) >= 1000:
        digits = len(str(int(abs(value)))) - 3
        return f"{round(value, -digits):,.0f}"
    return f"{value:.3g}"


# --- picture ---------------------------------------------------------------------------------------------


def _drawn(figure: PaperFigure, panels: Sequence[Panel]) -> Drawing:
    with style.context(STYLE):
        drawing = Drawing(figsize=(WIDTH * len(panels), HEIGHT))
        every = drawing.subplots(1, len(panels), squeeze=False)[0]
        drawing.subplots_adjust(wspace=0.25)
        for axes, panel in zip(every, panels, strict=True):
            axes.set_title(panel.title.replace("`", ""))
            (_bars if figure.kind == "bars" else _lines)(axes, figure, panel)
            axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.18), ncols=2)
        every[0].set_ylabel(figure.y)
    return drawing


def _lines(axes: Axes, figure: PaperFigure, panel: Panel) -> None:
    colours = cycle(OURS)
    dashes = cycle(((0, (5, 2)), (0, (1, 1.5)), (0, (4, 1.5, 1, 1.5))))
    for curve in panel.curves:
        if curve.provenance == "band":
            low, high = curve.y
            axes.axhspan(low or 1, high or 1, color=GREY, alpha=0.15, label=f"{curve.name}, published (band)")
        elif curve.provenance == "ours":
            axes.plot(*_points(curve), color=next(colours), marker="o", label=curve.name.replace("`", ""))
        else:
            axes.plot(*_points(curve), color=GREY, linestyle=next(dashes), label=f"{curve.name}, published")
    numbers = sorted({x for curve in panel.curves for x in curve.x if not isinstance(x, str)})
    if "x" in figure.log:
        axes.set_xscale("log")
        axes.set_xticks(numbers, [short(x) for x in numbers], rotation=45 if len(numbers) > 6 else 0)
        axes.xaxis.set_minor_locator(NullLocator())
    if "y" in figure.log:
        axes.set_yscale("log")
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: short(value)))
    axes.set_xlabel(figure.x)


def _bars(axes: Axes, figure: PaperFigure, panel: Panel) -> None:
    """A group of bars for each x, a bar for each curve; published ones grey."""
    names = list(dict.fromkeys(str(x) for curve in panel.curves for x in curve.x))
    curves = [curve for curve in panel.curves if curve.provenance != "band"]
    width, colours = 0.8 / max(1, len(curves)), cycle(OURS)
    for number, curve in enumerate(curves):
        at = [names.index(str(x)) + (number - (len(curves) - 1) / 2) * width for x in curve.x]
        ours = curve.provenance == "ours"
        look: dict[str, Any] = {"color": next(colours)} if ours else {"color": GREY, "alpha": 0.3 + 0.2 * (number % 3)}
        axes.bar(at, [y or 0 for y in curve.y], width, label=curve.name + ("" if ours else ", published"), **look)
    if "y" in figure.log:
        axes.set_yscale("log")
    axes.set_xticks(range(len(names)), names)
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: short(value)))
    axes.set_xlabel(figure.x)


def _points(curve: Curve) -> tuple[list[Any], list[float]]:
    pairs = [(x, y) for x, y in zip(curve.x, curve.y, strict=True) if y is not None]
    return [x for x, _ in pairs], [y for _, y in pairs]
