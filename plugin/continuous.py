"""A registered query: it sees its streams' events from now on and hands out each match when it completes."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

import numpy as np

from oxiseq.engine.errors import OxiseqError
from oxiseq.engine.events.batch import EventBatch
from oxiseq.engine.events.faults import Faults
from oxiseq.engine.events.time import to_microseconds
from oxiseq.engine.kb import KnowledgeBase
from oxiseq.engine.plan.query import QueryPlan
from oxiseq.engine.run.alone import faults_of
from oxiseq.engine.run.query import QueryRun
from oxiseq.engine.run.runs import AnyRun
from oxiseq.engine.run.watermarks import BEFORE_ALL
from oxiseq.exchange import Exchange
from oxiseq.feed import Feed
from oxiseq.grammar import load
from oxiseq.grammar.arguments import public, seconds, trusted
from oxiseq.languages.front import Front, Options
from oxiseq.late import LateEvent, late_events
from oxiseq.left_out import warn_of
from oxiseq.live_view import EVERY, MATCHES, LiveView
from oxiseq.matches.match import Match
from oxiseq.matches.matches import Matches
from oxiseq.matches.shape import Block, Shape
from oxiseq.pictures.tables import html_table
from oxiseq.reasons.read import Reading, Span
from oxiseq.reasons.report import SHOWN, Why, WhyRequest
from oxiseq.reasons.windows import same_windows
from oxiseq.spaseq.explain import explain

IDLE = 0.05
"""Seconds without a push after which a waiting consumer takes the open instant as complete."""


@public
class ContinuousQuery:
    """A query registered by `store.register(text)`; hands out `Match`es.

    Matches are kept, as columns, until `matches()` hands them out; those that go to a callback are kept only if
    `matches()` has been called. Late events are kept until `late_events()` hands them out.

    Events with which it cannot find anything it may take in later, at the latest when it is asked for counts, state or
    late events; a warning of events left out comes then.

    >>> import oxiseq
    >>> text = '''PREFIX : <http://example.org/>
    ... SELECT ?who ?paid FROM STREAM S <http://example.org/payments>
    ... WHERE { SEQ(A) DEFINE GPM A ON S { ?who :paid ?paid } }'''
    >>> payment = "<http://example.org/ann> <http://example.org/paid> 5 ."
    >>> store = oxiseq.Store()
    >>> query = store.register(text)
    >>> store.stream("http://example.org/payments").push(payment, 1_000_000)
    >>> for match in query.matches(timeout=0):
    ...     print(match.at_us, match["paid"].value)
    1000000 5
    """

    def __init__(
        self,
        text: str,
        front: Front[Any],
        run: AnyRun,
        shape: Shape,
        feed: Feed,
        feeders: Callable[[ContinuousQuery], tuple[ContinuousQuery, ...]],
        kb: KnowledgeBase,
        options: Options,
    ) -> None:
        self.text = text
        self.found = 0
        """How many matches it has found."""
        self._front = front
        self._kb = kb
        self._options = options
        self._views: tuple[LiveView, ...] = ()
        self._feed = feed
        self._run = run
        self._shape = shape
        self._arrived = feed.arrived
        self._feeders = feeders
        self._waiting: deque[Any] = deque()
        self._first_waiting: Block | None = None
        """The first of those that wait, from number `_next` on."""
        self._next = 0
        self._callbacks: list[Callable[[Match], object]] = []
        self._iterated = False
        self._late: list[tuple[str, EventBatch]] = []
        self._closed = False
        self._warned = 0
        self._begun = time.monotonic()

    # --- the consumer's side ------------------------------------------------------------------------

    def matches(self, timeout: float | None = None, idle: float | None = IDLE) -> Iterator[Match]:
        """The matches, as they complete; blocks for the next one, at most `timeout` seconds (None: for ever).

        `timeout` and `idle` are waiting times in seconds, as those of `threading`; they are no durations of streams.

        The newest instant stays open for more graphs until something later comes. When nothing has been
        pushed for `idle` seconds while this waits, or the timeout is over, the instant is taken as complete, so
        that what comes for it afterwards is late (None: never; also the default with lateness allowed). While nothing
        is pushed, time goes on with the clock, behind the newest event: a match that waits for its window to close, or
        for a bound such as `N! WITHIN 10 MINUTES` to pass, comes then.
        Ends when the timeout is over or the query has been closed and all matches are handed out.
        """
        timeout, idle = seconds(timeout, "timeout"), seconds(idle, "idle")
        with self._arrived:
            self._iterated = True
        if idle == IDLE and self._run.lateness:
            idle = None
        return self._handed_out(None if timeout is None else time.monotonic() + timeout, idle)

    def _handed_out(self, deadline: float | None, idle: float | None) -> Iterator[Match]:
        while (match := self._take(deadline, idle)) is not None:
            yield match

    def take(self) -> Matches:
        """All matches that have been found and not been handed out, at once: `to_pandas()`, `to_arrow()`, and a table
        in a notebook. Nothing is waited for; what has come for the newest instant stays open."""
        with self._arrived:
            self._iterated = True
            block = self._shape.block(self._waiting)
            if self._next:
                block = block.take(np.arange(self._next, len(block)))
            self._waiting.clear()
            self._next, self._first_waiting = 0, None
            return Matches(block.ordered(), self._now.events)

    def on_match(self, callback: Callable[[Match], object]) -> None:
        """Call `callback` with each match that completes from now on, in the pushing thread."""
        with self._arrived:
            self._callbacks.append(callback)

    def late_events(self) -> list[LateEvent]:
        """The late events since the last call, of each stream in order of arrival."""
        with self._arrived:
            self._feed.catch_up(self._run)
            late, self._late = self._late, []
            return late_events(late, self._shape.terms, self._shape.vocab)

    def why(
        self, begin: int | datetime | None = None, end: int | datetime | None = None, provenance: int = SHOWN
    ) -> Why:
        """Why it matched and why it did not, over the events that its streams keep (`Stream.keep`), with the knowledge
        base of now; see `oxiseq.why`.

        Raises OxiseqError if none of its streams keeps events; KbError, LimitError.
        """
        kept = {iri: events for iri in self.reads if (events := self._feed.kept(iri)) is not None}
        if not kept:
            streams = " nor ".join(f"<{iri}>" for iri in self.reads)
            raise OxiseqError(f"no events are kept of {streams}: call store.stream(...).keep(10_000) before they come")
        times = [None if t is None else to_microseconds(t) for t in (begin, end)]
        options = replace(self._options, start=self._first)
        request = WhyRequest(Reading(Span(*times), options.start, options.lateness), provenance)
        kb = self._kb if self._front.asks_kb else None
        return self._front.why(load(self.text, self._front.language), kept, kb, options, request)

    @property
    def _now(self) -> AnyRun:
        """Its run, when it has been handed all that has come."""
        self._feed.catch_up(self._run)
        return self._run

    @property
    def _first(self) -> int | None:
        """The t of its tumbling windows."""
        run, plan = self._now, self._plan
        if self._options.start is not None or plan is None or not isinstance(run, QueryRun):
            return self._options.start
        return same_windows(plan.query.window, run.window_start)

    def live(self, every: float = EVERY, matches: int = MATCHES) -> LiveView:
        """A view of it that a notebook shows and keeps up to date: counts, and the newest `matches` from now on, looked
        at each `every` seconds. `view.stop()` ends it."""
        view = LiveView(self, every, matches)
        with self._arrived:
            self._views = (*self._views, view)
        return view

    def unwatch(self, view: LiveView) -> None:
        """Tell a view no more."""
        with self._arrived:
            self._views = tuple(each for each in self._views if each is not view)

    @property
    def _plan(self) -> QueryPlan | None:
        """Of SPAseq."""
        return self._run.plan if isinstance(self._run, QueryRun) else None

    @property
    def closed(self) -> bool:
        """Whether it has been closed."""
        return self._closed

    @property
    def late(self) -> int:
        """How many events were late so far."""
        return self._now.late

    @property
    def left_out(self) -> int:
        """How many events were left out because the language cannot take them: no tuple events in CEQL, events that
        start after they end in EP-SPARQL."""
        return self._faults.count

    @property
    def left_out_events(self) -> tuple[str, ...]:
        """Which the first of those are, and what is wrong with them."""
        return self._faults.first

    @property
    def _faults(self) -> Faults:
        return faults_of(self._now)

    @property
    def events(self) -> int:
        """How many events this query has received."""
        return self._now.events

    @property
    def state(self) -> dict[str, int]:
        """Live records of the running state, by kind."""
        with self._arrived:
            return self._now.state

    @property
    def reads(self) -> tuple[str, ...]:
        """The streams that it reads."""
        return self._shape.reads

    @property
    def feeds(self) -> str | None:
        """The stream that its results go to (CONSTRUCT ... INTO STREAM)."""
        return self._shape.feeds

    @property
    def variables(self) -> tuple[str, ...]:
        """The answer's columns, without `?`."""
        return self._shape.variables

    def close(self) -> None:
        """End the query: its streams count as ended, so trailing negations are decided."""
        with self._arrived:
            if not self._closed:
                self._closed = True
                self._feed.close(self._run)

    def _take(self, deadline: float | None, idle: float | None) -> Match | None:
        with self._arrived:
            while not self._waiting:
                now = time.monotonic()
                if self._closed:
                    return None
                upstream = [q for q in (*self._feeders(self), self) if q.open]
                quiet_at = max((q.last_push for q in upstream), default=now) + (idle or 0)
                over = deadline is not None and now >= deadline
                if upstream and idle is not None and (over or now >= quiet_at):
                    for query in upstream:
                        query.settle()
                    continue
                due = [] if idle is None else [(q.due_at, q) for q in (*self._feeders(self), self)]
                timed = [(max(at, q.last_push + (idle or 0)), q) for at, q in due if at is not None]
                if timed and now >= min(timed, key=lambda each: each[0])[0]:
                    for at, query in timed:
                        if now >= at:
                            query.settle()
                    continue
                if over:
                    return None
                waits = [] if deadline is None else [deadline - now]
                if upstream and idle is not None:
                    waits.append(max(quiet_at - now, 0.001))
                waits += [max(at - now, 0.001) for at, _ in timed]
                self._arrived.wait(min(waits, default=None))
            block = self._first_waiting
            if block is None:
                block = self._first_waiting = self._shape.block([self._waiting[0]])
            match = block.match(self._next)
            self._next += 1
            if self._next == len(block):
                self._waiting.popleft()
                self._next, self._first_waiting = 0, None
            return match

    @property
    def open(self) -> bool:
        """Whether events wait for their instant to be complete."""
        return self._now.open

    @property
    def last_push(self) -> float:
        """When events came last (monotonic clock)."""
        return max(self._begun, self._feed.last_push(self.reads))

    @property
    def due_at(self) -> float | None:
        """When time alone completes a match (monotonic clock), if it goes on behind the newest event; None: never."""
        silence = self._run.silence
        return None if silence is None else self.last_push + silence / 1_000_000

    def settle(self) -> None:
        """Take all that has been pushed as complete, and the time since then as passed; hand on what that finds."""
        until, deadline = BEFORE_ALL, self._run.deadline
        due = self.due_at
        if due is not None and deadline is not None and time.monotonic() >= due:
            until = deadline + 1
        self._feed.settle(self._run, until)

    # --- the streams' side --------------------------------------------------------------------------

    @trusted
    def receive(self, stream: str, late: EventBatch | None, batches: Sequence[Any], exchange: Exchange) -> None:
        """What an event of `stream` has led to: late events, matches."""
        faults = faults_of(self._run)
        if faults.count > self._warned:
            before, self._warned = self._warned, faults.count
            warn_of(faults, before)
        if late is not None:
            self._shape.terms.hold(*late.ids)
            self._late.append((stream, late))
        self.found += sum(map(len, batches))
        callbacks, into = tuple(self._callbacks), self.feeds
        if self._iterated or not callbacks:
            self._waiting += batches
        if batches and (self._views or callbacks or into is not None):
            block = self._shape.block(batches)
            for view in self._views:
                view.receive(block)
            if callbacks or into is not None:
                for i in range(len(block)):
                    exchange.found(block.match(i), callbacks, into)

    def before_change(self) -> None:
        """The KB is about to change: instants up to the newest one so far keep the answers of now."""
        self._feed.keep_answers(self._run)

    def _repr_html_(self) -> str:
        rows = [("reads", ", ".join(self.reads)), ("events", f"{self.events:,}"), ("late", f"{self.late:,}")]
        rows += [("matches", f"{self.found:,}"), *((kind, f"{count:,}") for kind, count in self.state.items())]
        drawn = "" if self._plan is None else explain(self._plan).to_svg()
        return f"<div>{html_table(', '.join(self.variables), rows, self.text)}{drawn}</div>"

    def __repr__(self) -> str:
        return f"<ContinuousQuery {', '.join(self.variables)}: {self.events} events>"
