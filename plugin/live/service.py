"""The live service: its parts put together, started and ended."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import Final

from prometheus_client.core import Metric

from oxiseq.api.store import Store
from oxiseq.engine.background import Background
from oxiseq.engine.errors import OxiseqError
from oxiseq.engine.order.watermarks import AFTER_ALL, BEFORE_ALL
from oxiseq.journal import FILE_NAME, Durability, FullError, Journal, JournalError, UnknownError
from oxiseq.journal.restoring import resumed
from oxiseq.live.bridges import Bridges
from oxiseq.live.changes import KbChanges
from oxiseq.live.engine import Engine
from oxiseq.live.graphs import EventGraphs
from oxiseq.live.metrics import Metrics, counter, gauge
from oxiseq.live.queries import Queries
from oxiseq.live.remote import RemoteKnowledge
from oxiseq.live.settings import LiveSettings
from oxiseq.live.sinks import Sinks
from oxiseq.live.standing import StandingQueries
from oxiseq.live.streams import Streams
from oxiseq.live.subscriptions import Subscriptions
from oxiseq.live.topics import Topics
from oxiseq.live.worker import Worker
from oxiseq.sources.knowledge import Kb

LOG = logging.getLogger("oxiseq.live")
_PAUSE: Final = 0.002


class LiveService:
    """Streams and continuous queries over a store, or a KB elsewhere, durable in a journal in `folder`.

    `streams`, `queries`, `standing`, `subscriptions`, `sinks`, `graphs` and `journal.matches` do the work. `close` it:
    its threads end then.
    Raises JournalError when the journal cannot be opened, SinkError and ConflictError for sinks of the settings that
    cannot be.
    """

    def __init__(
        self,
        store: Store | RemoteKnowledge,
        folder: Path,
        settings: LiveSettings | None = None,
        durability: Durability = "full",
    ) -> None:
        self.settings = settings if settings is not None else LiveSettings()
        self.store = store
        self.metrics = Metrics()
        self.journal = Journal(folder / FILE_NAME, durability)
        try:
            self.sinks = Sinks(self.journal, self.settings, self.metrics)
        except OxiseqError:
            self.journal.close()
            raise
        if isinstance(store, RemoteKnowledge):
            store.begin(self.journal.kb_answers)
        self._engine = Engine(store.kb, self.settings.budget, self.settings.bounds, self._complete_in_log)
        self.topics = Topics(self.settings.recent)
        self.worker = Worker(self.journal, self._engine, self.topics, self.settings, self.metrics, store.lock)
        self.streams = Streams(self.journal, self.worker, self.settings, self.metrics)
        over = store if isinstance(store, Store) else store.standing
        self.standing = StandingQueries(
            self.journal, over, self.topics, self.settings, self.metrics, self._take_in_updates
        )
        self.queries = Queries(
            self.journal,
            self._engine,
            store.lock,
            self.worker,
            self.streams,
            self.topics,
            self.settings,
            self.metrics,
            self.standing,
            store.learn if isinstance(store, RemoteKnowledge) else None,
        )
        self.worker.outbox.on_stored, self.queries.on_deleted = self.sinks.stored, self.sinks.query_gone
        self.queries.on_registered = self.sinks.query_there
        self.subscriptions = Subscriptions(self.journal, self.topics, self.settings, self.metrics)
        self.graphs = EventGraphs(self.journal, self.settings.graphs, self.settings.unasked)
        self._changes = KbChanges(self.journal, self._engine, self.worker, store.lock)
        store.guard_changes(self._changes.around)
        self.bridges: Bridges | None = None
        """Where streams come from by themselves, if the settings say so."""
        self.metrics.measure(self._gauges)
        self._ending = threading.Event()
        self._preparing: Background | None = None
        self.resumed = resumed(self.journal.path)
        """For a restored journal: the position of each stream in the backup."""
        self.threads = self.journal.threads
        """All that work in the background."""
        self._threads = [self.threads.add(Background("oxiseq-upkeep", self._keep_up))]
        if isinstance(store, RemoteKnowledge):
            fresh = Background("oxiseq-refresh", self._keep_fresh, wake=store.due.set)
            self._threads.append(self.threads.add(fresh))

    def _complete_in_log(self, stream: str) -> int:
        try:
            known = self.journal.streams.get(stream)
        except UnknownError:
            return BEFORE_ALL
        if known.punctuated is None:  # earlier versions wrote each result at once, and no punctuation
            return AFTER_ALL if known.next else BEFORE_ALL
        return known.punctuated

    def start(self) -> None:
        """Restores the queries and reads on at their positions."""
        for iri, stood in self.resumed.items():
            LOG.warning("restored from a backup: of <%s> push again from offset %d on", iri, stood.next)
        head = self.journal.log.position()
        position = self.queries.restore()
        LOG.debug("the log is read from entry %s of %s", position, head)
        self.worker.start(position, head)
        self.standing.start()
        self.sinks.start()
        if isinstance(self.store, RemoteKnowledge):
            self.store.standing.restored()
        for thread in self._threads:
            thread.start()

    def prepare(self, compiles: Callable[[], object]) -> None:
        """Compile, in the background, what queries need; until that is over the service is not ready. Where it fails,
        the first query of a kind waits for it instead."""

        def work() -> None:
            try:
                compiles()
            except Exception:
                LOG.exception("kernels could not be compiled ahead: the first query of a kind waits for that")

        self._preparing = self.threads.add(Background("oxiseq-warmup", work, again=False))
        self._preparing.start()

    @property
    def ready(self) -> bool:
        """Whether all that was in the log at the start has been processed, and what queries need is compiled."""
        return self.worker.caught_up and (self._preparing is None or not self._preparing.alive)

    def catch_up(self, seconds: float) -> bool:
        """Wait until queries have processed every event that is in the log now and their matches are stored; False
        where that takes longer, or there is no room for matches. Not for the worker's thread."""
        until, deadline = self.journal.log.position(), time.monotonic() + seconds
        while not self._ending.is_set():
            with self.worker.lock:
                if self.worker.whole and self.worker.position >= until:
                    with suppress(FullError):  # they are stored when there is room again
                        self.worker.flush()
                    return True
            if self.worker.full or time.monotonic() >= deadline:
                break
            time.sleep(_PAUSE)
        return False

    def health(self) -> dict[str, object]:
        """What `/ready` says of it: `reason` only where it is not ready; entries that queries have quarantined; what is
        wrong with background threads."""
        told: dict[str, object] = {}
        try:
            told["quarantined"] = self.journal.quarantine.total()
        except JournalError as error:
            return {"reason": str(error)}
        if self.journal.lost:
            told["lost"] = self.journal.lost
        if troubles := self.threads.troubles:
            told["failing"] = troubles
        if self.worker.error is not None:
            told["reason"] = f"an error stopped the live worker, which restarts: {self.worker.error}"
        elif hindrance := self.threads.hindrance:
            told["reason"] = hindrance
        elif self.journal.full or self.worker.full or self.standing.full:
            told["reason"] = "there is no room left for the journal"
        elif self._preparing is not None and self._preparing.alive:
            told["reason"] = "what queries need is being compiled, which a first start does"
        elif not self.ready:
            told["reason"] = "the log is not processed yet"
        return told

    def end_subscriptions(self) -> None:
        """Let live readers go: they come back elsewhere with their last id."""
        self.topics.close_all("the server is stopping")

    def close(self) -> None:
        """End the threads, make a checkpoint, close the journal."""
        self._ending.set()
        self.end_subscriptions()
        self.sinks.stop()
        self.standing.stop()
        self.worker.stop()
        self._changes.end()
        self.threads.end(self._threads)
        self.journal.close()

    def __enter__(self) -> LiveService:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def kb_of_now(self) -> Kb:
        """The knowledge base, without what is kept of its answers."""
        return self.store.endpoint if isinstance(self.store, RemoteKnowledge) else self.store

    def refresh(self, *, unless_seen: bool = False) -> None:
        """Ask a KB elsewhere again all that queries ask; `unless_seen`: only after an update that went there through
        us. Raises KbError, ChangeRefusedError, FullError; then all stays as it was."""
        if isinstance(self.store, RemoteKnowledge):
            self.metrics.kb_refreshes.inc()
            try:
                self.store.refresh(self.queries.kb_texts, unless_seen=unless_seen)
            except OxiseqError:
                self.metrics.kb_failures.inc()
                raise

    def _take_in_updates(self) -> None:
        """What updates through us have changed at a KB elsewhere is known; where that fails, the old answers stay."""
        if isinstance(self.store, RemoteKnowledge) and self.store.behind:
            self._refresh_or_warn(unless_seen=True)

    def _refresh_or_warn(self, *, unless_seen: bool) -> None:
        try:
            self.refresh(unless_seen=unless_seen)
        except OxiseqError as error:
            LOG.warning("the knowledge base could not be queried again, its old answers stay: %s", error)

    def _keep_fresh(self) -> None:
        assert isinstance(self.store, RemoteKnowledge)
        updated = self.store.due.wait(self.settings.refresh)
        if self._threads[-1].ending:
            return
        self.store.due.clear()  # before asking: an update meanwhile is for the next time
        self._refresh_or_warn(unless_seen=updated)

    def _keep_up(self) -> None:
        """Each part of it is tried, whatever becomes of the others; what is not foreseen is raised at the end."""
        if self._threads[0].rest(self.settings.upkeep):
            return
        unforeseen: list[Exception] = []
        for work in (self.graphs.let_go, self.standing.let_go_unread, self.journal.retain):
            try:
                work()
            except OxiseqError as error:
                LOG.warning("old data cannot be deleted: %s", error)
            except Exception as error:
                unforeseen.append(error)
        if unforeseen:
            raise unforeseen[0]

    def _gauges(self) -> Iterable[Metric]:
        if self.bridges is not None:
            yield from self.bridges.metrics()
        yield gauge("lag_events", "Events that no query has processed yet.", self.worker.waiting)
        failing = gauge("thread_failing", "1 while a background thread has failed, or has ended.", labels=("thread",))
        troubles = self.threads.troubles
        for name in dict.fromkeys((*self.threads.names, *troubles)):
            failing.add_metric([name], name in troubles)
        yield failing
        yield gauge("subscribers", "Live subscribers now.", self.subscriptions.count)
        yield gauge("log_position", "The log's entry that was processed last.", self.worker.position)
        yield gauge("graph_triples", "Triples of events that are held in memory for SPARQL.", self.graphs.size)
        if isinstance(self.store, RemoteKnowledge) and (asked := self.store.told.asked):
            text = "When the knowledge base was last queried, since 1970."
            yield gauge("kb_last_query_timestamp_seconds", text, asked / 1_000_000)
        with suppress(JournalError):
            yield gauge("journal_bytes", "Size of the journal.", self.journal.size)
        with suppress(JournalError):
            yield from self.sinks.gauges()
        records = gauge("state_records", "Records of a query's running state.", labels=("query", "kind"))
        late = counter(
            "query_late_events", "Events that a query has found late since it began here.", labels=("query",)
        )
        ignored = counter(
            "query_ignored_events",
            "Events that a query has ignored because its language cannot take them.",
            labels=("query",),
        )
        for name, seen in self.queries.looked().items():
            late.add_metric([name], seen.late)
            ignored.add_metric([name], seen.faults.count)
            for kind, count in seen.state.items():
                records.add_metric([name, kind], count)
        yield records
        yield late
        yield ignored
