"""One pass over the events of streams for the queries that read them and are in no automaton.

complete instants ─ match kernel ─ **rows of each query's patterns**
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from oxiseq.engine.errors import LimitError
from oxiseq.engine.order.clock import Instants
from oxiseq.engine.patterns.matcher import Rows, StreamMatcher
from oxiseq.engine.patterns.plan import StreamPlan, combine
from oxiseq.engine.run.finder import Finder
from oxiseq.engine.run.query import QueryRun
from oxiseq.engine.terms.dictionary import TermDictionary


class _Stream(NamedTuple):
    """A stream's kernel. Of each of its patterns: whose it is, and its number among those."""

    matcher: StreamMatcher | None
    finder: tuple[int, ...]
    request: tuple[int, ...]


class JointMatching:
    """Of queries of the same streams. `runs`: by what finds their matches."""

    def __init__(self, runs: Sequence[QueryRun], streams: int, terms: TermDictionary) -> None:
        self.runs: dict[Finder, list[QueryRun]] = {}
        for run in runs:
            self.runs.setdefault(run.finder, []).append(run)
        self._finders = list(self.runs)
        self.count = len(runs)
        self._streams = [self._stream(number, terms) for number in range(streams)]
        self.listening = {finder for finder, mine in self.runs.items() if not any(run.teller.watchful for run in mine)}
        """Those whose queries only wait for matches: an instant without any is nothing to them."""
        self._seen: set[Finder] = set()

    def _stream(self, number: int, terms: TermDictionary) -> _Stream:
        plan, owners = combine([finder.plan.runner.requests[number] or _NO_REQUESTS for finder in self._finders])
        matcher = StreamMatcher(plan, terms) if plan.kernel else None
        return _Stream(matcher, tuple(of for of, _ in owners), tuple(request for _, request in owners))

    def note_seen(self, finder: Finder) -> None:
        """All its queries have seen instants, also those that are not stepped."""
        if finder not in self._seen:
            self._seen.add(finder)
            for run in self.runs[finder]:
                run.origin = None

    def rows(self, part: Instants) -> dict[Finder, list[list[Rows]] | None] | None:
        """What instants bring those that have rows there, per stream and request; None when a limit was passed."""
        found: dict[Finder, list[list[Rows]] | None] = {}
        for number, (stream, batch) in enumerate(zip(self._streams, part.batches, strict=True)):
            if stream.matcher is None:
                continue
            try:
                hits = stream.matcher.find(batch).tolist()
            except LimitError:
                return None
            if stream.matcher.beyond:
                return None
            rows = stream.matcher.rows_of(hits)
            for pattern in hits:
                finder = self._finders[stream.finder[pattern]]
                mine = found.get(finder)
                if mine is None:
                    mine = found[finder] = finder.nothing
                mine[number][stream.request[pattern]] = rows[pattern]
        return found


_NO_REQUESTS = StreamPlan((), (), (), (), (), ())
