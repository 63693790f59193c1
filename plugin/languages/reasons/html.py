"""Why, drawn for a notebook: a bar per part of each pattern and per step of the query; what one condition less adds.

The words are those of text.py; the page draws the same values itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from html import escape
from typing import Final

from oxiseq.engine.events.time import to_text
from oxiseq.languages.reasons.report import Funnel, Why
from oxiseq.languages.reasons.text import NO_REASON, count, near_text, part_text, reason_text, values_text

_BAR: Final = 120
"""Pixels of all events."""
_COLOUR: Final = "#3b82c4"


def as_html(why: Why) -> str:
    """The whole report; a bar's length is its share of the events, or of the matches."""
    late = f", {why.late:,} events came too late" if why.late else ""
    found = f"{'at least ' * why.more}{count(why.found, 'match', 'matches')}"
    words = why.wording
    steps = f"partial matches by step: {words.steps}{'' if why.at is None else f', at {to_text(why.at)}'}"
    most = max((stage.matches for stage in why.stages), default=0)
    stages = (
        _row(stage.matches, most, f"{'at least ' * stage.more}{stage.matches:,}", f"<code>{escape(stage.text)}</code>")
        for stage in why.stages
    )
    return (
        f"<div><p><b>{found}</b>{late}{''.join(f'. {escape(note)}' for note in why.notes)}</p>"
        f"{_table(words.patterns, (row for funnel in why.gpms for row in _funnel(why, funnel)))}"
        f"{_table(steps, stages)}{''.join(_reasons(why))}</div>"
    )


def _funnel(why: Why, funnel: Funnel) -> Iterator[str]:
    saw = f" saw {count(funnel.saw, 'event', 'events')} of {funnel.stream}" if funnel.stream else ""
    yield f'<tr><td colspan="3" style="text-align:left"><b>{escape(funnel.gpm)}</b>{escape(saw)}</td></tr>'
    before = funnel.saw
    for step in funnel.steps:
        missed = "".join(
            f"<li>{to_text(miss.time)}{escape(values_text(miss.values, why.wording.mark))}</li>" for miss in step.misses
        )
        stopped = before - step.events if step.kind != "holds" else 0
        more = f"<details><summary>{stopped:,} stopped here</summary><ul>{missed}</ul></details>"
        told = escape(step.text if step.kind == "holds" else part_text(step.kind, step.text))
        yield _row(step.events, funnel.saw, f"{step.events:,}", f"{told}{more if missed and stopped > 0 else ''}")
        before = step.events if step.kind != "holds" else before


def _reasons(why: Why) -> Iterator[str]:
    if why.stopped is not None:
        yield f"<p>It comes no further than before <code>{escape(why.stopped)}</code> is complete.</p>"
    if not why.reasons:
        if why.stopped is not None:
            yield f"<p>{escape(NO_REASON)}</p>"
        return
    yield "<p><b>near misses: without one condition</b></p><ul>"
    for reason in why.reasons:
        near = "".join(f"<li>{escape(near_text(each, to_text, why.wording.mark))}</li>" for each in reason.nearest)
        yield f"<li>{escape(reason_text(reason))}<ul>{near}</ul></li>"
    yield "</ul>"


def _table(title: str, rows: Iterable[str]) -> str:
    body = "".join(rows)
    return f'<table><caption style="text-align:left"><b>{escape(title)}</b></caption>{body}</table>' if body else ""


def _row(part: int, whole: int, number: str, words: str) -> str:
    """`words` are HTML."""
    wide = round(_BAR * part / whole) if whole else 0
    bar = f'<div style="width:{max(wide, 1 if part else 0)}px;height:9px;background:{_COLOUR}"></div>'
    return f'<tr><td style="width:{_BAR}px">{bar}</td><td>{number}</td><td style="text-align:left">{words}</td></tr>'
