"""A run of a window's queries: event batches in, rows out.

In the flow: plan → event batch → **run** → columns of term ids. It says which events make an instant and what has
left the window by then, calls the kernel, grows its memory on demand, and decides what needs exact arithmetic or
functions of strings.

An **instant** is all consecutive events of one time: they are merged, and the queries are evaluated once, after the
last of them. `NEW` rows were not in the answer of the instant before, `ENDED` rows were and are no more, `ALL` is the
whole answer. Rows are full mappings, bags with no row twice but for blank nodes; projection, DISTINCT, aggregates
and `CompiledQuery.left` are the caller's. Their order depends on the history alone, not on batches.

**Terms**: the run holds the ids of what is in the window, no more; ids in answers are the caller's to hold.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from enum import IntFlag
from itertools import pairwise
from typing import Final, NamedTuple, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from oxiseq.engine.errors import LimitError
from oxiseq.engine.events.batch import EventBatch
from oxiseq.engine.kernels.memory.pointers import Pointers, PointerTables, call
from oxiseq.engine.kernels.windows import records as k
from oxiseq.engine.kernels.windows.advance import advance
from oxiseq.engine.matching.conditions import ConditionMemo, passes
from oxiseq.engine.terms.dictionary import AnyIds, TermDictionary
from oxiseq.engine.terms.saved import KnownTerms, SavedTerms, State
from oxiseq.engine.windows.memory import Capacities, allocate, grow, more_out
from oxiseq.engine.windows.plan import WindowPlan
from oxiseq.engine.windows.saved import restore_memory, save_memory
from oxiseq.engine.windows.sources import merged, moved
from oxiseq.engine.windows.tables import build_tables
from oxiseq.engine.windows.window import BEFORE_ALL, Window
from oxiseq.grammar.records import dataclass

MOST_ROWS: Final = 50_000_000
"""Of one push."""
I64s = NDArray[np.int64]
_Id = TypeVar("_Id", np.int64, np.uint32)


class Report(IntFlag):
    """Which rows are wanted: ISTREAM, DSTREAM, RSTREAM."""

    NEW = k.NEW
    ENDED = k.ENDED
    ALL = k.ALL


@dataclass(frozen=True, slots=True)
class Rows:
    """n rows of one query. at: i64[n], ascending, the instant's number in `Answers.time`; values: u32[n, keys], term
    ids, the columns being `CompiledQuery.keys`."""

    at: I64s
    values: NDArray[np.uint32]

    def __len__(self) -> int:
        return len(self.at)


@dataclass(frozen=True, slots=True)
class Answers:
    """What a push has brought. time: i64[instants], the time of each; by query the rows, none where not wanted."""

    time: I64s
    new: tuple[Rows, ...]
    ended: tuple[Rows, ...]
    all: tuple[Rows, ...]


class WindowRun:
    """The running state of a plan on one stream."""

    def __init__(
        self,
        plan: WindowPlan,
        terms: TermDictionary,
        window: Window | Sequence[Window],
        report: Report | Sequence[Report] = Report.NEW,
        capacities: Capacities | None = None,
        most_rows: int = MOST_ROWS,
    ) -> None:
        """`window`: one, or one for each source of the plan. `report`: of every query, or one for each. `most_rows`: of
        one push, past which it raises LimitError."""
        self.plan = plan
        self.windows = (window,) if isinstance(window, Window) else tuple(window)
        if len(self.windows) != plan.sources:
            raise ValueError(f"{len(self.windows)} windows for {plan.sources} sources")
        self._terms = terms
        self._memo = ConditionMemo(plan.conditions, terms)
        self._memoised = [
            (position, number, view.constants[1])
            for view in plan.views
            for position, conditions in enumerate(view.conditions)
            for number in conditions
            if plan.conditions[number].wants_memo
        ]
        self._tables = Pointers(build_tables(plan))
        self._capacities = capacities or Capacities()
        self._memory = allocate(plan, self._capacities)
        self._most_rows = most_rows
        self._exceeded: LimitError | None = None
        self._widths = [len(query.keys) for query in plan.queries]
        self.report(report)
        self._none = tuple(Rows(_NO_INSTANT, np.zeros((0, width), np.uint32)) for width in self._widths)
        self._pointers = PointerTables()
        self._one = _One(np.zeros(1, np.int64), np.zeros(1, np.int32), np.arange(2), np.zeros((1, 1), np.int64))
        self._instants = np.zeros(plan.sources, np.int64)
        """Of each source so far."""
        self._clock = BEFORE_ALL
        self._low = np.full(plan.sources, BEFORE_ALL)
        terms.register(self)

    def report(self, report: Report | Sequence[Report]) -> None:
        """Other rows from the next push on, of every query or one for each."""
        self._reports = [report] * len(self.plan.queries) if isinstance(report, Report) else list(report)
        self._set_reports(self._reports)

    # --- events in, rows out ------------------------------------------------------------------------

    def push(self, batch: EventBatch) -> Answers:
        """Events in order of time, after those of earlier pushes; a batch never splits an instant.

        Raises ValueError for times that fall, LimitError for too many rows: the run is lost then.
        """
        parts = list[_Part]()
        return self._answers(self._push(batch, self._keep_in(parts)), parts)

    def push_each(self, batches: Sequence[EventBatch]) -> Answers:
        """Events by source, each in order of time, after those of earlier pushes; no instant is split between pushes.
        An instant is a time at which a source has an event; all windows are evaluated then. Raises as `push`."""
        parts = list[_Part]()
        return self._answers(self._push_each(batches, self._keep_in(parts)), parts)

    def move(
        self, batches: Sequence[EventBatch], instants: Sequence[I64s], clocks: Sequence[I64s], low: I64s
    ) -> Answers:
        """Instants of the caller's own. By source the events that come into its window, in order, with the number of
        the instant at which each does, from 0 on, and clocks, ascending also from call to call; low: i64[instants,
        sources], never falling, the clocks up to which events are out. The instants' times are their numbers. Raises
        LimitError as `push`."""
        parts = list[_Part]()
        self.move_on(batches, instants, clocks, low, self._keep_in(parts))
        return self._answers(np.arange(len(low)), parts)

    def push_on(self, batches: Sequence[EventBatch], take: _Emptied) -> I64s:
        """As `push`, or `push_each` with several sources, but `take` is given the rows (records.OUT, and u32[rows,
        columns]), in views that are written over. The instants' times."""
        if len(self.windows) > 1:
            return self._push_each(batches, take)
        return self._push(batches[0], take)

    def move_on(
        self,
        batches: Sequence[EventBatch],
        instants: Sequence[I64s],
        clocks: Sequence[I64s],
        low: I64s,
        take: _Emptied,
    ) -> None:
        """As `move`, but `take` is given the rows as by `push_on`."""
        each = moved(batches, instants, clocks, low)
        self._work(each.batch, each.clock, each.source, each.first, low, take)
        self._low = low[-1].copy()

    @property
    def instants(self) -> list[int]:
        """Of each source so far, where its window counts them; of the only one always."""
        return self._instants.tolist()

    def start(self, instants: Sequence[int]) -> None:
        """For one that has not seen anything: the first sources have had so many instants."""
        self._instants[: len(instants)] = instants

    def rows(self, query: int = 0) -> NDArray[np.uint32]:
        """The whole present answer of one query: u32[n, keys]."""
        wanted = [Report(0)] * len(self.plan.queries)
        wanted[query] = Report.ALL
        self._set_reports(wanted)
        try:
            nothing = EventBatch.empty()
            parts = self._run(nothing, nothing.time, _NO_SOURCE, np.zeros(2, np.int64), self._low[None])
        finally:
            self._set_reports(self._reports)
        return self._answers(np.zeros(1, np.int64), parts, listed=True).all[query].values

    def __len__(self) -> int:
        """The triples stored, a triple in two views being two."""
        return int(self._memory.scalars[k.COUNT])

    # --- terms --------------------------------------------------------------------------------------

    @property
    def bytes(self) -> int:
        """How large its arrays are; with room for more."""
        return sum(array.nbytes for array in self._memory)

    def held_ids(self) -> Iterable[AnyIds]:
        """The terms of what is stored, for the dictionary's collections."""
        entries = self._memory.entries[: int(self._memory.scalars[k.TOP])]
        alive = entries[entries["of"] >= 0]
        return [alive["s"], alive["p"], alive["o"]]

    # --- states -------------------------------------------------------------------------------------

    def save(self, terms: SavedTerms) -> State:
        """What is stored, between pushes; the caller saves the terms."""
        memory = save_memory(self._memory, terms)
        return {**memory, "instants": self._instants.copy(), "clock": self._clock, "low": self._low.copy()}

    def restore(self, state: State, terms: KnownTerms) -> None:
        """Go on from what another run of the same plan and window has saved. Raises ValueError for another plan's."""
        self._memory = restore_memory(state, self.plan, self._tables, self._capacities, terms)
        self._set_reports(self._reports)
        self._instants, self._clock, self._low = state["instants"].copy(), state["clock"], state["low"].copy()

    # --- steps --------------------------------------------------------------------------------------

    def _push(self, batch: EventBatch, emptied: _Emptied) -> I64s:
        if len(batch) == 1:
            return self._push_one(batch, emptied)
        first = _firsts(batch.time)
        last = first[1:] - 1
        clock = self._clocks(batch, first)
        bounds = self.windows[0].low(clock[last])
        self._check(clock)
        self._work(batch, clock, np.zeros(len(batch), np.int32), first, bounds[:, None], emptied)
        self._instants[0] += len(last)
        if len(last):
            self._clock, self._low = int(clock[-1]), bounds[-1:].copy()
        return batch.time[last]

    def _push_one(self, batch: EventBatch, emptied: _Emptied) -> I64s:
        """One event: what a live stream brings."""
        window = self.windows[0]
        clock = self._instants.item(0) + 1 if window.counted else batch.time.item(0)
        low = window.low_of(clock)
        if clock < self._clock:
            raise ValueError("events are not in order of time")
        one = self._one
        one.clock[0] = clock
        one.low[0, 0] = low
        self._work(batch, one.clock, one.source, one.first, one.low, emptied)
        self._instants[0] += 1
        self._clock, self._low[0] = clock, low
        return batch.time

    def _push_each(self, batches: Sequence[EventBatch], emptied: _Emptied) -> I64s:
        each = merged(self.windows, batches, self._instants)
        if not len(each.time):
            return each.time
        if each.time[0] < self._clock or any(_falls(batch.time) for batch in batches):
            raise ValueError("events are not in order of time")
        self._work(each.batch, each.clock, each.source, each.first, each.low, emptied)
        self._clock, self._low = int(each.time[-1]), each.low[-1].copy()
        return each.time

    def _clocks(self, batch: EventBatch, first: I64s) -> I64s:
        if not self.windows[0].counted:
            return _plain(batch.time, _I64)
        before = int(self._instants[0])
        if len(first) == 2:
            return np.full(len(batch), before + 1)
        numbers = np.arange(before + 1, before + len(first))
        return np.repeat(numbers, np.diff(first))

    def _check(self, clock: I64s) -> None:
        if len(clock) and (clock[0] < self._clock or _falls(clock)):
            raise ValueError("events are not in order of time")

    def _set_reports(self, reports: Sequence[Report]) -> None:
        for number, (query, report) in enumerate(zip(self.plan.queries, reports, strict=True)):
            self._memory.reports[number] = 0 if query.never else int(report)

    def _run(self, batch: EventBatch, clock: I64s, source: NDArray[np.int32], first: I64s, bounds: I64s) -> list[_Part]:
        """Have the kernel work through the batch, and keep what it has brought."""
        parts = list[_Part]()
        self._work(batch, clock, source, first, bounds, self._keep_in(parts))
        return parts

    def _work(
        self, batch: EventBatch, clock: I64s, source: NDArray[np.int32], first: I64s, bounds: I64s, emptied: _Emptied
    ) -> None:
        """Have the kernel work through the batch; `emptied` is given the rows of the output, before they are
        written over."""
        if self._exceeded is not None:
            raise self._exceeded
        s, p, o = _plain(batch.subject, _U32), _plain(batch.predicate, _U32), _plain(batch.object, _U32)
        offset, bounds = _plain(batch.offset, _I64), _plain(bounds, _I64)
        if self.plan.conditions:
            self._learn(batch)
        scalars = self._memory.scalars
        scalars[k.INSTANT : k.TRIPLE + 1] = 0
        told = 0
        while True:
            C = self._pointers.of(self._terms.columns)
            S = self._pointers.of(self._memory)
            need = call(advance, self._tables, S, C, offset, s, p, o, clock, source, first, bounds)
            if need == k.DONE:
                break
            if need == k.OUT_FULL:
                told += self._empty(emptied)
                self._limit(told)
                self._memory = more_out(self._memory)
            elif need == k.NEED_DECISION:
                condition, term = int(scalars[k.ASKED_CONDITION]), int(scalars[k.ASKED_TERM])
                self._memo.outcomes(condition, np.array([term]))
                self._memory = self._memory._replace(memo=self._memo.table)
            else:
                self._memory = grow(self._memory, self._tables, need)
        self._empty(emptied)

    def _learn(self, batch: EventBatch) -> None:
        """Ask conditions that the machine lacks functions for about all terms of the batch at once."""
        memo = self._memo.reserve()
        if memo is not self._memory.memo:
            self._memory = self._memory._replace(memo=memo)
        for position, number, predicate in self._memoised:
            ids = batch.ids[position]
            self._memo.outcomes(number, ids[batch.predicate == predicate] if predicate else ids)

    def _empty(self, emptied: _Emptied) -> int:
        """Give away the rows of the output; how many."""
        memory = self._memory
        rows = int(memory.scalars.item(k.ROWS))
        if rows == 0:
            return 0
        if memory.scalars.item(k.DOUBTFUL):
            out, values = memory.out[:rows], memory.out_values[:rows]
            keep = np.flatnonzero(self._decided(out, values))
            rows = len(keep)
            memory.out[:rows], memory.out_values[:rows] = out[keep], values[keep]
            memory.scalars[k.DOUBTFUL] = 0
        emptied(memory.out[:rows], memory.out_values[:rows])
        memory.scalars[k.ROWS] = 0
        return rows

    def _keep_in(self, parts: list[_Part]) -> _Emptied:
        """Copies of the output."""

        return lambda out, values: parts.append((out.copy(), values.copy()))

    def _limit(self, rows: int) -> None:
        """The kernel is in the middle of an instant: no other push may interrupt it there."""
        if rows > self._most_rows:
            self._exceeded = LimitError(rows, self._most_rows, "rows of one push to a window")
            raise self._exceeded

    def _decided(self, out: NDArray[np.void], values: NDArray[np.uint32]) -> NDArray[np.bool_]:
        """Which rows remain once those in doubt have been decided exactly."""
        keep = np.ones(len(out), np.bool_)
        for number in np.unique(out["query"][out["doubt"] != 0]).tolist():
            asked = np.flatnonzero((out["doubt"] != 0) & (out["query"] == number))
            for each in self.plan.queries[number].joint:
                unbound = np.zeros(len(asked), np.uint32)
                columns = [values[asked, place] if place >= 0 else unbound for place in each.places]
                holds = passes(each.condition, columns, self._terms)
                keep[asked[~holds]] = False
                asked = asked[holds]
        return keep

    def _answers(self, time: I64s, parts: list[_Part], listed: bool = False) -> Answers:
        if not parts:
            none = self._none
            return Answers(time, none, none, none)
        out = parts[0][0] if len(parts) == 1 else np.concatenate([part[0] for part in parts])
        values = parts[0][1] if len(parts) == 1 else np.concatenate([part[1] for part in parts])
        kinds = [self._split(out, values, kind, listed) for kind in Report]
        return Answers(time, *kinds)

    def _split(self, out: NDArray[np.void], values: NDArray[np.uint32], kind: Report, listed: bool) -> tuple[Rows, ...]:
        """The rows of one kind by query."""
        reported = [kind] if listed else self._reports
        if not any(kind & report for report in reported):
            return self._none
        if not listed and len(self._widths) == 1 and self._reports[0] == kind:
            return (Rows(out["at"].astype(np.int64), values),)
        mine = out["kind"] == kind
        if len(self._widths) == 1:
            return (Rows(out["at"][mine].astype(np.int64), values[mine]),)
        queries, at, values = out["query"][mine], out["at"][mine].astype(np.int64), values[mine]
        order = np.argsort(queries, kind="stable")
        ends = np.searchsorted(queries[order], np.arange(len(self._widths) + 1))
        picked = [order[low:high] for low, high in pairwise(ends)]
        return tuple(Rows(at[rows], values[rows, :width]) for rows, width in zip(picked, self._widths, strict=True))


_Part: TypeAlias = tuple[NDArray[np.void], NDArray[np.uint32]]
_Emptied: TypeAlias = Callable[[NDArray[np.void], NDArray[np.uint32]], None]


class _One(NamedTuple):
    """The kernel's input for a batch of one event."""

    clock: I64s
    source: NDArray[np.int32]
    first: I64s
    low: I64s


_I64: Final = np.dtype(np.int64)
_U32: Final = np.dtype(np.uint32)
_NO_INSTANT: Final = np.zeros(0, np.int64)
_NO_SOURCE: Final = np.zeros(0, np.int32)


def _firsts(labels: I64s) -> I64s:
    """Where runs of equal numbers begin, and where the last ends: i64[runs + 1]."""
    if len(labels) < 2:
        return np.arange(len(labels) + 1)
    changes = np.flatnonzero(labels[1:] != labels[:-1]) + 1
    return np.concatenate([[0], changes, [len(labels)]]).astype(np.int64)


def _falls(numbers: I64s) -> bool:
    """Whether a number is smaller than the one before."""
    return len(numbers) > 1 and bool(np.any(numbers[1:] < numbers[:-1]))


def _plain(array: NDArray[_Id], dtype: np.dtype[_Id]) -> NDArray[_Id]:
    """C-contiguous and writable: Numba compiles again for anything else."""
    flags = array.flags
    if array.dtype == dtype and flags.c_contiguous and flags.writeable:
        return array
    return np.require(array, dtype, ("C", "W"))
