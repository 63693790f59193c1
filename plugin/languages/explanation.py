"""What every explanation can do, of whatever language: text, JSON, Graphviz, a picture; notebooks show it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from dataclasses import asdict
from html import escape
from typing import TYPE_CHECKING, Any, Final

from oxiseq.pictures.drawing import Drawing, Svg, dot, draw

if TYPE_CHECKING:
    from oxiseq.engine.flow.explain import Step

WITH_EQUALS: Final = "all, with equal queries that began at the same event"
"""What a query shares whose state depends on when it began."""


class Explanation(ABC):
    """What one query is compiled to: the fields of a dataclass. `str()` is the text."""

    __slots__ = ()

    def json(self) -> dict[str, Any]:
        """As JSON values, with the names of the fields."""
        return asdict(self)  # type: ignore[call-overload, no-any-return]  # each kind is a dataclass

    @abstractmethod
    def __str__(self) -> str:
        """For a terminal."""

    @property
    @abstractmethod
    def drawing(self) -> Drawing:
        """The query's automaton, or the network that its events pass."""

    def dot(self) -> str:
        """That for Graphviz."""
        return dot(self.drawing)

    def svg(self) -> Svg:
        """That as a picture."""
        what = self.drawing
        return draw(what.nodes, what.arrows, what.title, network=what.network)

    @property
    @abstractmethod
    def summary(self) -> tuple[str, ...]:
        """A few lines below the picture."""

    def _repr_html_(self) -> str:
        lines = "".join(f"<li>{escape(line)}</li>" for line in self.summary)
        text = f"<details><summary>all of it</summary><pre>{escape(str(self))}</pre></details>"
        return f"<div>{self.svg()}<ul>{lines}</ul>{text}</div>"


def operator_lines(operators: Iterable[Step]) -> Iterator[str]:
    """Operators over rows that come and go, for a terminal."""
    for step in operators:
        of = f" of {', '.join(map(str, step.inputs))}" if step.inputs else ""
        head, *more = [*step.detail, ""]
        yield f"  {step.number}: {step.what}{of}  {head}".rstrip()
        yield from (f"       {line}" for line in more if line)
