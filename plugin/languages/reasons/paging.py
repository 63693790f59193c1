"""A page of the matches that end at one instant, of whatever language: which events decide it, and what it holds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from oxiseq.engine.errors import ArgumentValueError
from oxiseq.engine.events.time import Time, to_microseconds
from oxiseq.engine.matches.frozen import MOST_LIMBS
from oxiseq.engine.matches.paging import Page
from oxiseq.engine.run.run import Run
from oxiseq.languages.reasons.bounds import Bounds
from oxiseq.languages.reasons.read import History, Span
from oxiseq.languages.reasons.working import steps
from oxiseq.matches.matches import Matches
from oxiseq.matches.shape import Shape
from oxiseq.options.kinds import CountKind, whole_number

MOST: Final = 10_000
"""Matches of a page."""
_BITS: Final = 64 * MOST_LIMBS


def page_asked(time: Time, offset: int, limit: int) -> Page:
    """What callers ask for. Raises EventError, ArgumentValueError, ArgumentTypeError."""
    if isinstance(offset, int) and offset.bit_length() > _BITS:
        raise ArgumentValueError(f"offset: no more than 2^{_BITS} matches are counted")
    CountKind(most=1 << _BITS).read(offset, "offset")
    if whole_number(limit, "limit") > MOST:
        raise ArgumentValueError(f"limit: a page has {MOST:,} matches at most, not {limit:,}")
    return Page(to_microseconds(time), offset, limit)


def reach(at: int, window: int | None, start: int | None, waits: int | None, *, sliding: bool) -> Span:
    """Which events decide what ends at `at` (µs). window: its length in µs, None where the query looks back without
    end; start: the t of windows that tumble; waits: for how long after its end a match may be undecided, None: without
    end."""
    since = None
    if window is not None and sliding:
        since = at - window
    elif window is not None and start is not None:
        since = start + (at - start) // window * window
    return Span(since, None if waits is None else at + waits + 1)


def paged(run: Run, shape: Shape, streams: Sequence[str], history: History, bounds: Bounds) -> Matches:
    """The page that a run finds that was compiled for it and has seen nothing. Raises LimitError, and whatever
    `bounds.check` raises."""
    found: list[Any] = []
    for part in steps(run, streams, history, bounds):
        found += part
    events = sum(map(len, history.batches.values()))
    return Matches(shape.block(found), events, total=run.paged)
