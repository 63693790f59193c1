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
from typing import Any, ClassVar, Final, Generic, TypeVar, cast

import httpx
from httpx_sse import EventSource, ServerSentEvent
from pyoxigraph import QueryBoolean, QueryResultsFormat, RdfFormat, Triple, parse_query_results

from oxiseq.api.continuous import AFTER_LOSS, RESUME, Reader
from oxiseq.api.query import Query
from oxiseq.api.standing.query import Form, Row, Snapshot, StandingExplanation, StoreChange, Weighed
from oxiseq.engine.errors import OxiseqError
from oxiseq.engine.events.time import Time, to_microseconds, to_text
from oxiseq.engine.matches.paging import Page
from oxiseq.engine.rdf import parse
from oxiseq.journal import CursorError, DamagedBatchError, UnknownError
from oxiseq.languages.reasons.report import Why
from oxiseq.languages.reasons.report import why_from_json as why_of
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


class ServedRegistered(Generic[T]):
    """A registered query in a folder or at a server, by its name, and the things that it emits. See
    `RegisteredBackend`."""

    what: ClassVar[str]
    """The operation that lists them."""

    def __init__(self, wire: Wire, value: Mapping[str, Any]) -> None:
        self._wire = wire
        self.name: str = value["name"]

    def taken(self, parts: list[Mapping[str, Any]], told: Mapping[str, Any], reader: Reader) -> Iterator[T]:
        """The thing that this is, or is the last part of, and the reader's cursor behind it; none where more of it
        follows `parts`. Raises OxiseqError for what cannot be read."""
        raise NotImplementedError

    def page(self, cursor: int, limit: int | None, how: How) -> tuple[httpx.Response, list[Mapping[str, Any]]]:
        """What there is behind a cursor, at most `limit`."""
        raise NotImplementedError

    def left(self, reader: Reader) -> int | None:
        """How many things are behind the reader's cursor now; None: all that come."""
        return None

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

    # --- things ---------------------------------------------------------------------------------------

    def following(self, reader: Reader, seconds: float | None, idle: object = None) -> Iterator[T]:
        """As they come, at most for so long in all, and then those that are there. Ends when the query is deleted, or
        the reader or the store is closed. Raises RefusedError, BusyError; CursorError, DamagedBatchError, with the
        cursor behind what is lost; UnreachableError if the server does not answer at all within that time."""
        return self._following(reader, None if seconds is None else time.monotonic() + seconds)

    def _following(self, reader: Reader, deadline: float | None) -> Iterator[T]:
        parts: list[Mapping[str, Any]] = []
        for told in self._listened(reader, deadline):
            yield from self.taken(parts, told, reader)
        if deadline is not None and not self.over(reader):
            with suppress(UnknownError):
                for each in self.there(reader, self.left(reader), SOON):
                    yield each
                    if self.over(reader):
                        return

    def there(self, reader: Reader, limit: int | None, how: How) -> Iterator[T]:
        """Those behind the reader's cursor that there are now. `how`: the requests' other parameters."""
        parts: list[Mapping[str, Any]] = []
        try:
            for page in self.pages(reader.cursor, limit, how):
                for told in page:
                    yield from self.taken(parts, told, reader)
        except CursorError as error:
            reader.cursor = error.first - 1
            raise
        except DamagedBatchError as error:
            reader.cursor = error.next - 1
            raise

    def pages(self, cursor: int, limit: int | None, how: How) -> Iterator[list[Mapping[str, Any]]]:
        """What the server keeps behind a cursor, at most `limit` in all."""
        while limit is None or limit > 0:
            reply, page = self.page(cursor, limit, how)
            yield page
            cursor = int(reply.headers["oxiseq-last-id"])
            limit = None if limit is None else limit - len(page)
            if "link" not in reply.headers or not page:
                return

    def subscribe(self, callback: Callable[[T], object], after: int | None) -> Callable[[], object]:
        """On a thread of its own; errors of the callback are logged."""
        reader = Reader(self.status["matches"]["next"] - 1 if after is None else after)

        def work() -> None:
            while not self.over(reader):
                try:
                    for each in self._following(reader, None):
                        if reader.closed:
                            return
                        _called(callback, each, self.name)
                    return
                except CursorError as error:
                    LOG.warning("query %s: %s", self.name, error)
                except OxiseqError as error:
                    if not self._wire.closed:
                        LOG.error("query %s cannot be read; tried again: %s", self.name, error)
                    reader.rest(AFTER_LOSS)

        threading.Thread(target=work, name=f"oxiseq-{self.name}", daemon=True).start()
        return reader.close

    def _listened(self, reader: Reader, deadline: float | None) -> Iterator[Mapping[str, Any]]:
        """What server-sent events say, whatever becomes of the connection."""
        gone: UnreachableError | None = None
        while not self.over(reader):
            left = math.inf if deadline is None else deadline - time.monotonic()
            if left <= _LAST:
                reader.rest(left)
                break
            silence = min(_SILENCE, max(left / 2, _LAST))  # half: one that comes late may be followed by as long again
            try:
                with self._wire.listening(self.what, silence, query=self.name, after=reader.cursor) as reply:
                    gone = None
                    for event in EventSource(reply).iter_sse():
                        if event.event == "end":
                            if event.json().get("reason") == "deleted":
                                return
                            reader.rest(AFTER_LOSS)  # the server is stopping
                            break
                        if event.data:  # else it says how long to wait before one comes back, which we choose
                            yield self._told(event, reader)
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

    def _told(self, event: ServerSentEvent, reader: Reader) -> Mapping[str, Any]:
        """Raises the error for deleted matches that an event reports, and puts the cursor behind them."""
        told: Mapping[str, Any] = event.json()
        if event.event == "cursor-too-old":
            asked, reader.cursor = reader.cursor + 1, int(told["first"]) - 1
            raise CursorError(f"what {self.name!r} has emitted", asked, int(told["first"]))
        if event.event == "damaged":
            reader.cursor = int(told["next"]) - 1
            raise DamagedBatchError(f"what {self.name!r} has emitted", told["first"], told["next"], told["reason"])
        return told


def _called(callback: Callable[[T], object], thing: T, name: str) -> None:
    try:
        callback(thing)
    except Exception:
        LOG.exception("query %s: a callback failed at %r", name, thing)


_NDJSON: Final = "application/x-ndjson"


def _graph(text: str) -> tuple[Triple, ...]:
    return tuple(quad.triple for quad in parse(text, RdfFormat.N_TRIPLES))


class ServedQuery(ServedRegistered[Match]):
    """A continuous query in a folder or at a server. See `QueryBackend`. Ids of matches are the server's: the same
    match has the same one whatever was killed."""

    what = "matches"

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
    def counts(self) -> Mapping[str, Any]:
        """All of it: it is one request."""
        return self.status

    @property
    def sinks(self) -> tuple[str, ...]:
        """The names of its sinks."""
        return tuple(each["id"] for each in self.ask("listSinks")["sinks"])

    @property
    def open(self) -> None:
        """A server does not say."""
        return None

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
        for page in self.pages(cursor, limit, {}):
            told += page
        return Matches(self._decoder.block(told), int(status["events"]))

    def page(self, cursor: int, limit: int | None, how: How) -> tuple[httpx.Response, list[Mapping[str, Any]]]:
        """Matches behind a cursor."""
        reply = self._wire.call("matches", {"accept": _NDJSON, **how}, query=self.name, after=cursor, limit=limit)
        return reply, [
            json.loads(line) for line in reply.content.splitlines()
        ]  # of bytes: a text has more ends of lines

    def left(self, reader: Reader) -> int:
        """How many matches are behind the reader's cursor now: later ones may come without end."""
        last: int = self.ask("getQuery", SOON)["matches"]["next"] - 1
        return max(0, last - reader.cursor)

    def taken(self, parts: object, told: Mapping[str, Any], reader: Reader) -> Iterator[Match]:
        """A match. Raises OxiseqError for one of another text, which the query had before."""
        reader.cursor = int(told["id"])
        yield self._decoder.block([told]).match(0)

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


class ServedStanding(ServedRegistered[StoreChange]):
    """A standing query in a folder or at a server. See `StandingBackend`."""

    what = "changes"

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

    def changes(self, reader: Reader, wait: bool) -> list[StoreChange]:
        """Those that there are."""
        return list(self.there(reader, None, {}))

    def page(self, cursor: int, limit: int | None, how: How) -> tuple[httpx.Response, list[Mapping[str, Any]]]:
        """Parts of changes behind a cursor."""
        reply = self._wire.call("changes", how, query=self.name, after=cursor)
        return reply, reply.json()["changes"]

    def taken(self, parts: list[Mapping[str, Any]], told: Mapping[str, Any], reader: Reader) -> Iterator[StoreChange]:
        """A change, when its last part has come."""
        if parts and told["id"] <= parts[-1]["id"]:  # a connection has broken off inside of a change
            parts.clear()
        parts.append(told)
        if not told["more"]:
            change = self._change([*parts])
            parts.clear()
            reader.cursor = change.number
            yield change

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

    def explain(self) -> StandingExplanation:
        """As the server says it."""
        return StandingExplanation.from_json(self.ask("explainQuery")["explanation"])

    def why(self, limit: int) -> Why:
        """Over what the server's knowledge base holds now."""
        return why_of(self.ask("why", limit=limit))

    def catch_up(self) -> None:
        """A snapshot is made of all earlier updates."""
        self.ask("answer")

    def restart(self) -> None:
        """One that has failed continues."""
        self.ask("changeQuery", RESUME)
