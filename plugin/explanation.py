"""What every explanation can do, of whatever language: text, JSON, Graphviz, a picture; notebooks show it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from html import escape
from typing import Any, Final

from oxiseq.pictures.svg import Svg

WITH_EQUALS: Final = "all, with equal queries that began at the same event"
"""What a query shares whose state depends on when it began."""


class Explanation(ABC):
    """What one query is compiled to. `str()` is the text."""

    __slots__ = ()

    @abstractmethod
    def json(self) -> dict[str, Any]:
        """As JSON values."""

    @abstractmethod
    def __str__(self) -> str:
        """For a terminal."""

    @abstractmethod
    def dot(self) -> str:
        """For Graphviz."""

    @abstractmethod
    def svg(self) -> Svg:
        """The query's automaton, or the network that its events pass."""

    @property
    @abstractmethod
    def summary(self) -> tuple[str, ...]:
        """A few lines below the picture."""

    def _repr_html_(self) -> str:
        lines = "".join(f"<li>{escape(line)}</li>" for line in self.summary)
        text = f"<details><summary>all of it</summary><pre>{escape(str(self))}</pre></details>"
        return f"<div>{self.svg()}<ul>{lines}</ul>{text}</div>"
