"""A directed graph in layers, from left to right: ranks by distance from the first node, no Graphviz."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterator, Sequence
from dataclasses import replace
from html import escape

from oxiseq.grammar.records import dataclass

# --- svg -------------------------------------------------------------------------------------------------

STYLE = (
    "<style>.o text{font:12px sans-serif;fill:currentColor}.o .s{font-size:10px}.o .n{fill:none;stroke:currentColor}"
    ".o .e{fill:none;stroke:currentColor;opacity:.6}.o .b{fill:#3b82c4;opacity:.25}.o .d{fill:#3b82c4}"
    ".o .g{stroke:currentColor;opacity:.2}</style>"
)


class Svg(str):
    """An SVG picture; notebooks show it."""

    __slots__ = ()

    def _repr_svg_(self) -> str:
        return str(self)


def picture(width: float, height: float, parts: list[str], title: str) -> Svg:
    """The whole picture; `title` is read out instead of it."""
    size = f'width="{width:.0f}" height="{height:.0f}" viewBox="0 0 {width:.0f} {height:.0f}"'
    head = f'<svg xmlns="http://www.w3.org/2000/svg" class="o" role="img" {size}>'
    return Svg(f"{head}<title>{escape(title)}</title>{STYLE}{''.join(parts)}</svg>")


def text(x: float, y: float, words: str, *, small: bool = False, anchor: str = "middle") -> str:
    """Words at a place."""
    kind = ' class="s"' if small else ""
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"{kind}>{escape(words)}</text>'


# --- drawing ---------------------------------------------------------------------------------------------

_HEIGHT = 34
_LINE = 13
_LETTER = 6.4
_CAPITAL = 8.6
_SMALL = 5.4
_MOST = 40
"""Letters of a line."""


@dataclass(frozen=True, slots=True)
class Node:
    """`label` is empty for the point where everything begins; `final` gives a double border; `note` is below the
    label, smaller."""

    name: str
    label: str
    final: bool = False
    note: str = ""


@dataclass(frozen=True, slots=True)
class Arrow:
    """From one node to another, with lines of words; `more`: for those who have room for them."""

    source: str
    target: str
    lines: tuple[str, ...] = ()
    dashed: bool = False
    more: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Drawing:
    """A drawing. The first node is the beginning; nodes that it does not reach are in its rank. A `network`
    has no cycles: each node comes after all that lead to it."""

    title: str
    nodes: Sequence[Node]
    arrows: Sequence[Arrow]
    network: bool = False


def draw(nodes: Sequence[Node], arrows: Sequence[Arrow], title: str, *, network: bool = False) -> Svg:
    """The picture of a `Drawing`."""
    nodes = [replace(node, label=_cut(node.label), note=_cut(node.note)) for node in nodes]
    arrows = [Arrow(a.source, a.target, tuple(_cut(line) for line in a.lines), a.dashed) for a in arrows]
    ranks = _depths(nodes, arrows) if network else _ranks(nodes, arrows)
    layers: dict[int, list[Node]] = defaultdict(list)
    for node in nodes:
        layers[ranks[node.name]].append(node)
    places, width = _columns(layers, arrows, ranks)
    tallest = max((len(a.lines) for a in arrows), default=1)
    row = _HEIGHT + 30 + _LINE * tallest
    most = max(len(layer) for layer in layers.values())
    top = 40 + _LINE * tallest
    at = {
        node.name: (places[rank], top + row * (i + (most - len(layer)) / 2) + _HEIGHT / 2)
        for rank, layer in layers.items()
        for i, node in enumerate(layer)
    }
    sizes = {node.name: _size(node) for node in nodes}
    parts = [
        '<defs><marker id="oa" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="7" markerHeight="7" orient="auto">'
        '<path d="M0 0L8 4L0 8z" fill="currentColor"/></marker></defs>'
    ]
    drawn: dict[tuple[str, str], int] = defaultdict(int)
    for arrow in arrows:
        parts += _arrow(arrow, at, sizes, ranks, drawn[arrow.source, arrow.target])
        drawn[arrow.source, arrow.target] += 1
    for node in nodes:
        parts += _node(node, *at[node.name], sizes[node.name])
    return picture(
        width + 30, top + row * (most - 1) + _HEIGHT + 16, parts, title
    )  # nothing is drawn below the last row


def _cut(line: str) -> str:
    return line if len(line) <= _MOST else line[: _MOST - 1] + "…"


def _size(node: Node) -> float:
    letters = sum(_CAPITAL if letter.isupper() else _LETTER for letter in node.label)
    return max(letters + 20, len(node.note) * _SMALL + 16, 40) if node.label else 12


def _ranks(nodes: Sequence[Node], arrows: Sequence[Arrow]) -> dict[str, int]:
    ranks = {nodes[0].name: 0}
    waiting = deque(ranks)
    while waiting:
        name = waiting.popleft()
        for arrow in arrows:
            if arrow.source == name and arrow.target not in ranks:
                ranks[arrow.target] = ranks[name] + 1
                waiting.append(arrow.target)
    return {node.name: ranks.get(node.name, 0) for node in nodes}


def _depths(nodes: Sequence[Node], arrows: Sequence[Arrow]) -> dict[str, int]:
    """The length of the longest way to each node; a node without predecessors comes just before its first successor."""
    ranks = {node.name: 0 for node in nodes}
    for _ in nodes:
        for arrow in arrows:
            ranks[arrow.target] = max(ranks[arrow.target], ranks[arrow.source] + 1)
    inner = {arrow.target for arrow in arrows}
    for name in ranks:
        ahead = [ranks[arrow.target] for arrow in arrows if arrow.source == name]
        if name not in inner and ahead:
            ranks[name] = min(ahead) - 1
    return ranks


def _columns(
    layers: dict[int, list[Node]], arrows: Sequence[Arrow], ranks: dict[str, int]
) -> tuple[dict[int, float], float]:
    """Where the middle of each rank is, wide enough for the words between ranks, and the width of all."""
    x, places = 20.0, {}
    for rank in sorted(layers):
        half = max(_size(node) for node in layers[rank]) / 2
        places[rank] = x + half
        words = [len(line) for a in arrows if min(ranks[a.source], ranks[a.target]) == rank for line in a.lines]
        x += 2 * half + max([40.0, *(n * _SMALL + 24 for n in words)])
    return places, x


def _node(node: Node, x: float, y: float, width: float) -> Iterator[str]:
    if not node.label:
        yield f'<circle cx="{x:.1f}" cy="{y:.1f}" r="5" fill="currentColor"/>'
        return
    for grow in (0, 3) if node.final else (0,):
        yield (
            f'<rect class="n" rx="8" x="{x - width / 2 - grow:.1f}" y="{y - _HEIGHT / 2 - grow:.1f}" '
            f'width="{width + 2 * grow:.1f}" height="{_HEIGHT + 2 * grow}"/>'
        )
    yield text(x, y - 2 if node.note else y + 4, node.label)
    if node.note:
        yield text(x, y + 11, node.note, small=True)


def _arrow(
    arrow: Arrow, at: dict[str, tuple[float, float]], sizes: dict[str, float], ranks: dict[str, int], number: int
) -> Iterator[str]:
    (x0, y0), (x1, y1) = at[arrow.source], at[arrow.target]
    dash = ' stroke-dasharray="4 3"' if arrow.dashed else ""
    if arrow.source == arrow.target:
        top = y0 - _HEIGHT / 2 - 3
        peak = f"{x0 - 24:.1f} {top - 30:.1f} {x0 + 24:.1f} {top - 30:.1f}"
        path = f"M{x0 - 10:.1f} {top:.1f}C{peak} {x0 + 10:.1f} {top:.1f}"
        middle = x0, top - 26
    elif ranks[arrow.source] == ranks[arrow.target]:
        side = 1 if y1 > y0 else -1
        a, b = (x0 + side * sizes[name] / 2 for name in (arrow.source, arrow.target))
        bend = max(a * side, b * side) + 26
        path = f"M{a:.1f} {y0 + 6 * side:.1f}Q{bend * side:.1f} {(y0 + y1) / 2:.1f} {b:.1f} {y1 - 6 * side:.1f}"
        middle = bend * side, (y0 + y1) / 2
    else:
        back = ranks[arrow.target] <= ranks[arrow.source]
        near = 0 if abs(ranks[arrow.target] - ranks[arrow.source]) == 1 and not back and not number else 1
        lift = (34 + 22 * number) * near
        side = -1 if back else 1
        a, b = x0 + side * sizes[arrow.source] / 2, x1 - side * (sizes[arrow.target] / 2 + 4)
        ya, yb = y0, y1
        mid = (a + b) / 2
        path = f"M{a:.1f} {ya:.1f}Q{mid:.1f} {(ya + yb) / 2 - 2 * lift:.1f} {b:.1f} {yb:.1f}"
        middle = mid, (ya + yb) / 2 - lift - 6
    yield f'<path class="e" marker-end="url(#oa)"{dash} d="{path}"/>'
    for i, line in enumerate(reversed(arrow.lines)):
        yield text(middle[0], middle[1] - _LINE * i, line, small=True)


# --- graphviz --------------------------------------------------------------------------------------------


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
