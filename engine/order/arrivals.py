"""Events in order of arrival → events in order of time, each by itself (semantics.md 2.7 and 4).

Graphs of one time are not merged, as they are in instants (clock.py): an item of RSEP-QL keeps its own position.
"""

from __future__ import annotations

from oxiseq.engine.events.batch import EventBatch
from oxiseq.engine.order.waiting import EventOrder
from oxiseq.engine.order.watermarks import AFTER_ALL


class Arrivals(EventOrder):
    """Orders the events of streams."""

    def take(self, before: int = AFTER_ALL) -> list[EventBatch]:
        """The complete events before a time, by stream."""
        passed = min(self.passed, before)
        return [EventBatch.concat(waiting.up_to(passed)) for waiting in self._streams]
