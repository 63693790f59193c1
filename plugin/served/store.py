"""A store that is served: streams and continuous queries in a journal, beside a knowledge base."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import nullcontext, suppress
from itertools import chain
from threading import Lock
from typing import Any, Final, Literal, Unpack, overload

from oxiseq.api.continuous import ContinuousQuery
from oxiseq.api.query import Query
from oxiseq.api.standing import StandingQuery
from oxiseq.api.store import Store
from oxiseq.api.stream import Stream
from oxiseq.engine.errors import ArgumentTypeError, OxiseqError
from oxiseq.engine.events.batch import EventBatch
from oxiseq.engine.events.time import Time, to_text
from oxiseq.engine.events.write import quads_text
from oxiseq.engine.terms.dictionary import TermDictionary
from oxiseq.grammar.arguments import faced, offered
from oxiseq.grammar.languages import STANDING
from oxiseq.journal import ConflictError
from oxiseq.languages.lints import warn_of_lints
from oxiseq.mappings.declared import StreamMapping
from oxiseq.options import QUERY, as_data, options_for, said
from oxiseq.options.declared import QueryKeywords, documented
from oxiseq.options.query_text import QueryLike, query_text
from oxiseq.pictures.timeline import html_table
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


@faced
class ServedStore:
    """What `oxiseq.open(folder)` and `oxiseq.open(url)` answer: the face of `Store`, and all that goes through it is
    durable when a method returns. `pyoxigraph.Store`'s methods are there as well, for the knowledge base.

    Close it, or use it in a `with` block: a folder stays locked until then.
    """

    def __init__(self, where: str, wire: Wire, knowledge: Store | ServedKnowledge, end: Callable[[], object]) -> None:
        """`oxiseq.open` makes it. `end` is called once, when it is closed."""
        self.where = where
        """The folder, or the address."""
        self._wire, self._knowledge, self._end = wire, knowledge, end
        self._streams: dict[str, Stream] = {}
        self._lock = Lock()
        self._closed = False

    def __dir__(self) -> list[str]:
        behind = (name for name in dir(self._knowledge) if not name.startswith("_") and name not in _OF_MEMORY)
        return sorted({*offered(self), *behind})

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or name in _OF_MEMORY:
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        return getattr(self._knowledge, name)

    def __len__(self) -> int:
        return len(self._knowledge)

    def __iter__(self) -> Any:
        return iter(self._knowledge)

    def __contains__(self, quad: Any) -> bool:
        return quad in self._knowledge

    # --- streams and queries ------------------------------------------------------------------------

    def stream(self, iri: str, *, mapping: StreamMapping | Mapping[str, Any] | str | None = None) -> Stream:
        """The stream of this name, made if there is none. `mapping`: what rows that are pushed to it mean from now on,
        whoever pushes them, see `StreamMapping`; it is kept with the stream. Raises MappingError."""
        value = None if mapping is None else StreamMapping(mapping).as_data()
        self._wire.check_open()
        with self._lock:
            known = self._streams.get(iri)
        if known is not None and value is None:
            return known
        self._wire.call("putStream", {} if value is None else {"json": {"mapping": value}}, stream=iri)
        with self._lock:
            return self._streams.setdefault(iri, Stream(iri, ServedStream(iri, self._wire)))

    @property
    def streams(self) -> tuple[Stream, ...]:
        """All streams, in the order in which they were made."""
        told = self._wire.call("listStreams").json()["streams"]
        return tuple(Stream(each["iri"], ServedStream(each["iri"], self._wire)) for each in told)

    @property
    def queries(self) -> tuple[ContinuousQuery, ...]:
        """The registered queries over streams."""
        return tuple(each for each in self._registered() if isinstance(each, ContinuousQuery))

    @property
    def standing(self) -> tuple[StandingQuery, ...]:
        """The registered queries over the knowledge base."""
        return tuple(each for each in self._registered() if isinstance(each, StandingQuery))

    def _registered(self) -> list[ContinuousQuery | StandingQuery]:
        return [_handle(self._wire, each) for each in self._wire.call("listQueries").json()["queries"]]

    def find(self, name: str) -> ContinuousQuery | StandingQuery:
        """The registered query of this name. Raises UnknownError."""
        return _handle(self._wire, self._wire.call("getQuery", query=name).json())

    @overload
    def register(  # type: ignore[overload-overlap]  # the name of a language is any text but this one
        self, query: QueryLike, language: Literal["sparql"], *, name: str | None = None, replace: bool = False
    ) -> StandingQuery: ...

    @overload
    def register(
        self,
        query: QueryLike,
        language: str | None = None,
        *,
        name: str | None = None,
        replace: bool = False,
        **options: Unpack[QueryKeywords],
    ) -> ContinuousQuery: ...

    @documented(QUERY)
    def register(
        self,
        query: QueryLike,
        language: str | None = None,
        *,
        name: str | None = None,
        replace: bool = False,
        **options: Any,
    ) -> ContinuousQuery | StandingQuery:
        """Register a continuous query, as `Store.register`; it sees the events that are pushed from now on, also after
        this program has ended.

        With a `name` that is registered already the same query is returned again, so that a program can begin again
        with the lines it began with; another one is refused (ConflictError), unless `replace`: then it takes its place,
        and ids of matches continue. Or (`language="sparql"`) a standing query over the knowledge base, which takes no
        options. Raises QueryError, ConflictError, BoundError, UnreachableError.
        """
        given = _given(query, language, options)
        if replace and name is not None:
            value = self._wire.call("replaceQuery", {"json": given}, query=name).json()
            warn_of_lints(value["lints"])
            return _handle(self._wire, value)
        try:
            named = given if name is None else {**given, "name": name}
            value = self._wire.call("registerQuery", {"json": named, "again": name is not None}).json()
            warn_of_lints(value["lints"])
        except ConflictError:
            value = self._wire.call("getQuery", query=name).json()
            _check_same(value, given)
        return _handle(self._wire, value)

    def advance(self, time: Time) -> None:
        """Punctuation for all streams: no event before `time` will come any more. Streams that queries feed come after
        those that they read."""
        fed = {query.feeds for query in self.queries}
        for stream in sorted(self.streams, key=lambda each: each.iri in fed):
            stream.advance(time)

    # --- its life -------------------------------------------------------------------------------------

    def close(self) -> None:
        """End what this program holds of it; a server continues. May be called twice."""
        with self._lock:
            closed, self._closed = self._closed, True
        if not closed:
            self._wire.close()
            self._end()

    def __enter__(self) -> ServedStore:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _repr_html_(self) -> str:
        streams = [(stream.iri, f"{stream.events:,} events") for stream in self.streams]
        queries = [(query.name, f"{query.match_count:,} matches") for query in self.queries]
        return html_table(self.where, [*streams, *queries])

    def __repr__(self) -> str:
        return f"<oxiseq store at {self.where}>"


_OF_MEMORY: Final = ("ask_by", "guard_changes", "inner", "kb", "listen", "lock", "touch", "writable")
"""Of a `Store` in memory only."""


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
