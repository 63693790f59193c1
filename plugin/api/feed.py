"""Between streams and queries: what is pushed reaches every query that reads it, and what they find is passed on."""

from __future__ import annotations

import threading
import time
from collections import defaultdict, deque
from collections.abc import Callable
from dataclasses import field
from typing import TYPE_CHECKING, TypeAlias

from pyoxigraph import Triple

from oxiseq.api.exchange import Exchange
from oxiseq.api.kept import Kept
from oxiseq.engine.errors import OxiseqError
from oxiseq.engine.events.batch import EventBatch
from oxiseq.engine.order.watermarks import BEFORE_ALL, REMEMBERED, Passed
from oxiseq.engine.run.run import Run
from oxiseq.engine.sharing.dispatching import Outcome
from oxiseq.engine.sharing.runs import Runs
from oxiseq.engine.terms.dictionary import TermDictionary
from oxiseq.grammar.records import dataclass
from oxiseq.matches.match import Match

if TYPE_CHECKING:
    from oxiseq.api.continuous import ContinuousQuery

    AnyQuery: TypeAlias = ContinuousQuery


@dataclass(slots=True)
class _StreamClock:
    """How far a stream has come (µs); see `Passed`."""

    largest: int = BEFORE_ALL
    punctuation: int = BEFORE_ALL
    lately: deque[int] = field(default_factory=lambda: deque(maxlen=REMEMBERED))

    def came(self, batch: EventBatch) -> None:
        """Events, in order of arrival."""
        times = batch.time
        if len(times) == 1:
            last = times.item(0)
            self.lately.append(last)
        elif len(times):
            last = int(times.max())
            self.lately.extend(times[-REMEMBERED:].tolist())
        else:
            return
        if last > self.largest:
            self.largest = last


class Feed:
    """The registered queries of a store, behind its lock. `push(iri, match)` pushes a result to its stream.

    An error of one query is raised after all the others have seen the events.
    """

    def __init__(self, terms: TermDictionary, push: Callable[[str, Match], None]) -> None:
        self.lock = threading.RLock()
        self.arrived = threading.Condition(self.lock)
        """Told whenever matches have come, or events that wait."""
        self._runs = Runs(terms)
        self._exchange = Exchange(push, self.punctuate, self._complete)
        self._writers: dict[AnyQuery, None] = {}
        """The queries whose results go to streams."""
        self._queries: dict[Run, AnyQuery] = {}
        self.named: dict[str, AnyQuery] = {}
        """The same by their names."""
        self._last_push: dict[str, float] = {}
        self._clocks = defaultdict[str, _StreamClock](_StreamClock)
        self._kept: dict[str, Kept] = {}
        self._terms = terms
        self._closed = False

    def check_open(self) -> None:
        """Raise OxiseqError if the store is closed."""
        if self._closed:
            raise OxiseqError("the store is closed")

    def end(self) -> None:
        """Take nothing any more: the store is closed."""
        with self.lock:
            self._closed = True

    @property
    def queries(self) -> tuple[AnyQuery, ...]:
        """Those registered, in that order."""
        return tuple(self._queries.values())

    def add(self, run: Run, query: AnyQuery, start: int | None) -> None:
        """Events go to `query` from now on: those of instants that begin from now on."""
        passed = {iri: self._clocks[iri] for iri in run.plan.streams}
        run.take_over({iri: Passed(c.largest, c.punctuation, tuple(c.lately)) for iri, c in passed.items()})
        self._queries[run] = self.named[query.name] = query
        self._runs.add(run, start)
        if query.feeds is not None:
            self._writers[query] = None

    def push(self, stream: str, batch: EventBatch) -> None:
        """Events of a stream, in order of arrival."""
        with self.lock:
            self.check_open()
            self._last_push[stream] = time.monotonic()
            self._clocks[stream].came(batch)
            if stream in self._kept:
                self._kept[stream].add(batch)
            if self._writers and len(batch):
                last = int(batch.time.max())
                for query in self._writers:
                    query.progress.came(stream, last)
            self._hand_on(self._runs.push(stream, batch), stream)

    def retain(self, stream: str, most: int) -> None:
        """Keep so many of the newest events of a stream from now on; none for 0."""
        with self.lock:
            if most == 0:
                self._kept.pop(stream, None)
            elif stream in self._kept:
                self._kept[stream].trim(most)
            else:
                self._kept[stream] = Kept(self._terms, most)

    def kept(self, stream: str) -> list[tuple[int, tuple[Triple, ...]]] | None:
        """(time in µs, triples) of the events that are kept, in order of arrival; None where none are to be."""
        with self.lock:
            kept = self._kept.get(stream)
            return None if kept is None else kept.events()

    def punctuate(self, stream: str, until: int) -> None:
        """No event of `stream` before `until` (µs) will come."""
        with self.lock:
            self.check_open()
            clock = self._clocks[stream]
            clock.punctuation = max(clock.punctuation, until)
            for query in self._writers:
                query.progress.told(stream, until)
            self._hand_on(self._runs.punctuate(stream, until))

    def readers(self, stream: str) -> list[AnyQuery]:
        """Queries that read a stream: all others take its events in the order of one of these."""
        return [self._queries[run] for run in self._runs.orders(stream)]

    def keep_answers(self, run: Run) -> None:
        """The KB is about to change: instants up to the newest one so far keep the present answers."""
        with self.lock:
            self.catch_up(run)
            self._runs.keep_answers(run)

    def catch_up(self, run: Run) -> None:
        """Hand a query what has not concerned it so far, so that its state, counters and late events are those of
        now."""
        with self.lock:
            if outcomes := self._runs.catch_up(run):
                self._hand_on(outcomes)

    def settle(self, run: Run, until: int = BEFORE_ALL) -> None:
        """A query takes all that has been pushed as complete, and all before `until` (µs)."""
        with self.lock:
            self._hand_on(self._runs.settle(run, until))

    def close(self, run: Run) -> None:
        """End a query: its streams count as ended, so trailing negations are decided; then it is forgotten."""
        with self.lock:
            outcomes = self._runs.close(run)
            self._runs.remove(run)
            self._hand_on(outcomes, forget=run)

    def last_push(self, streams: tuple[str, ...]) -> float:
        """When events came last to one of the streams (monotonic clock); long ago if they never did."""
        return max((self._last_push.get(stream, 0.0) for stream in streams), default=0.0)

    def _complete(self) -> dict[str, int]:
        """By stream that queries write: before which time (µs) all of them have told their results."""
        complete: dict[str, int] = {}
        for query in self._writers:
            if (into := query.feeds) is not None:
                passed = query.progress.passed
                complete[into] = min(passed, complete.get(into, passed))
        return complete

    def _hand_on(self, outcomes: list[Outcome], stream: str = "", forget: Run | None = None) -> None:
        with self._exchange:
            for outcome in outcomes:
                query = self._queries[outcome.run]
                query.receive(outcome.stream or stream, outcome.late, outcome.matches, self._exchange)
            if forget is not None:
                query = self._queries.pop(forget)
                self._writers.pop(query, None)
                del self.named[query.name]
            self.arrived.notify_all()
        for outcome in outcomes:
            if outcome.error is not None:
                raise outcome.error
