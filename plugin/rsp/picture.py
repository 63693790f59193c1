"""The picture of a query over windows: streams → windows → events or patterns → the answer."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

from oxiseq.pictures.drawing import Arrow, Node, draw
from oxiseq.pictures.svg import Svg

if TYPE_CHECKING:
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
    ahead = [f"w{w.number}" for w in e.windows if w.predicates != () or not e.events]
    ahead += [f"e{i}" for i in range(len(e.events)) if not e.matches]
    for i, match in enumerate(e.matches):
        nodes.append(Node(f"m{i}", f"MATCH {match}"))
        names = match.replace("(", " ").replace(")", " ").split()
        arrows += [Arrow(f"e{j}", f"m{i}", ()) for j, event in enumerate(e.events) if event.name in names]
        ahead.append(f"m{i}")
    if e.kb:
        nodes.append(Node("kb", "knowledge base", note=", ".join(_short(k) for k in e.kb)))
        ahead.append("kb")
    ahead = _views(e, nodes, arrows, ahead)
    nodes.append(Node("answer", f"{e.form} {e.report}", True, e.evaluation))
    arrows += [Arrow(name, "answer", ()) for name in ahead]
    return draw(nodes, arrows, f"{e.form}: windows and what is asked of them", network=True)


def _views(e: RspExplanation, nodes: list[Node], arrows: list[Arrow], ahead: list[str]) -> list[str]:
    """The patterns of a conjunctive query, each a view of its own: what stands behind two spaces says on what."""
    views, filters = [], []
    for i, pattern in enumerate(e.patterns):
        text, _, place = pattern.partition("  ")
        nodes.append(Node(f"v{i}", text, note=place))
        if text.startswith("FILTER("):
            filters.append(f"v{i}")
            continue
        views.append(f"v{i}")
        mine = [name for name in ahead if (name == "kb") == ("KB" in place)]
        number = place.removeprefix("in window ")
        arrows += [Arrow(name, f"v{i}", ()) for name in mine if not number.isdigit() or name == f"w{number}"]
    if not views:
        return ahead
    arrows += [Arrow(view, filters[0], ()) for view in views if filters]
    arrows += [Arrow(a, b, ()) for a, b in pairwise(filters)]
    return filters[-1:] or views


def _short(iri: str) -> str:
    """The last part of an IRI."""
    name = iri.strip("<>").rstrip("/#")
    return name[max(name.rfind("/"), name.rfind("#")) + 1 :] if "://" in name or name.startswith("urn:") else name
