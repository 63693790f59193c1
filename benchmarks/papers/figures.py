"""A figure of a paper: its panels of curves, ours and the published ones."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, Final, Literal

Provenance = Literal["ours", "table", "text", "vector", "band"]
X = float | str
PUBLISHED: Final = Path(__file__).with_name("published.toml")


@dataclass(frozen=True, slots=True)
class Scale:
    """How much is measured: a share of each figure's usual number of events, and interleaved rounds."""

    share: float = 1.0
    rounds: int = 3

    def of(self, usual: int, least: int = 1) -> int:
        """The share of a usual size, at least `least`."""
        return max(least, int(self.share * usual))

    def some(self, values: tuple[Any, ...]) -> tuple[Any, ...]:
        """All values of an axis, or its ends where less than all is measured."""
        return values if self.share >= 1 or len(values) < 3 else (values[0], values[-1])


@dataclass(frozen=True, slots=True)
class Curve:
    """A line of a panel. y: None where nothing is measured; for a band its lower and its upper end."""

    name: str
    x: tuple[X, ...]
    y: tuple[float | None, ...]
    provenance: Provenance = "ours"

    @property
    def growth(self) -> float | None:
        """y at the last x over y at the first."""
        if self.provenance == "band" or len(self.y) < 2 or not self.y[0] or self.y[-1] is None:
            return None
        return self.y[-1] / self.y[0]


@dataclass(frozen=True, slots=True)
class Panel:
    """Curves over one axis. facts: further rows of the table, by name, a cell for each x of our curves. A table without
    curves has its columns' names in `head`."""

    title: str
    curves: tuple[Curve, ...]
    facts: dict[str, tuple[str, ...]] = field(default_factory=dict)
    head: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class PaperFigure:
    """A figure or table to repeat. measure: raises AssertionError where matches differ from a second count."""

    name: str
    title: str
    x: str
    y: str
    measure: Callable[[Scale], Iterable[Panel]]
    about: str
    """What is asked, of what data."""
    differs: str
    """What is the same as in the paper, and what is not."""
    kind: Literal["lines", "bars", "table"] = "lines"
    log: str = ""
    """Logarithmic axes, of `xy`."""

    @property
    def paper(self) -> str:
        """The name of its paper's page."""
        return self.name.split("-")[0]

    def panels(self, scale: Scale) -> list[Panel]:
        """Measures, and adds the published curves."""
        return [
            Panel(panel.title, (*panel.curves, *published(self.name, panel.title)), panel.facts, panel.head)
            for panel in self.measure(scale)
        ]


def published(figure: str, panel: str) -> tuple[Curve, ...]:
    """The published curves of a panel; none where the values exist as a bitmap only."""
    return tuple(
        Curve(
            each["name"],
            tuple(each.get("x", ())),
            tuple(each.get("y", (each.get("low"), each.get("high")))),
            each["provenance"],
        )
        for each in all_published()
        if each["figure"] == figure and each.get("panel", panel) == panel
    )


@cache
def all_published() -> list[dict[str, Any]]:
    """The series of published.toml."""
    series: list[dict[str, Any]] = tomllib.loads(PUBLISHED.read_text("utf-8"))["series"]
    return series
