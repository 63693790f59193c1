"""A registered query: it sees its streams' events from now on and hands out each match when it completes."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Iterator

from oxiseq.engine.events.batch import EventBatch
from oxiseq.engine.output.batch import MatchBatch
from oxiseq.engine.run.query import QueryRun
from oxiseq.exchange import Exchange
from oxiseq.late import LateEvent, late_events
from oxiseq.match import Match, Shape

IDLE = 0.05
"""Seconds without a push after which a waiting consumer takes the open instant as complete."""


class ContinuousQuery:
    """A query registered by `store.register(text)`.

    Matches are kept, as columns, until `matches()` hands them out; once a callback is set by `on_match` and
    nobody iterates, they are not kept.
    """

    def __init__(
        self,
        text: str,
        run: QueryRun,
        shape: Shape,
        lock: threading.RLock,
        exchange: Exchange,
        forget: Callable[[ContinuousQuery], None],
    ) -> None:
        self.text = text
        self._exchange = exchange
        self._forget = forget
        self._run = run
        self._shape = shape
        self._arrived = threading.Condition(lock)
        self._waiting: deque[MatchBatch] = deque()
        self._next = 0
        self._callbacks: list[Callable[[Match], object]] = []
        self._iterated = False
        self._late: list[tuple[str, EventBatch]] = []
        self._closed = False
        self._last_push = time.monotonic()

    # --- the consumer's side ------------------------------------------------------------------------

    def matches(self, timeout: float | None = None, idle: float | None = IDLE) -> Iterator[Match]:
        """The matches, as they complete; blocks for the next one, at most `timeout` seconds (None: for ever).

        The newest instant stays open for more graphs until something later comes. When nothing has been
        pushed for `idle` seconds while this waits, the instant is taken as complete (None: never).
        Ends when the timeout is over or the query has been closed and all matches are handed out.
        """
        with self._arrived:
            self._iterated = True
        deadline = None if timeout is None else time.monotonic() + timeout
        while True:
            match = self._take(deadline, idle)
            if match is None:
                return
            yield match

    def on_match(self, callback: Callable[[Match], object]) -> None:
        """Call `callback` with each match that completes from now on, in the pushing thread."""
        with self._arrived:
            self._callbacks.append(callback)

    def late_events(self) -> list[LateEvent]:
        """The late events since the last call, in order of arrival."""
        with self._arrived:
            late, self._late = self._late, []
            return late_events(late, self._shape.terms)

    @property
    def late(self) -> int:
        """How many events were late so far."""
        return self._run.late

    @property
    def events(self) -> int:
        """How many events this query has received."""
        return self._run.events

    @property
    def state(self) -> dict[str, int]:
        """Live records of the running state, by kind."""
        with self._arrived:
            return self._run.state

    @property
    def reads(self) -> tuple[str, ...]:
        """The streams that it reads."""
        return self._shape.plan.streams

    @property
    def feeds(self) -> str | None:
        """The stream that its results go to (CONSTRUCT ... INTO STREAM)."""
        return self._shape.plan.answer.into

    @property
    def variables(self) -> tuple[str, ...]:
        """The answer's columns, without `?`."""
        return self._shape.variables

    def close(self) -> None:
        """End the query: its streams count as ended, so trailing negations are decided."""
        with self._arrived, self._exchange.held():
            if not self._closed:
                self._closed = True
                self._run.close()
                self._work()
                self._forget(self)
                self._arrived.notify_all()

    def _take(self, deadline: float | None, idle: float | None) -> Match | None:
        with self._arrived:
            while not self._waiting:
                now = time.monotonic()
                if self._closed:
                    return None
                over = deadline is not None and now >= deadline
                quiet = idle is not None and now - self._last_push >= idle
                if self._run.open and (quiet or (over and idle is not None)):
                    with self._exchange.held():
                        self._run.settle()
                        self._work()
                    continue
                if over:
                    return None
                waits = [deadline - now] if deadline is not None else []
                if idle is not None and self._run.open:
                    waits.append(max(self._last_push + idle - now, 0.001))
                self._arrived.wait(min(waits, default=None))
            batch = self._waiting[0]
            match = Match(self._shape, batch, self._next)
            self._next += 1
            if self._next == len(batch):
                self._waiting.popleft()
                self._next = 0
            return match

    # --- the streams' side --------------------------------------------------------------------------

    def receive(self, stream: str, batch: EventBatch) -> None:
        """Events of one of its streams, in order of arrival."""
        with self._arrived:
            self._last_push = time.monotonic()
            late = self._run.push(stream, batch)
            if len(late):
                self._late.append((stream, late))
            self._work()

    def punctuate(self, stream: str, until: int) -> None:
        """No event of `stream` before `until` (µs) will come."""
        with self._arrived:
            self._run.punctuate(stream, until)
            self._work()

    def before_change(self) -> None:
        """The KB is about to change: events that are here already keep the answers of now."""
        with self._arrived:
            self._run.keep_answers()

    def _work(self) -> None:
        batches = self._run.advance()
        if batches and (self._iterated or not self._callbacks):
            self._waiting += batches
            self._arrived.notify_all()
        callbacks, into = tuple(self._callbacks), self._shape.plan.answer.into
        for batch in batches:
            for i in range(len(batch) if callbacks or into is not None else 0):
                self._exchange.found(Match(self._shape, batch, i), callbacks, into)

    def __repr__(self) -> str:
        return f"<ContinuousQuery {', '.join(self.variables)}: {self.events} events>"
