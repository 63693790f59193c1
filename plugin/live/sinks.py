"""Sinks at work: each on a thread of its own, from the journal to its receiver.

    journal: matches behind the sink's position ─▶ delivery ─▶ receiver confirms ─▶ journal: the position

The query knows nothing of it: a sink reads what is stored, so one that fails holds up neither the query nor another
sink, and what it has in memory is a page of stored matches. A kill between the receiver's word and the journal's
repeats that one delivery, under the same idempotency key.
"""

from __future__ import annotations

import logging
import random
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from itertools import takewhile
from pathlib import Path
from typing import Any, Final

from prometheus_client.core import GaugeMetricFamily

from oxiseq.engine.background import Background
from oxiseq.engine.errors import OxiseqError
from oxiseq.grammar.languages import STANDING
from oxiseq.grammar.records import dataclass
from oxiseq.journal import (
    FILE_NAME,
    ConflictError,
    CursorError,
    DamagedBatchError,
    Journal,
    JournalError,
    SinkRow,
    StoredMatches,
    UnknownError,
    join_matches,
)
from oxiseq.journal.journal import microseconds as microseconds_now
from oxiseq.kb_loader.marker import is_store_file
from oxiseq.live.answers import OF_ANSWER
from oxiseq.live.bridges import FOLDER as BRIDGES
from oxiseq.live.metrics import Metrics, gauge
from oxiseq.live.reading import reason_of
from oxiseq.live.settings import BoundError, LiveSettings
from oxiseq.options.room import overlap
from oxiseq.sinks import DeclaredSink, Delivery, DeliveryError, Receiver, SinkError, SinkSettings, settings_of
from oxiseq.sparql.snapshots import FOLDER as SNAPSHOTS

_DECLARED: Final = "declared"
"""Member of a stored configuration that comes from the server's settings."""
LOG: Final = logging.getLogger("oxiseq.live")
_PAGE: Final = 1000
"""Matches that are read at a time, where a delivery does not have more."""
_LOOK: Final = 5.0
"""Seconds after which a sink looks for matches without being notified."""
_END: Final = 2.0
"""Seconds for which the end of a sink is waited for: what it delivers meanwhile is not noted any more."""


@dataclass(frozen=True, slots=True)
class SinkStatus:
    """A sink and how it is doing. `waiting`: matches that are not delivered yet; `next_try`: µs since 1970, None where
    it is not waiting for one; `declared`: it is in the server's settings."""

    row: SinkRow
    settings: Mapping[str, Any]
    waiting: int
    next_try: int | None
    declared: bool


class Sinks:
    """Put, list, delete, and keep at work. Safe for many threads."""

    def __init__(self, journal: Journal, settings: LiveSettings, metrics: Metrics) -> None:
        """Raises SinkError, ConflictError for sinks of the settings that cannot be."""
        self._journal, self._settings, self._metrics = journal, settings, metrics
        self._lock = threading.Lock()
        """Held while sinks come and go."""
        self._at_work: dict[tuple[str, str], _AtWork] = {}
        self._declared = {(each.query, each.name): each for each in settings.sinks_declared}
        self._stopping = False
        self._check_declared()

    def start(self) -> None:
        """Go on with those that are stored, and begin those of the settings whose queries are there."""
        with self._lock:
            rows = {(row.query, row.name): row for row in self._journal.sinks.all()}
            for place, (key, row) in enumerate(rows.items()):
                if key not in self._declared and _DECLARED not in row.config:
                    self._go_on(row, list(rows.values())[:place])
                elif key in self._declared:
                    self._begin(row if _DECLARED in row.config else self._stored(self._declared[key], None))
                else:
                    LOG.warning("sink %s of query %s rests: it is not in the settings any more", row.name, row.query)
            queries = {record.name for record in self._journal.queries.all()}
            for key, each in self._declared.items():
                if key not in rows and each.query in queries:
                    self._attach(each)

    def _go_on(self, row: SinkRow, others: Sequence[SinkRow]) -> None:
        """Begin a stored sink, unless it has its files where another one has them, as earlier versions allowed."""
        with suppress(SinkError):  # which it says itself when it is opened
            try:
                self._check_file(self._settings_of(row), others, (row.query, row.name))
            except ConflictError as error:
                LOG.error("sink %s of query %s rests, give it another path: %s", row.name, row.query, error)
                return
        self._begin(row)

    def query_there(self, query: str) -> None:
        """A query is registered: sinks of the settings deliver its matches from the first one on."""
        with self._lock:
            for key, each in self._declared.items():
                if each.query == query and key not in self._at_work:
                    self._attach(each)

    def _attach(self, declared: DeclaredSink) -> None:
        if self._journal.queries.get(declared.query).language == STANDING:
            LOG.error("[serve.sinks.%s]: %s", declared.name, OF_ANSWER.format(declared.query))
            return
        self._begin(self._stored(declared, declared.after))

    def _stored(self, declared: DeclaredSink, after: int | None) -> SinkRow:
        """The row of a sink of the settings, which themselves stay in the operator's file."""
        config = {_DECLARED: True, "kind": declared.settings.kind}
        return self._journal.sinks.put(declared.query, declared.name, config, after)

    def _check_declared(self) -> None:
        """Raises SinkError for what is not allowed, ConflictError for two that write to one place."""
        rows = [row for row in self._journal.sinks.all() if (row.query, row.name) not in self._declared]
        for key, each in self._declared.items():
            try:
                each.settings.check(self._settings.sinks_allowed)
                self._check_file(each.settings, rows, key)
            except (SinkError, ConflictError) as error:
                raise type(error)(f"[serve.sinks.{each.name}]: {error}") from error

    def _settings_of(self, row: SinkRow) -> SinkSettings:
        """Raises SinkError."""
        if _DECLARED not in row.config:
            return settings_of(row.config)
        declared = self._declared.get((row.query, row.name))
        if declared is None:
            raise SinkError("the server's settings no longer name it")
        return declared.settings

    def _check_undeclared(self, query: str, name: str) -> None:
        """Raises ConflictError."""
        if (query, name) in self._declared:
            raise ConflictError(f"{name!r} of {query!r} is declared in the server's settings: change it there")

    def stop(self) -> None:
        """End all of them."""
        with self._lock:
            self._stopping = True
            ended, self._at_work = list(self._at_work.values()), {}
        self._journal.threads.end([each.thread for each in ended], _END)

    def put(
        self, query: str, name: str, config: Mapping[str, Any], variables: Iterable[str], after: int | None = None
    ) -> SinkStatus:
        """Store and begin; one of this name continues at its position, with other settings. Raises SinkError,
        UnknownError, BoundError, ConflictError."""
        if self._journal.queries.get(query).language == STANDING:
            raise SinkError(OF_ANSWER.format(query))
        self._check_undeclared(query, name)
        settings = settings_of(config)
        settings.check(self._settings.sinks_allowed)
        settings.check_templates(tuple(variables))
        with self._lock:
            others = [row for row in self._journal.sinks.all() if (row.query, row.name) != (query, name)]
            if len(others) >= self._settings.sinks:
                raise BoundError(f"there are {len(others)} sinks, the limit (--max-sinks of `oxiseq serve`)")
            self._check_file(settings, others, (query, name))
            old = self._at_work.pop((query, name), None)
            if old is not None:
                old.stop()
            row = self._journal.sinks.put(query, name, config, after)
            self._begin(row, old)
        LOG.info("sink %s of query %s: %s", name, query, settings.kind, extra={"query": query})
        return self._status(row)

    def get(self, query: str, name: str) -> SinkStatus:
        """Raises UnknownError."""
        return self._status(self._journal.sinks.get(query, name))

    def all(self, query: str) -> list[SinkStatus]:
        """Of a query. Raises UnknownError."""
        self._journal.queries.get(query)
        return [self._status(row) for row in self._journal.sinks.all(query)]

    def delete(self, query: str, name: str) -> None:
        """Forget a sink. Raises UnknownError, ConflictError for one of the settings."""
        self._check_undeclared(query, name)
        with self._lock:
            self._journal.sinks.delete(query, name)
            gone = self._at_work.pop((query, name), None)
        if gone is not None:
            gone.stop()

    def query_gone(self, query: str) -> None:
        """A query is deleted, and with it its sinks."""
        with self._lock:
            gone = [self._at_work.pop(key) for key in list(self._at_work) if key[0] == query]
        for each in gone:
            each.stop()

    def stored(self, queries: Iterable[str]) -> None:
        """There are new matches of these queries."""
        names = set(queries)
        for (query, _), each in tuple(self._at_work.items()):
            if query in names:
                each.look()

    def gauges(self) -> Iterable[GaugeMetricFamily]:
        """How many matches wait for each sink, and whether it fails."""
        waiting = gauge("sink_lag_matches", "Matches not delivered yet.", labels=("query", "sink"))
        failing = gauge("sink_failing", "1 while the receiver does not confirm.", labels=("query", "sink"))
        for row in self._journal.sinks.all():
            waiting.add_metric([row.query, row.name], self._journal.matches.last(row.query) - row.position)
            failing.add_metric([row.query, row.name], row.failing is not None)
        yield waiting
        yield failing

    def _begin(self, row: SinkRow, before: _AtWork | None = None) -> None:
        if not self._stopping:
            made = _AtWork(row, partial(self._settings_of, row), self._journal, self._settings, self._metrics, before)
            self._at_work[row.query, row.name] = made
            made.start()

    def _check_file(self, settings: SinkSettings, others: Iterable[SinkRow], own: tuple[str, str]) -> None:
        """Raises ConflictError for a path that another sink writes to, or that lies below or above one, whatever path
        leads there, be that one of the settings; for a file of the server; SinkError."""
        if settings.file is None:
            return
        allowed = self._settings.sinks_allowed
        wanted = allowed.file(settings.file)
        self._check_not_ours(settings.file, wanted)
        taken = {key: each.settings.file for key, each in self._declared.items()}
        for row in others:
            with suppress(SinkError):
                taken[row.query, row.name] = self._settings_of(row).file
        for (query, name), path in taken.items():
            if (query, name) == own or path is None:
                continue
            with suppress(SinkError):
                other = allowed.file(path)
                if overlap(wanted, other) or overlap(_folded(wanted), _folded(other)):
                    raise ConflictError(
                        f"the sink {name!r} of the query {query!r} writes to {path}: two sinks share no file, and "
                        "neither writes into the other's folder"
                    )

    def _check_not_ours(self, path: str, wanted: Path) -> None:
        """Raises ConflictError where a server's own file is, or may come to be."""
        home, found = self._journal.path.parent.resolve(), wanted.resolve()
        ours = overlap(wanted, home) and not found.is_relative_to(home)
        if found.is_relative_to(home):
            ours = found == home or _is_ours(found.relative_to(home).parts[0])
        if ours or any(overlap(wanted, each) for each in self._settings.sinks_spare):
            raise ConflictError(f"{path} is a file of the server itself, or a folder of such: name another one")

    def _status(self, row: SinkRow) -> SinkStatus:
        at_work = self._at_work.get((row.query, row.name))
        try:
            shown = self._settings_of(row).shown()
        except SinkError as error:  # of another version
            shown = {"kind": row.config.get("kind"), "refused": str(error)}
        last = self._journal.matches.last(row.query)
        next_try = None if at_work is None else at_work.next_try
        return SinkStatus(row, shown, last - row.position, next_try, _DECLARED in row.config)


def _is_ours(name: str) -> bool:
    """Whether it is of journal, store, snapshots or bridges, in the folder of the journal."""
    return is_store_file(name) or name.casefold() in (BRIDGES, SNAPSHOTS) or name.casefold().startswith(FILE_NAME)


def _folded(path: Path) -> Path:
    """As a disk sees it that does not tell upper from lower case: there two such files would be one."""
    return Path(str(path).casefold())


class _AtWork:
    """One sink on its thread."""

    def __init__(
        self,
        row: SinkRow,
        read_settings: Callable[[], SinkSettings],
        journal: Journal,
        settings: LiveSettings,
        metrics: Metrics,
        before: _AtWork | None,
    ) -> None:
        """`read_settings` raises SinkError; `before`: which delivers for this sink still, and has been stopped."""
        self._row, self._journal, self._settings = row, journal, settings
        self._read_settings, self._before = read_settings, before
        self._position, self._place = row.position, row.place
        self._bound = 0
        """The last match of the running delivery, where it is one under one key: it is tried again as it is."""
        self._failing = row.failing
        labels = (row.query, row.name)
        self._delivered, self._failures = metrics.sink_delivered.labels(*labels), metrics.sink_failures.labels(*labels)
        self._lost = metrics.sink_lost.labels(*labels)
        self._read: list[StoredMatches] = []
        """Stored matches behind the position, about a page."""
        self._receiver: Receiver | None = None
        self._gathered_since: float | None = None
        self._pause = 0.0
        self.next_try: int | None = None
        self._news = threading.Event()
        self.thread = journal.threads.add(
            Background(f"oxiseq-sink-{row.query}-{row.name}", self._run, wake=self._news.set, last=self._let_go)
        )

    def start(self) -> None:
        """Begin."""
        self.thread.start()

    def look(self) -> None:
        """There may be new matches."""
        self._news.set()

    def stop(self) -> None:
        """Deliver no more."""
        self.thread.end()

    def join(self) -> None:
        """Wait for the running delivery, but not for long."""
        self.thread.join(_END)

    def _run(self) -> None:
        try:
            if self._before is not None:
                self._before.join()
                self._before = None
            try:
                self._turn()
            except UnknownError:
                raise
            except Exception as error:  # whatever a receiver's library raises concerns this sink alone
                self._fail(error)
        except UnknownError:
            LOG.debug("sink %s of %s was deleted", self._row.name, self._row.query)
            self.thread.end()

    def _turn(self) -> None:
        """Deliver what there is. Raises what a receiver raises, JournalError, OxiseqError."""
        settings = self._read_settings()
        if settings.together and self._place.isdecimal():
            self._bound = int(self._place)
        while not self.thread.ending:
            self._news.clear()
            matches = self._next(settings)
            if matches is None:
                self._news.wait(_LOOK)
                continue
            if self._receiver is None:
                settings.check(self._settings.sinks_allowed)
                self._receiver = settings.open(self._settings.sinks_allowed, self._place)
            if settings.together and len(matches) > 1 and matches.last != self._bound:
                self._place, self._bound = str(matches.last), matches.last
                self._journal.sinks.note(self._row, self._place)
            try:
                self._place = self._receiver.deliver(Delivery(self._row.query, matches))
            except DeliveryError as error:
                if error.confirmed:
                    self._advance(matches.first + error.confirmed - 1, delivered=error.confirmed)
                raise
            self._advance(matches.last, delivered=len(matches))

    def _next(self, settings: SinkSettings) -> StoredMatches | None:
        """The matches of the next delivery, once there are enough or the first has waited for long enough."""
        while settings.every and self._bound <= self._position and not self.thread.ending:
            count, now = self._journal.matches.last(self._row.query) - self._position, time.monotonic()
            if count <= 0:
                self._gathered_since = None
                return None
            if self._gathered_since is None:
                self._gathered_since = now
            left = self._gathered_since + settings.every / 1e6 - now
            if left <= 0 or count >= settings.batch:
                break
            self._news.wait(min(left, _LOOK))
            self._news.clear()
        return None if self.thread.ending else self._behind(self._most(settings))

    def _most(self, settings: SinkSettings) -> int:
        """How many matches the next delivery may have."""
        return self._bound - self._position if self._bound > self._position else settings.batch

    def _behind(self, most: int) -> StoredMatches | None:
        """The stored matches behind the position, at most so many, of one heading. Raises JournalError."""
        while self._read and self._read[0].last <= self._position:
            self._read.pop(0)
        if not self._read or self._read[-1].last - self._position < most:
            try:
                read = self._journal.matches.read(self._row.query, self._position, max(most, _PAGE))
            except CursorError as error:
                self._skip(error.first - 1, str(error))
                return self._behind(most)
            except DamagedBatchError as error:
                self._skip(error.next - 1, str(error))
                return self._behind(most)
            self._journal.sinks.get(self._row.query, self._row.name)  # else it has been deleted meanwhile
            self._read = read
        return _first(self._read, self._position, most) if self._read else None

    def _advance(self, position: int, *, delivered: int = 0, lost: int = 0) -> None:
        self._journal.sinks.advance(self._row, position, self._place, delivered=delivered, lost=lost)
        self._position, self._pause, self.next_try, self._failing = position, 0.0, None, None
        self._gathered_since = None
        self._delivered.inc(delivered)
        self._lost.inc(lost)

    def _skip(self, position: int, reason: str) -> None:
        LOG.error(
            "sink %s of %s: matches %d to %d are lost: %s",
            self._row.name,
            self._row.query,
            self._position + 1,
            position,
            reason,
        )
        self._advance(position, lost=position - self._position)

    def _fail(self, error: Exception) -> None:
        """Notes it, and waits. Raises UnknownError where the sink was deleted."""
        self._let_go()
        if self.thread.ending:
            return
        self._failures.inc()
        now, told = microseconds_now(), reason_of(error)
        if self._failing is None:
            self._failing = now
            LOG.warning(
                "sink %s of %s failed and tries again: %s",
                self._row.name,
                self._row.query,
                told,
                exc_info=None if isinstance(error, OxiseqError | OSError) else error,
            )
        try:
            self._journal.sinks.fails(self._row, told)
        except JournalError as unnoted:
            LOG.warning("sink %s of %s: %s", self._row.name, self._row.query, unnoted)
        if self._gives_up(now) and self._read:
            given_up = _first(self._read, self._position, self._most(self._read_settings()))
            try:
                self._skip(given_up.last, f"given up: {told}")
                return
            except UnknownError:
                raise
            except JournalError as unnoted:  # a full disk must not end the thread: they are tried again
                LOG.warning("sink %s of %s: %s", self._row.name, self._row.query, unnoted)
        first, longest = self._settings.sink_pauses
        self._pause = min(max(2 * self._pause, first), longest)
        pause = self._pause * random.uniform(0.5, 1.0)
        if isinstance(error, DeliveryError) and error.retry is not None:
            pause = min(max(pause, error.retry), longest)
        self.next_try = now + int(pause * 1e6)
        self.thread.rest(pause)

    def _gives_up(self, now: int) -> bool:
        try:
            after = self._read_settings().give_up
        except SinkError:
            return False
        return after is not None and self._failing is not None and now - self._failing >= after

    def _let_go(self) -> None:
        receiver, self._receiver = self._receiver, None
        if receiver is not None:
            try:
                receiver.close()
            except Exception as error:
                LOG.debug("sink %s of %s cannot be closed: %s", self._row.name, self._row.query, error)


def _first(parts: Sequence[StoredMatches], position: int, most: int) -> StoredMatches:
    """The first matches behind a position, as far as they have the same heading."""
    alike = list(takewhile(lambda part: part.heading.variables == parts[0].heading.variables, parts))
    start, joined = position + 1, []
    for part in alike:
        if part.first < start + most:
            joined.append(part.slice(max(0, start - part.first), start + most - part.first))
    return join_matches(joined)
