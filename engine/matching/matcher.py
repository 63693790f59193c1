"""Runs a StreamPlan on event batches.

Where it stands: event batch → **occurrences** of each GPM → sequence engine. The matcher owns all that changes
(memo tables, output buffers, the scratch store); a batch's answer depends on the batch alone, and an event's
rows and their order on that event alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, TypeVar

import numpy as np
from numpy.typing import NDArray

from oxiseq.engine.errors import LimitError
from oxiseq.engine.events.batch import EventBatch
from oxiseq.engine.events.time import to_text
from oxiseq.engine.kb import KnowledgeBase
from oxiseq.engine.kernels import match
from oxiseq.engine.matching.conditions import MEMO_TRUE, ConditionMemo, passes
from oxiseq.engine.matching.fallback import FallbackMatcher
from oxiseq.engine.matching.plan import KernelGpm, StreamPlan
from oxiseq.engine.matching.tables import MatchTables
from oxiseq.engine.terms.dictionary import TermDictionary


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
    """Bounds on one GPM's work on one event, past which LimitError is raised; and sizes that tests make tiny."""

    rows: int = 1_000_000
    visits: int = 200_000_000
    buffer: int = 1 << 14
    """Rows of the output buffer to begin with; it doubles."""
    heads: int = 1 << 10
    """Heads of the hash chains, a power of two; more for larger events."""
    hash_from: int = 16
    """Triples of a view from which on it is searched by hash."""
    grow_heads: bool = True


_Id = TypeVar("_Id", np.int64, np.uint32)
_I64: Final = np.dtype(np.int64)
_U32: Final = np.dtype(np.uint32)
DEFAULT_LIMITS: Final = MatchLimits()


class StreamMatcher:
    """Matches the GPMs of one plan. `kb` serves patterns that hold GRAPH where it cannot be split off."""

    def __init__(
        self,
        plan: StreamPlan,
        terms: TermDictionary,
        kb: KnowledgeBase | None = None,
        limits: MatchLimits = DEFAULT_LIMITS,
    ) -> None:
        self.plan = plan
        self._terms = terms
        self._limits = limits
        self._memo = ConditionMemo(plan.memo, terms)
        self._sizes = np.zeros(7, np.int64)
        self._fallback = FallbackMatcher(plan.fallback, terms, kb, limits.rows) if plan.fallback else None
        self._rows = _RowBuffer(limits.buffer, max((len(g.columns) for g in plan.kernel), default=0))

    def match(self, batch: EventBatch) -> list[Occurrences]:
        """The occurrences of each request on the batch.

        Raises LimitError when a GPM has more rows on one event than the limit allows.
        """
        found: dict[int, Occurrences] = {}
        if self.plan.tables is not None:
            self._run(batch, self.plan.tables)
            for number, gpm in enumerate(self.plan.kernel):
                found[gpm.request] = self._occurrences(number, gpm)
        for request, conditions in self.plan.everywhere:
            n = len(batch) if all(passes(c, (), self._terms)[0] for c in conditions) else 0
            found[request] = Occurrences(np.arange(n, dtype=np.int64), np.zeros((n, 0), np.uint32))
        if self._fallback is not None:
            for request, (event, values) in self._fallback.match(batch).items():
                found[request] = Occurrences(event, values)
        return [found[i] for i in range(len(self.plan.requests))]

    def refresh(self) -> None:
        """Read what patterns evaluated in place need of the KB now, before it changes."""
        if self._fallback is not None:
            self._fallback.refresh()

    # --- the kernel ---------------------------------------------------------------------------------

    def _run(self, batch: EventBatch, tables: MatchTables) -> None:
        """Fill the row buffer."""
        limits, rows = self._limits, self._rows
        offset = _writable(batch.offset, _I64)
        subject, predicate = _writable(batch.subject, _U32), _writable(batch.predicate, _U32)
        object_ = _writable(batch.object, _U32)
        columns, memo, sizes = self._terms.columns, self._memo.reserve(), self._sizes
        first, rows.used, rows.doubtful = 0, 0, 0
        while True:
            sizes[:] = (
                first, rows.used, limits.grow_heads, limits.heads, limits.hash_from, limits.rows, limits.visits
            )  # fmt: skip
            status, rows.used, first, gpm, doubtful = match.match_events(
                tables, offset, subject, predicate, object_, columns, memo, sizes, *rows.arrays()
            )
            rows.doubtful += doubtful
            if status == match.DONE:
                return
            if status != match.FULL:
                self._raise_limit(status, int(batch.time[first]), self.plan.kernel[gpm])
            rows.grow()

    def _raise_limit(self, status: int, time: int, gpm: KernelGpm) -> None:
        name = self.plan.requests[gpm.request].name
        where = f"GPM {name} on the event at {to_text(time)}"
        if status == match.TOO_MANY_ROWS:
            raise LimitError(self._limits.rows + 1, self._limits.rows, f"mappings of {where}")
        raise LimitError(self._limits.visits + 1, self._limits.visits, f"steps of the join of {where}")

    def _occurrences(self, number: int, gpm: KernelGpm) -> Occurrences:
        rows = self._rows
        used, kept = rows.used, len(self.plan.requests[gpm.request].keep)
        if len(self.plan.kernel) == 1 and not rows.doubtful and not gpm.distinct:
            return Occurrences(rows.event[:used].copy(), rows.values[:used, :kept].copy())
        index = np.flatnonzero(rows.gpm[:used] == number)
        event, values = rows.event[index], rows.values[index, : len(gpm.columns)]
        flags = rows.flag[index]
        if rows.doubtful and flags.any():
            decided = self._decide(gpm, values, flags)
            event, values = event[decided], values[decided]
        if gpm.distinct:
            keep = first_of_each(event, values)
            event, values = event[keep], values[keep]
        return Occurrences(event, np.ascontiguousarray(values[:, :kept]))

    def _decide(self, gpm: KernelGpm, values: NDArray[np.uint32], flags: NDArray[np.uint8]) -> NDArray[np.bool_]:
        """Which rows stand once the undecided ones among them have been asked exactly."""
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
                holds = self._memo.outcomes(table, columns[0]) == MEMO_TRUE
            else:
                holds = passes(condition, columns, self._terms)
            keep[asked[~holds]] = False
            asked = asked[holds]
        return keep


class _RowBuffer:
    """The kernel's output, which doubles when it is full."""

    def __init__(self, capacity: int, width: int) -> None:
        self.used = 0
        self.doubtful = 0
        """Rows with a flag."""
        self.event = np.empty(capacity, np.int64)
        self.gpm = np.empty(capacity, np.int32)
        self.flag = np.empty(capacity, np.uint8)
        self.values = np.empty((capacity, width), np.uint32)

    def arrays(self) -> tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.uint8], NDArray[np.uint32]]:
        return self.event, self.gpm, self.flag, self.values

    def grow(self) -> None:
        for name in ("event", "gpm", "flag", "values"):
            old = getattr(self, name)
            new = np.empty((2 * len(old), *old.shape[1:]), old.dtype)
            new[: self.used] = old[: self.used]
            setattr(self, name, new)


def first_of_each(event: NDArray[np.int64], values: NDArray[np.uint32]) -> NDArray[np.int64]:
    """The places of the first of equal rows of an event, in their order."""
    keyed = np.concatenate([event[:, None], values.astype(np.int64)], axis=1)
    _, places = np.unique(keyed, axis=0, return_index=True)
    return np.sort(places)


def _writable(array: NDArray[_Id], dtype: np.dtype[_Id]) -> NDArray[_Id]:
    """C-contiguous and writable: Numba compiles anew for anything else."""
    flags = array.flags
    if array.dtype == dtype and flags.c_contiguous and flags.writeable:
        return array
    return np.require(array, dtype, ("C", "W"))
