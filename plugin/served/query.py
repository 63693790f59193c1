"""A continuous query of a served store."""

from __future__ import annotations

import asyncio
import json
import logging
import math
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from functools import cached_property
from typing import Any, Final

import httpx
from httpx_sse import EventSource, ServerSentEvent

from oxiseq.continuous import Listening
from oxiseq.durations import Duration, duration
from oxiseq.engine.errors import OxiseqError
from oxiseq.engine.events.time import Time, to_microseconds, to_text
from oxiseq.journal import CursorError, DamagedBatchError, UnknownError
from oxiseq.matches.match import Match
from oxiseq.matches.matches import Matches
from oxiseq.query import Query
from oxiseq.served.rows import Decoder
from oxiseq.served.wire import UnreachableError, Wire

LOG: Final = logging.getLogger("oxiseq")
_NDJSON: Final = "application/x-ndjson"
_SILENCE: Final = 8.0
"""Seconds for which nothing may come before the server is asked anew: less than its heartbeat."""
_LAST: Final = 0.05
"""Seconds before the end of a timeout for which nobody listens any more: what has come is asked for then."""
_SOON: Final[Mapping[str, Any]] = {"again": False, "within": 10.0}
"""How that is asked: who waits has waited already."""
_SLICE: Final = 1.0
"""Seconds for which a thread waits at a time for who iterates asynchronously, or is called back."""
_AFTER_LOSS: Final = 0.5
"""Seconds after which a server that has gone is looked for again."""


class ServedQuery:
    """A query that is registered with a served store; what stands in `ContinuousQuery`, over the wire.

    `cursor`: the id of the last match that iteration has handed out; keep it, and set it after a restart of your
    program, to go on behind it. Ids of matches are the server's: the same match has the same one whatever was killed.
    """

    def __init__(self, wire: Wire, value: Mapping[str, Any]) -> None:
        self._wire = wire
        self._first_value = value
        self._closed = threading.Event()
        self.name: str = value["name"]
        self.query = Query.of(value["text"], value["language"])
        """As it was registered."""
        self.reads: tuple[str, ...] = tuple(value["reads"])
        self.feeds: str | None = value["feeds"]
        self.cursor: int = value["matches"]["first"] - 1

    @cached_property
    def _decoder(self) -> Decoder:
        return Decoder(self.query, self.reads)

    # --- facts ----------------------------------------------------------------------------------------

    @property
    def variables(self) -> tuple[str, ...]:
        """The answer's columns, without `?`."""
        return self._decoder.shape.variables

    @property
    def status(self) -> Mapping[str, Any]:
        """All that the server tells of it now: its state, counts, budget, what was set aside. Raises UnknownError."""
        value: Mapping[str, Any] = self._wire.send("GET", "queries", self.name).json()
        return value

    @property
    def found(self) -> int:
        """How many matches it has found."""
        return int(self.status["matches"]["next"]) - 1

    @property
    def events(self) -> int:
        """How many events it has received since the server began."""
        return int(self.status["events"])

    @property
    def late(self) -> int:
        """How many events were late since the server began."""
        return int(self.status["late"])

    @property
    def left_out(self) -> int:
        """How many events were left out because the language cannot take them."""
        return int(self.status["left_out"]["count"])

    @property
    def state(self) -> dict[str, int]:
        """Live records of the running state, by kind."""
        return dict(self.status["records"])

    # --- matches --------------------------------------------------------------------------------------

    def matches(self, since: int = 0, limit: int | None = None) -> Matches:
        """Those found so far whose ids are greater than `since`, at most `limit`; since 0 means: all that are kept.
        Raises CursorError, UnknownError, UnreachableError."""
        status = self.status
        cursor = since or status["matches"]["first"] - 1
        told: list[Mapping[str, Any]] = []
        for page in self._pages(cursor, limit, {}):
            told += page
        return Matches(self._decoder.block(told).ordered(), int(status["events"]))

    def _pages(self, cursor: int, limit: int | None, how: Mapping[str, Any]) -> Iterator[list[Mapping[str, Any]]]:
        """What the server keeps behind a cursor, at most `limit` in all. `how` it is asked."""
        while limit is None or limit > 0:
            reply = self._wire.send("GET", "queries", self.name, "matches", params={"since": cursor, "limit": limit},
                                    accept=_NDJSON, **how)  # fmt: skip
            page = [json.loads(line) for line in reply.content.splitlines()]  # of bytes: a text has more ends of lines
            yield page
            cursor = int(reply.headers["oxiseq-last-id"])
            limit = None if limit is None else limit - len(page)
            if "link" not in reply.headers or not page:
                return

    def __iter__(self) -> Iterator[Match]:
        """`wait()`: the matches behind `cursor`, without end."""
        return self.wait()

    def wait(self, timeout: Duration | None = None) -> Iterator[Match]:
        """The matches behind `cursor`, as they come, at most for `timeout` in all (None: for ever), and then those that
        are there. A server that goes away meanwhile is waited for. Ends when the query is deleted or this object is
        closed, too. Raises CursorError (and the next call goes on with what is kept), DamagedBatchError, RefusedError,
        BusyError; UnreachableError if the server does not answer at all within `timeout`."""
        deadline = None if timeout is None else time.monotonic() + duration(timeout, "timeout") / 1e6
        gone: UnreachableError | None = None
        while not self._over:
            left = math.inf if deadline is None else deadline - time.monotonic()
            if left <= _LAST:
                self._closed.wait(max(0.0, left))
                break
            silence = min(_SILENCE, max(left / 2, _LAST))  # half: one that comes late may be followed by as long again
            try:
                with self._wire.listening("queries", self.name, "matches", params={"since": self.cursor},
                                          patience=silence) as reply:  # fmt: skip
                    gone = None
                    for event in EventSource(reply).iter_sse():
                        if event.event == "end":
                            if not self._lost(event):
                                return
                            break
                        if (match := self._match(event)) is not None:
                            self.cursor = match.id or 0
                            yield match
                        if self._over:
                            return
                        if deadline is not None and deadline - time.monotonic() < silence:
                            break
            except httpx.ReadTimeout:
                pass
            except UnreachableError as error:
                gone = error
                self._closed.wait(_AFTER_LOSS if deadline is None else min(_AFTER_LOSS, left))
            except UnknownError:
                return
        if self._over:
            return
        if gone is not None:
            raise gone
        yield from self._there()

    @property
    def _over(self) -> bool:
        return self._closed.is_set() or self._wire.closed

    def _there(self) -> Iterator[Match]:
        """Those behind the cursor that there are now."""
        try:
            last = self._wire.send("GET", "queries", self.name, **_SOON).json()["matches"]["next"] - 1
            for page in self._pages(self.cursor, max(0, last - self.cursor), _SOON):
                for told in page:
                    match = self._decoded(told)
                    self.cursor = match.id or 0
                    yield match
                    if self._over:
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
        """Raises OxiseqError for one of another text; the next call goes on behind it."""
        try:
            return self._decoder.block([told]).match(0)
        except OxiseqError:
            self.cursor = int(told["id"])
            raise

    def _lost(self, event: ServerSentEvent) -> bool:
        """Whether the server ends its answer, though the query goes on: it is stopping."""
        if event.json().get("reason") == "deleted":
            return False
        self._closed.wait(_AFTER_LOSS)
        return True

    def _match(self, event: ServerSentEvent) -> Match | None:
        if event.event == "match":
            return self._decoded(event.json())
        if not event.data:  # how long to wait before one comes back, which we choose ourselves
            return None
        told = event.json()
        if event.event == "cursor-too-old":
            asked, self.cursor = self.cursor + 1, int(told["first"]) - 1
            raise CursorError(f"matches of {self.name!r}", asked, int(told["first"]))
        if event.event == "damaged":
            self.cursor = int(told["next"]) - 1
            raise DamagedBatchError(f"matches of {self.name!r}", told["first"], told["next"], told["reason"])
        return None

    async def __aiter__(self) -> AsyncIterator[Match]:
        while not self._over:
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
        """The next matches behind a cursor, which stays, or none after a while; where it stands then, and what of it
        cannot be read."""
        other = ServedQuery(self._wire, self._first_value)
        other.__dict__["_decoder"] = self._decoder
        other.cursor = cursor
        found: list[Match] = []
        try:
            last = self.found
            for match in other.wait(f"{int(_SLICE * 1000)}ms"):
                found.append(match)
                if len(found) >= 100 or (match.id or 0) >= last:
                    break
        except (UnknownError, UnreachableError):  # deleted, which is looked at, or away, which is waited for
            self._closed.wait(_AFTER_LOSS)
        except OxiseqError as error:
            return found, other.cursor, None if self._over else error
        return found, other.cursor, None

    def _known_gone(self) -> bool:
        try:
            return self._over or self.gone
        except UnreachableError:
            return False

    @property
    def gone(self) -> bool:
        """Whether it has been deleted."""
        try:
            self._wire.send("GET", "queries", self.name)
        except UnknownError:
            return True
        return False

    def subscribe(self, callback: Callable[[Match], object], since: int | None = None) -> Listening:
        """Call `callback` with each match from now on (with `since`: with greater ids), on a thread of its own, until
        what this returns is closed. Errors of the callback are logged."""
        other = ServedQuery(self._wire, self._first_value)
        other.cursor = self.found if since is None else since

        def work() -> None:
            while not other._closed.is_set() and not self._wire.closed:
                try:
                    for match in other.wait():
                        if other._closed.is_set():
                            return
                        _called(callback, match, self.name)
                    return
                except CursorError as error:
                    LOG.warning("query %s: %s", self.name, error)
                except OxiseqError as error:
                    if not self._wire.closed:
                        LOG.error("query %s: its matches cannot be read; tried again: %s", self.name, error)
                    other._closed.wait(_AFTER_LOSS)

        threading.Thread(target=work, name=f"oxiseq-{self.name}", daemon=True).start()
        return Listening(other.close)

    # --- looking back -----------------------------------------------------------------------------------

    def why(self, since: Time | None = None, until: Time | None = None) -> str:
        """Why it matched and why it did not, over the events that the server keeps, for people. Raises OxiseqError."""
        times = {name: None if t is None else to_text(to_microseconds(t)) for name, t in
                 (("since", since), ("until", until))}  # fmt: skip
        return self._wire.send("GET", "queries", self.name, "why", params=times, accept="text/plain").text

    def explain(self) -> str:
        """What it is compiled to."""
        return str(self._wire.send("GET", "queries", self.name, "explanation").json()["text"])

    # --- its life -------------------------------------------------------------------------------------

    def pause(self) -> None:
        """It sees nothing until `resume`; then it sees what has come meanwhile."""
        self._wire.send("PATCH", "queries", self.name, json={"state": "paused"}, again=True)

    def resume(self) -> None:
        """Go on after a pause or a failure."""
        self._wire.send("PATCH", "queries", self.name, json={"state": "running"}, again=True)

    def delete(self) -> None:
        """Forget it and its matches."""
        self._wire.send("DELETE", "queries", self.name, again=False)
        self.close()

    @property
    def closed(self) -> bool:
        """Whether this object has been closed."""
        return self._closed.is_set()

    def close(self) -> None:
        """End what iterates over this object; the query goes on at the server."""
        self._closed.set()

    def __enter__(self) -> ServedQuery:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<ServedQuery {self.name}: {', '.join(self.variables)}>"


def _called(callback: Callable[[Match], object], match: Match, name: str) -> None:
    try:
        callback(match)
    except Exception:
        LOG.exception("query %s: a callback failed at match %s", name, match.id)
