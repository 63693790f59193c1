"""A continuous query of a served store."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from dataclasses import replace
from functools import cached_property
from typing import Any, Final

from httpx_sse import ServerSentEvent
from pyoxigraph import RdfFormat, Triple

from oxiseq.api.continuous import CallbackHandle
from oxiseq.api.query import Query
from oxiseq.engine.errors import OxiseqError
from oxiseq.engine.events.time import Time, to_microseconds, to_text
from oxiseq.engine.matches.paging import PAGE
from oxiseq.engine.rdf import parse
from oxiseq.grammar.arguments import faced
from oxiseq.journal import CursorError, DamagedBatchError, UnknownError
from oxiseq.languages.reasons.paging import page_asked
from oxiseq.languages.reasons.report import SHOWN, Why
from oxiseq.languages.reasons.told import why_of
from oxiseq.languages.registry import language_named
from oxiseq.matches.match import Match
from oxiseq.matches.matches import Matches
from oxiseq.options.durations import Duration
from oxiseq.options.kinds import whole_number
from oxiseq.served.registered import AFTER_LOSS, SOON, Registered
from oxiseq.served.rows import Decoder
from oxiseq.served.sink import ServedSink
from oxiseq.served.wire import UnreachableError, Wire
from oxiseq.sources.late import LateEvent

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
        self._wire.send("PUT", "queries", self.name, "sinks", name, json=given)
        return ServedSink(self._wire, self.name, name)

    @property
    def sinks(self) -> tuple[ServedSink, ...]:
        """All of them."""
        told = self._wire.send("GET", "queries", self.name, "sinks").json()["sinks"]
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
        told = self._wire.send("GET", "queries", self.name, "late-events", params={"after": self._late_seen}).json()
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

    def _pages(self, cursor: int, limit: int | None, how: Mapping[str, Any]) -> Iterator[list[Mapping[str, Any]]]:
        """Matches that the server keeps behind a cursor, at most `limit` in all. `how`: the request's other
        parameters."""
        while limit is None or limit > 0:
            reply = self._wire.send(
                "GET", "queries", self.name, "matches", params={"after": cursor, "limit": limit}, accept=_NDJSON, **how
            )
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
            last = self._wire.send("GET", "queries", self.name, **SOON).json()["matches"]["next"] - 1
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
        return why_of(self._wire.send("GET", "queries", self.name, "why", params={**asked, "limit": limit}).json())

    def matches_at(self, time: Time, offset: int = 0, limit: int = PAGE) -> Matches:
        """Of the matches that end at `time`, `limit` from the one at `offset` on, over the events that the server
        keeps; see `oxiseq.Query.matches_at`. Raises OxiseqError."""
        page = page_asked(time, offset, limit)
        asked = {"at": to_text(page.at), "offset": str(offset), "limit": limit}
        told = self._wire.send("GET", "queries", self.name, "matches-at", params=asked).json()
        block = self._every_match.block([{**each, "id": 0} for each in told["matches"]])
        return Matches(replace(block, numbers=None), total=int(told["total"]))

    def explain(self) -> str:
        """What it is compiled to."""
        return str(self._wire.send("GET", "queries", self.name, "explanation").json()["text"])

    def __repr__(self) -> str:
        return f"<ServedQuery {self.name}: {', '.join(self.variables)}>"
