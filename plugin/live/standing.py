"""Queries over the store itself, as the service keeps them: durable, with ids for what changes of their answers.

    store ─▶ oxiseq.api.standing (what came and went) ─▶ a thread here ─▶ journal ─▶ topics ─▶ subscribers

What changes an answer, the store, is not in the log, so a change is stored before it is emitted: every emitted one has
its id for ever. A restart compares what has been emitted so far (the answer of the last checkpoint, and the changes
since) with what the store answers now; the difference is one more change. So does a query that is resumed, and one
whose changes could not be stored for a while. Where the history cannot be continued, an id is left out and all cursors
are too old: readers learn that, and begin with the answer.
"""

from __future__ import annotations

import logging
import secrets
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from datetime import timedelta
from functools import partial
from hashlib import blake2b
from typing import Any, Final

from oxiseq.api.standing import Snapshot, StandingQuery, StoreChange
from oxiseq.api.standing.query import Form
from oxiseq.api.store import Store
from oxiseq.engine.background import Background
from oxiseq.engine.errors import LimitError, OxiseqError
from oxiseq.grammar.languages import STANDING
from oxiseq.grammar.records import dataclass
from oxiseq.journal import (
    Checkpoint,
    ConflictError,
    CursorError,
    DamagedBatchError,
    DamagedError,
    Found,
    FullError,
    Journal,
    JournalError,
    QueryRecord,
    Retention,
    UnknownError,
)
from oxiseq.languages.explanation import Explanation
from oxiseq.live.answers import (
    Answer,
    Rows,
    change_events,
    columns_of,
    difference,
    packed,
    rows_of,
    saved,
    size_of,
    told_rows,
)
from oxiseq.live.metrics import Metrics
from oxiseq.live.reading import reason_of
from oxiseq.live.remote import StandingElsewhere
from oxiseq.live.settings import BoundError, LiveSettings
from oxiseq.live.topics import Topic, Topics

LOG: Final = logging.getLogger("oxiseq.live")
_KEPT: Final = 50_000
"""Rows of changes that a query holds in memory until they are stored; of more only the difference is stored."""
_SELDOM: Final = 1000
"""Rows of changes after which a checkpoint is made, if the answer is not larger."""
_LOOK: Final = 0.5
"""Seconds between checks of the queries' states."""
_RETRY: Final = 1.0
_UNKNOWN: Final = -1
"""The number of a query whose answer has not been compared yet with what was emitted."""
_UNNAMED: Final = "unnamed"
"""The option of a query that has no name of its own; nobody but `unnamed` sets it."""
_ANSWERS: Final = 4
"""Most answers that are kept for the next reader."""


@dataclass(slots=True, eq=False)
class _AtWork:
    """A query at work. number: up to which of its changes all is stored; count: the id of the last row; saved: the id
    at its checkpoint; size: the rows of its answer, each as often as it is there."""

    query: StandingQuery
    name: str
    number: int
    count: int
    saved: int
    size: int
    at: int = 0


@dataclass(slots=True)
class _Step:
    """The changes of a query to store, and its position then."""

    at_work: _AtWork
    number: int
    found: list[Found] = field(default_factory=list)
    count: int = 0
    size: int = 0
    at: int = 0
    checkpoint: Answer | None = None


class StandingQueries:
    """Register, pause, resume, delete, look at. Safe for many threads."""

    def __init__(
        self,
        journal: Journal,
        store: Store | StandingElsewhere,
        topics: Topics,
        settings: LiveSettings,
        metrics: Metrics,
        take_in_updates: Callable[[], None] = lambda: None,
    ) -> None:
        """`take_in_updates`: called before an answer is read, for a store that does not tell of its changes."""
        self._journal, self._store, self._topics = journal, store, topics
        self._take_in_updates = take_in_updates
        self._settings, self._metrics = settings, metrics
        self._lock = threading.RLock()
        """Taken before the store's."""
        self._at_work: dict[str, _AtWork] = {}
        self._answers: dict[str, Answer] = {}
        self._touched: set[str] = set()
        self._left: deque[StandingQuery] = deque()
        """Those that are no longer at work and have not been closed."""
        self._closing = threading.Lock()
        """Held while they are closed; taken before the store's lock."""
        self._readers: dict[str, int] = {}
        self._unread: dict[str, float] = {}
        """Queries without a name of their own that nobody reads, since when."""
        self.full = False
        """Whether changes cannot be stored now: there is no room."""
        self._wake = threading.Event()
        self._thread = journal.threads.add(
            Background("oxiseq-standing-journal", self._round, vital=True, wake=self._wake.set, last=self._end)
        )

    # --- how they come and go -------------------------------------------------------------------------

    def register(self, name: str, text: str, options: Mapping[str, Any], *, replace: bool = False) -> None:
        """A query whose answer is followed from now on. The same text again changes nothing; with another one readers
        with earlier cursors begin again. Raises QueryError, ConflictError, BoundError, LimitError, KbError,
        FullError."""
        given = {option: value for option, value in options.items() if option != _UNNAMED}
        self._register(name, text, given, replace)

    def _register(self, name: str, text: str, options: Mapping[str, Any], replace: bool) -> None:
        with self._lock:
            if self._stands(name, text, options, replace):
                return
        query = self._followed(text)  # the store may take long, so the lock is not held
        try:
            with self._lock:
                if self._stands(name, text, options, replace):  # somebody else was quicker
                    query.close()
                    return
                self._begin(name, text, options, query, replace)
        except BaseException:
            query.close()
            raise
        LOG.info("query %s over the store registered", name, extra={"query": name})

    def _stands(self, name: str, text: str, options: Mapping[str, Any], replace: bool) -> bool:
        """Whether there is such a query already. Raises ConflictError, BoundError."""
        known = {record.name: record for record in self._journal.queries.all()}
        before = known.get(name)
        if before is not None and not replace:
            raise ConflictError(f"there is a query {name!r} already")
        same = before is not None and before.text == text and _is_unnamed(before) == bool(options.get(_UNNAMED))
        if same and name in self._at_work:
            return True
        if before is None and len(known) >= self._settings.queries and not self._let_go_unread(0.0):
            raise BoundError(f"there are {self._settings.queries} queries, the limit (--max-queries of `oxiseq serve`)")
        return False

    def _begin(self, name: str, text: str, options: Mapping[str, Any], query: StandingQuery, replace: bool) -> None:
        snapshot = query.snapshot(wait=False)
        answer = _answer(query, snapshot, snapshot.number)
        self._check(answer.size)
        told = {**options, "form": answer.form, "columns": answer.columns}
        record = self._journal.queries.register(
            name,
            text,
            STANDING,
            options=told,
            keep=Retention(count=self._settings.matches),
            replace=replace,
            answer=saved(answer),
        )
        self._leave(name)
        self._unread.pop(name, None)
        self._topics.close(name, "replaced")
        last = record.next - 1
        self._enter(_AtWork(query, name, answer.number, last, last, answer.size, answer.at))

    def check(self, text: str) -> None:
        """Raises what `register` raises for the text."""
        self._followed(text).close()

    def unnamed(self, text: str) -> str:
        """A query that goes when nobody has read it for a while; all who ask for the same text share it. Its name.

        Raises as `register`.
        """
        short = f"unnamed-{blake2b(text.encode(), digest_size=8).hexdigest()}"
        with self._lock:
            ours = {record.name: _is_unnamed(record) for record in self._journal.queries.all()}
            names = (short, *(f"{short}-{number}" for number in range(len(ours))))
            name = next(name for name in names if ours.get(name, True))  # somebody's own may be called so
            if name in self._at_work:
                self._unread[name] = time.monotonic()
                return name
            if sum(ours.get(each, False) for each in self._at_work) >= self._settings.subscribers:
                self._let_go_unread(0.0)
        self._register(name, text, {_UNNAMED: True}, replace=True)
        self._unread[name] = time.monotonic()
        return name

    def pause(self, name: str) -> None:
        """Its answer stays as it is. Raises FullError."""
        with self._lock:
            if (at_work := self._at_work.get(name)) is not None:
                self._store_all([at_work])
                self._leave(name)
            self._journal.queries.set_state(name, "paused")

    def resume(self, name: str) -> None:
        """Go on after a pause or a failure: what is different by now is a change. Raises as `register`."""
        if name not in self._at_work:
            query = self._followed(self._journal.queries.get(name).text)  # without the lock, as in `register`
            with self._lock:
                self._go_on(name, query)
        self._journal.queries.set_state(name, "running")

    def _go_on(self, name: str, query: StandingQuery) -> None:
        """With a query of before, if there still is one that is not at work."""
        try:
            record = self._journal.queries.get(name)
            if name not in self._at_work and record.text == query.text:
                self._restore(record, query)
                return
        except BaseException:
            query.close()
            raise
        query.close()

    def delete(self, name: str) -> None:
        """Forget it, and its changes. Raises UnknownError."""
        with self._lock:
            self._journal.queries.delete(name)
            self.let_go(name, "deleted")

    def let_go(self, name: str, reason: str) -> None:
        """It is at work no longer."""
        with self._lock:
            self._leave(name)
            self._unread.pop(name, None)
            self._topics.close(name, reason)

    def restore(self, record: QueryRecord) -> None:
        """At the start. A query that cannot be restored has failed."""
        with self._lock:
            try:
                if _is_unnamed(record):
                    self._unread[record.name] = time.monotonic()
                if record.state == "running":
                    self._restore(record, self._followed(record.text))
            except Exception as error:
                LOG.exception("query %s cannot be restored", record.name, extra={"query": record.name})
                self._journal.queries.set_state(record.name, "failed", reason_of(error))

    def _restore(self, record: QueryRecord, query: StandingQuery) -> None:
        """It is compared with what was emitted before anything else is."""
        name = record.name
        checkpoint = self._journal.checkpoints.latest(name)
        last = record.next - 1
        done = last if checkpoint is None else checkpoint.matches.get(name, 0)
        self._enter(_AtWork(query, name, _UNKNOWN, last, done, 0))

    def _begin_anew(self, at_work: _AtWork, answer: Answer) -> None:
        """With an answer, and all that was emitted before under this name deleted: it has an id of its own, so
        that no cursor of before is one of now."""
        name = at_work.name
        last = self._journal.matches.begin_anew(name, saved(answer))
        self._topics.close(name, "replaced")
        at_work.number, at_work.count, at_work.saved = answer.number, last, last
        at_work.size, at_work.at = answer.size, answer.at
        self._open(name, last, answer.form)

    def _enter(self, at_work: _AtWork) -> None:
        name = at_work.name
        self._at_work[name] = at_work
        self._open(name, at_work.count, at_work.query.form)
        at_work.query.on_change(partial(self._changed, name))
        self._changed(name)

    def _open(self, name: str, last: int, form: Form) -> Topic:
        return self._topics.open(name, last, partial(change_events, form=form))

    def _leave(self, name: str) -> None:
        self._answers.pop(name, None)
        if (at_work := self._at_work.pop(name, None)) is not None:
            self._left.append(at_work.query)  # to close it takes the store's lock, which may be held for long
            self._wake.set()

    def _close_left(self) -> None:
        with self._closing:
            while self._left:
                self._left.popleft().close()

    def _followed(self, text: str) -> StandingQuery:
        """A standing query of the store. Raises QueryError, LimitError, KbError, OxiseqError."""
        if self._settings.union:
            raise OxiseqError(
                "with --union-default-graph the store has no standing queries: their answers are of the "
                "default graph alone"
            )
        seconds = self._settings.asking
        name, most_rows = f"live {secrets.token_hex(8)}", self._settings.answer
        most_asking = None if seconds is None else timedelta(seconds=seconds)
        if isinstance(self._store, StandingElsewhere):
            self._close_left()  # while one asks the same text its answer counts as fresh, also one that was deleted
            return self._store.register(text, name=name, keep=_KEPT, most_rows=most_rows, most_asking=most_asking)
        return self._store.register(
            text,
            language=STANDING,
            name=name,
            keep=_KEPT,
            most_triples=self._settings.held,
            most_rows=most_rows,
            most_asking=most_asking,
        )

    # --- what they answer -----------------------------------------------------------------------------

    def answer(self, name: str) -> Answer:
        """The present answer, under the id of the last change in it, which is stored. Of a query that is not at work:
        what was emitted last. Raises UnknownError, JournalError, FullError."""
        self._wait_for(name)
        with self._lock:
            at_work = self._at_work.get(name)
            if at_work is None:
                return self._last_answer(name)
            known = self._answers.get(name)
            if known is not None and at_work.query.number == at_work.number and known.number == at_work.count:
                return known
            snapshot = at_work.query.snapshot(wait=False)
            self._store_step(self._step(at_work, snapshot))
            found = _answer(at_work.query, snapshot, at_work.count)
            self._answers[name] = found
            while len(self._answers) > _ANSWERS:
                del self._answers[next(iter(self._answers))]
            return found

    def catch_up(self, name: str) -> None:
        """What updates made so far have changed is stored, if the query is at work. Raises FullError."""
        self._wait_for(name)
        with self._lock:
            if (at_work := self._at_work.get(name)) is not None:
                self._store_all([at_work])

    def _wait_for(self, name: str) -> None:
        """All updates made so far are taken in. The store may take long: without the lock."""
        if (query := self.query(name)) is not None:
            self._take_in_updates()
            query.catch_up()

    def _last_answer(self, name: str) -> Answer:
        record = self._journal.queries.get(name)
        if record.language != STANDING:
            raise UnknownError(f"{name!r} reads streams: it has matches, but no answer")
        columns = tuple(record.options["columns"])
        rows = told_rows(self._journal, name)
        return Answer(record.options["form"], columns, record.next - 1, record.changed, rows)

    def _check(self, size: int) -> None:
        if size > self._settings.answer:
            raise LimitError(size, self._settings.answer, "rows of an answer, each as often as it is there")

    def query(self, name: str) -> StandingQuery | None:
        """The query at work of this name."""
        at_work = self._at_work.get(name)
        return None if at_work is None else at_work.query

    def size(self, name: str) -> int:
        """Rows of its answer."""
        at_work = self._at_work.get(name)
        return 0 if at_work is None else at_work.size

    def explain(self, name: str) -> Explanation:
        """How a query is answered. Raises OxiseqError for one that is not at work."""
        query = self.query(name)
        if query is None:
            raise ConflictError(f"{name!r} is not running: resume it first")
        return query.explain()

    def open(self, name: str) -> Topic:
        """For one more reader: what it listens to. Raises UnknownError."""
        with self._lock:
            record = self._journal.queries.get(name)
            if record.language != STANDING:
                raise UnknownError(f"{name!r} reads streams: it has matches, but no changes")
            self._readers[name] = self._readers.get(name, 0) + 1
            self._unread.pop(name, None)
            topic = self._open(name, record.next - 1, record.options["form"])
            if record.state == "failed":
                self._topics.close(name, f"failed: {record.error}")
            return topic

    def closed(self, name: str) -> None:
        """A reader has gone."""
        with self._lock:
            left = self._readers.pop(name, 1) - 1
            if left:
                self._readers[name] = left
            elif name in self._at_work and _is_unnamed(self._journal.queries.get(name)):
                self._unread[name] = time.monotonic()

    def let_go_unread(self) -> None:
        """Delete queries without a name that nobody has read for a while: to be called now and then."""
        with self._lock:
            self._let_go_unread(self._settings.unread)

    def _let_go_unread(self, seconds: float) -> bool:
        now = time.monotonic()
        gone = [name for name, since in self._unread.items() if now - since >= seconds and name not in self._readers]
        ours = {record.name for record in self._journal.queries.all() if _is_unnamed(record)} if gone else set()
        for name in gone:
            if name in ours:
                self.delete(name)
            else:
                del self._unread[name]
        return any(name in ours for name in gone)

    # --- changes --------------------------------------------------------------------------------------

    def start(self) -> None:
        """Begins to store and emit changes."""
        self._thread.start()

    def stop(self) -> None:
        """End; the store's queries are closed."""
        self._thread.end()
        self._thread.join()
        with self._lock:
            for name in [*self._at_work]:
                self._leave(name)
        self._close_left()

    def _changed(self, name: str, _: StoreChange | None = None) -> None:
        """Called by the store's thread, which must not wait."""
        self._touched.add(name)
        self._wake.set()

    def _round(self) -> None:
        self._wake.wait(_LOOK)
        self._wake.clear()
        self._close_left()
        try:
            self._turn()
            self.full = False
        except FullError as error:
            LOG.warning("changes of answers cannot be stored yet: %s", error)
            self.full = True
            self._thread.rest(_RETRY)

    def _end(self) -> None:
        try:
            self._turn()
        except OxiseqError as error:
            LOG.warning("the last changes are not stored; a restart finds them: %s", error)

    def _turn(self) -> None:
        with self._lock:
            touched = {self._touched.pop() for _ in range(len(self._touched))}
            try:
                self._store_all([each for name in touched if (each := self._at_work.get(name)) is not None])
            except Exception:
                self._touched |= touched
                raise
            for at_work in [*self._at_work.values()]:
                if at_work.query.state == "failed":
                    self._fail(at_work, at_work.query.reason)

    def _store_all(self, touched: Sequence[_AtWork]) -> None:
        """What has changed of these, in one transaction; with a checkpoint of its own where that is due."""
        steps: list[_Step] = []
        for at_work in touched:
            try:
                steps.append(self._step(at_work))
            except JournalError:
                raise
            except Exception as error:
                self._fail(at_work, reason_of(error))
        together = [step for step in steps if step.checkpoint is None]
        if any(step.found for step in together):
            self._journal.emit([found for step in together for found in step.found])
        for step in together:
            self._tell(step)
        for step in steps:
            if step.checkpoint is not None:
                self._store_step(step)

    def _step(self, at_work: _AtWork, until: Snapshot | None = None) -> _Step:
        """What has changed since the last step (`until`: up to this one). Raises LimitError, JournalError."""
        query = at_work.query
        try:
            changes = query.poll(after=at_work.number, wait=False)
        except CursorError:  # it has been restored, or that was too much at once
            snapshot = until if until is not None else query.snapshot(wait=False)
            return self._compared(at_work, _answer(query, snapshot, snapshot.number))
        step = _Step(at_work, at_work.number, [], at_work.count, at_work.size, at_work.at)
        for change in changes:
            if until is None or change.number <= until.number:
                self._add(step, rows_of(change.weighed), change.at_us)
                step.number = change.number
        if self._is_due(at_work, step.count - at_work.count):
            now = until if until is not None else query.snapshot(wait=False)
            if now.number != step.number:  # more has come meanwhile
                return self._step(at_work, now)
            step.checkpoint = _answer(query, now, step.count)
        return step

    def _compared(self, at_work: _AtWork, now: Answer) -> _Step:
        """The difference between what was emitted and an answer as a change; all again where what was emitted cannot be
        read. Raises LimitError, JournalError."""
        self._check(now.size)
        try:
            before = told_rows(self._journal, at_work.name)
        except (DamagedError, DamagedBatchError, CursorError) as error:
            LOG.warning("query %s restarts: %s", at_work.name, error, extra={"query": at_work.name})
            self._begin_anew(at_work, now)
            return _Step(at_work, at_work.number, [], at_work.count, at_work.size, at_work.at)
        size = sum(before.values())
        step = _Step(at_work, now.number, [], at_work.count, size, at_work.at)
        self._add(step, difference(before, now.rows), now.at)
        if self._is_due(at_work, step.count - at_work.count):
            step.checkpoint = Answer(now.form, now.columns, step.count, now.at, now.rows)
        return step

    def _add(self, step: _Step, change: Rows, at: int) -> None:
        query = step.at_work.query
        step.at = max(at, step.at)
        step.size += sum(change.values())
        self._check(step.size)
        columns = columns_of(query.form, query.variables)
        step.found += packed(step.at_work.name, step.count + 1, columns, step.at, change)
        step.count += size_of(change)

    def _is_due(self, at_work: _AtWork, more: int) -> bool:
        """Whether so many rows more need a checkpoint: retention must never delete changes since the last one."""
        most = min(self._settings.matches // 2, max(_SELDOM, at_work.size))
        return at_work.count + more - at_work.saved > most

    def _store_step(self, step: _Step) -> None:
        """Raises JournalError; then it is to be made again."""
        answer = step.checkpoint
        if answer is not None:
            self._save(step.at_work.name, answer, step.count, *step.found)
            step.at_work.saved = step.count
        elif step.found:
            self._journal.emit(step.found)
        self._tell(step)

    def _save(self, name: str, answer: Answer, last: int, *found: Found) -> None:
        position = self._journal.log.position()
        self._journal.checkpoints.commit(Checkpoint(name, saved(answer), {}, {name: last}, position=position), *found)

    def _tell(self, step: _Step) -> None:
        """What is stored by now."""
        at_work = step.at_work
        rows = step.count - at_work.count
        at_work.number, at_work.count, at_work.size, at_work.at = step.number, step.count, step.size, step.at
        topic = self._topics.get(at_work.name)
        counts = [following.first - found.first for found, following in zip(step.found, step.found[1:], strict=False)]
        if step.found:
            counts.append(step.count + 1 - step.found[-1].first)
        for found, count in zip(step.found, counts, strict=True):
            if topic is not None:
                topic.publish(found, count)
        if rows:
            self._metrics.matches.labels(at_work.name).inc(rows)

    def _fail(self, at_work: _AtWork, reason: str) -> None:
        name = at_work.name
        LOG.error("query %s has failed: %s", name, reason, extra={"query": name})
        self._leave(name)
        self._journal.queries.set_state(name, "failed", reason)
        self._topics.close(name, f"failed: {reason}")
        self._metrics.failures.labels(name).inc()


def _is_unnamed(record: QueryRecord) -> bool:
    """Whether it goes when nobody reads it."""
    return record.language == STANDING and bool(record.options.get(_UNNAMED))


def _answer(query: StandingQuery, snapshot: Snapshot, number: int) -> Answer:
    columns = columns_of(query.form, query.variables)
    return Answer(query.form, columns, number, snapshot.at_us, rows_of(snapshot.weighed))
