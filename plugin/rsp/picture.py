"""The picture of a query over windows: streams → windows → events, operators → the answer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from oxiseq.pictures.drawing import Arrow, Node, draw
from oxiseq.pictures.svg import Svg

if TYPE_CHECKING:
    from oxiseq.engine.flow.explain import Step
    from oxiseq.rsp.explain import RspExplanation


def picture(e: RspExplanation) -> Svg:
    """As a network from left to right."""
    streams = list(dict.fromkeys(w.stream for w in e.windows))
    nodes = [Node(f"s{i}", _short(s), note="stream") for i, s in enumerate(streams)]
    arrows: list[Arrow] = []
    for w in e.windows:
        names = [*map(_short, w.names), *(["default graph"] if w.default else [])]
        nodes.append(Node(f"w{w.number}", w.window, note=", ".join(names)))
        arrows.append(Arrow(f"s{streams.index(w.stream)}", f"w{w.number}", ()))
    for i, event in enumerate(e.events):
        nodes.append(Node(f"e{i}", f"EVENT {event.name}", note=" ".join(f"?{v}" for v in event.variables)))
        arrows.append(Arrow(f"w{event.content}", f"e{i}", ()))
    for i, match in enumerate(e.matches):
        nodes.append(Node(f"m{i}", f"MATCH {match}"))
        names = match.replace("(", " ").replace(")", " ").split()
        arrows += [Arrow(f"e{j}", f"m{i}", ()) for j, event in enumerate(e.events) if event.name in names]
    last = _operators(e, nodes, arrows)
    nodes.append(Node("answer", f"{e.form} {e.report}", True, "incremental"))
    arrows += [Arrow(name, "answer", ()) for name in last]
    return draw(nodes, arrows, f"{e.form}: windows and what is asked of them", network=True)


_UNSEEN: Final = frozenset(("columns", "arranged by", "consolidate", "less"))
"""Operators that a picture does without."""


def _operators(e: RspExplanation, nodes: list[Node], arrows: list[Arrow]) -> list[str]:
    """Those that say something, each behind its inputs. What the answer is made of."""
    ahead: list[list[str]] = []
    for step in e.operators:
        before = list(dict.fromkeys(name for child in step.inputs for name in ahead[child]))
        if step.what in _UNSEEN:
            ahead.append(before)
            continue
        if not step.inputs:
            before = _sources(e, step, nodes)
        name = f"o{step.number}"
        shown = [line.partition("  ")[0] for line in step.detail] or [""]
        label = shown[0] if step.what in ("patterns", "rows") else " ".join([step.what, shown[0]]).strip()
        nodes.append(Node(name, label, note=", ".join(shown[1:])))
        arrows += [Arrow(each, name, ()) for each in before]
        ahead.append([name])
    return ahead[-1]


def _sources(e: RspExplanation, step: Step, nodes: list[Node]) -> list[str]:
    """The windows, the knowledge base, the MATCH that an operator reads."""
    if step.what == "rows":
        return [f"m{step.detail[0].removeprefix('MATCH ')}"]
    told = [line.partition("  ")[2] for line in step.detail]
    found = [f"w{w.number}" for w in e.windows if f"in window {w.number}" in told]
    if step.asked or any("knowledge base" in line for line in told):
        if not any(node.name == "kb" for node in nodes):
            nodes.append(Node("kb", "knowledge base"))
        found.append("kb")
    return found


def _short(iri: str) -> str:
    """The last part of an IRI."""
    name = iri.strip("<>").rstrip("/#")
    return name[max(name.rfind("/"), name.rfind("#")) + 1 :] if "://" in name or name.startswith("urn:") else name
