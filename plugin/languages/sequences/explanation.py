"""The explanation as an object, and its automaton as a picture."""

from __future__ import annotations

from collections.abc import Iterator

from oxiseq.grammar.records import dataclass
from oxiseq.languages.explanation import Explanation
from oxiseq.languages.sequences.facts import EdgeFacts, SequenceFacts, StateFacts
from oxiseq.languages.sequences.text import as_text
from oxiseq.pictures.drawing import Arrow, Drawing, Node


@dataclass(frozen=True, slots=True)
class SequenceExplanation(SequenceFacts, Explanation):
    """The facts, and what can be done with them."""

    @property
    def drawing(self) -> Drawing:
        """The automaton: a box per state, double where a match ends, an arrow per wait."""
        nodes = [Node("start", ""), *map(_node, self.states)]
        if any(edge.op == "window" for edge in self.edges):
            aged = any(edge.op == "window" and edge.age for edge in self.edges)
            nodes.append(Node("end", "time is up" if aged else "window closed", True))
        return Drawing(self.sequence, nodes, [arrow for edge in self.edges for arrow in _arrows(edge)])

    def __str__(self) -> str:
        return as_text(self)

    @property
    def summary(self) -> tuple[str, ...]:
        gpms = (f"{gpm.name} on {gpm.stream}: {gpm.answered}" for gpm in self.gpms)
        atoms = (f"{atom.text}: a typed predicate" for atom in self.atoms)
        return (f"{self.sequence}, window: {self.window}", f"runner: {self.runner}", self.correlation, *gpms, *atoms)


def _node(state: StateFacts) -> Node:
    """Below it the variables that hold the event, but for its type."""
    names = [name for name in state.held or () if name != state.letter.partition("[")[0]]
    return Node(f"s{state.number}", state.letter, state.final, ", ".join(names))


def _arrows(edge: EdgeFacts) -> Iterator[Arrow]:
    source = "start" if edge.source < 0 else f"s{edge.source}"
    bounds = (*([edge.age] if edge.age else []), *edge.lasting)
    begun = (f"after {', '.join(edge.after)}",) if edge.after else ()
    without = (*bounds, *begun, *(f"no {' '.join([g.letter, *g.conditions])}" for g in edge.guards))
    key = (f"key: {', '.join(edge.live)}",) if edge.live and edge.source >= 0 else ()
    if edge.op == "window":
        yield Arrow(source, "end", without, dashed=True, more=key)
    for arm in edge.arms:
        op = "" if edge.source < 0 else f"{edge.op} "
        yield Arrow(source, f"s{arm.target}", (op + arm.letter, *arm.conditions, *without), more=key)
    for target in edge.targets:
        yield Arrow(source, f"s{target}", (edge.op,) if edge.op else ())
