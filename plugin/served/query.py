"""A continuous query of a served store."""

from __future__ import annotations

import asyncio
import json
import logging
import math
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from functools import cached_property
from itertools import islice
from typing import Any, Final, Self, TypeVar, cast

import httpx
from httpx_sse import EventSource, ServerSentEvent
from pyoxigraph import QueryBoolean, QueryResultsFormat, RdfFormat, Triple, parse_query_results

from oxiseq.api.continuous import CallbackHandle
from oxiseq.api.query import Query
from oxiseq.api.standing.query import Row, Snapshot, StoreChange, Weighed
from oxiseq.engine.errors import OxiseqError
from oxiseq.engine.events.time import Time, to_microseconds, to_text
from oxiseq.engine.matches.paging import PAGE
from oxiseq.engine.rdf import parse
from oxiseq.grammar.arguments import faced, internal
from oxiseq.journal import CursorError, DamagedBatchError, UnknownError
from oxiseq.languages.reasons.read import page_asked
from oxiseq.languages.reasons.report import SHOWN, Why
from oxiseq.languages.reasons.report import why_from_json as why_of
from oxiseq.languages.registry import language_named
from oxiseq.matches.match import Match
from oxiseq.matches.matches import Matches
from oxiseq.options.kinds import Duration, duration, whole_number
from oxiseq.served.rows import Decoder, term_of
from oxiseq.served.wire import ONCE, How, UnreachableError, Wire
from oxiseq.sources.warned import LateEvent

LOG: Final = logging.getLogger("oxiseq")
T = TypeVar("T")
_SILENCE: Final = 8.0
"""Seconds for which nothing may come before the server is queried again: less than its heartbeat."""
_LAST: Final = 0.05
"""Seconds before the end of a timeout for which nobody listens any more."""
SOON: Final[How] = {"again": False, "within": 10.0}
"""How to call a server after waiting already."""
AFTER_LOSS: Final = 0.5
"""Seconds after which a server that has gone is looked for again."""


class Registered:
    """A query by its name. `cursor`: the id of the last match or change that has been returned."""

    def __init__(self, wire: Wire, value: Mapping[str, Any]) -> None:
        self._wire = wire
        self._value = value
        self._closed = threading.Event()
        self.name: str = value["name"]
        self.language: str = value["language"]
        self.cursor: int = value["matches"]["first"] - 1

    @property
    def status(self) -> Mapping[str, Any]:
        """All that the server says of it now: its state, counts, budget, what was quarantined. Raises UnknownError."""
        value: Mapping[str, Any] = self._wire.call("getQuery", query=self.name).json()
        return value

    @property
    @internal
    def gone(self) -> bool:
        """Whether it has been deleted."""
        try:
            self._wire.call("getQuery", query=self.name)
        except UnknownError:
            return True
        return False

    def pause(self) -> None:
        """It sees nothing until `resume`; then it sees what has come meanwhile."""
        self._wire.call("changeQuery", {"json": {"state": "paused"}, "again": True}, query=self.name)

    def resume(self) -> None:
        """Continue after a pause or a failure."""
        self._wire.call("changeQuery", {"json": {"state": "running"}, "again": True}, query=self.name)

    def delete(self) -> None:
        """Forget it and what was found."""
        self._wire.call("deleteQuery", ONCE, query=self.name)
        self.close()

    @property
    def closed(self) -> bool:
        """Whether this object has been closed."""
        return self._closed.is_set()

    def close(self) -> None:
        """End what iterates over this object; the query continues at the server."""
        self._closed.set()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # --- events ---------------------------------------------------------------------------------------

    @internal
    def listened(self, what: str, timeout: Duration | None) -> Iterator[ServerSentEvent]:
        """Server-sent events of `what` behind `cursor`, whatever becomes of the connection, at most for `timeout` in
        all. Ends when the query is deleted or this object, or the store, is closed. Raises RefusedError, BusyError;
        UnreachableError if the server does not answer at all within `timeout`."""
        return self._listened(what, None if timeout is None else time.monotonic() + duration(timeout, "timeout") / 1e6)

    def _listened(self, what: str, deadline: float | None) -> Iterator[ServerSentEvent]:
        gone: UnreachableError | None = None
        while not self.over():
            left = math.inf if deadline is None else deadline - time.monotonic()
            if left <= _LAST:
                self._closed.wait(max(0.0, left))
                break
            silence = min(_SILENCE, max(left / 2, _LAST))  # half: one that comes late may be followed by as long again
            try:
                with self._wire.listening(what, silence, query=self.name, after=self.cursor) as reply:
                    gone = None
                    for event in EventSource(reply).iter_sse():
                        if event.event == "end":
                            if not self._goes_on(event):
                                return
                            break
                        if event.data:  # else it says how long to wait before one comes back, which we choose
                            yield event
                        if self.over():
                            return
                        if deadline is not None and deadline - time.monotonic() < silence:
                            break
            except httpx.ReadTimeout:
                pass
            except UnreachableError as error:
                gone = error
                self._closed.wait(min(AFTER_LOSS, left))
            except UnknownError:
                return
        if gone is not None and not self.over():
            raise gone

    @internal
    def over(self) -> bool:
        """Whether this object or its store is closed."""
        return self._closed.is_set() or self._wire.closed

    def _goes_on(self, event: ServerSentEvent) -> bool:
        """Whether the server ends its answer, though the query continues: it is stopping."""
        if event.json().get("reason") == "deleted":
            return False
        self._closed.wait(AFTER_LOSS)
        return True

    @internal
    def told_of_loss(self, event: ServerSentEvent) -> None:
        """Raises the error for deleted matches that an event reports, and puts the cursor behind them."""
        told = event.json()
        if event.event == "cursor-too-old":
            asked, self.cursor = self.cursor + 1, int(told["first"]) - 1
            raise CursorError(f"what {self.name!r} has emitted", asked, int(told["first"]))
        if event.event == "damaged":
            self.cursor = int(told["next"]) - 1
            raise DamagedBatchError(f"what {self.name!r} has emitted", told["first"], told["next"], told["reason"])

    @internal
    def each(self, things: Callable[[], Iterator[T]], callback: Callable[[T], object]) -> CallbackHandle:
        """Call back with each thing on a thread of its own, until this object is closed. Errors are logged."""

        def work() -> None:
            while not self.over():
                try:
                    for thing in things():
                        if self.closed:
                            return
                        _called(callback, thing, self.name)
                    return
                except CursorError as error:
                    LOG.warning("query %s: %s", self.name, error)
                except OxiseqError as error:
                    if not self._wire.closed:
                        LOG.error("query %s cannot be read; tried again: %s", self.name, error)
                    self._closed.wait(AFTER_LOSS)

        threading.Thread(target=work, name=f"oxiseq-{self.name}", daemon=True).start()
        return CallbackHandle(self.close)


def _called(callback: Callable[[T], object], thing: T, name: str) -> None:
    try:
        callback(thing)
    except Exception:
        LOG.exception("query %s: a callback failed at %r", name, thing)


@faced
class ServedSink:
    """What `query.sink(...)` answers."""

    def __init__(self, wire: Wire, query: str, name: str) -> None:
        """`ServedQuery.sink` makes it."""
        self._wire = wire
        self.query, self.name = query, name

    @property
    def status(self) -> Mapping[str, Any]:
        """All that the server says of it now: settings without secrets, `delivered`, `waiting`, `failing_since`,
        `error`, `next_try`. Raises UnknownError."""
        value: Mapping[str, Any] = self._wire.call("getSink", query=self.query, sink=self.name).json()
        return value

    def delete(self) -> None:
        """Deliver no more."""
        self._wire.call("deleteSink", ONCE, query=self.query, sink=self.name)

    def __repr__(self) -> str:
        return f"<ServedSink {self.name!r} of {self.query!r}>"


_NDJSON: Final = "application/x-ndjson"
_SLICE: Final = "1s"
"""For so long a thread waits at a time for who iterates asynchronously."""


def _graph(text: str) -> tuple[Triple, ...]:
    return tuple(quad.triple for quad in parse(text, RdfFormat.N_TRIPLES))


@faced
class ServedQuery(Registered):
    """A query that is registered with a served store; the methods of `ContinuousQuery`, over the wire.

    `cursor`: the id of the last match that iteration has returned; keep it, and set it after a restart of your
    program, to continue after it. Ids of matches are the server's: the same match has the same one whatever was killed.
    """

    def __init__(self, wire: Wire, value: Mapping[str, Any]) -> None:
        super().__init__(wire, value)
        self.query = Query.of(value["text"], value["language"])
        """As it was registered."""
        self.reads: tuple[str, ...] = tuple(value["reads"])
        self.feeds: str | None = value["feeds"]
        self._late_seen = 0

    @cached_property
    def _decoder(self) -> Decoder:
        return Decoder(self.query, self.reads)

    @cached_property
    def _every_match(self) -> Decoder:
        """Of the query's single matches, whatever groups it makes of them."""
        spoken = language_named(self.query.language)
        text = spoken.syntax.render(spoken.every_match(self.query.algebra))
        return Decoder(Query.of(text, self.query.language), self.reads)

    # --- where matches are delivered ------------------------------------------------------------------

    def sink(self, name: str, *, after: int | None = None, **settings: Any) -> ServedSink:
        """Have matches delivered from now on, or behind the match `after`; a sink of this name continues where it
        is, with these settings (docs/sinks.md): `query.sink("chat", kind="webhook", url=..., template={"text":
        "{?x}"})`.

        A server delivers to what its operator allows; a store in a folder to what this process may reach, and only
        while it is open. Raises OxiseqError for settings that are not accepted.
        """
        given = settings if after is None else {**settings, "after": after}
        self._wire.call("putSink", {"json": given}, query=self.name, sink=name)
        return ServedSink(self._wire, self.name, name)

    @property
    def sinks(self) -> tuple[ServedSink, ...]:
        """All of them."""
        told = self._wire.call("listSinks", query=self.name).json()["sinks"]
        return tuple(ServedSink(self._wire, self.name, each["id"]) for each in told)

    # --- facts ----------------------------------------------------------------------------------------

    @property
    def variables(self) -> tuple[str, ...]:
        """The answer's columns, without `?`."""
        return self._decoder.shape.variables

    @property
    def match_count(self) -> int:
        """How many matches it has found."""
        return int(self.status["matches"]["next"]) - 1

    @property
    def events(self) -> int:
        """How many events it has received since the server began."""
        return int(self.status["events"])

    @property
    def late_count(self) -> int:
        """How many events were late since the server began."""
        return int(self.status["late"])

    def drain_late_events(self) -> list[LateEvent]:
        """The late events since the last call, of each stream in order of arrival: the newest 1,000 since the server
        began."""
        told = self._wire.call("listLateEvents", query=self.name, after=self._late_seen).json()
        self._late_seen = int(told["last"])
        return [
            LateEvent(each["stream"], to_microseconds(each["time"]), _graph(each["graph"]))
            for each in told["late_events"]
        ]

    @property
    def ignored_count(self) -> int:
        """How many events the query ignores because the language cannot take them."""
        return int(self.status["ignored"]["count"])

    @property
    def ignored_events(self) -> tuple[str, ...]:
        """Which the first of those are, and what is wrong with them."""
        return tuple(self.status["ignored"]["first"])

    @property
    def omitted(self) -> int:
        """How many instants were left out, since it was beyond a bound there."""
        return int(self.status["omitted"]["count"])

    @property
    def omitted_instants(self) -> tuple[str, ...]:
        """Which the last ones of those are, and what it was beyond."""
        return tuple(self.status["omitted"]["last"])

    @property
    def failed(self) -> bool:
        """Whether it gets nothing more, since an error, or a bound passed at instant after instant, has stopped it."""
        return bool(self.status["state"] == "failed")

    @property
    def state(self) -> dict[str, int]:
        """Live records of the running state, by kind."""
        return dict(self.status["records"])

    # --- matches --------------------------------------------------------------------------------------

    def matches(self, after: int = 0, limit: int | None = None) -> Matches:
        """Those found so far whose ids are greater than `after`, at most `limit`; `after` 0 means: all that are kept.
        Raises CursorError, UnknownError, UnreachableError; ArgumentValueError for a negative number."""
        whole_number(after, "after")
        if limit is not None:
            whole_number(limit, "limit")
        status = self.status
        cursor = after or status["matches"]["first"] - 1
        told: list[Mapping[str, Any]] = []
        for page in self._pages(cursor, limit, {}):
            told += page
        return Matches(self._decoder.block(told), int(status["events"]))

    def _pages(self, cursor: int, limit: int | None, how: How) -> Iterator[list[Mapping[str, Any]]]:
        """Matches that the server keeps behind a cursor, at most `limit` in all. `how`: the request's other
        parameters."""
        while limit is None or limit > 0:
            reply = self._wire.call("matches", {"accept": _NDJSON, **how}, query=self.name, after=cursor, limit=limit)
            page = [json.loads(line) for line in reply.content.splitlines()]  # of bytes: a text has more ends of lines
            yield page
            cursor = int(reply.headers["oxiseq-last-id"])
            limit = None if limit is None else limit - len(page)
            if "link" not in reply.headers or not page:
                return

    def __iter__(self) -> Iterator[Match]:
        """`poll()`: the matches behind `cursor`, without end."""
        return self.poll()

    def poll(self, timeout: Duration | None = None) -> Iterator[Match]:
        """The matches behind `cursor`, as they come, at most for `timeout` in all (None: for ever), and then those that
        are there. A server that goes away meanwhile is waited for. Ends when the query is deleted or this object is
        closed, too. Raises CursorError (and the next call continues with what is kept), DamagedBatchError,
        RefusedError, BusyError; UnreachableError if the server does not answer at all within `timeout`."""
        return self._handed_out(self.listened("matches", timeout), timeout is not None)

    def _handed_out(self, events: Iterator[ServerSentEvent], ends: bool) -> Iterator[Match]:
        for event in events:
            if (match := self._match(event)) is not None:
                self.cursor = match.id or 0
                yield match
        if ends and not self.over():
            yield from self._there()

    def _there(self) -> Iterator[Match]:
        """Those behind the cursor that there are now."""
        try:
            last = self._wire.call("getQuery", SOON, query=self.name).json()["matches"]["next"] - 1
            for page in self._pages(self.cursor, max(0, last - self.cursor), SOON):
                for told in page:
                    match = self._decoded(told)
                    self.cursor = match.id or 0
                    yield match
                    if self.over():
                        return
        except CursorError as error:
            self.cursor = error.first - 1
            raise
        except DamagedBatchError as error:
            self.cursor = error.next - 1
            raise
        except UnknownError:
            return

    def _decoded(self, told: Mapping[str, Any]) -> Match:
        """Raises OxiseqError for one of another text; the next call continues after it."""
        try:
            return self._decoder.block([told]).match(0)
        except OxiseqError:
            self.cursor = int(told["id"])
            raise

    def _match(self, event: ServerSentEvent) -> Match | None:
        if event.event == "match":
            return self._decoded(event.json())
        self.told_of_loss(event)
        return None

    async def __aiter__(self) -> AsyncIterator[Match]:
        while not self.over():
            found, cursor, error = await asyncio.to_thread(self._some, self.cursor)
            for match in found:
                self.cursor = match.id or 0  # not there: a thread that nobody waits for any more must not take one
                yield match
            if error is not None:
                self.cursor = cursor
                raise error
            if not found and await asyncio.to_thread(self._known_gone):
                return

    def _some(self, cursor: int) -> tuple[list[Match], int, OxiseqError | None]:
        """The next matches behind a cursor, which stays, or none after a while; its new position, and what of it
        cannot be read."""
        other = ServedQuery(self._wire, self._value)
        other.__dict__["_decoder"] = self._decoder
        other.cursor = cursor
        found: list[Match] = []
        try:
            last = self.match_count
            for match in other.poll(_SLICE):
                found.append(match)
                if len(found) >= 100 or (match.id or 0) >= last:
                    break
        except (UnknownError, UnreachableError):  # deleted, which is checked, or unreachable, which is waited for
            self._closed.wait(AFTER_LOSS)
        except OxiseqError as error:
            return found, other.cursor, None if self.over() else error
        return found, other.cursor, None

    def _known_gone(self) -> bool:
        try:
            return self.over() or self.gone
        except UnreachableError:
            return False

    def subscribe(self, callback: Callable[[Match], object], after: int | None = None) -> CallbackHandle:
        """Call `callback` with each match from now on (with `after`: with greater ids), on a thread of its own, until
        what this returns is closed. Errors of the callback are logged."""
        other = ServedQuery(self._wire, self._value)
        other.cursor = self.match_count if after is None else after
        return other.each(other.poll, callback)

    # --- looking back -----------------------------------------------------------------------------------

    def why(self, since: Time | None = None, until: Time | None = None, limit: int = SHOWN) -> Why:
        """Why it matched and why it did not, over the events that the server keeps; see `oxiseq.Query.why`. Raises
        OxiseqError."""
        asked: dict[str, Any] = {
            name: None if t is None else to_text(to_microseconds(t)) for name, t in (("since", since), ("until", until))
        }
        return why_of(self._wire.call("why", query=self.name, limit=limit, **asked).json())

    def matches_at(self, time: Time, offset: int = 0, limit: int = PAGE) -> Matches:
        """Of the matches that end at `time`, `limit` from the one at `offset` on, over the events that the server
        keeps; see `oxiseq.Query.matches_at`. Raises OxiseqError."""
        page = page_asked(time, offset, limit)
        asked = {"at": to_text(page.at), "offset": str(offset), "limit": limit}
        told = self._wire.call("matchesAt", query=self.name, **asked).json()
        block = self._every_match.block([{**each, "id": 0} for each in told["matches"]])
        return Matches(replace(block, numbers=None), total=int(told["total"]))

    def explain(self) -> str:
        """What it is compiled to."""
        return str(self._wire.call("explainQuery", query=self.name).json()["text"])

    def __repr__(self) -> str:
        return f"<ServedQuery {self.name}: {', '.join(self.variables)}>"


@faced
class ServedStanding(Registered):
    """What `store.register(text, "sparql")` answers; as `StandingQuery`, over the wire. `cursor`: the number of the
    last change that has been returned."""

    def __init__(self, wire: Wire, value: Mapping[str, Any]) -> None:
        super().__init__(wire, value)
        self.text: str = value["text"]
        self.form: Any = value["form"]
        """SELECT, CONSTRUCT or ASK."""
        self.variables: tuple[str, ...] = tuple(value["variables"]) if self.form == "SELECT" else ()

    @property
    def state(self) -> str:
        """`followed`, `asked` or `failed`."""
        return str(self.status["evaluation"] or self.status["state"])

    @property
    def reason(self) -> str:
        """Why it is not followed; empty if it is."""
        return str(self.status["reason"] or "")

    def snapshot(self) -> Snapshot:
        """The answer after all updates made so far; changes up to its number count as returned. Raises
        UnknownError, UnreachableError."""
        kind = RdfFormat.N_TRIPLES if self.form == "CONSTRUCT" else QueryResultsFormat.JSON
        reply = self._wire.call("answer", {"accept": kind.media_type}, query=self.name)
        number, at = int(reply.headers["oxiseq-last-id"]), to_microseconds(reply.headers["oxiseq-at"])
        self.cursor = max(self.cursor, number)
        return Snapshot(self.form, number, at, lambda: self._weighed(reply.content))

    def _weighed(self, body: bytes) -> Weighed:
        if self.form == "CONSTRUCT":
            return [(quad.triple, 1) for quad in parse(body, RdfFormat.N_TRIPLES)]
        found = parse_query_results(body, QueryResultsFormat.JSON)
        if isinstance(found, QueryBoolean):
            return [({}, 1)] if found else []
        names = self.variables
        return [({name: row[name] for name in names}, 1) for row in found]

    def changes(self, after: int | None = None, timeout: Duration | None = None) -> Iterator[StoreChange]:
        """The changes above `after` (None: those not returned yet), as they are made; waits at most `timeout` in all
        (None: for ever). A server that goes away meanwhile is waited for. Raises CursorError: take a new snapshot;
        UnreachableError."""
        if after is not None:
            self.cursor = after
        return self._handed_out(self.listened("changes", timeout), timeout is not None)

    def _handed_out(self, events: Iterator[ServerSentEvent], ends: bool) -> Iterator[StoreChange]:
        parts: list[Mapping[str, Any]] = []
        for event in events:
            if event.event == "change":
                part = event.json()
                if parts and part["id"] <= parts[-1]["id"]:  # a connection has broken off inside of a change
                    parts = []
                parts.append(part)
                if not parts[-1]["more"]:
                    change = self._change(parts)
                    parts, self.cursor = [], change.number
                    yield change
            else:
                parts = []
                self.told_of_loss(event)
        if ends and not self.over():
            with suppress(UnknownError):
                for change in self._there(self.cursor, SOON)[0]:
                    self.cursor = change.number
                    yield change

    def poll(self, timeout: Duration = "0s", *, after: int | None = None) -> list[StoreChange]:
        """Returns all changes above `after` (None: those not returned yet) that updates have made so far; if there are
        none, waits at most `timeout` for the next one. Raises CursorError."""
        seconds = duration(timeout, "timeout") / 1e6
        found, cursor = self._there(self.cursor if after is None else after, {})
        if not found and seconds:
            waiting = ServedStanding(self._wire, self._value)
            found = list(islice(waiting.changes(cursor, timeout), 1))
            cursor = waiting.cursor
        if after is None:
            self.cursor = cursor
        return found

    def _there(self, cursor: int, how: How) -> tuple[list[StoreChange], int]:
        """The changes above a cursor, and its position behind them. `how`: the request's other parameters."""
        found: list[StoreChange] = []
        parts: list[Mapping[str, Any]] = []
        while True:
            reply = self._wire.call("changes", how, query=self.name, after=cursor)
            for told in reply.json()["changes"]:
                parts.append(told)
                if not told["more"]:
                    found.append(self._change(parts))
                    parts = []
            cursor = int(reply.headers["oxiseq-last-id"])
            if "link" not in reply.headers:
                return found, cursor

    def _change(self, parts: list[Mapping[str, Any]]) -> StoreChange:
        last = parts[-1]
        number, at = int(last["id"]), to_microseconds(last["at"])
        if self.form == "ASK":
            return StoreChange("ASK", number, at, 1, lambda: [({}, 1 if last["answer"] else -1)])
        signed = [(row, sign) for part in parts for key, sign in (("removed", -1), ("added", 1)) for row in part[key]]
        return StoreChange(self.form, number, at, len(signed), lambda: [(self._row(row), sign) for row, sign in signed])

    def _row(self, told: Mapping[str, Any]) -> Row:
        if self.form == "CONSTRUCT":
            subject, predicate, object_ = (term_of(told[name]) for name in ("subject", "predicate", "object"))
            return Triple(cast(Any, subject), cast(Any, predicate), object_)
        return {name: term_of(told[name]) if name in told else None for name in self.variables}

    def why(self, limit: int = SHOWN) -> Why:
        """Why it has rows or not, over what the server's knowledge base holds now; see `oxiseq.StandingQuery.why`.
        Raises OxiseqError."""
        return why_of(self._wire.call("why", query=self.name, limit=limit).json())

    def on_change(self, callback: Callable[[StoreChange], object], after: int | None = None) -> CallbackHandle:
        """Call back with each change above `after` (None: from now on), in their order, on a thread of its own, until
        what this returns is closed."""
        other = ServedStanding(self._wire, self._value)
        other.cursor = int(self.status["matches"]["next"]) - 1 if after is None else after
        return other.each(other.changes, callback)

    def __repr__(self) -> str:
        return f"<ServedStanding {self.name}: {self.form}>"
