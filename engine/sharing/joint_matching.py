"""One pass over the events of streams for all queries that read them.

complete instants ─ match kernel ─ **rows of each query's patterns**
"""

from __future__ import annotations

from collections.abc import Collection, Container, Iterable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from oxiseq.engine.errors import LimitError
from oxiseq.engine.order.clock import Instants
from oxiseq.engine.patterns.matcher import Rows, StreamMatcher
from oxiseq.engine.patterns.plan import StreamPlan, combine
from oxiseq.engine.run.finder import Finder
from oxiseq.engine.run.query import QueryRun
from oxiseq.engine.sharing.dozing import ending
from oxiseq.engine.terms.dictionary import TermDictionary


class Matched(NamedTuple):
    """What some instants bring. `rows`: of those awake that have some, per stream and request; `ending`: those that
    have some at which a match may end, of which `roused` were asleep."""

    rows: dict[Finder, list[list[Rows]] | None]
    ending: frozenset[Finder]
    roused: tuple[Finder, ...]


class _Stream(NamedTuple):
    """A stream's kernel. Of each of its patterns: `finder` i64, whose it is; `request`; `ends` bool, whether a match
    may end there."""

    matcher: StreamMatcher | None
    finder: NDArray[np.int64]
    request: tuple[int, ...]
    ends: NDArray[np.bool_]


class JointMatching:
    """Of queries of the same streams. `runs`: by what finds their matches; `dozes`: those that may fall asleep."""

    def __init__(
        self,
        runs: Sequence[QueryRun],
        streams: int,
        terms: TermDictionary,
        bounded: Collection[QueryRun],
        asleep: Iterable[Finder],
    ) -> None:
        self.runs: dict[Finder, list[QueryRun]] = {}
        for run in runs:
            self.runs.setdefault(run.finder, []).append(run)
        self._finders = list(self.runs)
        self._number = {finder: number for number, finder in enumerate(self._finders)}
        self.count = len(runs)
        ends = [ending(finder.plan) for finder in self._finders]
        kept_awake = {run.finder for run in runs if run.teller.watchful or run in bounded}
        self.dozes = {finder for finder, names in zip(self._finders, ends, strict=True) if names} - kept_awake
        self._asleep = np.zeros(len(self._finders), np.bool_)
        for finder in asleep:
            self.mark(finder, asleep=True)
        self._streams = [self._stream(number, ends, terms) for number in range(streams)]
        self.listening = {finder for finder, mine in self.runs.items() if not any(run.teller.watchful for run in mine)}
        """Those whose queries only wait for matches: an instant without any is nothing to them."""
        self._seen: set[Finder] = set()
        self._marked = True
        """Whether one has fallen asleep, or is awake again, since the kernels know what is wanted."""

    def _stream(self, number: int, ends: Sequence[frozenset[str]], terms: TermDictionary) -> _Stream:
        plans = [finder.plan.runner.requests[number] or _NO_REQUESTS for finder in self._finders]
        plan, owners = combine(plans)
        named = [plans[of].name(request) in ends[of] for of, request in owners]
        return _Stream(
            StreamMatcher(plan, terms) if plan.kernel else None,
            np.array([of for of, _ in owners], np.int64),
            tuple(request for _, request in owners),
            np.array(named, np.bool_),
        )

    def note_seen(self, finder: Finder) -> None:
        """All its queries have seen instants, also those that are not stepped."""
        if finder not in self._seen:
            self._seen.add(finder)
            for run in self.runs[finder]:
                run.origin = None

    def mark(self, finder: Finder, *, asleep: bool) -> None:
        """One falls asleep, or is awake again."""
        self._asleep[self._number[finder]] = asleep
        self._marked = True

    def rows(self, part: Instants, asleep: Container[Finder]) -> Matched | None:
        """What instants of the clock of those `asleep` bring; None when a limit was passed."""
        try:
            hits = self._hits(part)
            matched = self._roused(hits, asleep)
            if matched.roused:  # the rows that nobody wanted while they slept
                hits = self._hits(part)
        except LimitError:
            return None
        return matched._replace(rows=self._rows(hits))

    def _hits(self, part: Instants) -> list[NDArray[np.int64]]:
        """Per stream the patterns that have rows: of those asleep only where a match may end. Raises LimitError."""
        if self._marked:
            for stream in self._streams:
                if stream.matcher is not None:
                    stream.matcher.want(stream.ends | ~self._asleep[stream.finder])
            self._marked = False
        hits: list[NDArray[np.int64]] = []
        for stream, batch in zip(self._streams, part.batches, strict=True):
            hits.append(_NONE if stream.matcher is None else stream.matcher.find(batch))
            for errors in () if stream.matcher is None else stream.matcher.beyond.values():
                raise next(iter(errors.values()))
        return hits

    def _roused(self, hits: Sequence[NDArray[np.int64]], asleep: Container[Finder]) -> Matched:
        """Who has rows at which a match may end, without the rows; those who slept are awake."""
        numbers = {
            number
            for stream, hit in zip(self._streams, hits, strict=True)
            for number in stream.finder[hit[stream.ends[hit]]].tolist()
        }
        may_end = frozenset(self._finders[number] for number in numbers)
        roused = tuple(finder for finder in may_end if finder in asleep)
        for finder in roused:
            self.mark(finder, asleep=False)
        return Matched({}, may_end, roused)

    def _rows(self, hits: Sequence[NDArray[np.int64]]) -> dict[Finder, list[list[Rows]] | None]:
        found: dict[Finder, list[list[Rows]]] = {}
        for number, (stream, hit) in enumerate(zip(self._streams, hits, strict=True)):
            if stream.matcher is None or not len(hit):
                continue
            awake = hit[~self._asleep[stream.finder[hit]]].tolist()
            rows = stream.matcher.rows_of(awake)
            for pattern in awake:
                finder = self._finders[stream.finder[pattern]]
                mine = found.get(finder)
                if mine is None:
                    mine = found[finder] = finder.nothing
                mine[number][stream.request[pattern]] = rows[pattern]
        return dict(found)


_NO_REQUESTS = StreamPlan((), (), (), (), (), ())
_NONE = np.zeros(0, np.int64)
