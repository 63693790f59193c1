"""The queries at work, found by what an entry of the log, or a turn, has to do with them: never by looking at all."""

from __future__ import annotations

from oxiseq.engine.run.run import Run
from oxiseq.engine.sharing.runs import Runs
from oxiseq.engine.terms.dictionary import TermDictionary
from oxiseq.live.live_query import LiveQuery


class AtWork:
    """Queries at work. `failed`, `broken`: those that are no longer, since the last emission."""

    def __init__(self, terms: TermDictionary) -> None:
        self.runs = Runs(terms)
        self.failed: list[LiveQuery] = []
        self.broken: list[LiveQuery] = []
        self.found: dict[LiveQuery, None] = {}
        """Those with matches that are not packed yet."""
        self._queries: dict[Run, LiveQuery] = {}
        self._readers: dict[str, dict[LiveQuery, None]] = {}
        self._kb_readers: dict[LiveQuery, None] = {}

    def add(self, query: LiveQuery) -> None:
        """One more."""
        self._queries[query.run] = query
        budget = query.watch.budget
        self.runs.add(query.run, query.origin, bounds=budget if budget.bounds else None)
        for stream in query.shape.reads:
            self._readers.setdefault(stream, {})[query] = None
        if query.run.reads_kb:
            self._kb_readers[query] = None

    def remove(self, query: LiveQuery) -> bool:
        """One less; whether it was at work."""
        if self._queries.pop(query.run, None) is None:
            return False
        self.runs.remove(query.run)
        self._kb_readers.pop(query, None)
        for stream in query.shape.reads:
            self._readers[stream].pop(query, None)
            if not self._readers[stream]:
                del self._readers[stream]
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

    def readers(self, stream: str) -> tuple[LiveQuery, ...]:
        """Those that read a stream."""
        return tuple(self._readers.get(stream, ()))

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
