"""Streams of tuple events merged in order of time: each event has a position of its own (semantics.md 3).

In the flow: marks of each stream's events, in order of arrival → **marks of all, in order** → `CeaRun`.
Simultaneous events are in the order of FROM, then of arrival. As with instants (clock.py) a stream has a watermark
and an event older than it is late; but a single stream's event need not wait for a later one, since an event at the
same time comes after it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from oxiseq.engine.cea.events import Marks
from oxiseq.engine.order.waiting import Order, Piece, Waiting
from oxiseq.engine.terms.dictionary import AnyIds

P = TypeVar("P", bound=Piece)


def merged(streams: Sequence[Waiting[P]], lateness: int, kind: type[P]) -> tuple[P, NDArray[np.int64]] | None:
    """Take the events whose place is known by now, in order, and the number of the stream of each; None: there is none.

    An event of the stream s at the time t has its place when no event can come any more that is before it: on
    every stream r with the watermark w, (t, s) is at most (w, r).
    """
    if len(streams) == 1:
        done = streams[0].up_to(streams[0].at(lateness) + 1)
        if not done:
            return None
        events = kind.concat(done)
        return events, np.zeros(len(events.time), np.int64)
    mark, last = min((waiting.at(lateness), s) for s, waiting in enumerate(streams))
    parts: list[P] = []
    sizes = []
    for s, waiting in enumerate(streams):
        done = waiting.up_to(mark + 1 if s <= last else mark)
        parts += done
        sizes.append(sum([len(part) for part in done]))
    if not parts:
        return None
    events = kind.concat(parts)
    of = np.repeat(np.arange(len(sizes)), sizes)
    if of[0] != of[-1]:  # of several streams, one after the other
        order = np.argsort(events.time, kind="stable")
        events, of = events.take(order), of[order]
    return events, of


class Merging(Order[Marks]):
    """Orders the events of streams."""

    _kind = Marks

    def mapped(self, how: Callable[[Marks], Marks]) -> Merging:
        """A copy that continues alone from here, with other marks on the events that wait."""
        other = self.copy()
        for waiting in other._streams:
            waiting.pending = deque(map(how, waiting.pending))
        return other

    def held_ids(self) -> Iterator[AnyIds]:
        """The terms of events that wait."""
        return (piece.values for waiting in self._streams for piece in waiting.pending)

    def take(self) -> tuple[Marks, NDArray[np.int64]] | None:
        """The events whose place is known by now, and the number of the stream of each."""
        return merged(self._streams, self.lateness, Marks)
