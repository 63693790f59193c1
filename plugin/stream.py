"""A named stream of RDF graph events."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from datetime import datetime

from oxiseq.continuous import ContinuousQuery
from oxiseq.engine.events.batch import EventBatch
from oxiseq.engine.events.encode import GraphLike, encode_events
from oxiseq.engine.events.time import to_microseconds
from oxiseq.engine.terms.dictionary import TermDictionary
from oxiseq.exchange import Exchange


class Stream:
    """A stream of a `Store`. Get it by `store.stream(iri)`; events go to every query that reads it."""

    def __init__(self, iri: str, terms: TermDictionary, lock: threading.RLock, exchange: Exchange) -> None:
        self.iri = iri
        self.events = 0
        """How many events were pushed."""
        self._terms = terms
        self._lock = lock
        self._exchange = exchange
        self._queries: list[ContinuousQuery] = []

    def push(self, graph: GraphLike, time: int | datetime) -> None:
        """Push one event: an rdflib.Graph, pyoxigraph triples, or RDF text; `time` as datetime or int µs.

        An instant is complete when a later event, `advance` or `close` has passed it; until then a second
        graph of the same time is merged. An event older than the watermark is late: counted by each query
        (`query.late`) and handed out by `query.late_events()`. Raises EventError for what is not RDF.
        """
        self.push_many([(time, graph)])

    def push_many(self, events: Iterable[tuple[int | datetime, GraphLike]]) -> None:
        """Push (time, graph) pairs in their order; all or, if one cannot be read, none of them."""
        with self._lock:
            self._terms.collect_if_due()
            self.push_batch(encode_events(events, self._terms))

    def push_batch(self, batch: EventBatch) -> None:
        """Push events that are already coded in the store's terms.

        An error of one query is raised after all the others have seen the events.
        """
        with self._lock:
            self.events += len(batch)
            self._for_each(lambda query: query.receive(self.iri, batch))

    def advance(self, time: int | datetime) -> None:
        """Punctuation: no event before `time` will come any more (if one does, it is late)."""
        until = to_microseconds(time)
        with self._lock:
            self._for_each(lambda query: query.punctuate(self.iri, until))

    def _for_each(self, feed: Callable[[ContinuousQuery], None]) -> None:
        errors: list[Exception] = []
        with self._exchange.held():
            for query in list(self._queries):
                try:
                    feed(query)
                except Exception as error:
                    errors.append(error)
        if errors:
            raise errors[0]

    def attach(self, query: ContinuousQuery) -> None:
        """Send the stream's events to `query` from now on."""
        self._queries.append(query)

    def detach(self, query: ContinuousQuery) -> None:
        """Stop sending events to `query`."""
        self._queries = [q for q in self._queries if q is not query]

    def __repr__(self) -> str:
        return f"<Stream {self.iri}: {self.events} events>"
