"""Registered queries of a served store: the client's side of `ContinuousQuery` and `StandingQuery`."""

from __future__ import annotations

import json
import logging
import math
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from functools import cached_property
from typing import Any, Final, TypeVar, cast

import httpx
from httpx_sse import EventSource, ServerSentEvent
from pyoxigraph import QueryBoolean, QueryResultsFormat, RdfFormat, Triple, parse_query_results

from oxiseq.api.continuous import AFTER_LOSS, Reader
from oxiseq.api.query import Query
from oxiseq.api.standing.query import NO_WHY, Form, Row, Snapshot, StandingExplanation, StoreChange, Weighed
from oxiseq.engine.errors import OxiseqError
from oxiseq.engine.events.time import Time, to_microseconds, to_text
from oxiseq.engine.matches.paging import Page
from oxiseq.engine.rdf import parse
from oxiseq.journal import CursorError, DamagedBatchError, UnknownError
from oxiseq.languages.reasons.report import Why
from oxiseq.languages.reasons.told import why_of
from oxiseq.languages.registry import language_named
from oxiseq.matches.match import Match
from oxiseq.matches.matches import Matches
from oxiseq.served.rows import Decoder, term_of
from oxiseq.served.wire import NOTHING, ONCE, How, UnreachableError, Wire
from oxiseq.sources.warned import LateEvent

LOG: Final = logging.getLogger("oxiseq")
T = TypeVar("T")
_SILENCE: Final = 8.0
"""Seconds for which nothing may come before the server is queried again: less than its heartbeat."""
_LAST: Final = 0.05
"""Seconds before the end of a timeout for which nobody listens any more."""
SOON: Final[How] = {"again": False, "within": 10.0}
"""How to call a server after waiting already."""


class ServedRegistered:
    """A registered query in a folder or at a server, by its name. See `RegisteredBackend`."""

    def __init__(self, wire: Wire, value: Mapping[str, Any]) -> None:
        self._wire = wire
        self.name: str = value["name"]

    @property
    def status(self) -> Mapping[str, Any]:
        """All that the server says of it now: its state, counts, budget, what was quarantined."""
        value: Mapping[str, Any] = self.ask("getQuery")
        return value

    def ask(self, operation: str, how: How = NOTHING, /, **given: Any) -> Any:
        """The answer to an operation about it."""
        reply = self._wire.call(operation, how, query=self.name, **given)
        return reply.json() if reply.content else None

    def delete(self) -> None:
        """It is forgotten at the server."""
        self.ask("deleteQuery", ONCE)

    def close(self) -> None:
        """It continues at the server."""

    @property
    def closed(self) -> bool:
        """Whether the store is closed."""
        return self._wire.closed

    def ended(self, reader: Reader) -> bool:
        """Whether its reader is closed, or it has been deleted."""
        try:
            if not self.over(reader):
                self.ask("getQuery")
        except UnreachableError:
            return False
        except UnknownError:
            return True
        return self.over(reader)

    def over(self, reader: Reader) -> bool:
        """Whether a reader, or the store, is closed."""
        return reader.closed or self._wire.closed

    # --- events ---------------------------------------------------------------------------------------

    def listened(self, what: str, reader: Reader, seconds: float | None) -> Iterator[ServerSentEvent]:
        """Server-sent events of `what` behind the reader's cursor, whatever becomes of the connection, at most for so
        long in all. Ends when the query is deleted, or the reader or the store is closed. Raises RefusedError,
        BusyError; UnreachableError if the server does not answer at all within that time."""
        return self._listened(what, reader, None if seconds is None else time.monotonic() + seconds)

    def _listened(self, what: str, reader: Reader, deadline: float | None) -> Iterator[ServerSentEvent]:
        gone: UnreachableError | None = None
        while not self.over(reader):
            left = math.inf if deadline is None else deadline - time.monotonic()
            if left <= _LAST:
                reader.rest(left)
                break
            silence = min(_SILENCE, max(left / 2, _LAST))  # half: one that comes late may be followed by as long again
            try:
                with self._wire.listening(what, silence, query=self.name, after=reader.cursor) as reply:
                    gone = None
                    for event in EventSource(reply).iter_sse():
                        if event.event == "end":
                            if event.json().get("reason") == "deleted":
                                return
                            reader.rest(AFTER_LOSS)  # the server is stopping
                            break
                        if event.data:  # else it says how long to wait before one comes back, which we choose
                            yield event
                        if self.over(reader):
                            return
                        if deadline is not None and deadline - time.monotonic() < silence:
                            break
            except httpx.ReadTimeout:
                pass
            except UnreachableError as error:
                gone = error
                reader.rest(min(AFTER_LOSS, left))
            except UnknownError:
                return
        if gone is not None and not self.over(reader):
            raise gone

    def told_of_loss(self, event: ServerSentEvent, reader: Reader) -> None:
        """Raises the error for deleted matches that an event reports, and puts the cursor behind them."""
        told = event.json()
        if event.event == "cursor-too-old":
            asked, reader.cursor = reader.cursor + 1, int(told["first"]) - 1
            raise CursorError(f"what {self.name!r} has emitted", asked, int(told["first"]))
        if event.event == "damaged":
            reader.cursor = int(told["next"]) - 1
            raise DamagedBatchError(f"what {self.name!r} has emitted", told["first"], told["next"], told["reason"])

    def each(
        self, reader: Reader, things: Callable[[], Iterator[T]], callback: Callable[[T], object]
    ) -> Callable[[], object]:
        """Call back with each thing on a thread of its own, until the reader is closed. Errors are logged."""

        def work() -> None:
            while not self.over(reader):
                try:
                    for thing in things():
                        if reader.closed:
                            return
                        _called(callback, thing, self.name)
                    return
                except CursorError as error:
                    LOG.warning("query %s: %s", self.name, error)
                except OxiseqError as error:
                    if not self._wire.closed:
                        LOG.error("query %s cannot be read; tried again: %s", self.name, error)
                    reader.rest(AFTER_LOSS)

        threading.Thread(target=work, name=f"oxiseq-{self.name}", daemon=True).start()
        return reader.close


def _called(callback: Callable[[T], object], thing: T, name: str) -> None:
    try:
        callback(thing)
    except Exception:
        LOG.exception("query %s: a callback failed at %r", name, thing)


_NDJSON: Final = "application/x-ndjson"


def _graph(text: str) -> tuple[Triple, ...]:
    return tuple(quad.triple for quad in parse(text, RdfFormat.N_TRIPLES))


class ServedQuery(ServedRegistered):
    """A continuous query in a folder or at a server. See `QueryBackend`. Ids of matches are the server's: the same
    match has the same one whatever was killed."""

    def __init__(self, wire: Wire, value: Mapping[str, Any]) -> None:
        super().__init__(wire, value)
        self.query = Query.of(value["text"], value["language"])
        self._reads: tuple[str, ...] = tuple(value["reads"])
        self._late_seen = 0

    @cached_property
    def _decoder(self) -> Decoder:
        return Decoder(self.query, self._reads)

    @cached_property
    def _every_match(self) -> Decoder:
        """Of the query's single matches, whatever groups it makes of them."""
        spoken = language_named(self.query.language)
        text = spoken.syntax.render(spoken.every_match(self.query.algebra))
        return Decoder(Query.of(text, self.query.language), self._reads)

    @property
    def variables(self) -> tuple[str, ...]:
        """The answer's columns."""
        return self._decoder.shape.variables

    @property
    def sinks(self) -> tuple[str, ...]:
        """The names of its sinks."""
        return tuple(each["id"] for each in self.ask("listSinks")["sinks"])

    def late_events(self) -> list[LateEvent]:
        """Since the last call: the newest 1,000 since the server began."""
        told = self.ask("listLateEvents", after=self._late_seen)
        self._late_seen = int(told["last"])
        return [
            LateEvent(each["stream"], to_microseconds(each["time"]), _graph(each["graph"]))
            for each in told["late_events"]
        ]

    # --- matches --------------------------------------------------------------------------------------

    def matches(self, after: int, limit: int | None) -> Matches:
        """Those found so far."""
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

    def following(self, reader: Reader, seconds: float | None, idle: object) -> Iterator[Match]:
        """As they come, and then those that are there."""
        return self._handed_out(reader, self.listened("matches", reader, seconds), seconds is not None)

    def _handed_out(self, reader: Reader, events: Iterator[ServerSentEvent], ends: bool) -> Iterator[Match]:
        for event in events:
            if event.event == "match":
                yield self._decoded(event.json(), reader)
            else:
                self.told_of_loss(event, reader)
        if ends and not self.over(reader):
            yield from self._there(reader)

    def _there(self, reader: Reader) -> Iterator[Match]:
        """Those behind the cursor that there are now."""
        try:
            last = self.ask("getQuery", SOON)["matches"]["next"] - 1
            for page in self._pages(reader.cursor, max(0, last - reader.cursor), SOON):
                for told in page:
                    yield self._decoded(told, reader)
                    if self.over(reader):
                        return
        except CursorError as error:
            reader.cursor = error.first - 1
            raise
        except DamagedBatchError as error:
            reader.cursor = error.next - 1
            raise
        except UnknownError:
            return

    def _decoded(self, told: Mapping[str, Any], reader: Reader) -> Match:
        """The cursor is put behind it. Raises OxiseqError for one of another text."""
        reader.cursor = int(told["id"])
        return self._decoder.block([told]).match(0)

    def subscribe(self, callback: Callable[[Match], object], after: int | None) -> Callable[[], object]:
        """On a thread of its own; errors of the callback are logged."""
        reader = Reader(self.status["matches"]["next"] - 1 if after is None else after)
        return self.each(reader, lambda: self.following(reader, None, None), callback)

    # --- looking back -----------------------------------------------------------------------------------

    def why(self, since: Time | None, until: Time | None, limit: int) -> Why:
        """Over the events that the server keeps."""
        asked: dict[str, Any] = {
            name: None if t is None else to_text(to_microseconds(t)) for name, t in (("since", since), ("until", until))
        }
        return why_of(self.ask("why", limit=limit, **asked))

    def matches_at(self, page: Page) -> Matches:
        """Over the events that the server keeps."""
        told = self.ask("matchesAt", at=to_text(page.at), offset=str(page.offset), limit=page.size)
        block = self._every_match.block([{**each, "id": 0} for each in told["matches"]])
        return Matches(replace(block, numbers=None), total=int(told["total"]))


class ServedStanding(ServedRegistered):
    """A standing query in a folder or at a server. See `StandingBackend`."""

    def __init__(self, wire: Wire, value: Mapping[str, Any]) -> None:
        super().__init__(wire, value)
        self._form: Form = value["form"]
        self._variables: tuple[str, ...] = tuple(value["variables"])

    def snapshot(self, wait: bool) -> Snapshot:
        """The answer after all updates made so far."""
        kind = RdfFormat.N_TRIPLES if self._form == "CONSTRUCT" else QueryResultsFormat.JSON
        reply = self._wire.call("answer", {"accept": kind.media_type}, query=self.name)
        number, at = int(reply.headers["oxiseq-last-id"]), to_microseconds(reply.headers["oxiseq-at"])
        return Snapshot(self._form, number, at, lambda: self._weighed(reply.content))

    def _weighed(self, body: bytes) -> Weighed:
        if self._form == "CONSTRUCT":
            return [(quad.triple, 1) for quad in parse(body, RdfFormat.N_TRIPLES)]
        found = parse_query_results(body, QueryResultsFormat.JSON)
        if isinstance(found, QueryBoolean):
            return [({}, 1)] if found else []
        names = self._variables
        return [({name: row[name] for name in names}, 1) for row in found]

    def following(self, reader: Reader, seconds: float | None) -> Iterator[StoreChange]:
        """As they are made, and then those that are there."""
        return self._handed_out(reader, self.listened("changes", reader, seconds), seconds is not None)

    def _handed_out(self, reader: Reader, events: Iterator[ServerSentEvent], ends: bool) -> Iterator[StoreChange]:
        parts: list[Mapping[str, Any]] = []
        for event in events:
            if event.event == "change":
                part = event.json()
                if parts and part["id"] <= parts[-1]["id"]:  # a connection has broken off inside of a change
                    parts = []
                parts.append(part)
                if not parts[-1]["more"]:
                    change = self._change(parts)
                    parts, reader.cursor = [], change.number
                    yield change
            else:
                parts = []
                self.told_of_loss(event, reader)
        if ends and not self.over(reader):
            with suppress(UnknownError):
                for change in self._there(reader.cursor, SOON)[0]:
                    reader.cursor = change.number
                    yield change

    def changes(self, reader: Reader, wait: bool) -> list[StoreChange]:
        """Those that there are."""
        found, reader.cursor = self._there(reader.cursor, {})
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
        if self._form == "ASK":
            return StoreChange("ASK", number, at, 1, lambda: [({}, 1 if last["answer"] else -1)])
        signed = [(row, sign) for part in parts for key, sign in (("removed", -1), ("added", 1)) for row in part[key]]
        count = len(signed)
        return StoreChange(self._form, number, at, count, lambda: [(self._row(row), sign) for row, sign in signed])

    def _row(self, told: Mapping[str, Any]) -> Row:
        if self._form == "CONSTRUCT":
            subject, predicate, object_ = (term_of(told[name]) for name in ("subject", "predicate", "object"))
            return Triple(cast(Any, subject), cast(Any, predicate), object_)
        return {name: term_of(told[name]) if name in told else None for name in self._variables}

    def subscribe(self, callback: Callable[[StoreChange], object], after: int | None) -> Callable[[], object]:
        """On a thread of its own; errors of the callback are logged."""
        reader = Reader(self.status["matches"]["next"] - 1 if after is None else after)
        return self.each(reader, lambda: self.following(reader, None), callback)

    def explain(self) -> StandingExplanation:
        """As the server says it."""
        return StandingExplanation.from_json(self.ask("explainQuery")["explanation"])

    def why(self, limit: int) -> Why:
        """Raises OxiseqError: the store is elsewhere."""
        raise OxiseqError(NO_WHY)

    def catch_up(self) -> None:
        """A snapshot is made of all earlier updates."""
        self.ask("answer")

    def restart(self) -> None:
        """One that has failed continues."""
        self.ask("changeQuery", {"json": {"state": "running"}, "again": True})
