"""The thread that reads the log, in its order, and feeds the queries: the only one that does.

A turn takes some entries, lets the engine work and passes its results to subscribers; they are stored a moment later,
with what the next turns find, for to wait for the disk takes longer than a turn. A kill between the two loses nothing:
the log finds the same matches again, under the same ids. Where the knowledge base or other streams have a part in it,
that is not so, and matches are stored before they are emitted. A change of what is at work (a query comes or goes)
holds `lock`, hence does so between two turns; where a turn takes long, what is durable of the change is done at once
and the worker does the rest (`between_turns`), so that who deletes or pauses a query need not wait for it.

No entry stops it. What cannot be read is skipped by all who read its stream (reading.py). Where an error comes from
a query, that query is restored from its checkpoint, by itself, and rebuilding.py finds the entry that it skips.
Where an error cannot be assigned to one query, all of them are restored so: as after a kill, without one.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext, suppress
from math import inf
from typing import Final

from oxiseq.engine.background import Background
from oxiseq.engine.errors import SnapshotError
from oxiseq.engine.order.watermarks import BEFORE_ALL
from oxiseq.grammar.records import dataclass
from oxiseq.journal import Checkpoint, Entry, Found, FullError, Journal, JournalError, Quarantined, UnknownError
from oxiseq.journal.envelope import summary
from oxiseq.journal.rows import KIND
from oxiseq.live.engine import Emission, Engine
from oxiseq.live.live_query import LiveQuery, Readers
from oxiseq.live.metrics import Metrics
from oxiseq.live.reading import ReadEntries, Silences, read_entries, reason_of
from oxiseq.live.settings import LiveSettings
from oxiseq.live.timed_lock import TimedLock
from oxiseq.live.topics import Topics

LOG = logging.getLogger("oxiseq.live")
PAGE: Final = 1 << 18
"""Bytes of the log that are taken in a turn at most."""
_SMALLEST_PAGE: Final = 1 << 15
"""A turn has costs of its own, which fewer entries do not lower."""
_STRETCH: Final = 0.02
"""Seconds of the processor's time for which entries are taken in a turn, by what the last turns took: who waits for
the lock gets it then."""
GROUP: Final = 8192
"""Events that are passed on together."""
GAP: Final = 0.006
"""Seconds between the beginnings of two turns at least: what comes meanwhile shares the work of the next. An entry that
comes alone waits for nothing..."""
_LONGEST_GAP: Final = 0.008
"""...and where turns are slow, for others need the processor, so long at most..."""
_SHARE: Final = 8
"""...that a turn has but this part of the time."""
_SHORTEST: Final = 0.005
"""Seconds without an entry until it looks whether something is due..."""
_LONGEST: Final = 0.5
"""...at most."""
_PORTION: Final = 0.02
"""Seconds for which states are saved at a time."""
_PASSED: Final = 1 << 14
"""Events that have not concerned a query, until its state is saved again."""
_RETRY: Final = 1.0
_DELAY: Final = 0.05
"""Seconds for which matches may be emitted and not stored yet."""
_HELD: Final = 4 << 20
"""Bytes of such matches."""
_PATIENCE: Final = 0.25
"""Seconds for which a change of what is at work waits for the running turn; else the worker makes it behind that."""


@dataclass(frozen=True, slots=True)
class _Decision:
    """A query has forgotten its state after the entry at `position`, and fails if there is an error; `offsets`: the
    next one of each stream then."""

    query: LiveQuery
    error: str
    position: int
    offsets: Mapping[str, int]


class Worker:
    """Owns the position in the log. `store_lock` is held while the engine works: the KB does not change then."""

    def __init__(
        self,
        journal: Journal,
        engine: Engine,
        topics: Topics,
        settings: LiveSettings,
        metrics: Metrics,
        store_lock: AbstractContextManager[object] | None = None,
    ) -> None:
        self.lock = TimedLock(metrics.lock_seconds.observe)
        self.names = threading.RLock()
        """Held, for moments, while queries and streams come and go in the journal and while something is stored under
        their names. Taken behind `lock`, and before no other."""
        self.announced: dict[str, str] = {}
        """Queries that are registered and not at work yet, and the streams that they feed."""
        self._changes: deque[Callable[[], None]] = deque()
        """Of what is at work: to be made between two turns."""
        self._named: dict[str, LiveQuery] = {}
        """Those at work, and those that are to join."""
        self.position = 0
        """The entry that was processed last."""
        self.error: BaseException | None = None
        """What has stopped it; None as soon as it is at work again."""
        self.stops = 0
        """How often it has been stopped by an error."""
        self.full = False
        """Whether matches cannot be stored now: there is no room."""
        self.bring_back: Callable[[str], None] = lambda name: None
        """Has a query that is at work no longer begin again from its checkpoint."""
        self.on_stored: Callable[[Iterable[str]], None] = lambda queries: None
        """Called with the queries whose matches have been stored."""
        self._lost: list[str] = []
        """Queries that are to be restored."""
        self._quarantined: list[Quarantined] = []
        self._at_hand: Sequence[Entry] = ()
        """The entries of the present turn."""
        self._journal, self._engine, self._topics = journal, engine, topics
        self._settings, self._metrics = settings, metrics
        self._store_lock = store_lock if store_lock is not None else nullcontext()
        self._joining: list[LiveQuery] = []
        self._decisions: list[_Decision] = []
        self._undecided: list[LiveQuery] = []
        """Queries about whose budgets nothing may be decided yet."""
        self._unstored: list[Emission] = []
        self._unstored_since = 0.0
        self._offsets: dict[str, int] = {}
        self._complete: dict[str, int] = {}
        """Up to which time a punctuation says so, by stream."""
        self._silences = Silences(settings.idle)
        self._checkpointed = time.monotonic()
        self._unsaved: list[LiveQuery] = []
        """Those of the present checkpoint whose turn has not come."""
        self._positions: dict[str, int] = {}
        """The last entry of each stream that queries have been given."""
        self._events = 0
        """How many of them since the start."""
        self._touched: set[LiveQuery] = set()
        """Queries that something has concerned since their last checkpoints."""
        self._counted_from = 0
        self._waiting = 0
        self._count_lock = threading.Lock()
        self._wake = threading.Event()
        self._due = 0.0
        """When the next turn may begin (monotonic clock)."""
        self._page = PAGE
        """Bytes of the log to take in the next turn."""
        self._thread = journal.threads.add(
            Background(
                "oxiseq-live", self._round, vital=True, wake=self._wake.set, failed=self._stopped, last=self._save_all
            )
        )

    # --- its life -----------------------------------------------------------------------------------

    def start(self, position: int, head: int) -> None:
        """Read on behind `position`; what is there already, up to `head`, does not count as waiting."""
        self.position, self._counted_from = position, head
        self._journal.log.on_arrival(self.arrived)
        self._thread.start()

    def stop(self) -> None:
        """End after the turn that is running; a checkpoint is made."""
        self._thread.end()
        self._thread.join()

    @property
    def caught_up(self) -> bool:
        """Whether all that was in the log at the start has been processed."""
        return self.whole and self.position >= self._counted_from

    def stalled(self, name: str) -> str:
        """Why a query that should be at work is not; empty if it is."""
        if self.error is not None:
            return f"an error stopped the live worker, which restarts: {reason_of(self.error)}"
        return "it is being restored from its checkpoint" if name in self._lost else ""

    @property
    def whole(self) -> bool:
        """Whether all queries that should be at work are."""
        return self.error is None and not self._lost

    @property
    def waiting(self) -> int:
        """Events that came since the start and that no query has seen yet."""
        return self._waiting

    def arrived(self, events: int) -> None:
        """Something has been stored in the log, so many events of it."""
        with self._count_lock:
            self._waiting += events
        self._wake.set()

    def _round(self) -> None:
        """A turn, and what is done between two of them."""
        time.sleep(max(0.0, self._due - time.monotonic()))
        self._wake.clear()
        began = time.monotonic()
        self._due = began + GAP  # also behind a turn that fails
        try:
            worked = self.turn()
            self._due = began + min(max(GAP, _SHARE * (time.monotonic() - began)), _LONGEST_GAP)
            self.full = False
            saved = self._checkpoint_some()
            if not worked:
                self._due = 0.0  # what comes after a turn without work comes alone
                self._settle()
                self._wake.wait(0 if saved else self._pause())
        except FullError as error:
            LOG.warning("matches cannot be stored yet: %s", error)
            self.full = True
            self._wake.wait(_RETRY)

    def _save_all(self) -> None:
        """The end: a last checkpoint."""
        try:
            self._checkpointed = -inf
            while self._checkpoint_some():
                pass
        except (JournalError, SnapshotError) as error:
            LOG.warning("the last matches are not stored; they will be found again: %s", error)

    def _pause(self) -> float:
        due = max(_SHORTEST, self._silences.due - time.monotonic())
        return min(due, _DELAY / 2 if self._unstored else _LONGEST)

    # --- a turn -------------------------------------------------------------------------------------

    def turn(self) -> bool:
        """Work through some entries; False when there were none."""
        with self.lock:
            self._make_changes()
            self._bring_back_lost()
            if self.full:
                self.flush()  # nothing more is found while it cannot be stored
            self._save_decisions()
            entries = self._journal.log.follow(self.position, min(self._page, PAGE))
            self._join(self.position)
            if not entries:
                self._tell_upset()
                self._write_results()
                self._store_if_due()
                return False
            begun, used = time.perf_counter(), time.thread_time()
            self._at_hand = entries
            with self._store_lock:
                read = self._read(entries)
                for group in self._groups(entries):
                    self._work(group, read)
                    if time.thread_time() - used > _STRETCH:
                        entries = [entry for entry in entries if entry.position <= self.position]
                        break
                emission = self._engine.collected(self._away)
            self._at_hand = ()
            self._metrics.processed.inc(sum(entry.count for entry in entries))
            self._metrics.processing_seconds.observe(time.perf_counter() - begun)
            took, done = time.thread_time() - used, sum(len(entry.data) for entry in entries)
            if took > _STRETCH:
                self._page = max(_SMALLEST_PAGE, int(done * _STRETCH / took))
            elif 2 * done > self._page:
                self._page = min(2 * self._page, PAGE)
            self._count(entries)
            self._lost += [query.name for query in emission.broken]
            self._emit(emission)
            self._keep_to_budgets()
            self._store_if_due()  # last: until the next turn the disk may take its time, and no reader waits for it
        return True

    def _tell_upset(self) -> None:
        """Of queries that were found not to be at work."""
        if self._engine.upset:
            with self._store_lock:
                emission = self._engine.collected()
            self._lost += [query.name for query in emission.broken]
            self._emit(emission)

    def _write_results(self) -> None:
        """What no entry of the log lets be written: a query has gone, or come, that writes the same stream."""
        if self._engine.writes:
            with self._store_lock:
                emission = self._engine.collected(self._away)
            self._emit(emission)

    @property
    def _away(self) -> set[str] | None:
        """The streams that queries write which are not at work yet; None: it is not known which."""
        return None if self._lost else {query.shape.feeds for query in self._joining if query.shape.feeds is not None}

    def _stopped(self, error: BaseException) -> None:
        """Release all that is in memory, as a kill would: its state is not known. All queries are to be restored,
        and pass the entries at hand by themselves."""
        with self.lock:
            self.error = error
            self._named = {}
            self.stops += 1
            self._metrics.stops.inc()
            lost = [query.name for query in (*self._engine.clear(), *self._joining)]
            self._lost = list(dict.fromkeys(self._lost + lost))
            self._joining, self._decisions, self._unstored, self._quarantined = [], [], [], []
            self._unsaved, self._touched = [], set()
            entries, self._at_hand = self._at_hand, ()
            for entry in entries:
                if entry.position > self.position:
                    self._offsets[entry.stream] = entry.first + entry.count
                    self.position = entry.position
            self._count(entries)

    def _bring_back_lost(self) -> None:
        """Queries that are at work no longer begin again. Raises FullError: tried again later."""
        while self._lost:
            self.flush()
            name = self._lost[0]
            self.bring_back(name)
            self.found_again(name)
        self.error = None

    def _groups(self, entries: Sequence[Entry]) -> list[list[Entry]]:
        """Entries that are passed on together: of one stream, with no query joining between them, and no event that is
        older than a punctuation before it. So what is late is the same as one by one, and what is found."""
        joins = {query.position for query in self._joining}
        groups: list[list[Entry]] = []
        events, punctuation = 0, BEFORE_ALL
        for entry in entries:
            last = groups[-1][-1] if groups else None
            together = (
                last is not None
                and last.stream == entry.stream
                and events + entry.count <= GROUP
                and (punctuation == BEFORE_ALL or entry.count == 0 or (entry.count == 1 and entry.time >= punctuation))
                and not any(last.position <= position < entry.position for position in joins)
            )
            if together:
                groups[-1].append(entry)
            else:
                groups.append([entry])
                events, punctuation = 0, BEFORE_ALL
            events += entry.count
            if entry.count == 0:
                punctuation = max(punctuation, entry.time)
        return groups

    def _read(self, entries: Sequence[Entry]) -> ReadEntries:
        """The events of the entries whose streams are read."""
        wanted = self._engine.streams.union(*(query.shape.reads for query in self._joining))
        return read_entries([entry for entry in entries if entry.stream in wanted], self._engine.unpack)

    def _work(self, group: Sequence[Entry], read: ReadEntries) -> None:
        self._join(group[0].position - 1)
        stream = group[0].stream
        if read.unreadable:
            group = [entry for entry in group if not self._pass_over(entry, read)]
        mine = [read.places[entry.position] for entry in group if entry.position in read.places]  # one after the other
        if mine:
            self._engine.push(stream, read.events.slice(mine[0][0], mine[-1][1]))
        self._passed(group)
        if marks := [entry.time for entry in group if not entry.count]:
            self._engine.punctuate(stream, max(marks))
            self._complete[stream] = max(*marks, self._complete.get(stream, BEFORE_ALL))
            self._silences.changed((stream,))
        if group:
            self.position = self._positions[stream] = group[-1].position

    def _passed(self, group: Sequence[Entry]) -> None:
        """What is to be known of entries of a stream whose events have been passed on."""
        if not (pushed := [entry for entry in group if entry.count]):
            return
        stream, last = pushed[0].stream, pushed[-1]
        self._offsets[stream] = last.first + last.count
        self._events += sum(entry.count for entry in pushed)
        self._silences.came(stream)

    def _pass_over(self, entry: Entry, read: ReadEntries) -> bool:
        """Whether an entry cannot be read: then its readers quarantine it."""
        if (reason := read.unreadable.get(entry.position)) is None:
            return False
        for query in self._engine.readers(entry.stream).queries:
            self._quarantine(query, entry, reason)
        self._offsets[entry.stream] = entry.first + entry.count
        self.position = self._positions[entry.stream] = entry.position
        return True

    def _quarantine(self, query: LiveQuery, entry: Entry, reason: str) -> None:
        """To be noted before anything that comes behind the entry is stored."""
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

    def _count(self, entries: Sequence[Entry]) -> None:
        done = sum(entry.count for entry in entries if entry.position > self._counted_from)
        with self._count_lock:
            self._waiting = max(0, self._waiting - done)

    # --- what was found -----------------------------------------------------------------------------

    def _emit(self, emission: Emission) -> None:
        """Tell what was found, and have it stored; the other way round where the log alone does not decide."""
        for name, count in emission.omitted:
            self._metrics.omitted.labels(name).inc(count)
        with self.names:
            emission = emission.living()
            if not emission:
                return
            for query in (*emission.failed, *emission.broken):
                self._forget_named(query)
            if not self._unstored:
                self._unstored_since = time.monotonic()
            self._unstored.append(emission)
            if emission.events or emission.failed or emission.broken or self._engine.reads_kb:
                self.flush()
            else:
                self._tell(emission)

    def _store_if_due(self) -> None:
        held = sum(len(found.data) for emission in self._unstored for found in emission.found)
        if self._unstored and (held > _HELD or time.monotonic() - self._unstored_since >= _DELAY):
            self.flush()

    def flush(self) -> None:
        """Store all that was found so far, with `lock` held. Raises FullError; then it is tried again later."""
        with self.names:
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
                self._journal.checkpoints.commit(self._checkpoint(query, b"", self.position, self._offsets))
            self._journal.queries.set_state(query.name, "failed", query.error, query.run.omitted.save())
        self._metrics.failures.labels(query.name).inc()

    def _tell(self, emission: Emission) -> None:
        """To subscribers; matches emitted already are skipped."""
        for found in emission.found:
            topic = self._topics.get(found.query)
            count = summary(KIND, found.data).count
            if topic is not None and topic.publish(found, count):
                self._metrics.matches.labels(found.query).inc(count)

    # --- budgets, with `lock` held (see live_query.py) -------------------------------------------------

    def _keep_to_budgets(self) -> None:
        """After a turn: queries whose state is beyond its budget forget, or fail."""
        stepped = self._engine.stepped()
        self._touched.update(stepped)
        due = dict.fromkeys((*self._undecided, *(query for query in stepped if query.watch.budget.bounds)))
        self._undecided = [query for query in due if query.decided > self.position and query in self._engine]
        ready = [query for query in due if query.decided <= self.position and query in self._engine]
        self._decide(ready, self.position, self._offsets)
        self._save_decisions()

    def _decide(self, queries: Iterable[LiveQuery], position: int, offsets: Mapping[str, int]) -> None:
        """What is to be done about their states after the entry at `position`."""
        with self._store_lock:  # who is examined first frees what is dead for all that share its state
            records = {query: query.run.records for query in queries}
        for query, had in records.items():
            self._decide_one(query, had, position, offsets)

    def _decide_one(self, query: LiveQuery, had: int, position: int, offsets: Mapping[str, int]) -> None:
        """`had`: its records by then, some of them dead; one that sleeps keeps nothing of what it has not got yet."""
        with self._store_lock:
            if query not in self._engine or not (passed := query.watch.passed(query.run, had)):
                return
            if not self._engine.catch_up(query):
                return
            LOG.warning("query %s: %s", query.name, passed, extra={"query": query.name})
            fails = query.watch.budget.policy == "fail"
            self._engine.forget(query)
            if still := query.watch.passed(query.run, query.run.records):
                passed, fails = f"{still}, although it discarded all partial matches", True
        self._decisions.append(_Decision(query, passed if fails else "", position, dict(offsets)))

    def _save_decisions(self) -> None:
        """Make what has been decided durable; nothing is processed before. Raises FullError: tried again later."""
        while self._decisions:
            decision = self._decisions[0]
            query = decision.query
            self.flush()
            if decision.error:
                query.error = decision.error
                with self.names, suppress(UnknownError):
                    if not query.retired:
                        self._journal.queries.set_state(query.name, "failed", query.error, query.run.omitted.save())
            self._save_at((query,), decision.position, decision.offsets)
            self._decisions.pop(0)
            if decision.error:
                self._forget_named(query)
                with self._store_lock:
                    self._engine.remove(query)
                self._metrics.failures.labels(query.name).inc()
            else:
                self._metrics.state_drops.labels(query.name).inc()

    # --- changes of what is at work -----------------------------------------------------------------

    @contextmanager
    def between_turns(self) -> Iterator[bool]:
        """Whether a change of what is at work can be made at once: the running turn has ended within a moment. Else
        what is durable of it is done now, and the rest is `left` to the worker."""
        free = self.lock.acquire(timeout=_PATIENCE)
        try:
            if free and self._changes:
                try:
                    self._make_changes()
                except FullError:
                    self.lock.release()
                    free = False
            yield free
        finally:
            if free:
                self.lock.release()

    def change(self, change: Callable[[], None], *, at_once: bool) -> None:
        """Make it now, or have the worker make it as soon as its turn has ended, in the order of the calls."""
        if at_once:
            change()
        else:
            self._changes.append(change)
            self._wake.set()

    def _make_changes(self) -> None:
        """Raises FullError: those that are left are made later."""
        while self._changes:
            change = self._changes.popleft()
            try:
                change()
            except FullError:
                self._changes.appendleft(change)
                raise
            except Exception:
                LOG.exception("a change of the queries at work could not be made")

    def retire(self, name: str) -> None:
        """The query of this name is deleted or replaced, with `names` held: nothing that it finds is stored any
        more. It is to be removed yet."""
        if (query := self._named.get(name)) is not None:
            query.retired = True

    def drop(self, name: str) -> None:
        """A query is not at work any more, nor to be."""
        if (query := self._named.get(name)) is not None:
            self.remove(query)
        self.found_again(name)

    def _forget_named(self, query: LiveQuery) -> None:
        if self._named.get(query.name) is query:
            del self._named[query.name]

    # --- queries come and go, with `lock` held ------------------------------------------------------

    def add(self, query: LiveQuery) -> None:
        """Let a query see what comes behind its position; what has been processed already it sees at once, and by
        itself all up to the last entry that it skips.

        Raises FullError, UnworkableError: then it is not at work."""
        self._named[query.name] = query
        until = max(query.passed_over, default=0)
        if self._thread.alive:
            until = max(until, self.position)
        if query.position < until:
            self.flush()
            try:
                with ExitStack() as alone:
                    with self._store_lock:  # who asks for a query's status has this lock alone
                        alone.enter_context(self._engine.alone(query))
                    at_work = self._catch_up(query, until)
            except Exception:
                self.remove(query)
                raise
            if not at_work:
                return
            query.position, query.saved = until, -1
        if self._thread.alive and until <= self.position and query.position <= self.position:
            self._put_to_work(query)
        else:
            self._joining.append(query)  # a turn takes it up

    def _put_to_work(self, query: LiveQuery) -> None:
        with self._store_lock:
            self._engine.add(query)
            self._engine.look(query)
        self._silences.changed(query.shape.reads)

    def remove(self, query: LiveQuery) -> None:
        """It sees nothing any more."""
        self._forget_named(query)
        self._joining = [each for each in self._joining if each is not query]
        self._decisions = [each for each in self._decisions if each.query is not query]
        self._touched.discard(query)
        with self._store_lock:
            self._engine.remove(query)

    def lose(self, name: str) -> None:
        """A query is to be restored as soon as that is possible."""
        self._lost = [*(each for each in self._lost if each != name), name]

    def found_again(self, name: str) -> None:
        """A query need not be restored any more: it is at work, or is not to be."""
        self._lost = [each for each in self._lost if each != name]

    def forget(self, stream: str) -> None:
        """A stream has been deleted: if it comes again, its events are counted from the beginning."""
        for known in (self._offsets, self._complete, self._positions):
            known.pop(stream, None)
        self._engine.forget_stream(stream)
        self._silences.forget(stream)

    def find(self, name: str) -> LiveQuery | None:
        """The query of this name, if it is at work."""
        return self._named.get(name)

    @property
    def at_work(self) -> tuple[LiveQuery, ...]:
        """Those that are, and those that are to join."""
        return tuple(self._named.values())

    @property
    def joining(self) -> tuple[LiveQuery, ...]:
        """Queries that wait for the log to come to their position."""
        return tuple(self._joining)

    def readers(self, stream: str) -> Readers:
        """The queries that read a stream."""
        readers = self._engine.readers(stream)
        joining = [query for query in self._joining if stream in query.shape.reads]
        return Readers.of((*readers.queries, *joining)) if joining else readers

    def feeder(self, stream: str) -> str | None:
        """A query that feeds a stream, if there is one at work, or about to be."""
        feeds = [(query.name, query.shape.feeds) for query in [*self._named.values()] if not query.retired]
        return next((name for name, fed in (*feeds, *[*self.announced.items()]) if fed == stream), None)

    def join(self) -> None:
        """Queries at the worker's position are at work from now on, though no turn has come yet; with `lock`
        held."""
        self._join(self.position)

    def _join(self, position: int) -> None:
        """Queries that are at or before `position` see what comes next."""
        for query in [query for query in self._joining if query.position <= position]:
            self._joining.remove(query)
            self._put_to_work(query)

    def _catch_up(self, query: LiveQuery, until: int) -> bool:
        """Let a query that is alone see the log up to an entry; whether it is at work then. Raises UnworkableError."""
        at, offsets = query.position, dict[str, int]()
        while (
            at < until
            and not query.retired
            and query in self._engine.queries
            and (entries := self._journal.log.follow(at, PAGE))
        ):
            with self._store_lock:
                for entry in entries:
                    at = min(entry.position, until)  # what is before it may be deleted
                    if entry.position > until:
                        break
                    if entry.stream in query.shape.reads:
                        self._see(query, entry)
                        offsets[entry.stream] = entry.first + entry.count
                    if at in query.passed_over:
                        break
                emission = self._engine.collected()
            self._emit(emission)
            if at in query.passed_over:  # one that is restored again begins behind it
                self._save_at((query,), at, offsets)
            if query.decided <= at and query in self._engine.queries:
                self._decide([query], at, offsets)
                self._save_decisions()
        return self._goes_on(query)

    def _goes_on(self, query: LiveQuery) -> bool:
        return query in self._engine.queries and not query.retired

    def _see(self, query: LiveQuery, entry: Entry) -> None:
        """Hand an entry to a query that is alone. Raises UnworkableError."""
        if entry.position in query.passed_over:
            return
        read = read_entries([entry], self._engine.unpack)
        if reason := read.unreadable.get(entry.position):
            self._quarantine(query, entry, reason)
            return
        self._engine.feed(query, entry, read.events)

    # --- between turns ------------------------------------------------------------------------------

    def _settle(self) -> None:
        """Where nothing has come for a while, the newest instant is complete, and time continues with the clock as far
        as that completes a match: punctuations record it in the log, for all that decides must be there. Streams of
        which a reader allows lateness are left alone."""
        now = time.monotonic()
        with self.lock:
            silent = self._silences.take(now)
            if not silent:
                return
            with self._store_lock:
                targets = self._targets(silent, now)
        try:
            for stream, target in targets.items():
                with suppress(UnknownError):
                    self._journal.log.advance(stream, target)
        except JournalError:
            with self.lock:
                self._silences.later(silent, now)
            raise

    def _targets(self, silent: Sequence[str], now: float) -> dict[str, int]:
        """Up to which times silent streams are complete, for their readers that are awake: time alone completes
        nothing for the others. A stream that queries write is complete when they say so: time goes on in what they
        read."""
        targets: dict[str, int] = {}
        readers = {stream: self._engine.readers(stream) for stream in silent}
        for query in dict.fromkeys(query for each in readers.values() for query in each.queries):
            if query.run.lateness or self._engine.sleeps(query):
                continue
            run, reads = query.run, self._engine.sources(query.shape.reads)
            due = self._silences.since(reads) + self._silences.idle
            target = None if now < due or not run.open else 1 + run.order.newest_waiting
            if (silence := run.silence) is not None:
                due = max(due, self._silences.since(reads) + silence / 1_000_000)
                if due <= now:
                    target = max(run.newest + silence, BEFORE_ALL if target is None else target)
                else:
                    self._silences.later(query.shape.reads, due)
            if target is not None:
                targets |= {stream: max(target, targets.get(stream, target)) for stream in reads}
        return {
            stream: target
            for stream, target in targets.items()
            if not self._engine.readers(stream).lateness and target > self._complete.get(stream, BEFORE_ALL)
        }

    def _checkpoint_some(self) -> bool:
        """Save what has changed, so that a restart need not read the log from the beginning: all queries once in a
        while, some at a time, since what has come meanwhile waits for that. Whether there are more."""
        now = time.monotonic()
        if not self._unsaved and now - self._checkpointed < self._settings.checkpoint:
            return False
        try:
            with self.lock:
                self.flush()
                if not self._unsaved:
                    self._checkpointed, self._unsaved = now, self._changed()
                self._save_some(now + _PORTION)
        except JournalError as error:
            self._unsaved = []
            LOG.warning("no checkpoint: %s", error)
        return bool(self._unsaved)

    def _changed(self) -> list[LiveQuery]:
        """The queries at work whose states may not be the saved ones; the others are where the log is now."""
        queries = self._engine.queries
        same = [query for query in queries if query.saved >= max(map(self._last_entry, query.shape.reads), default=0)]
        with self.names:
            self._journal.checkpoints.move([query.name for query in same if not query.retired], self.position)
        for query in same:
            query.saved, query.passed = self.position, self._events
        return [query for query in queries if query.saved < self.position and self._is_worth_it(query)]

    def _is_worth_it(self, query: LiveQuery) -> bool:
        """Not while a restart has little to read of what has not concerned it, nor while results of it are nowhere but
        in memory."""
        if self._engine.holds_results(query):
            return False
        if self._thread.ending or query in self._touched or not self._engine.tells_steps(query):
            return True
        return query.saved < 0 or self._events - query.passed > _PASSED

    def _last_entry(self, stream: str) -> int:
        return self._positions.get(stream, 0)

    def _save_some(self, until: float) -> None:
        """As many as until then (monotonic clock), one at least."""
        made: dict[LiveQuery, Checkpoint] = {}
        while self._unsaved and (not made or time.monotonic() < until):
            query = self._unsaved.pop()
            if query in self._engine and query.saved != self.position:
                try:
                    made[query] = self._checkpoint_of(query, self.position, self._offsets)
                except SnapshotError as error:
                    LOG.warning("no checkpoint: %s", error)
        self._commit(made)

    def save(self, *queries: LiveQuery) -> None:
        """Checkpoints of queries at work, with `lock` held: states, position and matches in one transaction. Raises
        SnapshotError."""
        self._save_at(queries, self.position, self._offsets)

    def _save_at(self, queries: Sequence[LiveQuery], position: int, offsets: Mapping[str, int]) -> None:
        self.flush()
        changed = [query for query in queries if query.saved != position]
        self._commit({query: self._checkpoint_of(query, position, offsets) for query in changed})

    def _checkpoint_of(self, query: LiveQuery, position: int, offsets: Mapping[str, int]) -> Checkpoint:
        """Raises SnapshotError."""
        with self._store_lock:
            state = self._engine.saved(query)
            self._engine.look(query)
        return self._checkpoint(query, state, position, offsets)

    def _checkpoint(self, query: LiveQuery, state: bytes, position: int, offsets: Mapping[str, int]) -> Checkpoint:
        known = {stream: offsets[stream] for stream in query.shape.reads if stream in offsets}
        if len(known) < len(query.shape.reads) and (before := self._journal.checkpoints.latest(query.name)) is not None:
            known = {**before.offsets, **known}
        last = query.count if state else max(query.count, query.stored)
        return Checkpoint(query.name, state, known, {query.name: last}, position=position)

    def _commit(self, made: Mapping[LiveQuery, Checkpoint]) -> None:
        with self.names:
            self._journal.checkpoints.commit_all([each for query, each in made.items() if not query.retired])
        for query, checkpoint in made.items():
            query.saved, query.passed = checkpoint.position, self._events
            self._touched.discard(query)


def quarantined(query: str, entry: Entry, reason: str) -> Quarantined:
    """An entry that a query skips."""
    return Quarantined(query, entry.position, entry.stream, entry.first, entry.count, reason)
