"""The run of an automaton: each query chooses among its own matches of an instant, and has bounds of its own.

In the flow: rows of common letters → **finals of an instant, query by query** → matches that name their query.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from oxiseq.engine.automaton.memory import (
    finals_begun_with,
    with_tables,
)
from oxiseq.engine.automaton.queries import JoinedQuery
from oxiseq.engine.bounds import CHOICES, MATCHES, InstantBound
from oxiseq.engine.errors import LimitError
from oxiseq.engine.kernels.matches.records import (
    ALLOWED,
    EMITTED,
    FINALS,
    NO_LIMIT,
    NODE_BASE,
    NODE_TOP,
    PLACE_BITS,
    PROGRESS,
    STACK,
    UNCOUNTED,
)
from oxiseq.engine.kernels.sequence import records as k
from oxiseq.engine.matches.found import without_last
from oxiseq.engine.matches.frozen import FrozenMatches
from oxiseq.engine.matches.runner import UNCOUNTED_MOST
from oxiseq.engine.output.rows import RowStore
from oxiseq.engine.sequence.memory import Capacities, without_spare_nodes
from oxiseq.engine.sequence.run import RowBuffer, SequenceRun
from oxiseq.engine.sequence.tables import CompiledFilter, CompiledFold, SequenceTables
from oxiseq.engine.terms.dictionary import TermDictionary


class Stop(NamedTuple):
    """Where a run has stopped: before an instant of its rows at which `queries` would do too much; `low`: the first row
    there."""

    instant: int
    low: int
    queries: list[int]


class CommonRun(SequenceRun):
    """The run of an automaton. `left_out`: by query the instants (µs) at which it has more matches than may be listed;
    `failed`: by number of a query the error of a decision that Python could not make; `by_query`: the queries of each
    number, of which several stand on a ladder; `rows`: those that nodes name; `stopped`: if it has not worked through
    all."""

    def __init__(
        self, compiled: SequenceTables, terms: TermDictionary, by_query: Mapping[int, Sequence[JoinedQuery]]
    ) -> None:
        super().__init__(compiled, terms, Capacities())
        self.left_out: dict[JoinedQuery, dict[int, tuple[InstantBound, int | LimitError]]] = {}
        self.failed: dict[int, Exception] = {}
        self.stopped: Stop | None = None
        self.by_query, self.rows = by_query, RowStore(1)
        self.filters_of: list[int] = []
        """By filter the query that it is of."""

    def become(self, compiled: SequenceTables) -> None:
        """Queries have been added to its tables, or have gone from them."""
        self.clean()
        self._memory = with_tables(self._memory, compiled, self._capacities, self._terms)
        self._compiled, self._no_rows = compiled, RowBuffer.empty(compiled)

    @property
    def memory(self) -> k.Memory:
        """Of all queries."""
        return self._memory

    @memory.setter
    def memory(self, memory: k.Memory) -> None:
        self._memory = memory

    def _begin_counting(self, memory: k.Memory) -> None:
        most = UNCOUNTED_MOST + 64 * len(self._compiled.tables.windows)
        memory.scalars[UNCOUNTED] = min(self.bounds.matches, most)

    @property
    def _halts(self) -> bool:
        return self.over or self.stopped is not None

    def _leave_out(self, at: int) -> None:
        """Queries that do too much at an instant, or nearly, are to leave before it: which of a ladder's do, each of
        them knows alone."""
        work, scalars, rows = self._memory.work, self._memory.scalars, self._rows.arrays
        now = work[:, k.WORK_OF] == scalars[k.ATTEMPT]
        queries = np.flatnonzero(now & (work[:, k.READ_BY] > self.bounds.reads >> 3))
        self.stopped = Stop(at, int(rows.base[0] + rows.first[at]), queries.tolist())
        scalars[[FINALS, k.PENDING, k.FIRED, k.PHASE]] = 0
        self._memory = without_spare_nodes(self._memory)

    def _list(self, instant: int) -> None:
        """Each query for itself: one with too many matches at the instant has none there."""
        scalars = self._memory.scalars
        limits, kept, whole = self._compiled.tables.windows["limit"], list[NDArray[np.int64]](), True
        for query, finals in self._finals_of_each():
            within = limits[query] <= self.bounds.matches
            given = 0 if within else min(limits.item(query), self._count(finals))
            if given > self.bounds.matches:
                finals, whole = self._within(finals, given, self.by_query[query], instant), False
            kept.append(finals)
        scalars[ALLOWED] = NO_LIMIT
        if whole:
            return
        self._drain()
        self._parts = without_last(self._parts, scalars.item(EMITTED))
        self._put(kept)
        scalars[[PROGRESS, EMITTED, STACK]] = 0
        self._memory.quotas[:] = limits
        if not scalars[FINALS] and not self._waited:  # else the kernel has not come to the instant yet
            self._pass_by()

    def _finals_of_each(self) -> Iterator[tuple[int, NDArray[np.int64]]]:
        """The finals of each number, in their order."""
        finals = self._memory.finals[: self._memory.scalars[FINALS]].copy()
        finals = finals[np.argsort(finals[:, 2], kind="stable")]
        queries, first = np.unique(finals[:, 2], return_index=True)
        return zip(queries.tolist(), np.split(finals, first[1:]), strict=True)

    def _put(self, kept: list[NDArray[np.int64]]) -> None:
        """These are the finals."""
        memory = self._memory
        whole = np.concatenate([memory.finals[:0], *kept])
        if len(whole) > len(memory.finals):
            memory = memory._replace(finals=np.zeros((2 * len(whole), memory.finals.shape[1]), np.int64))
        memory.finals[: len(whole)] = whole
        memory.scalars[FINALS] = len(whole)
        self._memory = memory

    def _within(
        self, finals: NDArray[np.int64], given: int, members: Sequence[JoinedQuery], instant: int
    ) -> NDArray[np.int64]:
        """The finals of a number, below which too many matches are, without those of queries that have too many."""
        rung = members[0].rung
        if rung is None:
            self.left_out.setdefault(members[0], {})[instant] = MATCHES, given
            return finals[:0]
        memory = self._memory
        scalars = memory.scalars.copy()
        scalars[FINALS] = len(finals)
        frozen = FrozenMatches(memory._replace(scalars=scalars, finals=finals))
        nodes = np.flatnonzero(frozen.begins)
        ids = frozen.pos[nodes] >> PLACE_BITS
        rows, kept = self.rows.take(ids), np.zeros(self.rows.held, np.uint8)
        for member in members:
            begins = rung.ladder.begins(member, rows)
            frozen.leave_out(nodes[~begins])
            given = NO_LIMIT if frozen.exceeds(NO_LIMIT) else frozen.count
            if given > self.bounds.matches:
                self.left_out.setdefault(member, {})[instant] = MATCHES, given
            else:
                kept[ids[begins] - self.rows.base] = 1
        self._memory, finals = finals_begun_with(memory, finals, kept, self.rows.base)
        return finals

    def _chosen(self, instant: int) -> k.Memory:
        """Of each query the matches that it keeps."""
        kept = list[NDArray[np.int64]]()
        for query, finals in self._finals_of_each():
            member = self.by_query[query][0]
            if not member.finder.plan.clauses.chooses:
                kept.append(finals)
                continue
            self._put([finals])
            try:
                self._memory = member.finder.choice.pick(self._memory, member)
            except LimitError as error:
                self.left_out.setdefault(member, {})[instant] = CHOICES, error
            except Exception as error:  # it is one query's: the others go on
                self.failed.setdefault(query, error)
            else:
                finals = self._memory.finals[: self._memory.scalars[FINALS]].copy()
                finals[:, 2] = query
                kept.append(finals)
        self._put(kept)
        scalars = self._memory.scalars
        if not scalars[FINALS]:
            scalars[NODE_TOP] = scalars[NODE_BASE]
        return self._memory

    def _answer(self, asked: CompiledFilter | CompiledFold, vector: NDArray[np.int64]) -> int:
        try:
            return super()._answer(asked, vector)
        except Exception as error:  # it is one query's: the others go on
            self.failed.setdefault(self.filters_of[self._compiled.filters.index(asked)], error)
            return 0
