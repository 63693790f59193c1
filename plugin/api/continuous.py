"""A registered query, wherever it is: in memory (feed.py), in a folder or at a server (served/query.py). It sees its
streams' events from when it is registered, and emits each match when it completes."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from types import MappingProxyType
from typing import Any, Final, Protocol, Self

from oxiseq.api.live_view import EVERY, MATCHES, LiveView
from oxiseq.api.query import Query
from oxiseq.engine.errors import OxiseqError
from oxiseq.engine.events.time import Time
from oxiseq.engine.matches.paging import PAGE, Page
from oxiseq.grammar.arguments import faced, internal, public
from oxiseq.journal import UnknownError
from oxiseq.languages.explanation import Explanation
from oxiseq.languages.reasons.read import page_asked
from oxiseq.languages.reasons.report import SHOWN, Why
from oxiseq.matches.match import Match
from oxiseq.matches.matches import Matches
from oxiseq.options.kinds import Duration, duration, whole_number
from oxiseq.pictures.timeline import html_table
from oxiseq.sources.warned import LateEvent

IDLE: Final = "50ms"
"""Without a push for so long, a waiting consumer of a store in memory takes the open instant as complete."""
AFTER_LOSS: Final = 0.5
"""Seconds after which a server that has gone is looked for again."""
RESUME: Final[Any] = MappingProxyType({"json": {"state": "running"}, "again": True})
"""A change of a query: it goes on."""
_SLICE: Final = 1.0
"""Seconds for which a thread waits at a time for who iterates asynchronously."""
_TOGETHER: Final = 100
"""Matches that such a thread takes at most."""


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


class Reader:
    """The position of one reader of a query. `cursor`: the id of the last match or change that it got."""

    def __init__(self, cursor: int) -> None:
        self.cursor = cursor
        self._closed = threading.Event()

    @property
    def closed(self) -> bool:
        """Whether it reads no more."""
        return self._closed.is_set()

    def close(self) -> None:
        """Read no more."""
        self._closed.set()

    @internal
    def rest(self, seconds: float) -> None:
        """Do nothing for so long, or until it is closed."""
        self._closed.wait(max(0.0, seconds))


class RegisteredBackend(Protocol):
    """The place where a registered query is."""

    @property
    def status(self) -> Mapping[str, Any]:
        """All that is said of it now, as `GET /queries/{query}` says it. Raises UnknownError."""

    @property
    def closed(self) -> bool:
        """Whether it, or its store, has been closed."""

    def ask(self, operation: str, how: Any = ..., /, **given: Any) -> Any:
        """The answer to an operation of a server's table. Raises OxiseqError where there is no server's."""

    def close(self) -> None:
        """Who holds it needs it no more."""

    def delete(self) -> None:
        """It is to be forgotten."""


def ask_nobody(operation: str, how: Mapping[str, Any] = MappingProxyType({}), /, **given: Any) -> Any:
    """`RegisteredBackend.ask` in memory. Raises OxiseqError."""
    raise OxiseqError(f"{operation}: it is for a store in a folder or at a server, see oxiseq.open")


class QueryBackend(RegisteredBackend, Protocol):
    """The place where a continuous query is."""

    @property
    def counts(self) -> Mapping[str, Any]:
        """Its status, maybe without the records of its state: to count these is work where queries share a state."""

    @property
    def query(self) -> Query:
        """As it was registered."""

    @property
    def variables(self) -> tuple[str, ...]:
        """The answer's columns."""

    @property
    def sinks(self) -> tuple[str, ...]:
        """The names of its sinks."""

    def matches(self, after: int, limit: int | None) -> Matches:
        """See `ContinuousQuery`; so `why` and `matches_at`."""

    def why(self, since: Time | None, until: Time | None, limit: int) -> Why: ...

    def matches_at(self, page: Page) -> Matches: ...

    def following(self, reader: Reader, seconds: float | None, idle: Duration | None) -> Iterator[Match]:
        """The matches behind the reader's cursor, which follows them, as they complete: see `ContinuousQuery.poll`."""

    def ended(self, reader: Reader) -> bool:
        """Whether no match comes behind the reader's cursor any more."""

    def subscribe(self, callback: Callable[[Match], object], after: int | None) -> Callable[[], object]:
        """Call back; what this returns ends it."""

    @property
    def open(self) -> bool | None:
        """Whether events wait for their instant to be complete; None where that is not known."""

    def late_events(self) -> list[LateEvent]:
        """The late events since the last call."""


class Registered(Reader):
    """A registered query, by its name. `cursor`: the id of the last match or change that has been returned; keep it,
    and set it after a restart of your program, to continue after it."""

    def __init__(self, backend: RegisteredBackend, value: Mapping[str, Any]) -> None:
        """`value`: its status."""
        super().__init__(value["matches"]["first"] - 1)
        self.name: str = value["name"]
        self.language: str = value["language"]
        self._backend = backend

    @property
    def status(self) -> Mapping[str, Any]:
        """All that is said of it now: counts and records of its state; in a folder and at a server its budget and what
        was quarantined, too. Raises UnknownError."""
        return self._backend.status

    def pause(self) -> None:
        """It sees nothing until `resume`; then it sees what has come meanwhile. Not in memory."""
        self._backend.ask("changeQuery", {"json": {"state": "paused"}, "again": True})

    def resume(self) -> None:
        """Continue after a pause or a failure. Not in memory."""
        self._backend.ask("changeQuery", RESUME)

    def delete(self) -> None:
        """Forget it and what was found."""
        self._backend.delete()
        self.close()

    @property
    def closed(self) -> bool:
        """Whether it, or its store, has been closed."""
        return self._closed.is_set() or self._backend.closed

    def close(self) -> None:
        """End what iterates over it. In memory the query ends: its streams count as ended, so trailing negations are
        decided. In a folder and at a server it continues, until `delete`."""
        super().close()
        self._backend.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


@faced
class Sink:
    """What `query.sink(...)` answers."""

    def __init__(self, backend: RegisteredBackend, query: str, name: str) -> None:
        """`ContinuousQuery.sink` makes it."""
        self._backend = backend
        self.query, self.name = query, name

    @property
    def status(self) -> Mapping[str, Any]:
        """All that is said of it now: settings without secrets, `delivered`, `waiting`, `failing_since`, `error`,
        `next_try`. Raises UnknownError."""
        value: Mapping[str, Any] = self._backend.ask("getSink", sink=self.name)
        return value

    def delete(self) -> None:
        """Deliver no more."""
        self._backend.ask("deleteSink", {"again": False}, sink=self.name)

    def __repr__(self) -> str:
        return f"<Sink {self.name!r} of {self.query!r}>"


@public
class ContinuousQuery(Registered):
    """A query registered by `store.register(text)`. `for match in query` waits for its matches, as does `async for`;
    `query.poll("1s")` waits no longer than that, `query.matches()` not at all; `query.subscribe(callback)` calls back.

    In memory it keeps the newest `keep` matches, as columns, and late events until `drain_late_events()` returns them;
    it may defer events that cannot complete a match, at the latest until you ask for counts, state or late events; a
    warning about skipped events comes then. In a folder and at a server the same match has the same id, whatever was
    killed, and counts of events are those since the server began.

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

    _backend: QueryBackend

    def __init__(self, backend: QueryBackend, value: Mapping[str, Any]) -> None:
        """`Store.register` makes it."""
        super().__init__(backend, value)
        self.query = backend.query
        """As it was registered."""
        self.reads: tuple[str, ...] = tuple(value["reads"])
        """The streams that it reads."""
        self.feeds: str | None = value["feeds"]
        """The stream that its results go to (CONSTRUCT ... INTO STREAM)."""
        self._rules: tuple[str, ...] = tuple(value.get("rules") or ())

    # --- matches --------------------------------------------------------------------------------------

    def __iter__(self) -> Iterator[Match]:
        """`poll()`: the matches after `cursor`, without end."""
        return self.poll()

    def poll(self, timeout: Duration | None = None, *, idle: Duration | None = IDLE) -> Iterator[Match]:
        """The matches after `cursor`, as they complete; blocks for the next one, at most `timeout` in all (None: for
        ever), and then returns those that are there.

        In memory the newest instant stays open for more graphs until a later event comes. When nothing has been pushed
        for `idle` while this waits, or when the timeout is over, the instant counts as complete, so that later graphs
        of it are late (None: never; also the default with lateness allowed). While nothing is pushed, time advances
        with the clock from the newest event: a match that waits for its window to close, or for a bound such as
        `N! WITHIN 10 MINUTES` to pass, is emitted then. In a folder and at a server that is the server's business; one
        that goes away meanwhile is waited for.

        Ends when the timeout is over, or the query has been closed or deleted and all matches are returned. Raises
        CursorError if matches after `cursor` are no longer kept (and the next call continues with what is kept),
        DamagedBatchError, RefusedError, BusyError; UnreachableError if the server does not answer at all within
        `timeout`.
        """
        seconds = None if timeout is None else duration(timeout, "timeout") / 1e6
        return self._backend.following(self, seconds, idle)

    async def __aiter__(self) -> AsyncIterator[Match]:
        while True:
            found, cursor, error = await asyncio.to_thread(self._some)
            for match in found:
                self.cursor = match.id or 0  # not there: a thread that nobody waits for any more must not take one
                yield match
            if error is not None:
                self.cursor = cursor
                raise error
            if not found and await asyncio.to_thread(self._backend.ended, self):
                return

    def _some(self) -> tuple[list[Match], int, OxiseqError | None]:
        """The next matches behind the cursor, which stays, or none after a while; its new position, and what of it
        cannot be read."""
        reader, found = Reader(self.cursor), list[Match]()
        try:
            last = self.match_count
            for match in self._backend.following(reader, _SLICE, IDLE):
                found.append(match)
                if len(found) >= _TOGETHER or (match.id or 0) >= last:
                    break
        except (UnknownError, ConnectionError):  # deleted, which is checked, or unreachable, which is waited for
            self.rest(AFTER_LOSS)
        except OxiseqError as error:
            return found, reader.cursor, None if self.closed else error
        return found, reader.cursor, None

    def matches(self, after: int = 0, limit: int | None = None) -> Matches:
        """The matches found so far with ids greater than `after`, at most `limit`: `to_pandas()`, `to_arrow()`, and a
        table in a notebook. It does not wait, and the newest instant stays open. `after` 0 means all that are kept.
        Raises CursorError if matches after `after` are no longer kept, ArgumentValueError for a negative number,
        UnknownError, UnreachableError."""
        whole_number(after, "after")
        if limit is not None:
            whole_number(limit, "limit")
        return self._backend.matches(after, limit)

    def subscribe(self, callback: Callable[[Match], object], after: int | None = None) -> CallbackHandle:
        """Call `callback` with each match that completes from now on, until you close the returned handle; with `after`
        first with those of greater ids. In memory in the pushing thread, and CursorError is raised as `matches` does;
        in a folder and at a server on a thread of its own, and errors of the callback are logged."""
        return CallbackHandle(self._backend.subscribe(callback, after))

    # --- where matches are delivered ------------------------------------------------------------------

    def sink(self, name: str, *, after: int | None = None, **settings: Any) -> Sink:
        """Have matches delivered from now on, or behind the match `after`; a sink of this name continues where it
        is, with these settings (docs/sinks.md): `query.sink("chat", kind="webhook", url=..., template={"text":
        "{?x}"})`.

        A server delivers to what its operator allows; a store in a folder to what this process may reach, and only
        while it is open; one in memory has no sinks. Raises OxiseqError for settings that are not accepted.
        """
        given = settings if after is None else {**settings, "after": after}
        self._backend.ask("putSink", {"json": given}, sink=name)
        return Sink(self._backend, self.name, name)

    @property
    def sinks(self) -> tuple[Sink, ...]:
        """All of them."""
        return tuple(Sink(self._backend, self.name, each) for each in self._backend.sinks)

    @property
    @internal
    def counts(self) -> Mapping[str, Any]:
        """`status`, maybe without the records of its state."""
        return self._backend.counts

    # --- facts ----------------------------------------------------------------------------------------

    @property
    def variables(self) -> tuple[str, ...]:
        """The answer's columns, without `?`."""
        return self._backend.variables

    @property
    def match_count(self) -> int:
        """How many matches it has found."""
        return int(self.counts["matches"]["next"]) - 1

    @property
    def events(self) -> int:
        """How many events it has received."""
        return int(self.counts["events"])

    @property
    def late_count(self) -> int:
        """How many events were late so far."""
        return int(self.counts["late"])

    @property
    def open(self) -> bool | None:
        """True while events wait for their instant to be complete; None in a folder and at a server."""
        return self._backend.open

    def drain_late_events(self) -> list[LateEvent]:
        """Returns the late events since the last call, of each stream in order of arrival, and keeps them no longer. In
        a folder and at a server the newest 1,000."""
        return self._backend.late_events()

    @property
    def ignored_count(self) -> int:
        """How many events the query ignores because the language cannot take them: no tuple events in CEQL, events that
        start after they end in EP-SPARQL."""
        return int(self.counts["ignored"]["count"])

    @property
    def ignored_events(self) -> tuple[str, ...]:
        """Which the first of those are, and what is wrong with them."""
        return tuple(self.counts["ignored"]["first"])

    @property
    def omitted(self) -> int:
        """How many instants were left out because the query was beyond a bound there, as `LimitError` says then. After
        three of them, with none answered in between, the query has `failed`."""
        return int(self.counts["omitted"]["count"])

    @property
    def omitted_instants(self) -> tuple[str, ...]:
        """Which the last ones of those are, and what the query was beyond."""
        return tuple(self.counts["omitted"]["last"])

    @property
    def failed(self) -> bool:
        """Whether it gets nothing more, since an error, or a bound passed at instant after instant, has stopped it."""
        return bool(self.counts["state"] == "failed")

    @property
    def state(self) -> dict[str, int]:
        """Live records of the running state, by kind."""
        return dict(self.status["records"])

    # --- looking back -----------------------------------------------------------------------------------

    def why(self, since: Time | None = None, until: Time | None = None, limit: int = SHOWN) -> Why:
        """Why it matched and why it did not, over the events that its streams keep (`Stream.retain`), with the
        knowledge base of now; see `oxiseq.Query.why`.

        Raises OxiseqError if none of its streams keeps events; KbError, LimitError.
        """
        return self._backend.why(since, until, limit)

    def matches_at(self, time: Time, offset: int = 0, limit: int = PAGE) -> Matches:
        """Of the matches that end at `time`, `limit` from the one at `offset` on, over the events that its streams keep
        (`Stream.retain`), with the knowledge base of now; see `oxiseq.Query.matches_at`.

        Raises OxiseqError if none of its streams keeps events; KbError, LimitError.
        """
        return self._backend.matches_at(page_asked(time, offset, limit))

    def explain(self) -> Explanation:
        """What it is compiled to, without a knowledge base."""
        return self.query.explain(rules=self._rules)

    def live(self, every: float = EVERY, matches: int = MATCHES) -> LiveView:
        """A view of it that a notebook shows and keeps up to date: counts, and the newest `matches` from now on, looked
        at each `every` seconds. `view.stop()` ends it."""
        return LiveView(self, every, matches)

    def _repr_html_(self) -> str:
        told = self.status
        rows = [("reads", ", ".join(self.reads)), ("events", f"{told['events']:,}"), ("late", f"{told['late']:,}")]
        rows += [("matches", f"{told['matches']['next'] - 1:,}")]
        rows += [("memory", f"{told['records'].get('bytes', 0) / 1024:,.0f} KiB")]
        return f"<div>{html_table(', '.join(self.variables), rows, self.query.text)}{self.explain().svg()}</div>"

    def __repr__(self) -> str:
        return f"<ContinuousQuery {self.name}: {', '.join(self.variables)}>"
