"""The explanation of an EP-SPARQL query as an object, and its network of interval operators as a picture."""

from __future__ import annotations

from typing import Any

from oxiseq.grammar.records import dataclass
from oxiseq.languages.epsparql.explain import as_text
from oxiseq.languages.explanation import Explanation
from oxiseq.pictures.drawing import Arrow, Drawing, Node


@dataclass(frozen=True, slots=True)
class IntervalExplanation(Explanation):
    """The facts of explain.py."""

    facts: dict[str, Any]

    def json(self) -> dict[str, Any]:
        return self.facts

    def __str__(self) -> str:
        return as_text(self.facts)

    @property
    def drawing(self) -> Drawing:
        """Operators from left to right, what each keeps below its name; rules have networks of their own."""
        network = _Network()
        for rule in self.facts["rules"]:
            name = f"rule{rule['rule']}"
            network.arrows.append(Arrow(network.add(rule["operators"]), name))
            network.nodes.append(Node(name, f"rule {rule['rule']}", True))
        network.arrows.append(Arrow(network.add(self.facts["operators"]), "answers"))
        network.nodes.append(Node("answers", str(self.facts["form"]), True))
        return Drawing(f"{self.facts['form']}: its operators", network.nodes, network.arrows, network=True)

    @property
    def summary(self) -> tuple[str, ...]:
        told = (f"{name}: {self.facts[name]}" for name in ("instants", "memory", "shares"))
        return (f"streams: {' '.join(self.facts['streams'])}", *told)


class _Network:
    def __init__(self) -> None:
        self.nodes: list[Node] = []
        self.arrows: list[Arrow] = []

    def add(self, operator: dict[str, Any]) -> str:
        """An operator and all below it; returns its name."""
        inputs = [self.add(inner) for inner in operator["inputs"]]
        name = f"n{len(self.nodes)}"
        note = f"keeps {'; '.join(operator['keeps'])}" if operator["keeps"] else ""
        self.nodes.append(Node(name, operator["operator"], note=note))
        self.arrows += [Arrow(inner, name) for inner in inputs]
        return name
