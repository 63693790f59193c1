"""A running query as a notebook shows it: its counts and newest matches, redrawn while events come.

    query ─(read at intervals, on a thread)─▶ HTML ─▶ IPython.display's DisplayHandle.update

Nothing is drawn, and nothing noted, when events are pushed. IPython is asked only when a notebook shows the view, so it
is no dependency.
"""

from __future__ import annotations

import sys
import threading
import weakref
from datetime import UTC, datetime
from html import escape
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final, Protocol

from oxiseq.grammar.errors import ArgumentValueError
from oxiseq.matches.match import moments, short
from oxiseq.matches.rows import EVENTS, Cell, Times, cell_text, row_of
from oxiseq.pictures.timeline import timeline

if TYPE_CHECKING:
    from oxiseq.api.continuous import ContinuousQuery

EVERY: Final = 0.5
"""Seconds between looks."""
MATCHES: Final = 20
"""Matches that are shown."""


class Handle(Protocol):
    """IPython's DisplayHandle: a place in a notebook whose content can be replaced."""

    def update(self, shown: Any, /) -> None:
        """Show something else there."""
        ...


class Shown:
    """HTML as it was at one moment."""

    def __init__(self, html: str) -> None:
        self._html = html

    def _repr_html_(self) -> str:
        return self._html


class LiveView:
    """Get it by `query.live()`. A notebook that shows it redraws it until `stop()`, or the query's end.

    Outside a notebook, `html()` gives its current state. It does not take matches away from `query.poll()`.
    """

    def __init__(self, query: ContinuousQuery, every: float, most: int) -> None:
        if not 0 <= most <= sys.maxsize:
            raise ArgumentValueError(f"matches is how many are shown, 0 or more, not {most}")
        if not 0 < every <= threading.TIMEOUT_MAX:
            raise ArgumentValueError(f"every is a number of seconds above 0, not {every!r}")
        self._query = weakref.ref(query)  # a store that nobody holds is to be closed at once
        self._every, self._most = every, most
        self._after = query.match_count
        self._ending = threading.Event()

    # --- the notebook's side ------------------------------------------------------------------------

    def html(self) -> str:
        """Its current state as HTML."""
        query = self._query()
        if query is None:
            return "<p>the query no longer exists</p>"
        status = query.counts
        count = status["matches"]["next"] - 1
        recent = query.matches(max(self._after, count - self._most, status["matches"]["first"] - 1)) if count else ()
        rows = [{k: _short(v) for k, v in row_of(m).items() if not k.startswith(EVENTS)} for m in recent]
        state = "ended" if query.closed else "stopped" if self._ending.is_set() else "running"
        at = datetime.now(UTC).strftime("%H:%M:%S UTC")
        facts = f"{status['events']:,} events, {status['late']:,} late, {count:,} matches"
        drawn = timeline([*map(moments, recent)], count, "newest") if recent else ""
        return f"<div><p><b>{state}</b> at {at}: {facts}</p>{drawn}{_table(rows)}</div>"

    def show(self, handle: Handle) -> None:
        """Keep a place up to date from a separate thread, until the place fails."""
        threading.Thread(target=self._keep_up, args=(handle,), name="oxiseq-live-view", daemon=True).start()

    def stop(self) -> None:
        """Draw a last time and stop; the query continues."""
        self._ending.set()

    def _keep_up(self, handle: Handle) -> None:
        seen: tuple[int, ...] | None = None
        over = False
        while not over:
            over = self._ending.wait(self._every)
            try:
                query = self._query()
                over = over or query is None or query.closed
                told = None if query is None else query.counts
                now = () if told is None else (told["events"], told["late"], told["matches"]["next"])
                if now != seen or over:
                    seen = now
                    handle.update(Shown(self.html()))
            except Exception:  # whatever a notebook raises whose kernel or page is gone, or a server that is
                return
            del query

    def _repr_html_(self) -> str:
        return self.html()

    def _ipython_display_(self) -> None:
        display = import_module("IPython.display").display  # only a notebook calls this
        self.show(display(Shown(self.html()), display_id=True))

    def __repr__(self) -> str:
        if (query := self._query()) is None:
            return "<LiveView: gone>"
        told = query.counts
        return f"<LiveView: {told['events']} events, {told['matches']['next'] - 1} matches>"


def _short(cell: Cell) -> str:
    return short(cell) if cell is not None and not isinstance(cell, Times | int) else cell_text(cell)


def _table(rows: list[dict[str, str]]) -> str:
    """The newest first, a column for each name."""
    if not rows:
        return ""
    names = list(dict.fromkeys(name for row in rows for name in row))
    lines = [names, *([row.get(name, "") for name in names] for row in reversed(rows))]
    cells = (
        "".join(f"<{tag}>{escape(cell)}</{tag}>" for cell in line)
        for tag, line in zip(("th", *["td"] * len(rows)), lines, strict=True)
    )
    return f"<table>{''.join(f'<tr>{line}</tr>' for line in cells)}</table>"
