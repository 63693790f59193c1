"""Rows of letters → weights of what ends at instants → rows of groups, by composed windows (engine/plan/composing.py).

In the flow: rows of a batch → **composed windows** → weights of ends → **rows of groups**, a batch at a time.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from oxiseq.engine.events.time import to_literal
from oxiseq.engine.kernels.matches.composed import NO_REPORTS, OF_ALL, OF_EACH
from oxiseq.engine.kernels.matches.weights import PRESENT
from oxiseq.engine.matches.events import MeasuredEvents
from oxiseq.engine.matches.measures import Measures, words_of
from oxiseq.engine.output.arranging import Arrangement
from oxiseq.engine.output.batch import MatchBatch
from oxiseq.engine.output.due import DueReports, Report
from oxiseq.engine.output.news import Side, news
from oxiseq.engine.output.rows import RowStore
from oxiseq.engine.output.weight_rows import WeightRows
from oxiseq.engine.plan.composing import Composing
from oxiseq.engine.plan.query import QueryPlan
from oxiseq.engine.plan.summary import SummaryPlan
from oxiseq.engine.sequence.composed import ComposedSequence
from oxiseq.engine.sequence.memory import Capacities
from oxiseq.engine.sequence.run import RowBuffer
from oxiseq.engine.terms.dictionary import TermDictionary
from oxiseq.engine.window import BEFORE_ALL, cut_of
from oxiseq.grammar.scope import expression_variables

I64 = NDArray[np.int64]
Ids = NDArray[np.uint32]
Values = Callable[[I64, int], NDArray[np.uint32]]
"""Numbers of partitions, and which of the values of PARTITION BY → the values."""


class GroupEnds(NamedTuple):
    """The matches that end at instants, by groups: the instants' times (µs); the ids of those keys that are values,
    u32[n, keys]; the weights, u64[n, words], of this form and of these measures. `before`: where groups are of all
    matches of the window so far, what they were before the instant; `weights` is what they are after it. Those that
    reports tell of are of the reports' times."""

    time: I64
    keys: NDArray[np.uint32]
    weights: NDArray[np.uint64]
    form: I64
    measures: Measures
    before: NDArray[np.uint64] | None = None


class MatchComposer:
    """Composes for one query. `rows`: the store that rows of batches are in."""

    def __init__(
        self, plan: QueryPlan, composing: Composing, rows: RowStore, terms: TermDictionary, capacities: Capacities
    ) -> None:
        self._rows, self._keys, self._parted = rows, [key for key in composing.keys if key is not None], plan.by
        measured = measured_of(composing, terms)
        self._measures = measured.measures
        self._stored = [plan.runner.stored.index(variable) for variable in measured.attributes]
        self.sequence = ComposedSequence(
            plan.runner.sequence,
            plan.window,
            composing.by,
            self._measures,
            measured.held([letter.letter for letter in plan.letters]),
            terms,
            capacities,
            merges=composing.merges and not composing.reports,
            so_far=composing.report is not None,
            reports=(OF_EACH if composing.grouped else OF_ALL) if composing.reports else NO_REPORTS,
        )
        self._empty = RowBuffer.empty(plan.runner.sequence)
        self._changes, self._window = composing.changes, plan.window
        self.due: DueReports | None = None
        """It is to be told of all instants of the query's streams."""
        if composing.reports and composing.report is not None:
            self.due = DueReports(composing.report, plan.window, instantly=False)

    def feed(self, buffer: RowBuffer, values: Values) -> list[GroupEnds]:
        """Take in a batch of rows, the last ones of the store; what ends in it, in order. It is to be read before the
        next call. `values`: see there."""
        return [self._groups(buffer, values, *ended) for ended in self.sequence.feed(buffer, self._ids(buffer))]

    def report(
        self, buffer: RowBuffer | None, values: Values, reports: Sequence[Report], start: int
    ) -> list[GroupEnds]:
        """The same where groups are told of by reports: those that are due among these rows, if there are some, or
        behind them. `start`: the first clock of the first tumbling window."""
        if not reports:
            if buffer is not None:
                self.sequence.report(buffer, self._ids(buffer))
            return []
        buffer = self._empty if buffer is None else buffer
        instants = buffer.instants
        time, clock, number = np.array(reports, np.int64).reshape(-1, len(Report._fields)).T
        at = np.searchsorted(buffer.arrays.time[:instants], clock, "right")
        cuts = np.full(len(clock), BEFORE_ALL)
        if self._window is not None:
            closing = number >= 0
            closed = np.searchsorted(buffer.arrays.clock[:instants], clock, "left")
            at = np.where(closing, closed, at)
            cuts = np.where(closing, clock - self._window.size, cut_of(self._window, clock, start))
        found = self.sequence.report(buffer, self._ids(buffer), buffer.arrays.first[at], cuts)
        return [self._reported(values, time, *reported) for reported in found]

    def _reported(
        self, values: Values, time: I64, report: I64, partition: I64, weights: NDArray[np.uint64], form: I64
    ) -> GroupEnds:
        keys = np.zeros((len(report), len(self._keys)), np.uint32)
        for column, key in enumerate(self._keys):
            keys[:, column] = values(partition, key) if self._parted else self.sequence.values(partition, key)
        return GroupEnds(time[report], keys, weights, form, self._measures)

    def _ids(self, buffer: RowBuffer) -> I64:
        """Of attributes of the rows."""
        count = int(buffer.arrays.first[buffer.instants])
        stored = self._rows.block.stored
        ids: I64 = stored[len(stored) - count :, self._stored].astype(np.int64)
        return ids

    def _groups(self, buffer: RowBuffer, values: Values, row: I64, weights: NDArray[np.uint64], form: I64) -> GroupEnds:
        arrays, keys = buffer.arrays, np.zeros((len(row), len(self._keys)), np.uint32)
        instant = np.searchsorted(arrays.first[1 : buffer.instants + 1], row, "right")
        if self._keys and self._parted:
            for column, key in enumerate(self._keys):
                keys[:, column] = values(arrays.partition[instant], key)
        elif self._keys:
            keys = self.sequence.keys(buffer, row)[:, self._keys]
        before = None
        if self._changes:
            words = words_of(form)
            before, weights = weights[:, :words], np.ascontiguousarray(weights[:, words:])
        return GroupEnds(arrays.time[instant], keys, weights, form, self._measures, before)


class ComposedRows:
    """Makes the rows of one query's groups. `arrangement`: of those of each report."""

    def __init__(
        self, plan: SummaryPlan, composing: Composing, arrangement: Arrangement, terms: TermDictionary
    ) -> None:
        self._terms, self._composing, self._arrangement = terms, composing, arrangement
        self._rows = WeightRows(arrangement.wide, measured_of(composing, terms).numbers, plan.having, terms)
        self._read = keys_read(arrangement.wide)
        self._apart = not composing.merges and all(map(plan.columns.__contains__, plan.keys))
        """Whether groups of an instant have different rows."""

    def rows(self, found: Sequence[GroupEnds], times: dict[int, int]) -> MatchBatch | None:
        """The rows of what ends; None: there are none. `times`: the ids of times as terms, as far as they are known;
        more are added."""
        if self._composing.changes:
            made = [*self._new(found, times)]
        elif self._composing.reports and not self._composing.grouped:
            made = [*self._of_all(found, times)]
        else:
            made = [*self._made(found, times)]
        if not made:
            return None
        told = self._arrangement.of(*(np.concatenate(column) for column in zip(*made, strict=True)))
        return told if len(told) else None

    def _made(self, found: Sequence[GroupEnds], times: dict[int, int]) -> Iterator[tuple[I64, Ids]]:
        for ends in found:
            kept, rows = self._rows.of(self._keys(ends, times), ends.weights, ends.form, ends.measures)
            if len(kept):
                yield ends.time[kept], rows

    def _of_all(self, found: Sequence[GroupEnds], times: dict[int, int]) -> Iterator[tuple[I64, Ids]]:
        """The rows of reports of all matches: without GROUP BY there is one, also where there are no matches."""
        for ends in found:
            there = ends.weights[:, 0] & np.uint64(PRESENT) != 0
            some = np.flatnonzero(there)
            kept, rows = self._rows.of(self._keys(ends, times)[some], ends.weights[some], ends.form, ends.measures)
            at = some[kept]
            if len(some) < len(there) and (row := self._rows.of_nothing()) is not None:
                at = np.concatenate([at, np.flatnonzero(~there)])
                rows = np.concatenate([rows, np.tile(np.array(row, np.uint32), (len(at) - len(rows), 1))])
                order = np.argsort(at)
                at, rows = at[order], rows[order]
            if len(at):
                yield ends.time[at], rows

    def _new(self, found: Sequence[GroupEnds], times: dict[int, int]) -> Iterator[tuple[I64, Ids]]:
        """The rows that groups have after an instant, less those they had before it."""
        firsts = itertools.accumulate((len(ends.time) for ends in found), initial=0)
        made = [self._both(ends, times, first) for ends, first in zip(found, firsts, strict=False)]
        if made:
            sides = [Side(*map(np.concatenate, zip(*side, strict=True))) for side in zip(*made, strict=True)]
            shown = [side._replace(rows=side.rows[:, : self._arrangement.shown]) for side in sides]
            new = news(*shown, apart=self._apart)
            if len(new):
                yield sides[1].time[new], sides[1].rows[new]

    def _both(self, ends: GroupEnds, times: dict[int, int], first: int) -> tuple[Side, Side]:
        """The rows of groups, numbered from `first` on, before and after instants."""
        assert ends.before is not None
        there = np.flatnonzero(ends.before[:, 0] & np.uint64(PRESENT))
        keys, count = self._keys(ends, times), len(there)
        kept, rows = self._rows.of(
            np.concatenate([keys[there], keys]),
            np.concatenate([ends.before[there], ends.weights]),
            ends.form,
            ends.measures,
        )
        old = int(np.searchsorted(kept, count))
        before, after = there[kept[:old]], kept[old:] - count
        return (
            Side(ends.time[before], before + first, rows[:old]),
            Side(ends.time[after], after + first, rows[old:]),
        )

    def _keys(self, ends: GroupEnds, times: dict[int, int]) -> NDArray[np.uint32]:
        columns, given = np.zeros((len(ends.time), len(self._read)), np.uint32), iter(ends.keys.T)
        for column, (key, read) in enumerate(zip(self._composing.keys, self._read, strict=True)):
            if key is not None:
                columns[:, column] = next(given)
            elif read:
                columns[:, column] = ids_of_times(ends.time, times, self._terms)
        return columns


def measured_of(composing: Composing, terms: TermDictionary) -> MeasuredEvents:
    """What the aggregates need of events."""
    return MeasuredEvents([*zip(composing.aggregates, composing.measures, strict=True)], terms)


def keys_read(plan: SummaryPlan) -> list[bool]:
    """Which of the keys a row needs: mostly not the time at which matches end, which is the row's own."""
    read = {v for e in (*plan.columns, *plan.having) for v in expression_variables(e)}
    return [key in read for key in plan.keys]


def ids_of_times(time: I64, times: dict[int, int], terms: TermDictionary) -> NDArray[np.uint32]:
    """The ids of times as terms; `times`: those that are known; more are added."""
    distinct, place = np.unique(time, return_inverse=True)
    every = distinct.tolist()
    for end in every:
        if end not in times:
            times[end] = terms.intern(to_literal(end))
    return np.array([times[end] for end in every], np.uint32)[place]
