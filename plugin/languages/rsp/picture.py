"""The picture of a query over windows: streams → windows → events, operators → the answer."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

from oxiseq.languages.explanation import network
from oxiseq.pictures.drawing import Arrow, Drawing, Node

if TYPE_CHECKING:
    from oxiseq.engine.flow.explain import Step
    from oxiseq.languages.rsp.explain import RspExplanation


def picture(e: RspExplanation) -> Drawing:
    """As a network from left to right."""
    streams = list(dict.fromkeys(w.stream for w in e.windows))
    nodes = [Node(f"s{i}", _short(s), note="stream") for i, s in enumerate(streams)]
    arrows: list[Arrow] = []
    for w in e.windows:
        names = [*map(_short, w.names), *(["default graph"] if w.default else [])]
        nodes.append(Node(f"w{w.number}", w.window, note=", ".join(names)))
        arrows.append(Arrow(f"s{streams.index(w.stream)}", f"w{w.number}"))
    for i, event in enumerate(e.events):
        nodes.append(Node(f"e{i}", f"EVENT {event.name}", note=" ".join(f"?{v}" for v in event.variables)))
        arrows.append(Arrow(f"w{event.content}", f"e{i}"))

    def drawn(step: Step) -> list[str] | None:
        if step.what == "rows":
            return [f"e{i}" for i, event in enumerate(e.events) if event.name == step.detail[0]]
        return _views(step, nodes, arrows) if step.what == "patterns" else None

    def asked(step: Step) -> str | None:
        return _knowledge(nodes) if step.asked else None

    last = network(e.operators, nodes, arrows, drawn=drawn, source=asked)[e.root]
    for i, match in enumerate(e.matches):
        nodes.append(Node(f"m{i}", f"MATCH {match}"))
        arrows += [Arrow(name, f"m{i}") for name in last]
        last = [f"m{i}"]
    nodes.append(Node("answer", f"{e.form} {e.report}", True, "incremental"))
    arrows += [Arrow(name, "answer") for name in last]
    return Drawing(f"{e.form}: windows and what is queried from them", nodes, arrows, network=True)


def _views(step: Step, nodes: list[Node], arrows: list[Arrow]) -> list[str]:
    """Patterns that are joined, each a view of its own, then their filters: the text behind two spaces says on
    what."""
    views, filters = [], list[str]()
    for i, line in enumerate(step.detail):
        text, _, place = line.partition("  ")
        name = f"o{step.number}_{i}"
        nodes.append(Node(name, text, note=place))
        if not place:
            filters.append(name)
            continue
        views.append(name)
        window = place.removeprefix("in window ")
        source = f"w{window}" if window.isdigit() else _knowledge(nodes)
        arrows.append(Arrow(source, name))
    arrows += [Arrow(view, filters[0]) for view in views if filters]
    arrows += [Arrow(a, b) for a, b in pairwise(filters)]
    return filters[-1:] or views


def _knowledge(nodes: list[Node]) -> str:
    if not any(node.name == "kb" for node in nodes):
        nodes.append(Node("kb", "knowledge base"))
    return "kb"


def _short(iri: str) -> str:
    """The last part of an IRI."""
    name = iri.strip("<>").rstrip("/#")
    return name[max(name.rfind("/"), name.rfind("#")) + 1 :] if "://" in name or name.startswith("urn:") else name
