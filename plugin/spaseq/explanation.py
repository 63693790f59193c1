"""The explanation of a SPAseq query as an object, and its automaton as a picture."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

from oxiseq.explanation import Explanation
from oxiseq.pictures.drawing import Arrow, Node, draw
from oxiseq.pictures.svg import Svg
from oxiseq.spaseq.explain_facts import EdgeFacts, SpaseqFacts
from oxiseq.spaseq.explain_text import as_dot, as_text, bounds_of, end_of


@dataclass(frozen=True, slots=True)
class SpaseqExplanation(SpaseqFacts, Explanation):
    """The facts, and what can be done with them."""

    def json(self) -> dict[str, Any]:
        """As JSON values, with the names of the fields."""
        return asdict(self)

    def svg(self) -> Svg:
        """The automaton: a box per state, double where a match ends, an arrow per wait."""
        nodes = [Node("start", ""), *(Node(f"s{s.number}", s.letter, s.final) for s in self.states)]
        if any(edge.op == "window" for edge in self.edges):
            nodes.append(Node("end", end_of(self.edges), True))
        return draw(nodes, [arrow for edge in self.edges for arrow in _arrows(edge)], self.sequence)

    def __str__(self) -> str:
        return as_text(self)

    def dot(self) -> str:
        return as_dot(self)

    @property
    def summary(self) -> tuple[str, ...]:
        gpms = (f"{gpm.name} on {gpm.stream}: {gpm.answered}" for gpm in self.gpms)
        return (f"{self.sequence}, window: {self.window}", self.correlation, *gpms)


def _arrows(edge: EdgeFacts) -> Iterator[Arrow]:
    source = "start" if edge.source < 0 else f"s{edge.source}"
    without = (*bounds_of(edge), *(f"no {' '.join([g.letter, *g.conditions])}" for g in edge.guards))
    if edge.op == "window":
        yield Arrow(source, "end", without, dashed=True)
    for arm in edge.arms:
        op = "" if edge.source < 0 else f"{edge.op} "
        yield Arrow(source, f"s{arm.target}", (op + arm.letter, *arm.conditions, *without))
