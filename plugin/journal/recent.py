"""The newest entries of the log in memory: who keeps up with the log reads them here, and SQLite not at all.

They are added after they are durable, in order of arrival, so positions are without a gap.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Final

from oxiseq.journal.entry import Entry

MOST: Final = 16 << 20
"""Bytes of entries that are kept; when there are more, the older half of them goes."""
ENTRY_BYTES: Final = 256
"""What an entry counts for beside its blob."""


class Recent:
    """Safe for many threads. `on_arrival` is called with the number of events that have been committed."""

    def __init__(self, position: int) -> None:
        self.on_arrival: Callable[[int], None] = lambda events: None
        self._lock = threading.Lock()
        self._entries: list[Entry] = []
        self._bytes = 0
        self._before = position
        """The position before the first of them."""

    def add(self, arrived: Sequence[Entry]) -> None:
        """Entries that have been committed."""
        if not arrived:
            return
        with self._lock:
            self._entries += arrived
            self._bytes += sum(map(_size, arrived))
            if self._bytes > MOST:
                self._drop_older()
        self.on_arrival(sum(entry.count for entry in arrived))

    def forget(self) -> None:
        """Some of them are no longer in the log: it knows which."""
        with self._lock:
            self._drop(len(self._entries))

    def after(self, position: int, most: int) -> list[Entry] | None:
        """About `most` bytes of what follows a position, at least one entry if there is one; None where that is no
        longer kept here."""
        with self._lock:
            at = position - self._before
            if at < 0:
                return None
            found, size = at, 0
            while found < len(self._entries) and size < most:
                size += _size(self._entries[found])
                found += 1
            return self._entries[at:found]

    def _drop_older(self) -> None:
        left, count = self._bytes, 0
        while left > MOST // 2:
            left -= _size(self._entries[count])
            count += 1
        self._drop(count)

    def _drop(self, count: int) -> None:
        self._bytes -= sum(map(_size, self._entries[:count]))
        self._before += count
        del self._entries[:count]


def _size(entry: Entry) -> int:
    return len(entry.data) + ENTRY_BYTES
