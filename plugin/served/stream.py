"""A stream of a served store."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Mapping
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
from oxiseq.pictures.tables import html_table
from oxiseq.served.wire import Wire, in_header
from oxiseq.sources.sources import EventLike, Events, Row, batches_of, check_events, row_event

_N_QUADS: Final = "application/n-quads"
_KEY: Final = 200


@faced
class ServedStream:
    """Get it by `store.stream(iri)`. What `push` and `extend` return from is durable; each batch is sent under a key of
    its own, so that one that is sent again after a broken connection is stored once."""

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
    ) -> None:  # fmt: skip
        """Push one event, as `Stream.push`. `key`: the event's own name, at most 200 ASCII characters: another push
        under it changes nothing, so that a program that was killed may push again what it had no answer for. Raises
        EventError, ConflictError for another event under the same key, BusyError, FullError, UnreachableError."""
        if key is not None and not (isinstance(key, str) and 0 < len(key) <= _KEY and in_header(key)):
            raise OxiseqError(f"key={key!r}: a key has 1 to {_KEY} visible ASCII characters"[:200])
        if isinstance(graph, Mapping):
            if start is not None:
                raise ArgumentTypeError("a row has no start: push its graph")
            self._push_row(graph, time, key)
            return
        if time is None:
            raise ArgumentTypeError("time: when the event happened is to be said")
        terms = TermDictionary()
        pair = time, graph if start is None else with_start(graph, start)
        self._send(encode_events((pair,), terms), terms, key)

    async def push_async(
        self, graph: EventLike, time: Time | None = None, start: Time | None = None, *, key: str | None = None
    ) -> None:  # fmt: skip
        """`push`, while other tasks go on."""
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

    def extend(self, events: Events, on_error: OnError = "stop") -> int:
        """Push the events of a file, (time, graph) pairs or rows, as `Stream.extend`; how many. Each part of some
        thousand is durable before the next is sent. Raises as `push` does."""
        check_events(events)
        terms, count = TermDictionary(), 0
        for batch in batches_of(events, terms, on_error, mapping=self.mapping, bad=self._left_out):
            self._send(batch, terms, None)
            count += len(batch)
            terms.collect_if_due()
        return count

    def _left_out(self, row: BadRow) -> None:
        self.rejected += 1

    def _send(self, batch: EventBatch, terms: TermDictionary, key: str | None) -> None:
        """Store it. Raises OxiseqError for an event that the server cannot take."""
        if not len(batch):
            return
        body = "".join(quads_text([batch], terms)).encode()
        told = self._wire.send(
            "POST", "streams", self.iri, content=body, kind=_N_QUADS, key=secrets.token_hex(16) if key is None else key
        ).json()
        if told["rejected"]:
            raise OxiseqError(f"{told['rejected']} events are not stored: {told['reasons'][0]['reason']}")

    def keep(self, events: int) -> None:
        """Keep the newest so many events, however old they are. Raises OxiseqError for less than none."""
        if isinstance(events, bool) or not isinstance(events, int) or events < 0:
            raise OxiseqError(f"a stream cannot keep {events!r} events")
        self._wire.send("PUT", "streams", self.iri, json={"keep": {"count": events}})

    def advance(self, time: Time) -> None:
        """Punctuation: no event before `time` will come any more (if one does, it is late)."""
        at = to_text(to_microseconds(time))
        self._wire.send("POST", "streams", self.iri, params={"advance": at}, again=True)

    def _repr_html_(self) -> str:
        return html_table(self.iri, [("events", f"{self.events:,}")])

    def __repr__(self) -> str:
        return f"<ServedStream {self.iri}>"
