"""Event patterns kept from instant to instant: what has come and what has gone, without asking again.

Where it stands: mappings that enter and leave windows → **the change of a MATCH's mappings**. For SEQ without
selection, FIRST and LAST, and without consumption: there a mapping lives as long as all its items are in their windows,
and a new one has a new item. So new pairs are what is new on one side with what is there on the other.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from oxiseq.engine.errors import LimitError
from oxiseq.engine.rsp.full_rows import FullRows
from oxiseq.engine.rsp.items import Content
from oxiseq.engine.rsp.mappings import MOST_PAIRS, Events, Stored, concat, follow, is_plain
from oxiseq.engine.rsp.plan import MatchPlan, RspPlan
from oxiseq.grammar.algebra import EventName, EventPattern, Following

_NO_USED = np.zeros(0, np.int64)


def grows(match: MatchPlan, plan: RspPlan) -> bool:
    """Whether a MATCH can be kept so."""
    return not plan.consumes and is_plain(match.pattern)


class _Node(Protocol):
    """An event pattern: all its mappings at the instant, those of them that are new and that are not, those gone."""

    alive: Events
    new: Events
    old: Events
    gone: Events

    def step(self) -> None:
        """Go on to where the windows are now."""

    @property
    def leaves(self) -> tuple[Content, ...]:
        """The contents of its events, left to right."""


class _Atom:
    """An event."""

    def __init__(self, stored: Stored, content: Content) -> None:
        self._stored, self._content = stored, content
        self._start = self._stop = 0

    @property
    def leaves(self) -> tuple[Content, ...]:
        return (self._content,)

    def step(self) -> None:
        start, stop, before = self._content.start, self._content.stop, self._stop
        self.gone = self._within(self._start, min(start, before))
        self.old = self._within(start, before)
        self.new = self._within(max(start, before), stop)
        self.alive = self._within(start, stop)
        self._start, self._stop = start, stop

    def _within(self, start: int, stop: int) -> Events:
        return self._stored.within(start, max(start, stop), _NO_USED)


class _Pairs:
    """SEQ."""

    def __init__(self, left: _Node, right: _Node) -> None:
        self._left, self._right = left, right
        self._known: Events | None = None

    @property
    def leaves(self) -> tuple[Content, ...]:
        return self._left.leaves + self._right.leaves

    def step(self) -> None:
        left, right = self._left, self._right
        left.step()
        right.step()
        came = follow(left.alive, right.new)
        if len(left.new) and len(right.old):  # of windows that do not end at the same time
            after = right.old.take(right.old.start > left.new.end.min())
            came = concat(came, follow(left.new, after))
        known = came.take(np.zeros(0, np.int64)) if self._known is None else self._known
        starts = np.array([content.start for content in self.leaves])
        stays: NDArray[np.bool_] = np.all(known.items >= starts, axis=1)
        all_stay = bool(stays.all())
        self.gone = known.take(np.zeros(0, np.int64)) if all_stay else known.take(~stays)
        self.old = known if all_stay else known.take(stays)
        self.new = came
        self.alive = self._known = concat(self.old, came)
        if len(self.alive) > MOST_PAIRS:
            raise LimitError(len(self.alive), MOST_PAIRS, "pairs of events of one SEQ")


@dataclass(frozen=True, slots=True)
class Change:
    """Mappings of a MATCH that were not there before, and that were there and are not: each once."""

    new: FullRows
    gone: FullRows


class Growing:
    """One MATCH, kept; `stored` and `contents` by the names of its events."""

    def __init__(self, match: MatchPlan, stored: Mapping[str, Stored], contents: Mapping[str, Content]) -> None:
        self._match = match
        self._root = _node(match.pattern, stored, contents)
        self._counts: dict[bytes, int] = {}

    def __len__(self) -> int:
        return len(self._counts)

    def step(self) -> Change:
        """Go on to where the windows are now. Raises LimitError."""
        self._root.step()
        new, gone = self._rows(self._root.new), self._rows(self._root.gone)
        before: dict[bytes, int] = {}
        first_new, first_gone = _first(new), _first(gone)
        counts = self._counts
        for rows, one in ((gone, -1), (new, 1)):
            for key in rows.keys():  # noqa: SIM118  no dictionary
                count = counts.get(key, 0)
                before.setdefault(key, count)
                if count + one:
                    counts[key] = count + one
                else:
                    del counts[key]
        came = (first_new[key] for key in first_new if not before[key] and key in counts)
        went = (first_gone[key] for key in first_gone if before[key] and key not in counts)
        return Change(_some(new, came), _some(gone, went))

    def _rows(self, events: Events) -> FullRows:
        return rows_of(self._match, events)


def rows_of(match: MatchPlan, events: Events) -> FullRows:
    """A MATCH's mappings as rows, with their times where they count."""
    span = np.stack([events.start, events.end], axis=1) if match.timed else np.zeros((len(events), 0), np.int64)
    return FullRows(events.columns(match.variables), span)


def _node(pattern: EventPattern, stored: Mapping[str, Stored], contents: Mapping[str, Content]) -> _Node:
    if isinstance(pattern, EventName):
        return _Atom(stored[pattern.name], contents[pattern.name])
    assert isinstance(pattern, Following)  # `grows` has seen to it
    return _Pairs(_node(pattern.first, stored, contents), _node(pattern.second, stored, contents))


def _first(rows: FullRows) -> dict[bytes, int]:
    """Key → the first row that has it."""
    found: dict[bytes, int] = {}
    for i, key in enumerate(rows.keys()):
        found.setdefault(key, i)
    return found


def _some(rows: FullRows, numbers: Iterable[int]) -> FullRows:
    index: NDArray[np.int64] = np.array(list(numbers), np.int64)
    return rows.take(index)
