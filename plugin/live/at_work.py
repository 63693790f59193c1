"""The queries at work, found by what an entry of the log, or a turn, has to do with them: never by looking at all."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import NamedTuple

from oxiseq.engine.run.run import Run
from oxiseq.engine.sharing.runs import Runs
from oxiseq.engine.terms.dictionary import TermDictionary
from oxiseq.live.live_query import LiveQuery


class Readers(NamedTuple):
    """Queries that read a stream. `lateness`: the largest that one of them allows (µs); `fits`: those of which one may
    not take every event, by what they take."""

    queries: tuple[LiveQuery, ...]
    lateness: int
    fits: Mapping[Hashable, Sequence[LiveQuery]]

    @classmethod
    def of(cls, queries: tuple[LiveQuery, ...]) -> Readers:
        """Some queries."""
        fits = dict[Hashable, list[LiveQuery]]()
        for query in queries:
            if query.run.fits is not None:
                fits.setdefault(query.run.fits, []).append(query)
        lateness = max((query.run.lateness for query in queries), default=0)
        return cls(queries, lateness, fits)


class AtWork:
    """Queries at work. `failed`, `broken`: those that are no longer, since the last emission."""

    def __init__(self, terms: TermDictionary) -> None:
        self.runs = Runs(terms)
        self.failed: list[LiveQuery] = []
        self.broken: list[LiveQuery] = []
        self.found: dict[LiveQuery, None] = {}
        """Those with matches that are not packed yet."""
        self.omitted: dict[str, int] = {}
        """How many instants were left out for queries since the last emission, by name."""
        self.writers: dict[LiveQuery, None] = {}
        """Those whose results go to streams."""
        self._queries: dict[Run, LiveQuery] = {}
        self._readers: dict[str, tuple[LiveQuery, ...]] = {}
        self._known: dict[str, Readers] = {}
        """As they were when somebody asked."""
        self._kb_readers: dict[LiveQuery, None] = {}

    def add(self, query: LiveQuery) -> None:
        """One more."""
        self._queries[query.run] = query
        budget = query.watch.budget  # of bytes each query that shares a state has its part
        self.runs.add(query.run, query.origin, bounds=None if budget.records is None else budget)
        for stream in query.shape.reads:
            self._readers[stream] = (*self._readers.get(stream, ()), query)
        if query.shape.feeds is not None:
            self.writers[query] = None
        if query.run.reads_kb:
            self._kb_readers[query] = None

    def remove(self, query: LiveQuery) -> bool:
        """One less; whether it was at work."""
        if self._queries.pop(query.run, None) is None:
            return False
        self.runs.remove(query.run)
        self._kb_readers.pop(query, None)
        self.writers.pop(query, None)
        for stream in query.shape.reads:
            self._readers[stream] = tuple(each for each in self._readers[stream] if each is not query)
            if not self._readers[stream]:
                del self._readers[stream]
                self._known.pop(stream, None)
        return True

    def of(self, run: Run) -> LiveQuery:
        """Whose run that is."""
        return self._queries[run]

    def __contains__(self, query: LiveQuery) -> bool:
        return query.run in self._queries

    @property
    def queries(self) -> tuple[LiveQuery, ...]:
        """All, in the order in which they came."""
        return tuple(self._queries.values())

    @property
    def streams(self) -> set[str]:
        """Those that are read."""
        return set(self._readers)

    def readers(self, stream: str) -> Readers:
        """Those that read a stream. For other threads, too."""
        queries = self._readers.get(stream, ())
        known = self._known.get(stream)
        if known is None or known.queries is not queries:
            known = self._known[stream] = Readers.of(queries)
        return known

    @property
    def kb_readers(self) -> tuple[LiveQuery, ...]:
        """Those that ask the knowledge base."""
        return tuple(self._kb_readers)

    def stepped(self) -> list[LiveQuery]:
        """Those whose state may be another than at the last call."""
        return [self._queries[run] for run in self.runs.stepped() if run in self._queries]

    @property
    def upset(self) -> bool:
        """Whether some are no longer at work and this has not been reported."""
        return bool(self.failed or self.broken)
