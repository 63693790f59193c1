"""Every event an instant of its own, in CEQL's order: positions for runs that match sequences of instants.

In the flow: EventBatch of each stream → **instants, one event in each** → finder (live keys).
"""

from __future__ import annotations

import numpy as np

from oxiseq.engine.events.batch import EventBatch
from oxiseq.engine.order.clock import Clock, Instants
from oxiseq.engine.order.merging import merged
from oxiseq.engine.order.position_log import PositionLog
from oxiseq.engine.terms.saved import KnownTerms, State, part


class PositionClock(Clock):
    """Orders the events of streams as `Merging` does. `log`: when and where each has happened."""

    made_of = *Clock.made_of, part("log")

    def __init__(self, streams: int, lateness: int = 0, start: int | None = None) -> None:
        super().__init__(streams, lateness, start)
        self.log = PositionLog(0, streams)

    def take(self) -> Instants:
        """The events whose position is known by now."""
        passed, streams = self.passed, len(self._streams)
        taken = merged(self._streams, self.lateness, EventBatch)
        events, of = (EventBatch.empty(), np.zeros(0, np.int64)) if taken is None else taken
        first, count = self.instants, len(events)
        where = tuple(np.flatnonzero(of == stream) for stream in range(streams))
        batches = (events,) if streams == 1 else tuple(events.take(at) for at in where)
        if count:
            self.log.add(events.time, of, np.zeros((count, 0), np.int64))
            self.instants += count
            self.completed = int(events.time[-1])
        return Instants(np.arange(first, first + count), batches, where, first, passed, events.time)

    def restore(self, state: State, terms: KnownTerms) -> None:
        self.log = PositionLog(0, len(state["streams"]))
        super().restore(state, terms)
