"""A named stream of RDF graph events."""

from __future__ import annotations

from collections.abc import Mapping

from oxiseq.api.feed import Feed
from oxiseq.engine.errors import ArgumentTypeError
from oxiseq.engine.events.batch import EventBatch
from oxiseq.engine.events.encode import encode_event
from oxiseq.engine.events.report import OnError
from oxiseq.engine.events.time import Time, to_microseconds
from oxiseq.engine.flow.epsparql.stamps import with_start
from oxiseq.engine.terms.dictionary import TermDictionary
from oxiseq.grammar.arguments import internal, public
from oxiseq.mappings.declared import StreamMapping
from oxiseq.mappings.rows import BadRow
from oxiseq.options.kinds import whole_number
from oxiseq.pictures.tables import html_table
from oxiseq.sources.ignored import warn_of_late
from oxiseq.sources.sources import EventLike, Events, batches_of, check_events, row_event


@public
class Stream:
    """A stream of a `Store`. Get it by `store.stream(iri)`; events go to every query that reads it.

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

    def __init__(self, iri: str, terms: TermDictionary, feed: Feed) -> None:
        self.iri = iri
        self.events = 0
        """How many events were pushed."""
        self.rejected = 0
        """How many rows were skipped (`extend` with `on_error="skip"`)."""
        self.mapping: StreamMapping | None = None
        """What pushed rows mean; None: rows are refused."""
        self._terms = terms
        self._feed = feed

    def push(self, graph: EventLike, time: Time | None = None, start: Time | None = None) -> None:
        """Push one event: an rdflib.Graph, pyoxigraph triples, or RDF text; `time` as datetime, ISO 8601 text or
        int µs. `start`: when it began, for EP-SPARQL queries. Or a row (a dict), if the stream has a mapping, which
        names the column of its time.

        An instant is complete when a later event, `advance` or `close` has passed it; until then a second
        graph of the same time is merged. An event older than the watermark is late: counted by each query
        (`query.late_count`) and returned by `query.drain_late_events()`. Raises EventError for what is not RDF.
        """
        with self._feed.lock:
            if not isinstance(graph, list) and isinstance(graph, Mapping):
                if start is not None:
                    raise ArgumentTypeError("a row has no start: push its graph")
                self.push_batch(row_event(graph, self.mapping, time, self._terms))
                return
            if time is None:
                raise ArgumentTypeError("time: say when the event happened")
            whole = graph if start is None else with_start(graph, start)
            self.push_batch(encode_event(time, whole, self._terms))

    def extend(self, events: Events, on_error: OnError = "stop") -> int:
        """Push the events of a file (N-Quads, TriG, RDF Messages, Jelly, an event table), or (graph, time) pairs of a
        list or a generator, in their order; how many. (time, graph) works, too. They are pushed some thousand at a
        time: all of a part or, if one cannot be read, none. With a mapping also rows: dicts, a DataFrame,
        Arrow, a file of CSV, JSON Lines or Parquet. `on_error="skip"` skips malformed events of files and bad
        rows, which `rejected` counts. Raises EventError."""
        check_events(events)
        count = 0
        with self._feed.lock:
            readers = {query: query.late_count for query in self._feed.readers(self.iri)}
            for batch in batches_of(events, self._terms, on_error, mapping=self.mapping, bad=self._reject):
                self.push_batch(batch)
                count += len(batch)
            late = max((query.late_count - before for query, before in readers.items()), default=0)
        warn_of_late(late, count)
        return count

    def _reject(self, row: BadRow) -> None:
        self.rejected += 1

    @internal
    def push_batch(self, batch: EventBatch) -> None:
        """Push events that are already coded in the store's terms, as readers do; whoever codes them otherwise and
        keeps them for later lets the dictionary `hold` their ids.

        An error of one query is raised after all the others have seen the events.
        """
        with self._feed.lock:
            self._feed.check_open()
            self.events += len(batch)
            self._feed.push(self.iri, batch)
            self._terms.collect_if_due()

    def retain(self, events: int) -> None:
        """Keep the newest `events` events in memory from now on, for `query.why()`; 0, the default: none. Raises
        ArgumentValueError for less."""
        self._feed.retain(self.iri, whole_number(events, "events"))

    def advance(self, time: Time) -> None:
        """Advances the watermark (punctuation): no event before `time` will come; if one does, it is late."""
        self._feed.punctuate(self.iri, to_microseconds(time))

    def _repr_html_(self) -> str:
        return html_table(self.iri, [("events", f"{self.events:,}")])

    def __repr__(self) -> str:
        return f"<Stream {self.iri}: {self.events} events>"
