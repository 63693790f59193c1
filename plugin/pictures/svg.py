"""SVG as text."""

from __future__ import annotations

from html import escape

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
