"""Streams and continuous queries in memory: what is pushed reaches every query that reads it, and what they find is
passed on.

In the flow: a push → the runs of all queries → their matches, as columns, numbered from 1, the newest of them kept →
`Match`, `Matches`, when somebody looks.

Between queries: what a push has found is returned once every query has seen the push.

Callbacks get their matches in order of completion. Results of CONSTRUCT ... INTO STREAM are written when every query
that writes the stream has told all before, in order of the time at which they are decided; then the stream is complete
up to there, and its readers are told (semantics.md 2.6a). So a push inside a callback, or a chain of queries, never
overtakes, and no result is late.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, TypeAlias

import numpy as np
from pyoxigraph import Triple

from oxiseq.api.continuous import IDLE, ContinuousQuery, Reader, ask_nobody
from oxiseq.api.query import Query
from oxiseq.engine.errors import OxiseqError
from oxiseq.engine.events.batch import EventBatch
from oxiseq.engine.events.encode import decode_events, encode_event
from oxiseq.engine.events.time import Time
from oxiseq.engine.kb import KnowledgeBase
from oxiseq.engine.matches.paging import Page
from oxiseq.engine.order.watermarks import AFTER_ALL, BEFORE_ALL, REMEMBERED, Passed
from oxiseq.engine.run.progress import ReadProgress
from oxiseq.engine.run.run import Run
from oxiseq.engine.sharing.dispatching import Outcome
from oxiseq.engine.sharing.runs import Runs
from oxiseq.engine.terms.dictionary import TermDictionary
from oxiseq.journal import ConflictError, CursorError
from oxiseq.journal.events import pack_events, unpack_events
from oxiseq.languages.language import Language
from oxiseq.languages.reasons.read import Span, reading_of
from oxiseq.languages.reasons.report import Why, WhyRequest
from oxiseq.mappings.declared import StreamMapping
from oxiseq.matches.match import Match, result_event
from oxiseq.matches.matches import Matches
from oxiseq.matches.results import ResultQueue
from oxiseq.matches.shape import Block, Shape
from oxiseq.options import HISTORY, Options, said
from oxiseq.options.kinds import Duration, duration, whole_number
from oxiseq.sources.warned import LateEvent, late_events, warn_of

# --- kept ------------------------------------------------------------------------------------------------


class Kept:
    """At most `most` events, in order of arrival. The dictionary holds their terms."""

    def __init__(self, terms: TermDictionary, most: int) -> None:
        self.most = most
        self._terms = terms
        self._batches: deque[EventBatch] = deque()
        self._count = 0

    def add(self, batch: EventBatch) -> None:
        """Events that have come; older ones go for them."""
        if len(batch) > self.most:
            batch = batch.take(np.arange(len(batch) - self.most, len(batch)))
        self._terms.hold(*batch.ids)
        self._batches.append(batch)
        self._count += len(batch)
        self.trim(self.most)

    def trim(self, most: int) -> None:
        """Keep at most so many from now on."""
        self.most = most
        while self._count > most:
            first, over = self._batches.popleft(), self._count - most
            self._count -= len(first)
            if over < len(first):  # a copy, so that the rest is freed
                rest = first.take(np.arange(over, len(first)))
                self._terms.hold(*rest.ids)
                self._batches.appendleft(rest)
                self._count += len(rest)

    def events(self) -> list[tuple[int, tuple[Triple, ...]]]:
        """(time in µs, triples) of each."""
        return [event for batch in self._batches for event in decode_events(batch, self._terms)]

    def __len__(self) -> int:
        return self._count


# --- found -----------------------------------------------------------------------------------------------

MOST: Final = 1_000_000
"""Matches of a query that are kept unless it says otherwise."""


class FoundMatches:
    """Not safe for many threads: the query's lock is held. `first`: the number of the first that is kept; `last`: of
    the newest, 0 when there is none; `most`: how many are kept, or a few more, since a batch goes as a whole."""

    def __init__(self, shape: Shape, most: int) -> None:
        self.first, self.last, self.most = 1, 0, whole_number(most, "keep", 1)
        self._shape = shape
        self._parts: deque[tuple[int, Any]] = deque()
        """Number of the first, and a batch."""
        self._open: tuple[int, Block] | None = None
        """The part that is being returned one by one."""

    def add(self, batches: Sequence[Any]) -> None:
        """Matches in the order in which they were found."""
        for batch in batches:
            if len(batch):
                self._parts.append((self.last + 1, batch))
                self.last += len(batch)
        while len(self._parts) > 1 and self.last - self._parts[1][0] + 1 >= self.most:
            self._parts.popleft()
            self.first = self._parts[0][0]

    def one(self, number: int) -> Match | None:
        """The match with this number, None before it is found. Raises CursorError if it is no longer kept."""
        if number > self.last:
            return None
        begin, block = self._block_with(number)
        return block.match(number - begin)

    def behind(self, after: int, limit: int | None) -> Block:
        """Those with greater numbers than `after`, at most `limit`. Raises CursorError."""
        self._check(after + 1)
        stop = self.last + 1 if limit is None else min(self.last, after + limit) + 1
        parts = [(begin, batch) for begin, batch in self._parts if begin < stop and begin + len(batch) > after + 1]
        block = self._shape.block([batch for _, batch in parts])
        begin = parts[0][0] if parts else 1
        block = block.numbered(begin)
        return block.take(np.arange(max(0, after + 1 - begin), max(0, min(stop - begin, len(block)))))

    def _block_with(self, number: int) -> tuple[int, Block]:
        if self._open is None or not self._open[0] <= number < self._open[0] + len(self._open[1]):
            self._check(number)
            begin, batch = next((b, batch) for b, batch in self._parts if b <= number < b + len(batch))
            self._open = begin, self._shape.block([batch]).numbered(begin)
        return self._open

    def _check(self, number: int) -> None:
        if number < self.first:
            raise CursorError("matches of the query", number, self.first)


# --- exchange --------------------------------------------------------------------------------------------

Callbacks: TypeAlias = tuple[Callable[[Match], object], ...]


class Exchange:
    """Holds matches back while streams are fed, in a `with` block: the outermost of nested blocks emits all at its
    end. `push(stream, match)` feeds a result to its stream, `punctuate(stream, time)` says up to when that is complete.
    `complete()`: by stream that queries write, before which time (µs) all their results have been found.

    When a callback raises, what has not been returned yet follows at the next push.
    """

    def __init__(
        self,
        push: Callable[[str, Match], None],
        punctuate: Callable[[str, int], None],
        complete: Callable[[], Mapping[str, int]],
    ) -> None:
        self._push, self._punctuate, self._complete = push, punctuate, complete
        self._depth = 0
        self._found: deque[tuple[Match, Callbacks, str | None]] = deque()
        self._results = ResultQueue[None, Match]()
        self._told: dict[str, int] = {}
        """By stream that queries write, up to when it is complete."""

    def __enter__(self) -> None:
        self._depth += 1

    def __exit__(self, error: type[BaseException] | None, *_: object) -> None:
        try:
            if error is None and self._depth == 1:
                self._hand_out()
        finally:
            self._depth -= 1

    @property
    def owes(self) -> bool:
        """Whether matches wait, since a callback has raised."""
        return bool(self._found or self._results)

    def found(self, match: Match, callbacks: Callbacks, into: str | None) -> None:
        """A match has completed: `callbacks` get it, its graph goes to the stream `into`."""
        if callbacks or into is not None:
            self._found.append((match, callbacks, into))

    def _hand_out(self) -> None:
        while True:
            while self._found:
                match, callbacks, into = self._found.popleft()
                if into is not None:
                    self._results.add(into, match.at_us, None, match)
                for callback in callbacks:
                    callback(match)
            complete = self._complete()
            if not complete and not self._results:
                return
            if (result := self._results.next(complete)) is not None:
                self._push(result[0], result[2])
            elif not self._tell(complete.items()):
                return

    def _tell(self, complete: Iterable[tuple[str, int]]) -> bool:
        """Say of one stream that it is complete up to a later time; whether there was one."""
        for into, until in complete:
            if self._told.get(into, BEFORE_ALL) < until < AFTER_ALL:
                self._told[into] = until
                self._punctuate(into, until)
                return True
        return False


# --- feed ------------------------------------------------------------------------------------------------

KEYS: Final = 10_000
"""Keys of pushes that a stream knows, the newest ones."""


class MemoryStream:
    """A stream in memory, behind the lock of its feed: how far it has come, and what it keeps. See `StreamBackend`."""

    def __init__(self, iri: str, feed: Feed) -> None:
        self.lock, self.terms = feed.lock, feed.terms
        self.events = 0
        self.mapping: StreamMapping | None = None
        self.last_push = 0.0
        """When events came last (monotonic clock); long ago if they never did."""
        self.kept: Kept | None = None
        self._iri, self._feed = iri, feed
        self._largest = self._punctuation = BEFORE_ALL
        self._lately = deque[int](maxlen=REMEMBERED)
        self._keys: dict[str, bytes] = {}
        """The newest keys of pushes, and what was pushed under each."""

    @property
    def passed(self) -> Passed:
        """How far it has come."""
        return Passed(self._largest, self._punctuation, tuple(self._lately))

    def push(self, batch: EventBatch, terms: TermDictionary, key: str | None = None) -> None:
        """Events in order of arrival. An error of one query is raised after all the others have seen them."""
        feed = self._feed
        with self.lock:
            feed.check_open()
            if key is not None:
                content = pack_events(batch, terms)
                if (known := self._keys.setdefault(key, content)) is not content:
                    if known == content:
                        return
                    raise ConflictError(f"the key {key!r} was used for another event: give a new event a new key")
                if len(self._keys) > KEYS:
                    del self._keys[next(iter(self._keys))]
                batch = unpack_events([content], self.terms)
            count, times = len(batch.time), batch.time
            self.events += count
            self.last_push = time.monotonic()
            if self.kept is not None:
                self.kept.add(batch)
            if count:
                last = times.item(0) if count == 1 else int(times.max())
                self._lately.extend((last,) if count == 1 else times[-REMEMBERED:].tolist())
                self._largest = max(self._largest, last)
                for query in feed.writers:
                    query.progress.came(self._iri, last)
            feed.hand_on(feed.runs.push(self._iri, batch), self._iri)
            self.terms.collect_if_due()

    def extend(self, batches: Iterable[EventBatch], terms: TermDictionary, session: str | None) -> tuple[int, int]:
        """As `StreamBackend.extend`; late is what one of its readers takes for late."""
        if session is not None:
            raise OxiseqError("session: it needs a server that takes WebSockets")
        before = self.events
        readers = {query: query.late_count for query in self._feed.readers(self._iri)}
        for batch in batches:
            self.push(batch, terms)
        return self.events - before, max((query.late_count - late for query, late in readers.items()), default=0)

    def retain(self, events: int) -> None:
        """Keep so many of the newest events from now on; none for 0."""
        with self.lock:
            if not events:
                self.kept = None
            elif self.kept is None:
                self.kept = Kept(self.terms, events)
            else:
                self.kept.trim(events)

    def punctuate(self, until: int) -> None:
        """No event before `until` (µs) will come."""
        feed = self._feed
        with self.lock:
            feed.check_open()
            self._punctuation = max(self._punctuation, until)
            for query in feed.writers:
                query.progress.told(self._iri, until)
            feed.hand_on(feed.runs.punctuate(self._iri, until))


class Feed:
    """The streams and the registered queries of a store, behind its lock.

    An error of one query is raised after all the others have seen the events.
    """

    def __init__(self, terms: TermDictionary) -> None:
        self.lock = threading.RLock()
        self.arrived = threading.Condition(self.lock)
        """Told whenever matches have come, or events that wait."""
        self.terms, self.runs = terms, Runs(terms)
        self.streams: dict[str, MemoryStream] = {}
        """In the order in which they were named first."""
        self._exchange = Exchange(self._write, lambda iri, until: self.stream(iri).punctuate(until), self._complete)
        self.writers: dict[MemoryQuery, None] = {}
        """The queries whose results go to streams."""
        self._queries: dict[Run, MemoryQuery] = {}
        self.named: dict[str, MemoryQuery] = {}
        """The same by their names."""
        self._closed = False

    def stream(self, iri: str) -> MemoryStream:
        """The stream of this name."""
        if iri not in self.streams:
            self.streams[iri] = MemoryStream(iri, self)
        return self.streams[iri]

    def _write(self, iri: str, match: Match) -> None:
        """Push a result to its stream."""
        self.stream(iri).push(encode_event(match.at_us, result_event(match), self.terms), self.terms)

    def check_open(self) -> None:
        """Raise OxiseqError if the store is closed."""
        if self._closed:
            raise OxiseqError("the store is closed")

    def end(self) -> None:
        """Take nothing any more: the store is closed."""
        with self.lock:
            self._closed = True

    @property
    def queries(self) -> tuple[MemoryQuery, ...]:
        """Those registered, in that order."""
        return tuple(self._queries.values())

    def add(self, run: Run, query: MemoryQuery, start: int | None) -> None:
        """Events go to `query` from now on: those of instants that begin from now on."""
        run.take_over({iri: self.stream(iri).passed for iri in run.plan.streams})
        self._queries[run] = self.named[query.name] = query
        self.runs.add(run, start)
        if query.feeds is not None:
            self.stream(query.feeds)
            self.writers[query] = None

    def readers(self, stream: str) -> list[MemoryQuery]:
        """Queries that read a stream: all others take its events in the order of one of these."""
        return [self._queries[run] for run in self.runs.orders(stream)]

    def feeders(self, query: MemoryQuery) -> tuple[MemoryQuery, ...]:
        """The queries whose results reach `query` through streams, upstream first."""
        found: list[MemoryQuery] = []
        reached = [query]
        while reached and self.writers:
            reads = reached.pop().reads
            new = [q for q in self.writers if q.feeds in reads and q is not query and q not in found]
            found += new
            reached += new
        return tuple(reversed(found))

    def keep_answers(self, run: Run) -> None:
        """The KB is about to change: instants up to the newest one so far keep the present answers."""
        with self.lock:
            self.catch_up(run)
            self.runs.keep_answers(run)

    def catch_up(self, run: Run) -> None:
        """Hand a query what has not concerned it so far, so that its state, counters and late events are those of
        now."""
        with self.lock:
            if outcomes := self.runs.catch_up(run):
                self.hand_on(outcomes)

    def settle(self, run: Run, until: int = BEFORE_ALL) -> None:
        """A query takes all that has been pushed as complete, and all before `until` (µs)."""
        with self.lock:
            self.hand_on(self.runs.settle(run, until))

    def close(self, run: Run) -> None:
        """End a query: its streams count as ended, so trailing negations are decided; then it is forgotten."""
        with self.lock:
            outcomes = self.runs.close(run)
            self.runs.remove(run)
            self.hand_on(outcomes, forget=run)

    def _complete(self) -> dict[str, int]:
        """By stream that queries write: before which time (µs) all of them have told their results."""
        complete: dict[str, int] = {}
        for query in self.writers:
            if (into := query.feeds) is not None:
                passed = query.progress.passed
                complete[into] = min(passed, complete.get(into, passed))
        return complete

    def hand_on(self, outcomes: list[Outcome], stream: str = "", forget: Run | None = None) -> None:
        """Give queries what a step of `stream` has led to; one that is to be forgotten gets nothing behind it."""
        if forget is None and not (outcomes or self.writers or self._exchange.owes):
            self.arrived.notify_all()
            return
        with self._exchange:
            for outcome in outcomes:
                query = self._queries[outcome.run]
                query.receive(outcome.stream or stream, outcome.late, outcome.matches, self._exchange)
            if forget is not None:
                query = self._queries.pop(forget)
                self.writers.pop(query, None)
                del self.named[query.name]
            self.arrived.notify_all()
        for outcome in outcomes:
            if outcome.error is not None:
                raise outcome.error


# --- a query at work -------------------------------------------------------------------------------------


class MemoryQuery:
    """A continuous query of a store in memory, behind the lock of its feed. See `QueryBackend`."""

    ask = staticmethod(ask_nobody)
    sinks: tuple[str, ...] = ()

    def __init__(
        self,
        query: Query,
        language: Language[Any],
        run: Run,
        shape: Shape,
        feed: Feed,
        kb: KnowledgeBase,
        options: Options,
        name: str,
        keep: int,
    ) -> None:
        self.query, self.name = query, name
        self.reads, self.feeds, self.variables = shape.reads, shape.feeds, shape.variables
        """The streams that it reads, the one that its results go to, the answer's columns."""
        self.progress = ReadProgress(lambda: run, shape.reads)
        """How far the streams have come that it reads."""
        self.closed = False
        self._spoken, self._kb, self._options = language, kb, options
        self._feed, self._run, self._shape = feed, run, shape
        self._arrived = feed.arrived
        self._found = FoundMatches(shape, keep)
        self._callbacks: Callbacks = ()
        self._late: list[tuple[str, EventBatch]] = []
        self._warned = 0
        self._begun = time.monotonic()
        self.face = ContinuousQuery(self, self.counts)

    # --- what its users ask ---------------------------------------------------------------------------

    @property
    def status(self) -> dict[str, Any]:
        """See `Registered.status`."""
        with self._arrived:
            return {**self.counts, "records": self._run.state}

    @property
    def counts(self) -> dict[str, Any]:
        """Without the records of its state."""
        with self._arrived:
            run = self._now
            return {
                "name": self.name,
                "state": "failed" if run.omitted.over else "closed" if self.closed else "running",
                "language": self.query.language,
                "text": self.query.text,
                "rules": self._options.rules,
                "variables": self.variables,
                "reads": self.reads,
                "feeds": self.feeds,
                "events": run.events,
                "late": run.late,
                "ignored": {"count": run.faults.count, "first": run.faults.first},
                "omitted": {"count": run.omitted.count, "last": run.omitted.last},
                "matches": {"first": self._found.first, "next": self._found.last + 1},
            }

    def matches(self, after: int, limit: int | None) -> Matches:
        """Those found so far."""
        with self._arrived:
            run = self._now
            behind = min(after or self._found.first - 1, self._found.last)
            return Matches(self._found.behind(behind, limit), run.events)

    def subscribe(self, callback: Callable[[Match], object], after: int | None) -> Callable[[], object]:
        """Calls back in the pushing thread."""

        def told(match: Match) -> object:  # another object each time: one may subscribe twice
            return callback(match)

        def end() -> None:
            with self._arrived:
                self._callbacks = tuple(each for each in self._callbacks if each is not told)

        with self._arrived:
            earlier = () if after is None else self.matches(whole_number(after, "after"), None)
            self._callbacks = (*self._callbacks, told)
            for match in earlier:  # no push comes between
                callback(match)
        return end

    def late_events(self) -> list[LateEvent]:
        """Since the last call."""
        with self._arrived:
            self._feed.catch_up(self._run)
            late, self._late = self._late, []
            return late_events(late, self._shape.terms, self._shape.vocab)

    def why(self, since: Time | None, until: Time | None, limit: int) -> Why:
        """Over the events that its streams keep."""
        kept, kb = self._past()
        asked = said(self.query.language, {"since": since, "until": until, "limit": limit}, (HISTORY,))
        options = replace(self._options, origin=self._first)
        request = WhyRequest(reading_of(options, Span(asked.since, asked.until)), asked.limit)
        return self._spoken.why(self.query.algebra, kept, kb, options, request)

    def matches_at(self, page: Page) -> Matches:
        """Over the events that its streams keep."""
        kept, kb = self._past()
        options = replace(self._options, origin=self._first)
        request = WhyRequest(reading_of(options, self._spoken.reach(self.query.algebra, page.at, options)))
        return self._spoken.matches_at(self.query.algebra, kept, kb, options, request, page)

    def _past(self) -> tuple[dict[str, Any], KnowledgeBase | None]:
        """The events that its streams keep, and the knowledge base that it asks. Raises OxiseqError."""
        kept = {iri: each.events() for iri in self.reads if (each := self._feed.stream(iri).kept) is not None}
        if not kept:
            streams = " nor ".join(f"<{iri}>" for iri in self.reads)
            raise OxiseqError(
                f"no events are kept for {streams}: call store.stream(...).retain(10_000) before they come"
            )
        return kept, self._kb if self._spoken.asks_kb else None

    @property
    def _now(self) -> Run:
        """Its run, once it has processed all events."""
        self._feed.catch_up(self._run)
        return self._run

    @property
    def _first(self) -> int | None:
        """The t of its tumbling windows."""
        given = self._options.origin
        return self._spoken.origin(self._now) if given is None else given

    @property
    def late_count(self) -> int:
        """How many events were late so far."""
        return self._now.late

    def close(self) -> None:
        """End the query."""
        with self._arrived:
            if not self.closed:
                self.closed = True
                self._feed.close(self._run)

    delete = close

    # --- waiting for matches --------------------------------------------------------------------------

    def following(self, reader: Reader, seconds: float | None, idle: Duration | None) -> Iterator[Match]:
        """As they complete."""
        rest = None if idle is None or (idle == IDLE and self._run.lateness) else duration(idle, "idle") / 1e6
        return self._handed_out(reader, None if seconds is None else time.monotonic() + seconds, rest)

    def _handed_out(self, reader: Reader, deadline: float | None, idle: float | None) -> Iterator[Match]:
        while self._awaited(reader, deadline, idle):
            with self._arrived:
                try:
                    match = self._found.one(reader.cursor + 1)
                except CursorError as error:  # whoever calls again continues with what is kept
                    reader.cursor = error.first - 1
                    raise
                reader.cursor += match is not None
            if match is not None:  # else somebody else has taken it meanwhile
                yield match

    def ended(self, reader: Reader) -> bool:
        """Whether it is closed, and the reader has all."""
        return self.closed and reader.cursor >= self._found.last

    def _awaited(self, reader: Reader, deadline: float | None, idle: float | None) -> bool:
        """Whether there is a match behind the cursor, or comes until then (monotonic clock)."""
        with self._arrived:
            while reader.cursor >= self._found.last:
                now = time.monotonic()
                if self.closed:
                    return False
                queries = (*self._feed.feeders(self), self)
                upstream = [q for q in queries if q.open]
                quiet_at = max((q.last_push for q in upstream), default=now) + (idle or 0)
                over = deadline is not None and now >= deadline
                if upstream and idle is not None and (over or now >= quiet_at):
                    for query in upstream:
                        query.settle()
                    continue
                due = [] if idle is None else [(q.due_at, q) for q in queries]
                timed = [(max(at, q.last_push + (idle or 0)), q) for at, q in due if at is not None]
                if timed and now >= min(timed, key=lambda each: each[0])[0]:
                    for at, query in timed:
                        if now >= at:
                            query.settle()
                    continue
                if over:
                    return False
                waits = [] if deadline is None else [deadline - now]
                if upstream and idle is not None:
                    waits.append(max(quiet_at - now, 0.001))
                waits += [max(at - now, 0.001) for at, _ in timed]
                self._arrived.wait(min(waits, default=None))
            return True

    @property
    def open(self) -> bool:
        """Whether events wait for their instant to be complete."""
        return self._now.open

    @property
    def last_push(self) -> float:
        """When events came last (monotonic clock)."""
        return max([self._begun, *(self._feed.stream(iri).last_push for iri in self.reads)])

    @property
    def due_at(self) -> float | None:
        """When time alone completes a match (monotonic clock), if time goes on behind the newest event; None: never."""
        silence = self._run.silence
        return None if silence is None else self.last_push + silence / 1_000_000

    def settle(self) -> None:
        """Take all that has been pushed as complete, and the time since then as passed; pass on what that finds."""
        until, deadline = BEFORE_ALL, self._run.deadline
        due = self.due_at
        if due is not None and deadline is not None and time.monotonic() >= due:
            until = deadline + 1
            for query in self._feed.feeders(self):  # a stream that they write is complete when they say so
                self._feed.settle(query._run, until)
        self._feed.settle(self._run, until)

    # --- the streams' side ----------------------------------------------------------------------------

    def receive(self, stream: str, late: EventBatch | None, batches: Sequence[Any], exchange: Exchange) -> None:
        """What an event of `stream` has led to: late events, matches."""
        faults = self._run.faults
        if faults.count > self._warned:
            before, self._warned = self._warned, faults.count
            warn_of(faults, before)
        if late is not None:
            self._shape.terms.hold(*late.ids)
            self._late.append((stream, late))
        begin = self._found.last + 1
        self._found.add(batches)
        callbacks, into = self._callbacks, self.feeds
        if batches and (callbacks or into is not None):
            block = self._shape.block(batches).numbered(begin)
            for i in range(len(block)):
                exchange.found(block.match(i), callbacks, into)

    def before_change(self) -> None:
        """The KB is about to change: instants up to the newest one so far keep the present answers."""
        self._feed.keep_answers(self._run)
