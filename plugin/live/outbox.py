"""What queries have found and is not stored yet: stored, told to subscribers, both in the order in which it was found.

    Engine ─ Emission ─▶ Outbox ─▶ subscribers at once, the journal a moment later

To wait for the disk takes longer than a turn of the worker, so matches are stored with what the next turns find. A kill
between the two loses nothing: the log finds the same matches again, under the same ids. Where the knowledge base or
other streams have a part in it, that is not so, and matches are stored before they are emitted.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Final

from oxiseq.journal import Entry, Found, Journal, Quarantined, UnknownError
from oxiseq.journal.envelope import summary
from oxiseq.journal.rows import KIND
from oxiseq.live.engine import Emission, Engine
from oxiseq.live.live_query import LiveQuery
from oxiseq.live.metrics import Metrics
from oxiseq.live.progress import LogProgress, checkpoint_of
from oxiseq.live.topics import Topics

LOG = logging.getLogger("oxiseq.live")
DELAY: Final = 0.05
"""Seconds for which matches may be emitted and not stored yet."""
_HELD: Final = 4 << 20
"""Bytes of such matches."""


class Outbox:
    """Used with the worker's lock held. `names`: see Worker."""

    def __init__(
        self,
        journal: Journal,
        topics: Topics,
        engine: Engine,
        metrics: Metrics,
        names: threading.RLock,
        progress: LogProgress,
    ) -> None:
        self.on_stored: Callable[[Iterable[str]], None] = lambda queries: None
        """Called with the queries whose matches have been stored."""
        self.on_gone: Callable[[LiveQuery], None] = lambda query: None
        """Called with a query that has failed, or cannot go on."""
        self._journal, self._topics, self._engine, self._metrics = journal, topics, engine, metrics
        self._names, self._progress = names, progress
        self._unstored: list[Emission] = []
        self._since = 0.0
        """When the first of them was found (monotonic clock)."""
        self._quarantined: list[Quarantined] = []

    def __bool__(self) -> bool:
        """Whether matches wait to be stored."""
        return bool(self._unstored)

    def clear(self) -> None:
        """Forget them, as a kill would."""
        self._unstored, self._quarantined = [], []

    def quarantine(self, query: LiveQuery, entry: Entry, reason: str) -> None:
        """A query skips an entry: that is noted before anything that comes behind it is stored."""
        LOG.error(
            "query %s quarantined entry %d of the log, %d events of <%s> from offset %d on: %s",
            query.name,
            entry.position,
            entry.count,
            entry.stream,
            entry.first,
            reason,
            extra={"query": query.name},
        )
        self._quarantined.append(quarantined(query.name, entry, reason))
        self._metrics.quarantined.labels(query.name).inc()

    def emit(self, emission: Emission) -> None:
        """Tell what was found, and have it stored; the other way round where the log alone does not decide. Raises
        FullError."""
        for name, count in emission.omitted:
            self._metrics.omitted.labels(name).inc(count)
        with self._names:
            emission = emission.living()
            if not emission:
                return
            for query in (*emission.failed, *emission.broken):
                self.on_gone(query)
            if not self._unstored:
                self._since = time.monotonic()
            self._unstored.append(emission)
            if emission.events or emission.failed or emission.broken or self._engine.reads_kb:
                self.flush()
            else:
                self._tell(emission)

    def flush_if_due(self) -> None:
        """Store what has waited for long, or is much. Raises FullError."""
        held = sum(len(found.data) for emission in self._unstored for found in emission.found)
        if self._unstored and (held > _HELD or time.monotonic() - self._since >= DELAY):
            self.flush()

    def flush(self) -> None:
        """Store all that was found so far. Raises FullError; then it is tried again later."""
        with self._names:
            if self._quarantined:
                self._journal.quarantine.add(self._quarantined)
                self._quarantined = []
            if not self._unstored:
                return
            done = [emission.living() for emission in self._unstored]
            found = [each for emission in done for each in emission.found]
            events = [each for emission in done for each in emission.events]
            complete = {stream: time for emission in done for stream, time in emission.complete}
            self._store(found, events, complete)
            self.on_stored(each.query for each in found)
            self._unstored = []
            for emission in done:
                for query in emission.failed:
                    self._fails(query)
                self._tell(emission)

    def _store(self, found: Sequence[Found], events: Sequence[tuple[str, bytes]], complete: Mapping[str, int]) -> None:
        """Matches, events, and up to when streams are complete; what is of a query or a stream that has been deleted
        meanwhile is nobody's any more."""
        try:
            self._journal.emit(found, events, complete)
        except UnknownError:
            queries = {record.name for record in self._journal.queries.all()}
            streams = {record.iri for record in self._journal.streams.all()}
            self._journal.emit(
                [each for each in found if each.query in queries],
                [each for each in events if each[0] in streams],
                {stream: time for stream, time in complete.items() if stream in streams},
            )

    def _fails(self, query: LiveQuery) -> None:
        """One that instants have stopped would come upon them again: if it goes on, it begins anew behind them."""
        with suppress(UnknownError):  # it has been deleted
            if query.run.omitted.over:
                position, offsets = self._progress.behind
                self._journal.checkpoints.commit(checkpoint_of(self._journal, query, b"", position, offsets))
            self._journal.queries.set_state(query.name, "failed", query.error, query.run.omitted.save())
        self._metrics.failures.labels(query.name).inc()

    def _tell(self, emission: Emission) -> None:
        """To subscribers; matches emitted already are skipped."""
        for found in emission.found:
            topic = self._topics.get(found.query)
            count = summary(KIND, found.data).count
            if topic is not None and topic.publish(found, count):
                self._metrics.matches.labels(found.query).inc(count)


def quarantined(query: str, entry: Entry, reason: str) -> Quarantined:
    """An entry that a query skips."""
    return Quarantined(query, entry.position, entry.stream, entry.first, entry.count, reason)
