"""A drawing in Graphviz' language."""

from __future__ import annotations

from collections.abc import Iterator

from oxiseq.pictures.drawing import Drawing, Node


def dot(drawing: Drawing) -> str:
    """The same nodes and arrows as in the picture, with all their texts."""
    return "\n".join(_lines(drawing)) + "\n"


def _lines(drawing: Drawing) -> Iterator[str]:
    yield from (
        "digraph query {",
        "  rankdir=LR;",
        '  node [shape=box, style=rounded, fontname="sans-serif"];',
        '  edge [fontname="sans-serif", fontsize=10];',
    )
    for node in drawing.nodes:
        yield f"  {node.name} [{_shown(node)}];"
    for arrow in drawing.arrows:
        lines = (*arrow.lines, *arrow.more)
        shown = [*(["style=dashed"] if arrow.dashed else []), *([f"label={_quoted(*lines)}"] if lines else [])]
        yield f"  {arrow.source} -> {arrow.target}{' [' * bool(shown)}{', '.join(shown)}{']' * bool(shown)};"
    yield "}"


def _shown(node: Node) -> str:
    if not node.label:
        return 'shape=point, label=""'
    label = f"label={_quoted(node.label, *([node.note] if node.note else []))}"
    return f"{label}, peripheries=2" if node.final else label


def _quoted(*lines: str) -> str:
    """A label of several lines."""
    escaped = (line.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") for line in lines)
    return '"' + "\\n".join(escaped) + '"'
