"""Matches over time: a lane per GPM (or variable), a band per match from its first event to when it is decided."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape

from oxiseq.engine.events.time import to_text
from oxiseq.pictures.drawing import Svg, picture, text

# --- tables ----------------------------------------------------------------------------------------------


def html_table(caption: str, rows: Sequence[tuple[str, str]], text: str = "") -> str:
    """Names and values; `text` is folded away below."""
    cells = "".join(f"<tr><th>{escape(name)}</th><td>{escape(value)}</td></tr>" for name, value in rows)
    below = f"<details><summary>text</summary><pre>{escape(text)}</pre></details>" if text else ""
    return f"<table><caption>{escape(caption)}</caption>{cells}</table>{below}"


# --- timeline --------------------------------------------------------------------------------------------

_LANE = 26
_WIDTH = 720
_TICKS = 4


def timeline(matches: Sequence[Mapping[str, Sequence[int]]], total: int, which: str = "first") -> Svg:
    """`matches`: per match the times (µs) by lane; `total`: how many there are in all, of which these
    are the first, or `which`."""
    lanes = list(dict.fromkeys(lane for match in matches for lane in match))
    times = [t for match in matches for of in match.values() for t in of]
    title = f"{total} matches" if total == len(matches) else f"the {which} {len(matches)} of {total} matches"
    if not times:
        return picture(_WIDTH, 30, [text(10, 20, title, anchor="start")], title)
    low, high = min(times), max(times)
    left = 20 + max(len(lane) for lane in lanes) * 7
    scale = (_WIDTH - left - 20) / max(high - low, 1)
    bottom = 40 + _LANE * len(lanes)

    def x(time: int) -> float:
        return left + (time - low) * scale

    parts = [text(10, 18, title, anchor="start")]
    for number, lane in enumerate(lanes):
        y = 30 + _LANE * number + _LANE / 2
        parts.append(f'<line class="g" x1="{left}" x2="{_WIDTH - 20}" y1="{y}" y2="{y}"/>')
        parts.append(text(10, y + 4, lane, anchor="start"))
    for match in matches:
        parts += _match(match, lanes, x)
    for tick in range(_TICKS + 1):
        time = low + (high - low) * tick // _TICKS
        anchor = "start" if tick == 0 else "end" if tick == _TICKS else "middle"
        words = to_text(time)
        if tick in (0, _TICKS) or high - low > 1_000_000:
            shown = words if tick in (0, _TICKS) else words.partition("T")[2].partition(".")[0].rstrip("Z")
            parts.append(text(x(time), bottom + 14, shown, small=True, anchor=anchor))
    return picture(_WIDTH, bottom + 24, parts, title)


def _match(match: Mapping[str, Sequence[int]], lanes: Sequence[str], x: object) -> list[str]:
    assert callable(x)
    moments = sorted((t, 30 + _LANE * lanes.index(lane) + _LANE / 2) for lane, of in match.items() for t in of)
    if not moments:
        return []
    begin, end = x(moments[0][0]), x(moments[-1][0])
    words = ", ".join(f"{lane}: {' '.join(map(to_text, of))}" for lane, of in match.items())
    rows = [y for _, y in moments]
    band = (
        f'<g><title>{words}</title><rect class="b" x="{begin - 3:.1f}" y="{min(rows) - 8:.1f}" '
        f'width="{end - begin + 6:.1f}" height="{max(rows) - min(rows) + 16:.1f}" rx="6"/>'
    )
    dots = "".join(f'<circle class="d" cx="{x(t):.1f}" cy="{y:.1f}" r="3.5"/>' for t, y in moments)
    return [f"{band}{dots}</g>"]
