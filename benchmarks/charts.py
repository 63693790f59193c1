"""What the pictures show, as data: cases make it, pictures.py draws it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

OXISEQ: Final = "oxiseq"
TEXTBOOK: Final = "textbook NFA in Python"
SPARQL: Final = "SPARQL re-evaluated (pyoxigraph)"
FLINK: Final = "Flink MATCH_RECOGNIZE"


@dataclass(frozen=True, slots=True)
class Point:
    """Events per second at x; `whole`: not stopped early."""

    x: float
    rate: float
    whole: bool = True


@dataclass(frozen=True, slots=True)
class Line:
    """Points of one alternative, `by`; `what` says what of it, in few words, if it has several lines."""

    by: str
    what: str
    points: tuple[Point, ...]

    @classmethod
    def of(cls, by: str, what: str, points: Iterable[Point]) -> Line:
        """A line through the points."""
        return cls(by, what, tuple(points))


@dataclass(frozen=True, slots=True)
class Chart:
    """A panel of the picture of that name: events per second over `x`, which is an axis label with its unit."""

    picture: str
    title: str
    x: str
    lines: tuple[Line, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Histogram:
    """How often something took how long: microseconds by alternative."""

    picture: str
    title: str
    samples: dict[str, NDArray[np.float64]]
