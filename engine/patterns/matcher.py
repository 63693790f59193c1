"""Runs a StreamPlan on event batches.

In the flow: event batch → **occurrences** of each GPM → sequence engine. The matcher owns all that changes
(memo tables, output buffers, operators); a batch's answer depends on the batch alone, and an event's
rows and their order on that event alone.
"""

from __future__ import annotations

from collections.abc import Container, Sequence
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray
from pyoxigraph import Store

from oxiseq.engine.errors import MappingsError
from oxiseq.engine.events.batch import EventBatch
from oxiseq.engine.events.time import to_text
from oxiseq.engine.extras import needed
from oxiseq.engine.kb import KnowledgeBase, StoreKb
from oxiseq.engine.kb_in_time import KbInTime
from oxiseq.engine.kernels.matching import match
from oxiseq.engine.kernels.matching import records as k
from oxiseq.engine.kernels.matching.records import MatchTables
from oxiseq.engine.kernels.memory.pointers import AS_I64, AS_U32, Bound, Pointers, address_of, plain
from oxiseq.engine.kernels.terms.columns import TermColumns
from oxiseq.engine.matching.asking import KNOWN_TRUE
from oxiseq.engine.matching.conditions import ConditionMemo, passes
from oxiseq.engine.matching.tables import NativeGpm, build_tables
from oxiseq.engine.patterns.plan import KernelGpm, StreamPlan
from oxiseq.engine.terms.blanks import KbBlanks
from oxiseq.engine.terms.dictionary import TermDictionary
from oxiseq.grammar.records import dataclass

if TYPE_CHECKING:
    from oxiseq.engine.patterns import operators
else:
    operators = needed("oxiseq.engine.patterns.operators")


@dataclass(frozen=True, slots=True)
class Occurrences:
    """The mappings of one GPM on a batch: k rows.

    event: i64[k], ascending, the event's index in the batch. values: u32[k, kept variables], 0 unbound.
    """

    event: NDArray[np.int64]
    values: NDArray[np.uint32]

    def __len__(self) -> int:
        return len(self.event)


@dataclass(frozen=True, slots=True)
class MatchLimits:
    """Bounds on one GPM's work on one event, past which it has no rows there; and sizes that tests make tiny."""

    rows: int = 1_000_000
    visits: int = 200_000_000
    buffer: int = 1 << 14
    """Rows of the output buffer to begin with; it doubles."""
    heads: int = 1 << 10
    """Heads of the hash chains, a power of two; more for larger events."""
    hash_from: int = 16
    """Triples of a view from which on it is searched by hash."""
    grow_heads: bool = True
    chunk: int = 4096
    """Events that operators get in one step."""


DEFAULT_LIMITS: Final = MatchLimits()
_NONE: Final = np.zeros(0, np.int64)
_FIRST: Final = np.zeros(1, np.int64)
_HITS: Final = 256
"""Hits of an event that there is room for to begin with."""


class Rows(NamedTuple):
    """The mappings of one GPM as they lie in a buffer: rows `low : high`, valid until the matcher's next batch.

    event: i64[*], ascending, the event's index in the batch; values: u32[*, columns]; `addresses` of both.
    """

    event: NDArray[np.int64]
    values: NDArray[np.uint32]
    low: int
    high: int
    addresses: tuple[int, int]

    @classmethod
    def of(cls, event: NDArray[np.int64], values: NDArray[np.uint32]) -> Rows:
        """Arrays of their own."""
        values = np.ascontiguousarray(values)
        return cls(event, values, 0, len(event), (address_of(event), address_of(values)))

    def copied(self, width: int) -> Occurrences:
        """For keeping: the first `width` columns."""
        if self.low == self.high:
            return _none_of(width)
        return Occurrences(self.event[self.low : self.high].copy(), self.values[self.low : self.high, :width].copy())


def _without(rows: Rows, events: Container[int]) -> Rows:
    """Without those of some events."""
    event, values = rows.event[rows.low : rows.high], rows.values[rows.low : rows.high]
    kept = [number for number, each in enumerate(event.tolist()) if each not in events]
    return rows if len(kept) == len(event) else Rows.of(event[kept], values[kept])


@cache
def _none_of(width: int) -> Occurrences:
    return Occurrences(np.zeros(0, np.int64), np.zeros((0, width), np.uint32))


class StreamMatcher:
    """Matches the GPMs of one plan. `kb` serves patterns that hold GRAPH where it cannot be split off (None: an empty
    one); `blanks`: its blank nodes, where a run knows them beyond one version of the KB."""

    def __init__(
        self,
        plan: StreamPlan,
        terms: TermDictionary,
        kb: KnowledgeBase | None = None,
        limits: MatchLimits = DEFAULT_LIMITS,
        blanks: KbBlanks | None = None,
    ) -> None:
        self.plan = plan
        self._terms = terms
        self._limits = limits = replace(limits, visits=min(limits.visits, terms.bounds.reads))
        self._memo = ConditionMemo(plan.memo, terms)
        self._operators: list[operators.OperatorMatcher] = []
        if plan.operators:
            in_time = KbInTime.of(StoreKb(Store()) if kb is None else kb)
            blanks = KbBlanks(terms) if blanks is None else blanks
            self._operators = [
                operators.OperatorMatcher(gpm, terms, in_time, blanks, limits.rows, limits.chunk)
                for gpm in plan.operators
            ]
        self._kernel: _Kernel | None = None  # a query among others may never need its own
        self._wanted = np.ones(len(plan.kernel), np.bool_)
        distinct: dict[NativeGpm, int] = {}
        numbers = [distinct.setdefault(gpm, len(distinct)) for gpm in plan.native]
        self._native = tuple(distinct)
        self._place = np.array(numbers, np.int64)
        """Of each of the kernel's GPMs which of its tables' it is: equal ones are one there, with the same rows."""
        nothing = {
            width: Rows.of(np.zeros(0, np.int64), np.zeros((0, max(width, 1)), np.uint32)) for width in {*plan.widths}
        }
        self.nothing = [nothing[width] for width in plan.widths]
        """Per request, then per leaf, rows that are none."""
        self.beyond: dict[int, dict[int, MappingsError]] = {}
        """By number the kernel's GPMs that were beyond a limit on events of the last batch that `find` got, of those
        that are wanted; by event the error, which is the same whatever other GPMs there are."""

    def match(self, batch: EventBatch) -> list[Occurrences]:
        """The occurrences of each request on the batch. Raises LimitError when a GPM has more rows on one event than
        the limit allows."""
        return self._copied(self.rows(batch))

    def match_within(self, batch: EventBatch) -> tuple[list[Occurrences], dict[int, MappingsError]]:
        """The same, as `rows_within`."""
        rows, beyond = self.rows_within(batch)
        return self._copied(rows), beyond

    def _copied(self, rows: list[Rows]) -> list[Occurrences]:
        return [rows[number].copied(len(request.keep)) for number, request in enumerate(self.plan.requests)]

    def rows(self, batch: EventBatch, found: list[Rows] | None = None) -> list[Rows]:
        """The same, in the matcher's own buffers: valid until its next batch, with further columns behind, and further
        rows, those of leaves, behind those of the requests.

        `found`: what `native` or another matcher has found for the kernel's GPMs.
        """
        return self._completed(batch, self.native(batch) if found is None else found)

    def _completed(self, batch: EventBatch, found: Sequence[Rows]) -> list[Rows]:
        """The rows of the kernel's GPMs, then of all others. Raises LimitError."""
        found = list(found)
        for request, conditions in self.plan.everywhere:
            n = len(batch) if all(passes(c, (), self._terms)[0] for c in conditions) else 0
            found[request] = Rows.of(np.arange(n, dtype=np.int64), np.zeros((n, 1), np.uint32))
        for each in self._operators if len(batch) else ():
            found[each.gpm.request] = Rows.of(
                *each.match(
                    batch,
                    [
                        (rows.event[rows.low : rows.high], rows.values[rows.low : rows.high])
                        for rows in found[each.gpm.first_leaf :][: len(each.gpm.leaves)]
                    ],
                )
            )
        return found

    def rows_within(
        self, batch: EventBatch, found: list[Rows] | None = None
    ) -> tuple[list[Rows], dict[int, MappingsError]]:
        """As `rows`, where an event on which a GPM is beyond a limit has no mappings at all; and such events, by
        number, each with the error of its first GPM."""
        beyond: dict[int, MappingsError] = {}
        if found is None:
            found = self._found(batch)
            if self.beyond:
                beyond = self._first_beyond()
        while True:
            kept = [_without(each, beyond) for each in found] if beyond else found
            try:
                rows = self._completed(batch.without([*beyond]), kept)
            except MappingsError as error:
                if error.event in beyond:  # of the knowledge base alone
                    raise
                beyond[error.event] = error
            else:
                return [_without(each, beyond) for each in rows] if beyond else rows, beyond

    def native(self, batch: EventBatch) -> list[Rows]:
        """The rows of the kernel's GPMs, for `rows`; `nothing` itself where there are none. Raises LimitError."""
        found = self._found(batch)
        if self.beyond:
            raise min(self._first_beyond().items())[1]
        return found

    def _found(self, batch: EventBatch) -> list[Rows]:
        """The same, where events on which a GPM is beyond a limit have those of the others."""
        numbers = self.find(batch)
        if not len(numbers):
            return self.nothing
        found = list(self.nothing)
        for request, rows in self.rows_of(numbers.tolist()).items():
            found[request] = rows
        return found

    def want(self, wanted: NDArray[np.bool_]) -> None:
        """Of the kernel's GPMs `find` finds these from now on, by number; at first all."""
        self._wanted = wanted
        if self._kernel is not None:
            self._kernel.want(self._wanted_native)

    @property
    def _wanted_native(self) -> NDArray[np.bool_]:
        """The same of those in its tables."""
        if len(self._native) == len(self._place):
            return self._wanted
        wanted = np.zeros(len(self._native), np.bool_)
        wanted[self._place[self._wanted]] = True
        return wanted

    # --- the kernel ---------------------------------------------------------------------------------

    def find(self, batch: EventBatch) -> NDArray[np.int64]:
        """The numbers of the kernel's GPMs that may have rows on a batch: `rows_of` says which. A GPM has none on an
        event on which it is beyond a limit, which `beyond` says."""
        self.beyond = {}
        if not len(batch) or not self.plan.kernel:
            return _NONE
        if self._kernel is None:
            self._kernel = _Kernel(build_tables(self._native, self._terms), self._limits, self._terms.columns)
            self._kernel.want(self._wanted_native)
        kernel = self._kernel
        rows = kernel.run(batch, self._terms.columns, self._memo.reserve())
        if kernel.state[k.LIMITS]:
            if self._learn_conditions(kernel, batch):
                rows = kernel.run(batch, self._terms.columns, self._memo.reserve())
            self.beyond = self._named_beyond(kernel, batch)
        if rows == 0:
            return _NONE
        row0 = kernel.memory.row0
        if len(self._native) < len(self._place):
            return np.flatnonzero(((row0[1:] != row0[:-1])[self._place]) & self._wanted)
        return np.flatnonzero(row0[1:] != row0[:-1]) if len(row0) > 2 else _FIRST

    def rows_of(self, numbers: Sequence[int]) -> dict[int, Rows]:
        """By request or leaf the rows that some of the kernel's GPMs have on the last batch, of those that `find` has
        named."""
        found: dict[int, Rows] = {}
        if not numbers:
            return found
        assert self._kernel is not None, "a batch has been looked at"
        kernel = self._kernel
        memory, addresses, row0 = kernel.memory, kernel.addresses, kernel.memory.row0
        doubtful = int(kernel.state[k.DOUBTFUL])
        for number in numbers:
            gpm = self.plan.kernel[number]
            place = int(self._place[number])
            low, high = int(row0[place]), int(row0[place + 1])
            if doubtful or gpm.distinct:
                found[gpm.request] = self._decided(gpm, memory, low, high)
            else:
                found[gpm.request] = Rows(memory.event, memory.row_values, low, high, addresses)
        return found

    def _learn_conditions(self, kernel: _Kernel, batch: EventBatch) -> bool:
        """Evaluate conditions of GPMs beyond a limit for the terms of the event; whether something was not known. A row
        counts as long as its conditions are not known: what a GPM has would depend on events before."""
        learned = False
        for event, place, _ in kernel.limits.tolist():
            tables = [table for table in self.plan.kernel[int(np.argmax(self._place == place))].memo if table >= 0]
            if tables:
                triples = slice(int(batch.offset[event]), int(batch.offset[event + 1]))
                ids = np.unique(np.concatenate([column[triples] for column in batch.ids]))
                for table in tables:
                    learned |= self._memo.learn(table, ids)
        return learned

    def _named_beyond(self, kernel: _Kernel, batch: EventBatch) -> dict[int, dict[int, MappingsError]]:
        limits = kernel.limits.tolist()
        found: dict[int, dict[int, MappingsError]] = {}
        alike: dict[tuple[int, str], dict[int, MappingsError]] = {}
        for place in {place for _, place, _ in limits}:
            for number in np.flatnonzero((self._place == place) & self._wanted).tolist():
                name = self.plan.name(self.plan.kernel[number].request)
                if (place, name) not in alike:
                    alike[place, name] = {
                        event: self._error(reason, name, batch, event) for event, at, reason in limits if at == place
                    }
                found[number] = alike[place, name]
        return found

    def _first_beyond(self) -> dict[int, MappingsError]:
        """By event the error of the first GPM that is beyond a limit there."""
        first: dict[int, MappingsError] = {}
        for _, errors in sorted(self.beyond.items(), reverse=True):
            first |= errors
        return first

    def _error(self, reason: int, name: str, batch: EventBatch, event: int) -> MappingsError:
        where = f"GPM {name} on the event at {to_text(int(batch.time[event]))}"
        if reason == match.TOO_MANY_ROWS:
            return MappingsError(self._limits.rows + 1, self._limits.rows, f"mappings of {where}", event)
        return MappingsError(self._limits.visits + 1, self._limits.visits, f"steps of the join of {where}", event)

    def _decided(self, gpm: KernelGpm, memory: k.MatchMemory, low: int, high: int) -> Rows:
        """The rows of a GPM without those that exact arithmetic refuses, and without repetitions."""
        event, values = memory.event[low:high], memory.row_values[low:high, : len(gpm.columns)]
        flags = memory.flag[low:high]
        if flags.any():
            decided = self._decide(gpm, values, flags)
            event, values = event[decided], values[decided]
        if gpm.distinct:
            keep = first_of_each(event, values)
            event, values = event[keep], values[keep]
        return Rows.of(np.ascontiguousarray(event), values)

    def _decide(self, gpm: KernelGpm, values: NDArray[np.uint32], flags: NDArray[np.uint8]) -> NDArray[np.bool_]:
        """Which rows remain once the undecided ones among them are evaluated exactly."""
        keep = np.ones(len(values), np.bool_)
        place = {v: i for i, v in enumerate(gpm.columns)}
        asked = np.flatnonzero(flags)
        # tables first: they are cheap once filled
        order = sorted(zip(gpm.conditions, gpm.memo, strict=True), key=lambda item: item[1] < 0)
        for condition, table in order:
            columns = [values[asked, place[v]] for v in condition.variables]
            if not columns:
                holds = np.full(len(asked), passes(condition, (), self._terms)[0])
            elif table >= 0:
                holds = self._memo.outcomes(table, columns[0]) == KNOWN_TRUE
            else:
                holds = passes(condition, columns, self._terms)
            keep[asked[~holds]] = False
            asked = asked[holds]
        return keep


class _Kernel:
    """The match kernel with its scratch memory and output, which grow on demand."""

    def __init__(self, tables: MatchTables, limits: MatchLimits, columns: TermColumns) -> None:
        self._limits = limits
        self._most_hits_per_triple = int(tables.widths[3])
        self._gpm, self._gpm0 = tables.gpm, tables.gpm0[:-1]
        self._bit = np.arange(len(tables.gpm)) - np.repeat(self._gpm0, np.diff(tables.gpm0))
        self._tables = Pointers(tables)
        self.state = np.zeros(k.STATES, np.int64)
        self.state[[k.HASH_FROM, k.MOST_ROWS, k.MOST_VISITS, k.GROW_HEADS]] = (
            limits.hash_from,
            limits.rows,
            limits.visits,
            limits.grow_heads,
        )
        self.memory = _memory(tables, limits, self.state)
        self._columns = columns
        self._point()

    def run(self, batch: EventBatch, columns: TermColumns, memo: NDArray[np.uint8]) -> int:
        """Fill the rows; their number."""
        offset = plain(batch.offset, AS_I64)
        subject, predicate = plain(batch.subject, AS_U32), plain(batch.predicate, AS_U32)
        object_ = plain(batch.object, AS_U32)
        if memo is not self.memory.memo or columns is not self._columns:
            self.memory, self._columns = self.memory._replace(memo=memo), columns
            self._point()
        resumed = False
        while True:
            status: int = self._match(resumed, offset, subject, predicate, object_)
            if status == match.FULL:
                self.memory = self.memory.grow("out")
                self._point()
                resumed = True
            elif status == match.NEED_LIMITS:
                self.memory = self.memory.grow("limits")
                self._point()
                resumed = True
            elif status == match.NEED_ROOM:
                self._make_room(int(self.state[k.NEEDED]))
            else:
                return status

    @property
    def limits(self) -> NDArray[np.int64]:
        """See `MatchMemory.limits`: those of the last batch."""
        return self.memory.limits[: self.state[k.LIMITS]]

    def want(self, wanted: NDArray[np.bool_]) -> None:
        """See `StreamMatcher.want`."""
        bits = wanted[self._gpm].astype(np.int64) << self._bit
        self.memory.wanted[:] = np.bitwise_or.reduceat(bits, self._gpm0)

    def _point(self) -> None:
        memory = self.memory
        self._match = Bound(match.match_events, self._tables, Pointers(self._columns), Pointers(memory))
        self.addresses = address_of(memory.event), address_of(memory.row_values)
        """Of the rows sorted by GPM."""

    def _make_room(self, hits: int) -> None:
        """Scratch arrays for events with so many hits; nothing in them is kept between events."""
        size, heads = len(self.memory.hits), len(self.memory.head)
        while size < hits:
            size *= 2
        while self._limits.grow_heads and heads * self._most_hits_per_triple < hits:
            heads *= 2
        self.memory = self.memory.grow("hits", size).grow("heads", heads)
        self.memory.head[:] = 0
        self._point()


def _memory(tables: MatchTables, limits: MatchLimits, state: NDArray[np.int64]) -> k.MatchMemory:
    variables, patterns, depth = (int(x) for x in tables.widths[:3])
    gpms = len(tables.column0) - 1
    memory = k.MatchMemory.allocate(
        slots=len(tables.slots),
        hits=_HITS,
        heads=limits.heads,
        instances=len(tables.instance0),
        variables=variables,
        patterns=patterns,
        limits=2 * gpms,
        depth=depth,
        out=limits.buffer,
        width=max(int(np.diff(tables.column0).max(initial=0)), 1),
        ends=gpms + 1,
        groups=len(tables.gpm0) - 1,
    )
    return memory._replace(state=state)


def first_of_each(event: NDArray[np.int64], values: NDArray[np.uint32]) -> NDArray[np.int64]:
    """The places of the first of equal rows of an event, in their order."""
    keyed = np.concatenate([event[:, None], values.astype(np.int64)], axis=1)
    _, places = np.unique(keyed, axis=0, return_index=True)
    return np.sort(places)
