"""A stream of a served store."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from itertools import chain
from typing import Final

from oxiseq.engine.errors import ArgumentTypeError, OxiseqError
from oxiseq.engine.events.batch import EventBatch
from oxiseq.engine.events.encode import encode_events
from oxiseq.engine.events.report import OnError
from oxiseq.engine.events.time import Time, to_microseconds, to_text
from oxiseq.engine.events.write import quads_text
from oxiseq.engine.flow.epsparql.stamps import with_start
from oxiseq.engine.terms.dictionary import TermDictionary
from oxiseq.grammar.arguments import faced
from oxiseq.mappings.declared import StreamMapping
from oxiseq.mappings.rows import BadRow
from oxiseq.options.kinds import whole_number
from oxiseq.pictures.tables import html_table
from oxiseq.served.long_push import LongPush, NoSocketError
from oxiseq.served.wire import Wire, check_name
from oxiseq.sources.ignored import warn_of_late
from oxiseq.sources.sources import EventLike, Events, Row, batches_of, check_events, row_event

_N_QUADS: Final = "application/n-quads"


@faced
class ServedStream:
    """Get it by `store.stream(iri)`. What `push` and `extend` return from is durable. Each push has a key, and each
    `extend` a session, so that what is sent again after a broken connection is stored once."""

    def __init__(self, iri: str, wire: Wire) -> None:
        self.iri = iri
        self._wire = wire
        self.rejected = 0
        """How many rows this program had left out (`extend` with `on_error="skip"`)."""

    @property
    def events(self) -> int:
        """How many events were pushed."""
        return int(self._wire.send("GET", "streams", self.iri).json()["next"])

    def push(
        self, graph: EventLike, time: Time | None = None, start: Time | None = None, *, key: str | None = None
    ) -> None:
        """Push one event, as `Stream.push`. `key`: the event's own name, at most 200 ASCII characters: another push
        under it changes nothing, so that a program that was killed may push again what it had no answer for. Raises
        EventError, ConflictError for another event under the same key, BusyError, FullError, UnreachableError."""
        if key is not None:
            check_name(key, "key")
        if isinstance(graph, Mapping):
            if start is not None:
                raise ArgumentTypeError("a row has no start: push its graph")
            self._push_row(graph, time, key)
            return
        if time is None:
            raise ArgumentTypeError("time: say when the event happened")
        terms = TermDictionary()
        pair = time, graph if start is None else with_start(graph, start)
        self._send(encode_events((pair,), terms), terms, key)

    async def push_async(
        self, graph: EventLike, time: Time | None = None, start: Time | None = None, *, key: str | None = None
    ) -> None:
        """`push`, while other tasks continue."""
        await asyncio.to_thread(self.push, graph, time, start, key=key)

    def _push_row(self, row: Row, time: Time | None, key: str | None) -> None:
        """By the mapping that the stream has now. Raises EventError."""
        terms = TermDictionary()
        self._send(row_event(row, self.mapping, time, terms), terms, key)

    @property
    def mapping(self) -> StreamMapping | None:
        """What rows that are pushed mean, as the stream has it now; None: they are not taken."""
        given = self._wire.send("GET", "streams", self.iri).json().get("mapping")
        return None if given is None else StreamMapping(given)

    def extend(self, events: Events, on_error: OnError = "stop", *, session: str | None = None) -> int:
        """Push the events of a file, (graph, time) pairs or rows, as `Stream.extend`; how many. All of them are durable
        when it returns. Where it raises while it reads, whole groups of some thousand that it read before are.

        Over a WebSocket, where the server takes one: it acknowledges events while more are sent, and after a broken
        connection gets what it has not stored. `session`: the name, at most 200 visible ASCII characters, under which
        it remembers for a day how many events of this source it has. A program that was killed calls this again with
        the same name and the same events: those that are stored are skipped, and counted.

        Raises as `push` does; OxiseqError for a `session` where there is no WebSocket."""
        check_events(events)
        if session is not None:
            check_name(session, "session")
        terms = TermDictionary()
        batches = batches_of(events, terms, on_error, mapping=self.mapping, bad=self._reject)
        first = next(batches, None)
        if first is None:
            return 0
        if self._wire.sockets:
            push = LongPush(self._wire, self.iri, secrets.token_hex(16) if session is None else session)
            with suppress(NoSocketError):
                count = push.send(quads_text(_collected(chain((first,), batches), terms), terms))
                warn_of_late(push.counts["late"], count)
                return count
        if session is not None:
            raise OxiseqError("session: it needs a server that takes WebSockets, and the package websockets here")
        count = late = 0
        for batch in _collected(chain((first,), batches), terms):
            count, late = count + len(batch), late + self._send(batch, terms, None)
        warn_of_late(late, count)
        return count

    async def extend_async(self, events: Events, on_error: OnError = "stop", *, session: str | None = None) -> int:
        """`extend`, while other tasks continue. It continues itself when its task is cancelled."""
        return await asyncio.to_thread(self.extend, events, on_error, session=session)

    def _reject(self, row: BadRow) -> None:
        self.rejected += 1

    def _send(self, batch: EventBatch, terms: TermDictionary, key: str | None) -> int:
        """Store it; how many were late. Raises OxiseqError for an event that the server cannot take."""
        if not len(batch):
            return 0
        body = "".join(quads_text([batch], terms)).encode()
        told = self._wire.send(
            "POST", "streams", self.iri, content=body, kind=_N_QUADS, key=secrets.token_hex(16) if key is None else key
        ).json()
        if told["rejected"]:
            raise OxiseqError(f"{told['rejected']} events are not stored: {told['reasons'][0]['reason']}")
        return int(told["late"] or 0)

    def retain(self, events: int) -> None:
        """Keep the newest so many events, however old they are. Raises ArgumentValueError for less than none."""
        self._wire.send("PUT", "streams", self.iri, json={"retention": {"count": whole_number(events, "events")}})

    def advance(self, time: Time) -> None:
        """Advances the watermark (punctuation): no event before `time` will come; if one does, it is late."""
        at = to_text(to_microseconds(time))
        self._wire.send("POST", "streams", self.iri, params={"watermark": at}, again=True)

    def _repr_html_(self) -> str:
        return html_table(self.iri, [("events", f"{self.events:,}")])

    def __repr__(self) -> str:
        return f"<ServedStream {self.iri}>"


def _collected(batches: Iterable[EventBatch], terms: TermDictionary) -> Iterator[EventBatch]:
    """Batches, after each of which terms that nobody needs any more are forgotten."""
    for batch in batches:
        yield batch
        terms.collect_if_due()
