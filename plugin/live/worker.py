"""The thread that reads the log, in its order, and feeds the queries: the only one that does.

    the log ─ entries ─▶ turn: Engine, for some time ─ Emission ─▶ Outbox ─▶ subscribers, the journal
                          └▶ Checkpointer: budgets; between turns states are saved

A turn takes some entries, lets the engine work for about `_STRETCH` seconds of the processor's time, and passes on what
was found. `lock` is held meanwhile, so that is how long others wait for it; what is left goes on in the next turn, also
in the midst of an entry: a batch has no meaning for answers. There nothing is changed or saved, for a checkpoint is of
an entry's end. A change of what is at work (a query comes or goes) holds `lock` between two entries; where that takes
long, what is durable of the change is done at once and the worker does the rest (`between_turns`), so that who deletes
or pauses a query need not wait for it.

No entry stops it. What cannot be read is skipped by all who read its stream (reading.py). Where an error comes from
a query, that query is restored from its checkpoint, by itself, and rebuilding.py finds the entry that it skips.
Where an error cannot be assigned to one query, all of them are restored so: as after a kill, without one.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext, suppress
from typing import Final

from oxiseq.engine.background import Background
from oxiseq.engine.errors import SnapshotError
from oxiseq.engine.order.watermarks import BEFORE_ALL
from oxiseq.journal import Entry, FullError, Journal, JournalError, UnknownError
from oxiseq.live.checkpointer import Checkpointer
from oxiseq.live.engine import Emission, Engine
from oxiseq.live.live_query import LiveQuery, Readers
from oxiseq.live.metrics import Metrics
from oxiseq.live.outbox import DELAY, Outbox
from oxiseq.live.progress import LogProgress
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
"""Seconds of the processor's time after which a turn ends..."""
GROUP: Final = 8192
"""...between two portions of at most so many events, which are passed on together..."""
_SMALLEST_PORTION: Final = 16
"""...and of at least so many."""
_COLLECT: Final = 0.2
"""Seconds of the processor's time after which what was found within an entry is packed: each query costs something."""
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
_RETRY: Final = 1.0
_PATIENCE: Final = 0.25
"""Seconds for which a change of what is at work waits for the running entry; else the worker makes it behind that."""


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
        self.error: BaseException | None = None
        """What has stopped it; None as soon as it is at work again."""
        self.stops = 0
        """How often it has been stopped by an error."""
        self.full = False
        """Whether matches cannot be stored now: there is no room."""
        self.bring_back: Callable[[str], None] = lambda name: None
        """Has a query that is at work no longer begin again from its checkpoint."""
        self._journal, self._engine = journal, engine
        self._metrics = metrics
        self._store_lock = store_lock if store_lock is not None else nullcontext()
        self._progress = LogProgress()
        self.outbox = Outbox(journal, topics, engine, metrics, self.names, self._progress)
        self.outbox.on_gone = self._forget_named
        self.checkpointer = Checkpointer(
            journal,
            engine,
            self.outbox,
            self._progress,
            metrics,
            self.names,
            self._store_lock,
            settings.checkpoint,
        )
        self._changes: deque[Callable[[], None]] = deque()
        """Of what is at work: to be made between two entries."""
        self._named: dict[str, LiveQuery] = {}
        """Those at work, and those that are to join."""
        self._joining: list[LiveQuery] = []
        self._lost: list[str] = []
        """Queries that are to be restored."""
        self._silences = Silences(settings.idle)
        self._at_hand: Sequence[Entry] = ()
        """The entries that are being passed on."""
        self._passing: Iterator[bool] | None = None
        """Passes them on, portion by portion; it stays from turn to turn within an entry."""
        self._between = threading.Event()
        """Set while no entry is passed on in part."""
        self._between.set()
        self._portion = GROUP // 8
        """Events to pass on together next."""
        self._page = PAGE
        """Bytes of the log to take next."""
        self._collected = 0.0
        """When what was found was last collected (the thread's time)."""
        self._counted_from = 0
        self._waiting = 0
        self._count_lock = threading.Lock()
        self._wake = threading.Event()
        self._due = 0.0
        """When the next turn may begin (monotonic clock)."""
        self._thread = journal.threads.add(
            Background(
                "oxiseq-live", self._round, vital=True, wake=self._wake.set, failed=self._stopped, last=self._save_all
            )
        )

    # --- its life -----------------------------------------------------------------------------------

    def start(self, position: int, head: int) -> None:
        """Read on behind `position`; what is there already, up to `head`, does not count as waiting."""
        self._progress.position, self._counted_from = position, head
        self._journal.log.on_arrival(self.arrived)
        self._thread.start()

    def stop(self) -> None:
        """End behind the entry that is being passed on; a checkpoint is made."""
        self._thread.end()
        self._thread.join()

    @property
    def position(self) -> int:
        """The entry that was processed last."""
        return self._progress.position

    @property
    def between_entries(self) -> bool:
        """Whether no entry is passed on in part; with `lock` held."""
        return self._between.is_set()

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
            saved = self._checkpoint()
            if not worked:
                self._due = 0.0  # what comes after a turn without work comes alone
                self._settle()
                due = max(_SHORTEST, self._silences.due - time.monotonic())
                self._wake.wait(0 if saved else min(due, DELAY / 2 if self.outbox else _LONGEST))
        except FullError as error:
            LOG.warning("matches cannot be stored yet: %s", error)
            self.full = True
            self._wake.wait(_RETRY)

    def _save_all(self) -> None:
        """The end: a last checkpoint."""
        try:
            while self._passing is not None:
                self.turn()
            while self._checkpoint(last=True):
                pass
        except (JournalError, SnapshotError) as error:
            LOG.warning("the last matches are not stored; they will be found again: %s", error)

    def _checkpoint(self, *, last: bool = False) -> bool:
        """Some states are saved, if that is due; whether there are more."""
        if self._passing is not None or not (last or self.checkpointer.due):
            return False
        try:
            with self.lock:
                return self.checkpointer.save_some(last=last)
        except JournalError as error:
            self.checkpointer.give_up()
            LOG.warning("no checkpoint: %s", error)
            return False

    # --- a turn -------------------------------------------------------------------------------------

    def turn(self) -> bool:
        """Work through what comes next in the log; False when there is nothing."""
        with self.lock:
            if self._passing is None:
                self.make_changes()
                self._bring_back_lost()
            if self.full:
                self.flush()  # nothing more is found while it cannot be stored
            if self._passing is None:
                self.checkpointer.save_decisions()
                self._at_hand = self._journal.log.follow(self.position, min(self._page, PAGE))
                self._join(self.position)
                if not self._at_hand:
                    self._tell_upset()
                    self._write_results()
                    self.outbox.flush_if_due()
                    return False
                self._passing = self._pass_on(self._at_hand)
            begun, used = time.perf_counter(), time.thread_time()
            with self._store_lock:
                self._go_on(used)
                due = self.between_entries or used - self._collected > _COLLECT
                emission = self._engine.collected(self._away) if due else Emission()
            self._metrics.processing_seconds.observe(time.perf_counter() - begun)
            if due:
                self._collected = used
                self._lost += [query.name for query in emission.broken]
                self.outbox.emit(emission)
            self.checkpointer.keep_to_budgets(between_entries=self.between_entries)
            self.outbox.flush_if_due()  # last: until the next turn the disk may take its time, and no reader waits
        return True

    def _go_on(self, begun: float) -> None:
        """Pass entries on until the turn has worked for long enough. What is then left of an entry is passed on by the
        next turns, of which the last ends with it: changes must not wait for ever. Entries behind it are read again
        then, for queries may have come or gone."""
        assert self._passing is not None
        first, took, within, carried = self.position, 0.0, False, not self.between_entries
        for within in self._passing:
            if (took := time.thread_time() - begun) > _STRETCH or (carried and not within):
                break
        if within:
            self._between.clear()
            return
        done = sum(len(entry.data) for entry in self._at_hand if first < entry.position <= self.position)
        if took > _STRETCH:
            self._page = max(_SMALLEST_PAGE, int(done * _STRETCH / took))
        elif 2 * done > self._page:
            self._page = min(2 * self._page, PAGE)
        self._passing, self._at_hand = None, ()
        self._between.set()

    def _pass_on(self, entries: Sequence[Entry]) -> Iterator[bool]:
        """Pass entries on, portion by portion; after each whether there is more of an entry."""
        wanted = self._engine.streams.union(*(query.shape.reads for query in self._joining))
        read = read_entries([entry for entry in entries if entry.stream in wanted], self._engine.unpack)
        if len(read.events) > self._portion:
            yield True
        for group in self._groups(entries):
            self._join(group[0].position - 1)
            self._progress.under_way = group[-1]
            good = [entry for entry in group if not self._skips(entry, read)] if read.unreadable else group
            mine = [read.places[entry.position] for entry in good if entry.position in read.places]
            at, end = (mine[0][0], mine[-1][1]) if mine else (0, 0)  # one after the other
            while at < end:
                at = self._push(group[0].stream, read, at, end)
                if at < end:
                    yield True
            self._finish(group, good)
            yield False

    def _push(self, stream: str, read: ReadEntries, at: int, end: int) -> int:
        """Pass on events of a stream, as many as a turn has time for; up to which."""
        count = min(self._portion, end - at)
        events = read.events.slice(at, at + count)
        if count < _SMALLEST_PORTION:  # the clock takes its time, too
            self._engine.push(stream, events)
            return at + count
        begun = time.thread_time()
        self._engine.push(stream, events)
        took = time.thread_time() - begun
        if took > _STRETCH:
            self._portion = max(_SMALLEST_PORTION, int(count * _STRETCH / took))
        elif count == self._portion and 2 * took < _STRETCH:
            self._portion = min(2 * count, GROUP)
        return at + count

    def _finish(self, group: Sequence[Entry], good: Sequence[Entry]) -> None:
        """All events of a group of entries are passed on: its punctuations follow. `good`: those that can be read."""
        stream, progress = group[0].stream, self._progress
        if pushed := sum(entry.count for entry in good):
            progress.events += pushed
            self._silences.came(stream)
        if marks := [entry.time for entry in good if not entry.count]:
            self._engine.punctuate(stream, max(marks))
            progress.complete[stream] = max(*marks, progress.complete.get(stream, BEFORE_ALL))
            self._silences.changed((stream,))
        progress.passed(group[-1])
        progress.under_way = None
        self._metrics.processed.inc(sum(entry.count for entry in group))
        self._count(group)

    def _skips(self, entry: Entry, read: ReadEntries) -> bool:
        """Whether an entry cannot be read: then its readers quarantine it."""
        if (reason := read.unreadable.get(entry.position)) is None:
            return False
        for query in self._engine.readers(entry.stream).queries:
            self.outbox.quarantine(query, entry, reason)
        return True

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

    def _count(self, entries: Sequence[Entry]) -> None:
        done = sum(entry.count for entry in entries if entry.position > self._counted_from)
        with self._count_lock:
            self._waiting = max(0, self._waiting - done)

    def _tell_upset(self) -> None:
        """Of queries that were found not to be at work."""
        if self._engine.upset:
            with self._store_lock:
                emission = self._engine.collected()
            self._lost += [query.name for query in emission.broken]
            self.outbox.emit(emission)

    def _write_results(self) -> None:
        """What no entry of the log lets be written: a query has gone, or come, that writes the same stream."""
        if self._engine.writes:
            with self._store_lock:
                emission = self._engine.collected(self._away)
            self.outbox.emit(emission)

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
            self._joining = []
            self.outbox.clear()
            self.checkpointer.clear()
            passed = [entry for entry in self._at_hand if entry.position > self.position]
            for entry in passed:
                self._progress.passed(entry)
            self._count(passed)
            self._passing, self._at_hand, self._progress.under_way = None, (), None
            self._between.set()

    def _bring_back_lost(self) -> None:
        """Queries that are at work no longer begin again. Raises FullError: tried again later."""
        while self._lost:
            self.flush()
            name = self._lost[0]
            self.bring_back(name)
            self.found_again(name)
        self.error = None

    def flush(self) -> None:
        """Store all that was found so far, with `lock` held. Raises FullError; then it is tried again later."""
        self.outbox.flush()

    @contextmanager
    def between_turns(self) -> Iterator[bool]:
        """Whether a change of what is at work can be made at once: the entry that is passed on has ended within a
        moment. Else what is durable of it is done now, and the rest is left to the worker."""
        until = time.monotonic() + _PATIENCE
        free = self._between.wait(_PATIENCE) and self.lock.acquire(timeout=max(0.0, until - time.monotonic()))
        try:
            if free and not self.between_entries:
                self.lock.release()
                free = False
            if free and self._changes:
                try:
                    self.make_changes()
                except FullError:
                    self.lock.release()
                    free = False
            yield free
        finally:
            if free:
                self.lock.release()

    def change(self, change: Callable[[], None], *, at_once: bool) -> None:
        """Make it now, or have the worker make it as soon as its entry has ended, in the order of the calls."""
        if at_once:
            change()
        else:
            self._changes.append(change)
            self._wake.set()

    def make_changes(self) -> None:
        """Those that wait, with `lock` held, between two entries. Raises FullError: what is left is made later."""
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
        self.checkpointer.remove(query)
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
        self._progress.forget(stream)
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
        """Queries at the worker's position are at work from now on, though no turn has come yet; with `lock` held,
        between two entries."""
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
            self.outbox.emit(emission)
            if at in query.passed_over:  # one that is restored again begins behind it
                self.checkpointer.save_at((query,), at, offsets)
            if query.decided <= at and query in self._engine.queries:
                self.checkpointer.decide([query], at, offsets)
                self.checkpointer.save_decisions()
        return self._goes_on(query)

    def _goes_on(self, query: LiveQuery) -> bool:
        return query in self._engine.queries and not query.retired

    def _see(self, query: LiveQuery, entry: Entry) -> None:
        """Hand an entry to a query that is alone. Raises UnworkableError."""
        if entry.position in query.passed_over:
            return
        read = read_entries([entry], self._engine.unpack)
        if reason := read.unreadable.get(entry.position):
            self.outbox.quarantine(query, entry, reason)
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
            if not self._engine.readers(stream).lateness and target > self._progress.complete.get(stream, BEFORE_ALL)
        }
