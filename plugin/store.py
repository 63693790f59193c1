"""The store: pyoxigraph's, with streams and continuous queries.

pyoxigraph's class cannot be inherited from, so this one stands in front of it: what it does not define goes
to the store behind it, and what changes the content is noted, so that KB patterns are answered again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack
from datetime import datetime
from functools import partial
from pathlib import Path
from threading import RLock
from typing import Any, Final, Literal, overload

from pyoxigraph import Quad
from pyoxigraph import Store as RdfStore

from oxiseq.changes import METHODS, Anew, Changed, Listener, Listeners, Listening, carried_out
from oxiseq.continuous import ContinuousQuery
from oxiseq.durations import Duration, duration
from oxiseq.engine.errors import OxiseqError
from oxiseq.engine.events.time import to_microseconds
from oxiseq.engine.kb import StoreKb
from oxiseq.engine.rdf import load as load_rdf
from oxiseq.engine.standing import Limits
from oxiseq.engine.terms.dictionary import TermDictionary
from oxiseq.feed import Feed
from oxiseq.grammar import load
from oxiseq.grammar.arguments import checked, public
from oxiseq.grammar.languages import Language
from oxiseq.kb_loader.marker import check_whole
from oxiseq.languages.front import Options, said, without_reports
from oxiseq.languages.registry import front_of, rules_of
from oxiseq.matches.match import result_event
from oxiseq.pictures.tables import html_table
from oxiseq.reopening import NoRoomError, NotReopenedError, Reopening
from oxiseq.standing import StandingQuery, Standings
from oxiseq.standing.standings import KEEP
from oxiseq.stream import Stream

_CHANGES = frozenset(METHODS)
_LOADS = frozenset(["bulk_load", "load"])


_LIMITS: Final = Limits()


class ChangeRefusedError(OxiseqError):
    """The content cannot be changed now; nothing has been changed. It may be tried again."""


@public
class Store:
    """A pyoxigraph store with event streams.

    All of `pyoxigraph.Store`'s methods work; `path` makes it durable as there.

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
    >>> for match in query.matches(timeout=1):
    ...     print(match.at, match["after"].value)
    1970-01-01 00:00:02+00:00 250
    """

    @checked
    def __init__(
        self, path: str | None = None, *, inner: RdfStore | None = None, folder: Path | None = None
    ) -> None:
        """`inner`: a store that is open already; `folder`: where it is, so that it can be opened again after a write
        that has failed, when nothing else holds it."""
        if path is not None:
            check_whole(Path(path))
        self._held = Reopening(
            inner if inner is not None else RdfStore(path), Path(path) if path is not None else folder
        )
        self._kb = StoreKb(self._held.store)
        self._terms = TermDictionary()
        self._streams: dict[str, Stream] = {}
        streams = self._streams  # not `self`: a store that nobody holds is to be closed at once
        self._feed = Feed(self._terms, lambda iri, match: streams[iri].push(result_event(match), match.at_us))
        self._lock = self._feed.lock
        self._guards: list[Callable[[], AbstractContextManager[object]]] = []
        self._listeners = Listeners(self._lock)
        held = self._held  # not `self`, as above
        self._standings = Standings(lambda: held.store, self._lock, self._listeners)

    @property
    def inner(self) -> RdfStore:
        """The pyoxigraph store behind; after changing it directly, call `touch`. Better change it by this store's own
        methods, which remember what it held for the instants up to now. Another one after a write that has failed: to
        keep it hinders that."""
        return self._held.store

    def touch(self) -> None:
        """Say that the content has changed: it is asked anew for instants behind the newest one so far. For those up to
        it what has been asked before holds; what has not been is asked now."""
        with self._lock:
            self._keep_answers()
            self._kb.touch()
            self._listeners.tell(Anew("the store was changed directly"))

    @property
    def writable(self) -> bool:
        """Whether it takes changes: after a write that failed it is opened again, as soon as there is room."""
        try:
            self._mend()
        except (NoRoomError, ChangeRefusedError):
            return False
        return not self._held.failed

    def _mend(self) -> None:
        """Open the store again after a write that has failed. Raises NoRoomError, ChangeRefusedError."""
        if not self._held.failed:
            return
        with self._lock:
            self._kb.moved(None)
            try:
                self._held.mend()
            except NotReopenedError as error:
                raise ChangeRefusedError(str(error)) from error
            finally:
                self._kb.moved(self._held.store)
            self._listeners.tell(Anew("the store was opened again after a write that had failed"))

    @property
    def kb(self) -> StoreKb:
        """The content as queries ask it."""
        return self._kb

    @property
    def lock(self) -> RLock:
        """Held while the content changes and while queries work."""
        return self._lock

    def guard_changes(self, guard: Callable[[], AbstractContextManager[object]]) -> None:
        """Enter `guard()` around each change of the content by this store's methods, before `lock` is taken.

        It may raise ChangeRefusedError, or any other error: then nothing is changed.
        """
        self._guards.append(guard)

    def listen(self, listener: Listener) -> Listening:
        """Tell each change of the content from now on, with `lock` held, in the order of changes; until it is closed.

        What was there before is asked with `lock` held around both. The listener is called by the thread that makes the
        change, after it has been made; see `oxiseq.changes` for what it is told.
        """
        return self._listeners.add(listener)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        if name in _CHANGES:
            self._mend()
        found = getattr(self._held.store, name)
        if name not in _CHANGES:
            return found

        def change(*args: Any, **named: Any) -> Any:
            with ExitStack() as held:
                for guard in self._guards:
                    held.enter_context(guard())
                held.enter_context(self._lock)
                self._keep_answers()
                changed: list[Changed] = []
                method = self._told(name, changed) if self._listeners else found
                try:
                    return (partial(load_rdf, method) if name in _LOADS else method)(*args, **named)
                except OSError as error:
                    raise self._held.refused(error) from None
                finally:
                    self._kb.touch()
                    for each in changed:
                        self._listeners.tell(each)

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

    def stream(self, iri: str) -> Stream:
        """The stream of this name; the same object for the same name."""
        with self._lock:
            if iri not in self._streams:
                self._streams[iri] = Stream(iri, self._terms, self._feed)
            return self._streams[iri]

    @property
    def streams(self) -> tuple[Stream, ...]:
        """All streams that have been named so far."""
        return tuple(self._streams.values())

    @property
    def queries(self) -> tuple[ContinuousQuery, ...]:
        """The registered queries."""
        return self._feed.queries

    @overload
    def register(
        self, text: str, start: int | datetime | None = None, lateness: Duration = "0s",
        language: Language = "spaseq",
        stream_names: Mapping[str, str] = {}, report: str | None = None,
        instants: Iterable[int | datetime] | None = None, consumption: str | None = None, rules: Sequence[str] = (),
    ) -> ContinuousQuery: ...

    @overload
    def register(
        self, text: str, *, language: Literal["sparql"], name: str | None = None, keep: int = KEEP,
        most_triples: int = _LIMITS.most_triples, most_rows: int = _LIMITS.most_rows,
        most_asking: Duration | None = "5m",
    ) -> StandingQuery: ...

    def register(
        self,
        text: str,
        start: int | datetime | None = None,
        lateness: Duration = "0s",
        language: str = "spaseq",
        stream_names: Mapping[str, str] = {},
        report: str | None = None,
        instants: Iterable[int | datetime] | None = None,
        consumption: str | None = None,
        rules: Sequence[str] = (),
        name: str | None = None,
        keep: int = KEEP,
        most_triples: int = _LIMITS.most_triples,
        most_rows: int = _LIMITS.most_rows,
        most_asking: Duration | None = "5m",
    ) -> ContinuousQuery | StandingQuery:
        """Register a continuous query; it sees the events that are pushed from now on. Or (`language="sparql"`) a query
        that stands over the content of this store and reads no stream: see `oxiseq.standing`; `name`, `keep`,
        `most_triples`, `most_rows` and `most_asking` (how long the store may be asked at a change) are for it.

        `start` is the t of tumbling windows (default: the time of the first event it sees); `lateness`, a timedelta or
        a text with a unit (`"5s"`), how much a stream may be out of order. `stream_names`: for CEQL, name in FROM →
        IRI, where it is not the vocabulary's. `report`, `instants` and `consumption` are for queries over windows, see
        `oxiseq.run`. `rules`: for EP-SPARQL, CONSTRUCT queries over whose closure the query is answered (one that names
        no stream reads those that the store has by now). Raises QueryError.
        """
        if language == "sparql":
            _only_standing(start, lateness, stream_names, report, instants, consumption, rules)
            _sensible(name, keep=keep, most_triples=most_triples, most_rows=most_rows)
            seconds = None if most_asking is None else duration(most_asking, "most_asking") / 1e6
            return self._standings.register(text, name, keep, Limits(most_triples, most_rows, seconds))
        given = name, keep, most_triples, most_rows, most_asking
        if given != (None, KEEP, _LIMITS.most_triples, _LIMITS.most_rows, "5m"):
            raise OxiseqError('name, keep, most_triples, most_rows and most_asking are for language="sparql" only')
        query = load(text, language)
        front = front_of(query)
        begin = None if start is None else to_microseconds(start)
        asked = said(report, instants, consumption)
        options = Options(
            begin, duration(lateness, "lateness"), stream_names, said=asked, rules=rules_of(front, rules),
            reads=tuple(self._streams),
        )  # fmt: skip
        without_reports(front, options)
        front.prepare()
        with self._lock:
            run, shape = front.compile(query, self._terms, self._kb, options)
            registered = ContinuousQuery(text, front, run, shape, self._feed, self._feeders, self._kb, options)
            self._feed.add(run, registered, begin)
            for iri in shape.reads:
                self.stream(iri)
            if registered.feeds is not None:
                self.stream(registered.feeds)
            return registered

    @property
    def standing(self) -> tuple[StandingQuery, ...]:
        """The queries that stand over the content, in the order of their registration."""
        return self._standings.queries

    def advance(self, time: int | datetime) -> None:
        """Punctuation for all streams: no event before `time` will come any more.

        A stream that queries feed comes after those that they read, so that their results are not late.
        """
        with self._lock:
            for stream in self._sources_first():
                stream.advance(time)

    def _feeders(self, query: ContinuousQuery) -> tuple[ContinuousQuery, ...]:
        """The queries whose results reach `query` through streams, upstream first."""
        found: list[ContinuousQuery] = []
        reached = [query]
        while reached:
            reads = reached.pop().reads
            new = [q for q in self._feed.queries if q.feeds in reads and q is not query and q not in found]
            found += new
            reached += new
        return tuple(reversed(found))

    def _sources_first(self) -> list[Stream]:
        left, ordered = list(self._streams), list[Stream]()
        while left:
            fed = {q.feeds for q in self._feed.queries if any(iri in left for iri in q.reads if iri != q.feeds)}
            ready = [iri for iri in left if iri not in fed] or left  # a cycle: in the order of naming
            ordered += [self._streams[iri] for iri in ready]
            left = [iri for iri in left if iri not in ready]
        return ordered

    def _repr_html_(self) -> str:
        streams = [(stream.iri, f"{stream.events:,} events") for stream in self.streams]
        queries = [(" ".join(q.variables), f"{q.events:,} events, {q.late:,} late") for q in self.queries]
        return html_table(f"{len(self):,} quads", [*streams, *queries])

    def __repr__(self) -> str:
        return f"<oxiseq.Store: {len(self)} quads, {len(self._streams)} streams, {len(self._feed.queries)} queries>"


def _only_standing(start: Any, lateness: Duration, *others: Any) -> None:
    """Raises OxiseqError for what is said about streams."""
    if start is not None or duration(lateness, "lateness") or any(others):
        raise OxiseqError("a query over the store reads no stream: it takes name, keep, most_triples, most_rows, "
                          "most_asking")


def _sensible(name: object, **numbers: object) -> None:
    """Raises OxiseqError for a name that is none, and for what are no natural numbers."""
    if name is not None and not (isinstance(name, str) and name):
        raise OxiseqError(f"name: a text that is not empty, not {name!r}")
    for what, number in numbers.items():
        if not isinstance(number, int) or isinstance(number, bool) or number < 0:
            raise OxiseqError(f"{what}: a whole number, 0 or more, not {number!r}")
