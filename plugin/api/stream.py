"""A stream of events, wherever it is: in memory (feed.py), in a folder or at a server (served/stream.py).

In the flow: what a user pushes → **coded** in the terms of the place where the stream is → that place.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import AbstractContextManager
from typing import Any, Protocol

from oxiseq.engine.events.batch import EventBatch
from oxiseq.engine.events.report import OnError
from oxiseq.engine.events.time import Time, to_microseconds
from oxiseq.engine.terms.dictionary import TermDictionary
from oxiseq.grammar.arguments import internal, public
from oxiseq.mappings.declared import StreamMapping
from oxiseq.mappings.rows import BadRow
from oxiseq.options.kinds import check_sendable, whole_number
from oxiseq.pictures.timeline import html_table
from oxiseq.sources.sources import EventLike, Events, batches_of, check_events, pushed_event
from oxiseq.sources.warned import warn_of_late


class StreamBackend(Protocol):
    """The place where a stream is."""

    @property
    def lock(self) -> AbstractContextManager[Any, Any]:
        """Held while events are coded and pushed: a dictionary that others use is for one thread at a time."""

    @property
    def terms(self) -> TermDictionary:
        """What the next events are to be coded in."""

    @property
    def events(self) -> int:
        """How many events were pushed."""

    @property
    def mapping(self) -> StreamMapping | None:
        """What pushed rows mean."""

    def push(self, batch: EventBatch, terms: TermDictionary, key: str | None) -> object:
        """Take events that are coded in `terms`, under a key once. Raises ConflictError for others under that key."""

    def extend(self, batches: Iterator[EventBatch], terms: TermDictionary, session: str | None) -> tuple[int, int]:
        """Take batch after batch, as they are read; how many events they have, and how many of these were late. Raises
        OxiseqError for a session where there is none."""

    def retain(self, events: int) -> None:
        """Keep the newest so many events."""

    def punctuate(self, until: int) -> None:
        """No event before `until` (µs) will come."""


@public
class Stream:
    """A stream of a store. Get it by `store.stream(iri)`; events go to every query that reads it. In a folder and at a
    server what `push` and `extend` return from is durable, and what is sent again after a broken connection is stored
    once.

    >>> import oxiseq
    >>> text = '''PREFIX : <http://example.org/>
    ... SELECT ?who ?paid FROM STREAM S <http://example.org/payments>
    ... WHERE { SEQ(A) DEFINE GPM A ON S { ?who :paid ?paid } }'''
    >>> payment = "<http://example.org/ann> <http://example.org/paid> 5 ."
    >>> store = oxiseq.Store()
    >>> query = store.register(text)
    >>> stream = store.stream("http://example.org/payments")
    >>> stream.push(payment, 1_000_000)
    >>> stream.advance(2_000_000)
    >>> stream.events, len(query.matches())
    (1, 1)
    """

    def __init__(self, iri: str, backend: StreamBackend) -> None:
        self.iri = iri
        self.rejected = 0
        """How many rows this object skipped (`extend` with `on_error="skip"`)."""
        self._backend = backend

    @property
    def events(self) -> int:
        """How many events were pushed."""
        return self._backend.events

    @property
    def mapping(self) -> StreamMapping | None:
        """What pushed rows mean, as the stream has it now; None: rows are refused. `store.stream(iri, mapping=)` sets
        it."""
        return self._backend.mapping

    def push(
        self, graph: EventLike, time: Time | None = None, start: Time | None = None, *, key: str | None = None
    ) -> None:
        """Push one event: an rdflib.Graph, pyoxigraph triples, or RDF text; `time` as datetime, ISO 8601 text or
        int µs. `start`: when it began, for EP-SPARQL queries. Or a row (a dict), if the stream has a mapping, which
        names the column of its time. `key`: the event's own name, at most 200 ASCII characters: another push under it
        changes nothing, so that a program that was killed may push again what it had no answer for.

        An instant is complete when a later event, `advance` or `close` has passed it; until then a second
        graph of the same time is merged. An event older than the watermark is late: counted by each query
        (`query.late_count`) and returned by `query.drain_late_events()`. Raises EventError for what is not RDF,
        ConflictError for another event under the same key; from elsewhere BusyError, FullError, UnreachableError.
        """
        backend = self._backend
        with backend.lock:
            if key is None:
                terms = backend.terms
            else:
                check_sendable(key, "key")
                terms = TermDictionary()  # where equal events are coded alike
            backend.push(pushed_event(graph, time, start, lambda: backend.mapping, terms), terms, key)

    async def push_async(
        self, graph: EventLike, time: Time | None = None, start: Time | None = None, *, key: str | None = None
    ) -> None:
        """`push`, while other tasks continue."""
        await asyncio.to_thread(self.push, graph, time, start, key=key)

    def extend(self, events: Events, on_error: OnError = "stop", *, session: str | None = None) -> int:
        """Push the events of a file (N-Quads, TriG, RDF Messages, Jelly, an event table), or (graph, time) pairs of a
        list or a generator, in their order; how many. (time, graph) works, too. They are pushed some thousand at a
        time: all of a part or, if one cannot be read, none. With a mapping also rows: dicts, a DataFrame,
        Arrow, a file of CSV, JSON Lines or Parquet. `on_error="skip"` skips malformed events of files and bad
        rows, which `rejected` counts.

        To a server they go over a WebSocket, where it takes one: it acknowledges events while more are sent, and after
        a broken connection gets what it has not stored. `session`: the name, at most 200 visible ASCII characters,
        under which it remembers for a day how many events of this source it has. A program that was killed calls this
        again with the same name and the same events: those that are stored are skipped, and counted.

        Raises EventError, and what `push` raises; OxiseqError for a `session` where there is no WebSocket."""
        check_events(events)
        if session is not None:
            check_sendable(session, "session")
        backend = self._backend
        with backend.lock:
            terms = backend.terms
            batches = batches_of(events, terms, on_error, mapping=backend.mapping, bad=self._reject)
            count, late = backend.extend(batches, terms, session)
        warn_of_late(late, count)
        return count

    async def extend_async(self, events: Events, on_error: OnError = "stop", *, session: str | None = None) -> int:
        """`extend`, while other tasks continue. It continues itself when its task is cancelled."""
        return await asyncio.to_thread(self.extend, events, on_error, session=session)

    def _reject(self, row: BadRow) -> None:
        self.rejected += 1

    @internal
    def push_batch(self, batch: EventBatch) -> None:
        """Push events that are already coded in the terms of a store in memory, as readers do; whoever codes them
        otherwise and keeps them for later lets the dictionary `hold` their ids.

        An error of one query is raised after all the others have seen the events.
        """
        self._backend.push(batch, self._backend.terms, None)

    def retain(self, events: int) -> None:
        """Keep the newest `events` events from now on, for `query.why()`; 0: none, as a store in memory does if this is
        not called. Raises ArgumentValueError for less."""
        self._backend.retain(whole_number(events, "events"))

    def advance(self, time: Time) -> None:
        """Advances the watermark (punctuation): no event before `time` will come; if one does, it is late."""
        self._backend.punctuate(to_microseconds(time))

    def _repr_html_(self) -> str:
        return html_table(self.iri, [("events", f"{self.events:,}")])

    def __repr__(self) -> str:
        return f"<Stream {self.iri}>"
