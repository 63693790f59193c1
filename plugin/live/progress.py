"""How far the worker has come in the log."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import field

from oxiseq.grammar.records import dataclass
from oxiseq.journal import Checkpoint, Entry, Journal
from oxiseq.live.live_query import LiveQuery


@dataclass(slots=True)
class LogProgress:
    """`position`: the entry that was processed last; `offsets`: of each stream the next one; `positions`: of each
    stream the last entry that queries have been given; `complete`: of each stream up to which time (µs) a punctuation
    says so; `events`: how many since the start; `under_way`: the last of the entries that are passed on now."""

    position: int = 0
    offsets: dict[str, int] = field(default_factory=dict)
    positions: dict[str, int] = field(default_factory=dict)
    complete: dict[str, int] = field(default_factory=dict)
    events: int = 0
    under_way: Entry | None = None

    def passed(self, entry: Entry) -> None:
        """An entry, and all before it, is processed."""
        self.offsets[entry.stream] = entry.first + entry.count
        self.position = self.positions[entry.stream] = entry.position

    def last_of(self, streams: Iterable[str]) -> int:
        """The last entry of any of these that queries have been given."""
        return max((self.positions.get(stream, 0) for stream in streams), default=0)

    @property
    def behind(self) -> tuple[int, Mapping[str, int]]:
        """Position and offsets behind what is under way."""
        if (entry := self.under_way) is None:
            return self.position, self.offsets
        return entry.position, {**self.offsets, entry.stream: entry.first + entry.count}

    def forget(self, stream: str) -> None:
        """A stream has been deleted: if it comes again, its events are counted from the beginning."""
        for known in (self.offsets, self.complete, self.positions):
            known.pop(stream, None)


def checkpoint_of(
    journal: Journal, query: LiveQuery, state: bytes, position: int, offsets: Mapping[str, int]
) -> Checkpoint:
    """One of a query in this state, behind an entry."""
    known = {stream: offsets[stream] for stream in query.shape.reads if stream in offsets}
    if len(known) < len(query.shape.reads) and (before := journal.checkpoints.latest(query.name)) is not None:
        known = {**before.offsets, **known}
    last = query.count if state else max(query.count, query.stored)
    return Checkpoint(query.name, state, known, {query.name: last}, position=position)
