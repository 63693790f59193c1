"""What event patterns have in windows: the mappings that items bring when they come, and take when they go.

In the flow: complete events in order → items (held.py) → **mappings, window by window** → a plan's `Given`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from oxiseq.engine.errors import MappingsError
from oxiseq.engine.events.batch import EventBatch
from oxiseq.engine.flow.delta import I64, Delta
from oxiseq.engine.flow.occurring import Occurring
from oxiseq.engine.flow.plan import Given
from oxiseq.engine.patterns.matcher import StreamMatcher
from oxiseq.engine.rsp.held import Held
from oxiseq.engine.terms.saved import Stateful, part


class Source(NamedTuple):
    """An event pattern: its window's content, its request among those of the stream. form: the source that it feeds."""

    content: int
    stream: int
    request: int
    form: Given


class EventMappings(Stateful):
    """Of some patterns over the same windows. matchers: by stream."""

    made_of = (part("by_name", "events"),)

    def __init__(self, sources: Sequence[Source], matchers: Sequence[StreamMatcher | None], held: Held) -> None:
        self._sources, self._matchers, self._held = sources, matchers, held
        self.by_name = {source.form.name: Occurring(source.form) for source in sources}
        self.beyond: dict[int, MappingsError] = {}
        """Times of events on which a pattern is beyond a limit, so that they have no rows; whoever notes them takes
        them out."""

    def add(self, batches: Sequence[EventBatch]) -> None:
        """Complete events by stream, in order of time: items, and their rows. Raises KbError."""
        for stream, batch in enumerate(batches):
            if len(batch):
                self._match(stream, *self._held.add(stream, batch))

    def take_up(self) -> None:
        """The rows of all items held."""
        for stream, items in enumerate(self._held.items):
            for place, batch in items.kept:
                self._match(stream, place, batch)

    def _match(self, stream: int, place: int, batch: EventBatch) -> None:
        """The rows of events, from a place on; nothing counts after the end of its window."""
        matcher = self._matchers[stream]
        if matcher is None or not len(batch):
            return
        found, beyond = matcher.match_within(batch)
        self.beyond |= {int(batch.time[event]): error for event, error in beyond.items()}
        for source in self._sources:
            rows = found[source.request] if source.stream == stream else None
            if rows is None or not len(rows.event):
                continue
            end = self._held.contents[source.content].window.end
            high = len(rows.event) if end is None else int(batch.time[rows.event].searchsorted(end, "right"))
            at = rows.event[:high]
            self.by_name[source.form.name].add(place + at, batch.time[at], rows.values[:high])

    def move(self, bounds: Sequence[tuple[I64, I64]], tick: int) -> dict[str, Delta]:
        """Windows continue: by content the places [start, stop) at each tick from `tick` on. The changes, by
        name."""
        return {s.form.name: self.by_name[s.form.name].move(*bounds[s.content], tick) for s in self._sources}

    def come_again(self) -> None:
        """Have windows hold nothing, before they move from where they are."""
        for source in self._sources:
            self.by_name[source.form.name].come_again(self._held.contents[source.content].start)

    def forget(self) -> None:
        """What has left the windows is not needed."""
        for rows in self.by_name.values():
            rows.forget()

    def __len__(self) -> int:
        return sum(map(len, self.by_name.values()))
