"""A registered query: it sees its streams' events from now on and emits each match when it completes."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any, Final

from oxiseq.api.feed import Exchange, Feed, FoundMatches
from oxiseq.api.live_view import EVERY, MATCHES, LiveView
from oxiseq.engine.errors import OxiseqError
from oxiseq.engine.events.batch import EventBatch
from oxiseq.engine.events.faults import Faults
from oxiseq.engine.events.time import Time
from oxiseq.engine.kb import KnowledgeBase
from oxiseq.engine.matches.paging import PAGE
from oxiseq.engine.order.watermarks import BEFORE_ALL
from oxiseq.engine.run.progress import ReadProgress
from oxiseq.engine.run.run import Run
from oxiseq.grammar.arguments import internal, public
from oxiseq.languages.language import Language
from oxiseq.languages.reasons.read import Span, page_asked, reading_of
from oxiseq.languages.reasons.report import SHOWN, Why, WhyRequest
from oxiseq.matches.match import Match
from oxiseq.matches.matches import Matches
from oxiseq.matches.shape import Shape
from oxiseq.options import HISTORY, Options, said
from oxiseq.options.kinds import Duration, duration, whole_number
from oxiseq.options.query_text import QueryText
from oxiseq.pictures.timeline import html_table
from oxiseq.sources.warned import LateEvent, late_events, warn_of

IDLE: Final = "50ms"
"""Without a push for so long, a waiting consumer takes the open instant as complete."""
_SLICE: Final = 1.0
"""Seconds for which a thread waits at a time for who iterates asynchronously."""


class CallbackHandle:
    """A callback that is called until `close()`; also a context manager."""

    def __init__(self, end: Callable[[], object]) -> None:
        self._end = end

    def close(self) -> None:
        """End the subscription. May be called twice."""
        self._end()

    def __enter__(self) -> CallbackHandle:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


@public
class ContinuousQuery:
    """A query registered by `store.register(text)`. `for match in query` waits for its matches, as does `async for`;
    `query.poll("1s")` waits no longer than that, `query.matches()` not at all; `query.subscribe(callback)` calls back.

    It keeps the newest `keep` matches, as columns, and late events until `drain_late_events()` returns them.

    It may defer events that cannot complete a match, at the latest until you ask for counts, state or late events; a
    warning about skipped events comes then.

    >>> import oxiseq
    >>> text = '''PREFIX : <http://example.org/>
    ... SELECT ?who ?paid FROM STREAM S <http://example.org/payments>
    ... WHERE { SEQ(A) DEFINE GPM A ON S { ?who :paid ?paid } }'''
    >>> payment = "<http://example.org/ann> <http://example.org/paid> 5 ."
    >>> store = oxiseq.Store()
    >>> query = store.register(text)
    >>> store.stream("http://example.org/payments").push(payment, 1_000_000)
    >>> for match in query.poll("0s"):
    ...     print(match.at_us, match["paid"].value)
    1000000 5
    """

    def __init__(
        self,
        query: QueryText,
        language: Language[Any],
        run: Run,
        shape: Shape,
        feed: Feed,
        feeders: Callable[[ContinuousQuery], tuple[ContinuousQuery, ...]],
        kb: KnowledgeBase,
        options: Options,
        name: str,
        keep: int,
    ) -> None:
        self.query = query
        """As it was registered."""
        self.name = name
        self.cursor = 0
        """The id of the last match that has been returned one by one; the next ones follow it. May be set."""
        self._spoken = language
        self._kb = kb
        self._options = options
        self._views: tuple[LiveView, ...] = ()
        self._feed = feed
        self._run = run
        self._shape = shape
        self._arrived = feed.arrived
        self._feeders = feeders
        self._progress = ReadProgress(lambda: run, shape.reads)
        self._found = FoundMatches(shape, keep)
        self._callbacks: tuple[Callable[[Match], object], ...] = ()
        self._late: list[tuple[str, EventBatch]] = []
        self._closed = False
        self._warned = 0
        self._begun = time.monotonic()

    # --- the consumer's side ------------------------------------------------------------------------

    def __iter__(self) -> Iterator[Match]:
        """`poll()`: the matches after `cursor`, without end."""
        return self.poll()

    def poll(self, timeout: Duration | None = None, *, idle: Duration | None = IDLE) -> Iterator[Match]:
        """The matches after `cursor`, as they complete; blocks for the next one, at most `timeout` in all (None: for
        ever).

        The newest instant stays open for more graphs until a later event comes. When nothing has been pushed for
        `idle` while this waits, or when the timeout is over, the instant counts as complete, so that later graphs of it
        are late (None: never; also the default with lateness allowed). While nothing is pushed, time advances with the
        clock from the newest event: a match that waits for its window to close, or for a bound such as
        `N! WITHIN 10 MINUTES` to pass, is emitted then.
        Ends when the timeout is over or the query has been closed and all matches are returned. Raises CursorError if
        matches after `cursor` are no longer kept.
        """
        seconds = None if timeout is None else duration(timeout, "timeout") / 1e6
        rest = None if idle is None or (idle == IDLE and self._run.lateness) else duration(idle, "idle") / 1e6
        return self._handed_out(None if seconds is None else time.monotonic() + seconds, rest)

    def _handed_out(self, deadline: float | None, idle: float | None) -> Iterator[Match]:
        while self._awaited(deadline, idle):
            if (match := self._next()) is not None:
                yield match

    async def __aiter__(self) -> AsyncIterator[Match]:
        idle = None if self._run.lateness else duration(IDLE) / 1e6
        while True:
            if await asyncio.to_thread(self._awaited, time.monotonic() + _SLICE, idle):
                if (match := self._next()) is not None:  # not there: a thread that nobody waits for takes none
                    yield match
            elif self._closed:
                return

    def matches(self, after: int = 0, limit: int | None = None) -> Matches:
        """The matches found so far with ids greater than `after`, at most `limit`: `to_pandas()`, `to_arrow()`, and a
        table in a notebook. It does not wait, and the newest instant stays open. `after` 0 means all that are kept.
        Raises CursorError if matches after `after` are no longer kept, ArgumentValueError for a negative number."""
        whole_number(after, "after")
        if limit is not None:
            whole_number(limit, "limit")
        with self._arrived:
            run = self._now
            behind = min(after or self._found.first - 1, self._found.last)
            return Matches(self._found.behind(behind, limit), run.events)

    @property
    def match_count(self) -> int:
        """How many matches it has found."""
        return self._found.last

    def subscribe(self, callback: Callable[[Match], object], after: int | None = None) -> CallbackHandle:
        """Call `callback` with each match that completes from now on, in the pushing thread, until you close the
        returned handle; with `after` first with those of greater ids. Raises CursorError and ArgumentValueError as
        `matches` does."""

        def told(match: Match) -> object:  # another object each time: one may subscribe twice
            return callback(match)

        with self._arrived:
            earlier = () if after is None else self.matches(after)
            self._callbacks = (*self._callbacks, told)
            for match in earlier:  # no push comes between
                callback(match)
        return CallbackHandle(lambda: self._unsubscribe(told))

    def _unsubscribe(self, callback: Callable[[Match], object]) -> None:
        with self._arrived:
            self._callbacks = tuple(each for each in self._callbacks if each is not callback)

    def drain_late_events(self) -> list[LateEvent]:
        """Returns the late events since the last call, of each stream in order of arrival, and keeps them no longer."""
        with self._arrived:
            self._feed.catch_up(self._run)
            late, self._late = self._late, []
            return late_events(late, self._shape.terms, self._shape.vocab)

    def why(self, since: Time | None = None, until: Time | None = None, limit: int = SHOWN) -> Why:
        """Why it matched and why it did not, over the events that its streams keep (`Stream.retain`), with the
        knowledge base of now; see `oxiseq.Query.why`.

        Raises OxiseqError if none of its streams keeps events; KbError, LimitError.
        """
        kept, kb = self._past()
        asked = said(self.query.language, {"since": since, "until": until, "limit": limit}, (HISTORY,))
        options = replace(self._options, origin=self._first)
        request = WhyRequest(reading_of(options, Span(asked.since, asked.until)), asked.limit)
        return self._spoken.why(self.query.algebra, kept, kb, options, request)

    def matches_at(self, time: Time, offset: int = 0, limit: int = PAGE) -> Matches:
        """Of the matches that end at `time`, `limit` from the one at `offset` on, over the events that its streams keep
        (`Stream.retain`), with the knowledge base of now; see `oxiseq.Query.matches_at`.

        Raises OxiseqError if none of its streams keeps events; KbError, LimitError.
        """
        kept, kb = self._past()
        page = page_asked(time, offset, limit)
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

    def live(self, every: float = EVERY, matches: int = MATCHES) -> LiveView:
        """A view of it that a notebook shows and keeps up to date: counts, and the newest `matches` from now on, looked
        at each `every` seconds. `view.stop()` ends it."""
        view = LiveView(self, every, matches)
        with self._arrived:
            self._views = (*self._views, view)
        return view

    @internal
    def unwatch(self, view: LiveView) -> None:
        """Tell a view no more."""
        with self._arrived:
            self._views = tuple(each for each in self._views if each is not view)

    @property
    def closed(self) -> bool:
        """Whether it has been closed."""
        return self._closed

    @property
    def late_count(self) -> int:
        """How many events were late so far."""
        return self._now.late

    @property
    def ignored_count(self) -> int:
        """How many events the query ignores because the language cannot take them: no tuple events in CEQL, events that
        start after they end in EP-SPARQL."""
        return self._faults.count

    @property
    def ignored_events(self) -> tuple[str, ...]:
        """Which the first of those are, and what is wrong with them."""
        return self._faults.first

    @property
    def omitted(self) -> int:
        """How many instants were left out because the query was beyond a bound there, as `LimitError` says then. After
        three of them, with none answered in between, the query has `failed`."""
        return self._now.omitted.count

    @property
    def omitted_instants(self) -> tuple[str, ...]:
        """Which the last ones of those are, and what the query was beyond."""
        return self._now.omitted.last

    @property
    def failed(self) -> bool:
        """Whether it has been stopped and gets nothing more, since it was beyond a bound at instant after instant."""
        return self._now.omitted.over

    @property
    def _faults(self) -> Faults:
        return self._now.faults

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

    def _next(self) -> Match | None:
        """The match behind the cursor; None if somebody else has taken it meanwhile."""
        with self._arrived:
            match = self._found.one(self.cursor + 1)
            self.cursor += match is not None
            return match

    def _awaited(self, deadline: float | None, idle: float | None) -> bool:
        """Whether there is a match behind the cursor, or comes until then (monotonic clock)."""
        with self._arrived:
            while self.cursor >= self._found.last:
                now = time.monotonic()
                if self._closed:
                    return False
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
                    return False
                waits = [] if deadline is None else [deadline - now]
                if upstream and idle is not None:
                    waits.append(max(quiet_at - now, 0.001))
                waits += [max(at - now, 0.001) for at, _ in timed]
                self._arrived.wait(min(waits, default=None))
            return True

    @property
    @internal
    def progress(self) -> ReadProgress:
        """How far the streams have come that it reads."""
        return self._progress

    @property
    def open(self) -> bool:
        """Whether events wait for their instant to be complete."""
        return self._now.open

    @property
    @internal
    def last_push(self) -> float:
        """When events came last (monotonic clock)."""
        return max([self._begun, *(self._feed.stream(iri).last_push for iri in self.reads)])

    @property
    @internal
    def due_at(self) -> float | None:
        """When time alone completes a match (monotonic clock), if time goes on behind the newest event; None: never."""
        silence = self._run.silence
        return None if silence is None else self.last_push + silence / 1_000_000

    @internal
    def settle(self) -> None:
        """Take all that has been pushed as complete, and the time since then as passed; pass on what that finds."""
        until, deadline = BEFORE_ALL, self._run.deadline
        due = self.due_at
        if due is not None and deadline is not None and time.monotonic() >= due:
            until = deadline + 1
            for query in self._feeders(self):  # a stream that they write is complete when they say so
                query.pass_to(until)
        self.pass_to(until)

    @internal
    def pass_to(self, until: int) -> None:
        """Take all that has been pushed, and all before `until` (µs), as complete."""
        self._feed.settle(self._run, until)

    # --- the streams' side --------------------------------------------------------------------------

    @internal
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
        if batches and (self._views or callbacks or into is not None):
            block = self._shape.block(batches).numbered(begin)
            for view in self._views:
                view.receive(block)
            if callbacks or into is not None:
                for i in range(len(block)):
                    exchange.found(block.match(i), callbacks, into)

    @internal
    def before_change(self) -> None:
        """The KB is about to change: instants up to the newest one so far keep the present answers."""
        self._feed.keep_answers(self._run)

    def _repr_html_(self) -> str:
        rows = [("reads", ", ".join(self.reads)), ("events", f"{self.events:,}"), ("late", f"{self.late_count:,}")]
        rows += [("matches", f"{self.match_count:,}"), ("memory", f"{self.state.get('bytes', 0) / 1024:,.0f} KiB")]
        drawn = self._spoken.explain(self.query.algebra, None, self._options.rules).svg()
        return f"<div>{html_table(', '.join(self.variables), rows, self.query.text)}{drawn}</div>"

    def __repr__(self) -> str:
        return f"<ContinuousQuery {', '.join(self.variables)}: {self.events} events>"
