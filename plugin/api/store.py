"""A store, wherever it is: in memory (`MemoryStore`), in a folder or at a server (served/store.py).

pyoxigraph's class cannot be inherited from, so `MemoryStore` wraps it: what it does not define goes to the store behind
it, and what changes the content is noted, so that KB patterns are answered again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack
from functools import partial
from itertools import count
from pathlib import Path
from threading import RLock
from typing import Any, Final, Literal, Protocol, Self, TypedDict, Unpack, overload

from pyoxigraph import Quad
from pyoxigraph import Store as RdfStore

from oxiseq.api.continuous import ContinuousQuery
from oxiseq.api.feed import MOST, Feed, MemoryQuery, MemoryStream
from oxiseq.api.knowledge import ConcernedKb, NoRoomError, NotReopenedError, Reopening
from oxiseq.api.query import Query
from oxiseq.api.standing import StandingQuery, Standings
from oxiseq.api.standing.standings import KEEP
from oxiseq.api.stream import Stream, StreamBackend
from oxiseq.changes import METHODS, Anew, Changed, Listener, Listeners, Listening, carried_out
from oxiseq.changes.methods import grows, growth
from oxiseq.engine.attended import check
from oxiseq.engine.errors import ArgumentTypeError, OxiseqError, QueryError
from oxiseq.engine.events.time import Time, to_microseconds
from oxiseq.engine.expressions.times import FUNCTIONS
from oxiseq.engine.kb import expect
from oxiseq.engine.rdf import load as load_rdf
from oxiseq.engine.standing import Asker, Limits
from oxiseq.engine.terms.dictionary import TermDictionary
from oxiseq.grammar.arguments import checked, internal, offered, public
from oxiseq.grammar.languages import STANDING
from oxiseq.grammar.over_sparql import Kind, refusal
from oxiseq.journal import ConflictError
from oxiseq.journal.names import unknown_query
from oxiseq.kb_loader.marker import check_whole
from oxiseq.languages.language import Language
from oxiseq.languages.lints import lints_of, unmapped, warn_of_lints
from oxiseq.languages.registry import language_named
from oxiseq.languages.result_streams import StreamUse, refuse_own_results
from oxiseq.mappings.declared import StreamMapping
from oxiseq.options import QUERY, said
from oxiseq.options.declared import QueryKeywords, documented
from oxiseq.options.kinds import TEXT, Duration, duration, whole_number
from oxiseq.options.query_text import QueryLike, query_text
from oxiseq.pictures.timeline import html_table
from oxiseq.sources.knowledge import knowledge_of

# --- refusals --------------------------------------------------------------------------------------------


class SparqlError(QueryError, SyntaxError):  # type: ignore[misc]  # its text is always there
    """A SPARQL query or update that is not accepted. It is a SyntaxError, too: pyoxigraph's stores raise that."""


def explaining(method: Callable[..., Any], kind: Kind) -> Callable[..., Any]:
    """A store's `query` or `update`, with oxiseq's functions; where it raises SyntaxError this raises SparqlError."""

    def asked(*args: Any, **named: Any) -> Any:
        named["custom_functions"] = FUNCTIONS | (named.get("custom_functions") or {})
        try:
            return method(*args, **named)
        except SyntaxError as error:
            text = args[0] if args else named.get(kind)
            if not isinstance(text, str):
                raise
            raise _explained(refusal(text, error, kind), text) from None

    return asked


def _explained(told: QueryError, text: str) -> SparqlError:
    found = SparqlError(told.message, told.span, text, hint=told.hint, expected=told.expected, code=told.code)
    found.msg = str(told)  # what Python shows of a SyntaxError in a traceback, not str()
    return found


# --- store -----------------------------------------------------------------------------------------------

_CHANGES = frozenset(METHODS)
_LOADS = frozenset(["bulk_load", "load"])


class StandingKeywords(TypedDict, total=False):
    """The options of a query over the store in memory. `Limits` has their defaults; `most_asking` is 5 minutes."""

    most_triples: int
    most_rows: int
    most_asking: Duration | None


OF_MEMORY: Final = frozenset(
    [
        *("ask_by", "guard_changes", "hold_reserve", "inner", "kb", "listen", "lock", "touch", "writable"),
        *("knowledge", "make", "at", "known", "registered", "registration"),
    ]
)
"""What only a store in memory has, of which the last line is nobody's."""


class ChangeRefusedError(OxiseqError):
    """The content cannot be changed now; nothing has been changed. It may be tried again."""


class MemoryStore:
    """The knowledge base, in memory or in a folder as pyoxigraph has it, and streams and queries in memory. See
    `StoreBackend`."""

    def __init__(self, path: str | None, inner: RdfStore | None, folder: Path | None) -> None:
        if path is not None:
            check_whole(Path(path))
        self._held = Reopening(
            inner if inner is not None else RdfStore(path), Path(path) if path is not None else folder
        )
        self._kb = ConcernedKb(self._held.store)
        self._terms = TermDictionary()
        self.where = "memory" if path is None else path
        self._feed = Feed(self._terms)
        self._guards: list[Callable[[], AbstractContextManager[object]]] = []
        self._listeners = Listeners(self.lock)
        held = self._held  # not `self`: a store that nobody holds is to be closed at once
        self._standings = Standings(lambda: held.store, self.lock, self._listeners)

    @property
    def inner(self) -> RdfStore:
        """The pyoxigraph store behind; after changing it directly, call `touch`. Prefer this store's own methods,
        which remember its content for the instants up to now. After a failed write this is another object: a reference
        that you keep prevents the store from opening again."""
        return self._held.store

    def touch(self) -> None:
        """Report that the content has changed: queries read it again for instants after the newest one so far. Up to
        that instant, earlier answers stay valid; those that are missing are read now."""
        with self.lock:
            self._keep_answers()
            self._kb.changed(None)
            self._listeners.tell(Anew("the store was changed directly"))

    @property
    @internal
    def writable(self) -> bool:
        """Whether it takes changes: after a write that failed it is opened again, as soon as there is room."""
        try:
            self._mend()
            self._held.admit(0, lambda: True)
        except (NoRoomError, ChangeRefusedError):
            return False
        return not self._held.failed

    @internal
    def hold_reserve(self) -> None:
        """Hold room on the disk of its folder until it is closed, so that a full disk lets it delete and open again."""
        self._held.hold_reserve()

    def _mend(self) -> None:
        """Open the store again after a write that has failed. Raises NoRoomError, ChangeRefusedError."""
        if not self._held.failed:
            return
        with self.lock:
            self._kb.moved(None)
            try:
                self._held.mend()
            except NotReopenedError as error:
                raise ChangeRefusedError(str(error)) from error
            finally:
                self._kb.moved(self._held.store)
            self._listeners.tell(Anew("the store was opened again after a write that had failed"))

    @property
    @internal
    def kb(self) -> ConcernedKb:
        """The content as queries ask it."""
        return self._kb

    @internal
    def guard_changes(self, guard: Callable[[], AbstractContextManager[object]]) -> None:
        """Enter `guard()` around each change of the content by this store's methods, before `lock` is taken.

        It may raise ChangeRefusedError, or any other error: then nothing is changed.
        """
        self._guards.append(guard)

    def listen(self, listener: Listener) -> Listening:
        """Pass each change of the content from now on to `listener`, in order and with `lock` held, until it is closed.

        To read the earlier content, hold `lock` around both. The thread that makes the change calls the listener after
        the change; see `oxiseq.changes` for what it receives.
        """
        return self._listeners.add(listener)

    def __dir__(self) -> list[str]:
        return [*offered(self), *(name for name in dir(RdfStore) if not name.startswith("_"))]

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        if name in _CHANGES:
            self._mend()
        found = getattr(self._held.store, name)
        if name == "query":
            return explaining(found, "query")
        if name not in _CHANGES:
            return found

        def change(*args: Any, **named: Any) -> Any:
            self._held.admit(growth(name, args, named), lambda: grows(name, args, named))
            with ExitStack() as held:
                for guard in self._guards:
                    held.enter_context(guard())
                held.enter_context(self.lock)
                check()  # it may have waited long
                self._keep_answers()
                changed: list[Changed] = []
                told = bool(self._listeners) or self._kb.watches
                method = self._told(name, changed) if told else found
                if name == "update":
                    method = explaining(method, "update")
                try:
                    answer = (partial(load_rdf, method) if name in _LOADS else method)(*args, **named)
                except OSError as error:
                    told = False
                    raise self._held.refused(error) from None
                except BaseException:
                    told = False
                    raise
                finally:
                    self._kb.changed(changed if told else None)
                    for each in changed:
                        self._listeners.tell(each)
                return answer

        return change

    def _told(self, name: str, changed: list[Changed]) -> Callable[..., None]:
        """A method that says what it has changed."""

        def method(*args: Any, **named: Any) -> None:
            if found := carried_out(self._held.store, name, *args, **named):
                changed.append(found)

        return method

    def _keep_answers(self) -> None:
        """The content is about to change, in each query's stream time behind the newest instant so far."""
        for query in self._feed.queries:
            query.before_change()

    def __len__(self) -> int:
        return len(self._held.store)

    def __iter__(self) -> Iterator[Quad]:
        return iter(self._held.store)

    def __contains__(self, quad: Quad) -> bool:
        return quad in self._held.store

    # --- streams and queries ------------------------------------------------------------------------

    @property
    @internal
    def lock(self) -> RLock:
        """Held while the content changes and while queries work."""
        return self._feed.lock

    @property
    @internal
    def knowledge(self) -> Self:
        """The knowledge base."""
        return self

    @internal
    def make(self, iri: str, mapping: StreamMapping | None) -> None:
        """See `StoreBackend`."""
        with self.lock:
            self._feed.check_open()
            stream = self._feed.stream(iri)
            if mapping is not None:
                stream.mapping = mapping

    @internal
    def at(self, iri: str) -> MemoryStream:
        """See `StoreBackend`."""
        return self._feed.stream(iri)

    @property
    @internal
    def known(self) -> tuple[str, ...]:
        """See `StoreBackend`."""
        return tuple(self._feed.streams)

    @property
    @internal
    def registered(self) -> tuple[ContinuousQuery | StandingQuery, ...]:
        """See `StoreBackend`."""
        return *(each.face for each in self._feed.queries), *(each.face for each in self._standings.queries)

    @internal
    def find(self, name: str) -> ContinuousQuery | StandingQuery:
        """See `StoreBackend`."""
        found = next((each for each in self.registered if each.name == name), None)
        if found is None:
            raise unknown_query(name)
        return found

    @internal
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
        """See `StoreBackend`."""
        if name is not None:
            TEXT.read(name, "name")
        if language == STANDING:
            kept = KEEP if keep is None else whole_number(keep, "keep")
            return self._standings.register(query_text(query).text, name, kept, _limits(options)).face
        text = Query(query, language)
        chosen = said(text.language, options, reads=self.known)
        spoken: Language[Any] = language_named(text.language)
        algebra = text.algebra
        spoken.prepare()
        with self.lock:
            self._feed.check_open()
            run, shape = spoken.planned(algebra, self._terms, self._kb, chosen)
            if replace and name in self._feed.named:
                self._feed.named[name].close()
            name = self._named(name)
            refuse_own_results(
                StreamUse.of(name, shape), (StreamUse(q.name, q.reads, q.feeds) for q in self._feed.queries)
            )
            keep = MOST if keep is None else keep
            backend = MemoryQuery(text, spoken, run, shape, self._feed, self._kb, chosen, name, keep)
            expect(self._kb, run.kb_texts)
            self._feed.add(run, backend, chosen.origin)
        lints = lints_of(text, knowledge_of(self.inner) if spoken.asks_kb else None, chosen.rules)
        mapped = unmapped(algebra, {iri: self._feed.stream(iri).mapping for iri in shape.reads})
        warn_of_lints(each.to_json() for each in (*lints, *mapped))
        return backend.face

    def _named(self, name: str | None) -> str:
        """What a new query is called. Raises ConflictError."""
        known = self._feed.named
        if name is None:
            return next(each for each in (f"q{number}" for number in count(len(known) + 1)) if each not in known)
        if name in known:
            raise ConflictError(f"there is a query {name!r} already")
        return name

    @internal
    def ask_by(self, way: Callable[[Asker], Asker] | None) -> None:
        """Lets standing queries that are asked, not followed, be evaluated elsewhere from now on: in processes, say,
        that can be ended. `way` is given the usual one, in this process. None: that one again."""
        self._standings.ask_by(way)

    def close(self) -> None:
        """End its queries and release the pyoxigraph store: its folder can then be opened elsewhere."""
        for query in self.registered:
            query.close()
        self._feed.end()
        with self.lock:
            self._kb.moved(None)
            self._held.close()

    def __repr__(self) -> str:
        return f"{len(self)} quads, {len(self.known)} streams, {len(self._feed.named)} queries"


class StoreBackend(Protocol):
    """The place where a store is."""

    where: str
    """In words: a folder, an address."""

    @property
    def lock(self) -> AbstractContextManager[Any, Any]:
        """Held while all its streams are told of a time."""

    @property
    def knowledge(self) -> Any:
        """What has pyoxigraph's methods, for the knowledge base."""

    def make(self, iri: str, mapping: StreamMapping | None) -> None:
        """A stream is to be there, and its rows are to mean this. Raises OxiseqError if the store is closed."""

    def at(self, iri: str) -> StreamBackend:
        """A stream that there is."""

    @property
    def known(self) -> tuple[str, ...]:
        """The streams, in the order in which they were made."""

    @property
    def registered(self) -> tuple[ContinuousQuery | StandingQuery, ...]:
        """The queries."""

    def find(self, name: str) -> ContinuousQuery | StandingQuery:
        """The query of this name. Raises UnknownError."""

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
        """See `Store.register`."""

    def close(self) -> None:
        """Nobody holds it any more."""


@public
class Store:
    """A store with event streams, in memory or as `oxiseq.open` opens it. All of `pyoxigraph.Store`'s methods work, for
    the knowledge base; `path` makes that durable as there, but no streams and queries: open a folder for these.

    In a folder and at a server all that goes through it is durable when a method returns. Close it, or use it in a
    `with` block: a folder stays locked until then.

    >>> import oxiseq
    >>> store = oxiseq.Store()
    >>> query = store.register('''
    ... PREFIX : <http://example.org/>
    ... SELECT ?house ?after WITHIN 1 HOUR
    ... FROM STREAM S <http://example.org/power>
    ... WHERE {
    ...   SEQ(A; B)
    ...   DEFINE GPM A ON S { ?house :watts ?before }
    ...   DEFINE GPM B ON S { ?house :watts ?after FILTER(?after > 2 * ?before) }
    ... }''')
    >>> stream = store.stream("http://example.org/power")
    >>> reading = "<http://example.org/h1> <http://example.org/watts> {} ."
    >>> stream.push(reading.format(100), 1_000_000)
    >>> stream.push(reading.format(250), 2_000_000)
    >>> for match in query.poll("1s"):
    ...     print(match.at, match["after"].value)
    1970-01-01 00:00:02+00:00 250
    """

    inner: RdfStore
    """In memory: the pyoxigraph store behind; after changing it directly, call `touch`. Prefer this store's own
    methods, which remember its content for the instants up to now. After a failed write this is another object: a
    reference that you keep prevents the store from opening again."""
    kb: ConcernedKb
    """The content as queries ask it."""

    @checked
    def __init__(self, path: str | None = None, *, inner: RdfStore | None = None, folder: Path | None = None) -> None:
        """`inner`: a store that is open already; `folder`: where it is, so that it can be opened again after a write
        that has failed, when nothing else holds it."""
        self._begin(MemoryStore(path, inner, folder))

    @classmethod
    @internal
    def over(cls, backend: StoreBackend) -> Self:
        """A store at another place."""
        store = cls.__new__(cls)
        store._begin(backend)
        return store

    def _begin(self, backend: StoreBackend) -> None:
        self._backend, self._knowledge = backend, backend.knowledge
        self._streams: dict[str, Stream] = {}
        self._closed = False

    @property
    def where(self) -> str:
        """Its folder or its address."""
        return self._backend.where

    def __dir__(self) -> list[str]:
        return sorted({*offered(self), *(name for name in dir(self._knowledge) if self._shows(name))})

    def __getattr__(self, name: str) -> Any:
        if not self._shows(name):
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        return getattr(self._knowledge, name)

    def _shows(self, name: str) -> bool:
        """Whether a name of the knowledge base is one of this store's, too."""
        here = self._knowledge is self._backend
        return not name.startswith("_") and (here or name not in OF_MEMORY)

    def __len__(self) -> int:
        return len(self._knowledge)

    def __iter__(self) -> Iterator[Quad]:
        return iter(self._knowledge)

    def __contains__(self, quad: Quad) -> bool:
        return quad in self._knowledge

    # --- streams and queries ------------------------------------------------------------------------

    def stream(self, iri: str, *, mapping: StreamMapping | Mapping[str, Any] | str | None = None) -> Stream:
        """The stream of this name, made if there is none; the same object for the same name. `mapping`: what rows that
        are pushed to it mean from now on, whoever pushes them, see `StreamMapping`; it is kept with the stream. Raises
        MappingError."""
        compiled = None if mapping is None else StreamMapping(mapping)
        if iri not in self._streams or compiled is not None or self._closed:
            self._backend.make(iri, compiled)
        return self._known(iri)

    def _known(self, iri: str) -> Stream:
        if (known := self._streams.get(iri)) is not None:
            return known
        return self._streams.setdefault(iri, Stream(iri, self._backend.at(iri)))

    @property
    def streams(self) -> tuple[Stream, ...]:
        """All streams, in the order in which they were made."""
        return tuple(map(self._known, self._backend.known))

    @property
    def queries(self) -> tuple[ContinuousQuery, ...]:
        """The registered queries over streams."""
        return tuple(each for each in self._backend.registered if isinstance(each, ContinuousQuery))

    @property
    def standing(self) -> tuple[StandingQuery, ...]:
        """The standing queries over the knowledge base, in the order of their registration."""
        return tuple(each for each in self._backend.registered if isinstance(each, StandingQuery))

    def find(self, name: str) -> ContinuousQuery | StandingQuery:
        """The registered query of this name. Raises UnknownError."""
        return self._backend.find(name)

    @overload
    def register(  # type: ignore[overload-overlap]  # the name of a language is any text but this one
        self,
        query: QueryLike,
        language: Literal["sparql"],
        *,
        name: str | None = None,
        replace: bool = False,
        keep: int | None = None,
        **options: Unpack[StandingKeywords],
    ) -> StandingQuery: ...

    @overload
    def register(
        self,
        query: QueryLike,
        language: str | None = None,
        *,
        name: str | None = None,
        replace: bool = False,
        keep: int | None = None,
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
        keep: int | None = None,
        **options: Any,
    ) -> ContinuousQuery | StandingQuery:
        """Register a continuous query, a text, a path or a `Query`; it sees the events that are pushed from now on, in
        a folder and at a server also after this program has ended. An EP-SPARQL query that names no stream reads those
        that the store has now. `name`: its name for `find`; `keep`: how many of the newest matches are kept in memory
        (a million).

        With a `name` that is registered already another query is refused (ConflictError), unless `replace`: then it
        takes its place, and at a server ids of matches continue. The same query is returned again where it outlives a
        program, so that one can begin again with the lines it began with. Raises QueryError, ConflictError, BoundError,
        UnreachableError, OxiseqError.

        Or (`language="sparql"`) a standing query over the knowledge base, which reads no stream: see
        `oxiseq.api.standing`; in memory it takes `keep`, `most_triples`, `most_rows` and `most_asking` (how long one
        evaluation by the store may take).
        """
        return self._backend.registration(query, language, name, keep, options, replace=replace)

    def advance(self, time: Time) -> None:
        """Punctuation for all streams: no event before `time` will come any more.

        A stream that queries feed comes after those that they read, so that their results are not late.
        """
        until = to_microseconds(time)
        with self._backend.lock:
            left, queries = [*self._backend.known], self.queries
            while left:
                fed = {query.feeds for query in queries if any(iri in left for iri in query.reads)}
                ready = [iri for iri in left if iri not in fed]
                left = [iri for iri in left if iri in fed]
                for iri in ready:
                    self._backend.at(iri).punctuate(until)

    # --- its life -------------------------------------------------------------------------------------

    def close(self) -> None:
        """End what this program holds of it: in memory its queries end, a folder can be opened elsewhere, a server
        continues. May be called twice."""
        closed, self._closed = self._closed, True
        if not closed:
            self._backend.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _repr_html_(self) -> str:
        streams = [(stream.iri, f"{stream.events:,} events") for stream in self.streams]
        queries = [(query.name, f"{query.match_count:,} matches") for query in self.queries]
        return html_table(f"{self.where}: {len(self):,} quads", [*streams, *queries])

    def __repr__(self) -> str:
        return f"<oxiseq.Store: {self._backend!r}>"


def _limits(given: Mapping[str, Any]) -> Limits:
    """Those of a query over the store. Raises OxiseqError for options of streams, and for invalid values."""
    known = [*StandingKeywords.__annotations__]
    if set(given) - set(known):
        raise ArgumentTypeError(f"a query over the store reads no stream: it takes name, keep, {', '.join(known)}")
    limits: dict[str, Any] = {each: whole_number(given[each], each) for each in known[:2] if each in given}
    if "most_asking" in given:
        asking = given["most_asking"]
        limits["most_seconds"] = None if asking is None else duration(asking, "most_asking") / 1e6
    return Limits(**limits)
