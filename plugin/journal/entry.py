"""An entry of the event log, as it is stored."""

from __future__ import annotations

from oxiseq.grammar.records import dataclass


@dataclass(frozen=True, slots=True)
class Entry:
    """A stored batch of `count` events from offset `first` on, packed; or, with count 0, the punctuation `time`.

    `position`: its place among the entries of all streams, in order of arrival.
    """

    stream: str
    first: int
    count: int
    time: int
    data: bytes
    position: int = 0
