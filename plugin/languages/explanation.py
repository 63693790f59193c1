"""What every explanation can do, of whatever language: text, JSON, Graphviz, a picture; notebooks show it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict
from html import escape
from typing import TYPE_CHECKING, Any, Final

from oxiseq.pictures.drawing import Arrow, Drawing, Node, Svg, dot, draw

if TYPE_CHECKING:
    from oxiseq.engine.flow.explain import Step

_UNSEEN: Final = frozenset(("columns", "arranged by", "consolidate", "less", "hull"))
"""Operators that a picture does without."""
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


def _none(step: Step) -> None:
    """No operator is drawn as something else."""


def network(
    operators: Iterable[Step],
    nodes: list[Node],
    arrows: list[Arrow],
    prefix: str = "o",
    drawn: Callable[[Step], list[str] | None] = _none,
    source: Callable[[Step], str | None] = _none,
) -> list[list[str]]:
    """Operators that say something, each behind its inputs; of each operator the nodes that what follows is behind.
    `drawn`: nodes in its place; `source`: a node beside its inputs."""
    ahead: list[list[str]] = []
    for step in operators:
        before = list(dict.fromkeys(name for child in step.inputs for name in ahead[child]))
        made = drawn(step)
        if made is None and step.what not in _UNSEEN:
            made = [f"{prefix}{step.number}"]
            label, *more = step.detail or ("",)
            nodes.append(Node(made[0], f"{step.what} {label}".strip(), note=", ".join(more)))
            arrows += [Arrow(each, made[0]) for each in (*before, *filter(None, [source(step)]))]
        ahead.append(before if made is None else made)
    return ahead


def operator_lines(operators: Iterable[Step]) -> Iterator[str]:
    """Operators over rows that come and go, for a terminal."""
    for step in operators:
        of = f" of {', '.join(map(str, step.inputs))}" if step.inputs else ""
        head, *more = [*step.detail, ""]
        yield f"  {step.number}: {step.what}{of}  {head}".rstrip()
        yield from (f"       {line}" for line in more if line)
