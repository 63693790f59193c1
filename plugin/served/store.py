"""A store that is served: streams and continuous queries in a journal, beside a knowledge base."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import nullcontext, suppress
from itertools import chain
from typing import Any, Final

from oxiseq.api.continuous import ContinuousQuery
from oxiseq.api.query import Query
from oxiseq.api.standing import StandingQuery
from oxiseq.api.store import Store
from oxiseq.engine.errors import ArgumentTypeError, OxiseqError
from oxiseq.engine.events.batch import EventBatch
from oxiseq.engine.events.time import to_text
from oxiseq.engine.events.write import quads_text
from oxiseq.engine.terms.dictionary import TermDictionary
from oxiseq.grammar.languages import STANDING
from oxiseq.journal import ConflictError
from oxiseq.languages.lints import warn_of_lints
from oxiseq.mappings.declared import StreamMapping
from oxiseq.options import QUERY, as_data, options_for, said
from oxiseq.options.query_text import QueryLike, query_text
from oxiseq.served.knowledge import ServedKnowledge
from oxiseq.served.long_push import LongPush, NoSocketError
from oxiseq.served.query import ServedQuery, ServedStanding
from oxiseq.served.wire import Wire

_N_QUADS: Final = "application/n-quads"


class ServedStream:
    """A stream in a folder or at a server; see `StreamBackend`. Each push has a key, and each `extend` a session, so
    that what is sent again after a broken connection is stored once."""

    lock = nullcontext()

    def __init__(self, iri: str, wire: Wire) -> None:
        self._iri, self._wire = iri, wire

    @property
    def terms(self) -> TermDictionary:
        """New ones: the place has its own."""
        return TermDictionary()

    @property
    def events(self) -> int:
        """How many events were pushed."""
        return int(self._told["next"])

    @property
    def mapping(self) -> StreamMapping | None:
        """What rows that are pushed mean, as the stream has it now."""
        given = self._told.get("mapping")
        return None if given is None else StreamMapping(given)

    @property
    def _told(self) -> Mapping[str, Any]:
        told: Mapping[str, Any] = self._wire.call("getStream", stream=self._iri).json()
        return told

    def push(self, batch: EventBatch, terms: TermDictionary, key: str | None) -> int:
        """Store events; how many were late. Raises OxiseqError for one that the server cannot take."""
        if not len(batch):
            return 0
        body = "".join(quads_text([batch], terms)).encode()
        key = secrets.token_hex(16) if key is None else key
        told = self._wire.call("push", {"content": body, "kind": _N_QUADS, "key": key}, stream=self._iri).json()
        if told["rejected"]:
            raise OxiseqError(f"{told['rejected']} events are not stored: {told['reasons'][0]['reason']}")
        return int(told["late"] or 0)

    def extend(self, batches: Iterator[EventBatch], terms: TermDictionary, session: str | None) -> tuple[int, int]:
        """All events are durable when it returns. Where it raises while it reads, whole groups of some thousand that it
        read before are."""
        first = next(batches, None)
        if first is None:
            return 0, 0
        if self._wire.sockets:
            push = LongPush(self._wire, self._iri, secrets.token_hex(16) if session is None else session)
            with suppress(NoSocketError):
                count = push.send(quads_text(_collected(chain((first,), batches), terms), terms))
                return count, push.counts["late"]
        if session is not None:
            raise OxiseqError("session: it needs a server that takes WebSockets, and the package websockets here")
        count = late = 0
        for batch in _collected(chain((first,), batches), terms):
            count, late = count + len(batch), late + self.push(batch, terms, None)
        return count, late

    def retain(self, events: int) -> None:
        """Keep the newest so many events, however old they are."""
        self._wire.call("putStream", {"json": {"retention": {"count": events}}}, stream=self._iri)

    def punctuate(self, until: int) -> None:
        """No event before `until` (µs) will come."""
        self._wire.call("push", {"again": True}, stream=self._iri, watermark=to_text(until))


def _collected(batches: Iterable[EventBatch], terms: TermDictionary) -> Iterator[EventBatch]:
    """Batches, after each of which terms that nobody needs any more are forgotten."""
    for batch in batches:
        yield batch
        terms.collect_if_due()


class ServedStore:
    """A store in a folder or at a server. See `StoreBackend`."""

    lock = nullcontext()

    def __init__(self, where: str, wire: Wire, knowledge: Store | ServedKnowledge, end: Callable[[], object]) -> None:
        """`end` is called when it is closed."""
        self.where, self.wire, self.knowledge = where, wire, knowledge
        self._end = end

    def make(self, iri: str, mapping: StreamMapping | None) -> None:
        """A stream is to be there."""
        self.wire.call("putStream", {} if mapping is None else {"json": {"mapping": mapping.as_data()}}, stream=iri)

    def at(self, iri: str) -> ServedStream:
        """A stream."""
        return ServedStream(iri, self.wire)

    @property
    def known(self) -> tuple[str, ...]:
        """The streams."""
        return tuple(each["iri"] for each in self.wire.call("listStreams").json()["streams"])

    @property
    def registered(self) -> tuple[ContinuousQuery | StandingQuery, ...]:
        """The queries."""
        return tuple(_handle(self.wire, each) for each in self.wire.call("listQueries").json()["queries"])

    def find(self, name: str) -> ContinuousQuery | StandingQuery:
        """Raises UnknownError."""
        return _handle(self.wire, self.wire.call("getQuery", query=name).json())

    def registration(
        self,
        query: QueryLike,
        language: str | None,
        name: str | None,
        keep: int | None,
        options: Mapping[str, Any],
        *,
        replace: bool,
    ) -> ContinuousQuery | StandingQuery:
        """A query that is registered already is returned again."""
        given = _given(query, language, options if keep is None else {**options, "keep": keep})
        if replace and name is not None:
            value = self.wire.call("replaceQuery", {"json": given}, query=name).json()
            warn_of_lints(value["lints"])
            return _handle(self.wire, value)
        try:
            named = given if name is None else {**given, "name": name}
            value = self.wire.call("registerQuery", {"json": named, "again": name is not None}).json()
            warn_of_lints(value["lints"])
        except ConflictError:
            value = self.wire.call("getQuery", query=name).json()
            _check_same(value, given)
        return _handle(self.wire, value)

    def close(self) -> None:
        """A server continues."""
        self.wire.close()
        self._end()

    def __repr__(self) -> str:
        return self.where


def _handle(wire: Wire, value: Mapping[str, Any]) -> ContinuousQuery | StandingQuery:
    if value["language"] == STANDING:
        return StandingQuery(ServedStanding(wire, value), value)
    return ContinuousQuery(ServedQuery(wire, value), value)


def _given(query: QueryLike, language: str | None, options: Mapping[str, Any]) -> dict[str, Any]:
    """As the server takes it. Raises QueryError, with the place in the text; OxiseqError."""
    if language == STANDING:
        if options:
            raise ArgumentTypeError(f"{', '.join(options)}: a query over the store reads no stream")
        return {"text": query_text(query).text, "language": language}
    text = Query(query, language)
    chosen = as_data(said(text.language, options))
    _ = text.algebra  # parsed here, for its errors
    return {"text": text.text, "language": text.language, **chosen}


def _check_same(there: Mapping[str, Any], given: Mapping[str, Any]) -> None:
    """Raise ConflictError where another query has the name."""
    usual = {
        option.name: None if option.default is None else option.kind.write(option.default)
        for option in options_for(doors=(QUERY,))
        if option.name in there
    }
    other = [key for key, value in {**usual, **given}.items() if (there.get(key) or None) != (value or None)]
    if other:
        raise ConflictError(
            f"there is a query {there['name']!r} already, with another {', '.join(other)}: say "
            "replace=True to put this one in its place"
        )
