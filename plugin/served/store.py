"""A store that is served: streams and continuous queries in a journal, beside a knowledge base."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from threading import Lock
from typing import Any, Final, Literal, Unpack, overload

from oxiseq.api.query import Query
from oxiseq.api.store import Store
from oxiseq.engine.errors import ArgumentTypeError
from oxiseq.engine.events.time import Time
from oxiseq.grammar.arguments import faced, offered
from oxiseq.grammar.languages import STANDING
from oxiseq.journal import ConflictError
from oxiseq.languages.lints import warn_of_lints
from oxiseq.mappings.declared import StreamMapping
from oxiseq.options import QUERY, as_data, options_for, said
from oxiseq.options.keywords import QueryKeywords, documented
from oxiseq.options.query_text import QueryLike, query_text
from oxiseq.pictures.tables import html_table
from oxiseq.served.knowledge import ServedKnowledge
from oxiseq.served.query import ServedQuery
from oxiseq.served.standing import ServedStanding
from oxiseq.served.stream import ServedStream
from oxiseq.served.wire import Wire


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
        self._streams: dict[str, ServedStream] = {}
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

    def stream(self, iri: str, *, mapping: StreamMapping | Mapping[str, Any] | str | None = None) -> ServedStream:
        """The stream of this name, made if there is none. `mapping`: what rows that are pushed to it mean from now on,
        whoever pushes them, see `StreamMapping`; it is kept with the stream. Raises MappingError."""
        value = None if mapping is None else StreamMapping(mapping).as_data()
        self._wire.check_open()
        with self._lock:
            known = self._streams.get(iri)
        if known is not None and value is None:
            return known
        self._wire.send("PUT", "streams", iri, json=None if value is None else {"mapping": value})
        with self._lock:
            return self._streams.setdefault(iri, ServedStream(iri, self._wire))

    @property
    def streams(self) -> tuple[ServedStream, ...]:
        """All streams, in the order in which they were made."""
        told = self._wire.send("GET", "streams").json()["streams"]
        return tuple(ServedStream(each["iri"], self._wire) for each in told)

    @property
    def queries(self) -> tuple[ServedQuery, ...]:
        """The registered queries over streams."""
        return tuple(each for each in self._registered() if isinstance(each, ServedQuery))

    @property
    def standing(self) -> tuple[ServedStanding, ...]:
        """The registered queries over the knowledge base."""
        return tuple(each for each in self._registered() if isinstance(each, ServedStanding))

    def _registered(self) -> list[ServedQuery | ServedStanding]:
        return [_handle(self._wire, each) for each in self._wire.send("GET", "queries").json()["queries"]]

    def find(self, name: str) -> ServedQuery | ServedStanding:
        """The registered query of this name. Raises UnknownError."""
        return _handle(self._wire, self._wire.send("GET", "queries", name).json())

    @overload
    def register(  # type: ignore[overload-overlap]  # the name of a language is any text but this one
        self, query: QueryLike, language: Literal["sparql"], *, name: str | None = None, replace: bool = False
    ) -> ServedStanding: ...

    @overload
    def register(
        self,
        query: QueryLike,
        language: str | None = None,
        *,
        name: str | None = None,
        replace: bool = False,
        **options: Unpack[QueryKeywords],
    ) -> ServedQuery: ...

    @documented(QUERY)
    def register(
        self,
        query: QueryLike,
        language: str | None = None,
        *,
        name: str | None = None,
        replace: bool = False,
        **options: Any,
    ) -> ServedQuery | ServedStanding:
        """Register a continuous query, as `Store.register`; it sees the events that are pushed from now on, also after
        this program has ended.

        With a `name` that is registered already the same query is returned again, so that a program can begin again
        with the lines it began with; another one is refused (ConflictError), unless `replace`: then it takes its place,
        and ids of matches continue. Or (`language="sparql"`) a standing query over the knowledge base, which takes no
        options. Raises QueryError, ConflictError, BoundError, UnreachableError.
        """
        given = _given(query, language, options)
        if replace and name is not None:
            value = self._wire.send("PUT", "queries", name, json=given).json()
            warn_of_lints(value["lints"])
            return _handle(self._wire, value)
        try:
            named = given if name is None else {**given, "name": name}
            value = self._wire.send("POST", "queries", json=named, again=name is not None).json()
            warn_of_lints(value["lints"])
        except ConflictError:
            value = self._wire.send("GET", "queries", str(name)).json()
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


def _handle(wire: Wire, value: Mapping[str, Any]) -> ServedQuery | ServedStanding:
    return ServedStanding(wire, value) if value["language"] == STANDING else ServedQuery(wire, value)


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
