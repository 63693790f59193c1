"""PARTITION BY: the instants of a batch, each split into one instant for every partition that it belongs to.

In the flow: GPM occurrences → **instants of partitions** → rows of letters → one sequence run for all partitions,
in which the partition's number is part of every key (kernels/sequence/partitions.py). An event belongs to the
partition of every value that some GPM's pattern, its FILTERs aside, binds in it; its rows there are the mappings
with that value, and those of GPMs that do not bind it (semantics.md 2.1).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from pyoxigraph import Variable

from oxiseq.engine.kernels.sequence.partitions import number_instants
from oxiseq.engine.kernels.sequence.records import BEFORE_ALL
from oxiseq.engine.matches.partitions import I64, Bools, Ids, PartitionTable
from oxiseq.engine.patterns.matcher import Rows
from oxiseq.engine.plan.query import GpmPlan, QueryPlan
from oxiseq.engine.run.letters import Frame
from oxiseq.engine.sequence.run import SequenceRun
from oxiseq.engine.sequence.states import PARTITION
from oxiseq.engine.terms.dictionary import AnyIds, TermDictionary
from oxiseq.engine.windows.window import cut_of


@dataclass(frozen=True, slots=True)
class Split:
    """The instants of partitions in a batch, in order. Of each: `instant`, which of the batch's it is part of;
    `partition`; `number` among the partition's own; `clock` and `tau`. `members` and `places` find them."""

    by: tuple[Variable, ...]
    table: PartitionTable
    instant: I64
    partition: I64
    number: I64
    clock: I64
    tau: I64
    members: I64
    """Keys (stream, instant, partition), ascending: whose event is in which partition."""
    keys: I64
    """Keys (instant, partition), ascending."""
    places: I64
    """The place of each of `keys` among the instants of partitions."""
    instants: int
    """How many instants the batch has."""
    only: I64 | None
    """By instant of the batch, where its only partition's stands; -1: it is in none. None: some are in several, or
    streams are."""

    def frame(self, plan: GpmPlan, frame: Frame) -> Frame:
        """The mappings of a GPM as they are seen in partitions."""
        if len(self.members) == 1 and self.instants == 1:
            return self._frame_of_one(plan, frame)
        known = [v for v in self.by if v in plan.parts.variables]
        if self.only is not None:
            return self._frame_of_only(frame, known, self.only)
        room = len(self.table.count)
        event = plan.stream * self.instants + frame.where
        if len(known) == len(self.by):
            number = self.table.find(frame.table(self.by))
            row = np.flatnonzero(number >= 0)
            member = event[row] * room + number[row]
            at = np.minimum(np.searchsorted(self.members, member), len(self.members) - 1)
            row = row[self.members[at] == member]
            number = number[row]
        else:
            low = np.searchsorted(self.members, event * room)
            counts = np.searchsorted(self.members, (event + 1) * room) - low
            row = np.repeat(np.arange(len(event)), counts)
            ends = np.cumsum(counts)
            number = self.members[np.arange(len(row)) - np.repeat(ends - counts - low, counts)] % room
            for variable in known:
                values = self.table.values(number, self.by.index(variable))
                keep = values == frame.columns[variable][row]
                row, number = row[keep], number[keep]
        where = self.places[np.searchsorted(self.keys, frame.where[row] * room + number)]
        if len(where) > 1 and (where[1:] < where[:-1]).any():
            order = np.argsort(where, kind="stable")
            row, where, number = row[order], where[order], number[order]
        columns = {v: c[row] for v, c in frame.columns.items()}
        return Frame(where, {**columns, PARTITION: (number + 1).astype(np.uint32)})

    def _frame_of_only(self, frame: Frame, known: Sequence[Variable], only: I64) -> Frame:
        """`frame` where each instant is of one event, which is in one partition at most."""
        where = only[frame.where]
        keep = where >= 0
        for variable in known:
            keep &= self.table.values(self.partition[where], self.by.index(variable)) == frame.columns[variable]
        if not keep.all():
            frame, where = frame.take(keep), where[keep]
        number = self.partition[where]
        return Frame(where, {**frame.columns, PARTITION: (number + 1).astype(np.uint32)})

    def _frame_of_one(self, plan: GpmPlan, frame: Frame) -> Frame:
        """`frame` where a single event is in a single partition."""
        number = int(self.partition[0])
        if plan.stream != int(self.members[0]) // len(self.table.count):
            frame = frame.take(np.zeros(0, np.int64))
        for i, variable in enumerate(self.by):
            if variable in plan.parts.variables:
                keep = frame.columns[variable] == self.table.value(number, i)
                if not keep.all():
                    frame = frame.take(keep)
        return Frame(frame.where, {**frame.columns, PARTITION: np.full(len(frame), number + 1, np.uint32)})


class Partitions:
    """Splits the instants of a query's batches. `capacity`: partitions that there is room for to begin with."""

    def __init__(self, plan: QueryPlan, sequence: SequenceRun, capacity: int, terms: TermDictionary) -> None:
        assert plan.query.partition is not None
        self._plan = plan
        self._by = plan.query.partition.by
        self.table = PartitionTable(len(self._by), sequence, capacity, terms, self._forgettable)

    def held_ids(self) -> Iterator[AnyIds]:
        """The values of partitions."""
        yield from self.table.held_ids()

    def split(self, found: Sequence[Sequence[Rows]], where: Sequence[I64], times: I64, start: int) -> Split | None:
        """The instants of partitions; `found`: per stream the rows of each request, `where`: instants by event,
        `start`: the first clock of the first tumbling window. None: there are none."""
        if len(times) == 1:
            alone = self._alone(found)
            if alone is not None:
                return self._split_of_one(*alone, times, start)
        event, instant, values = self._memberships(found, where, len(times))
        if not len(event):
            return None
        partition = self.table.number(values)
        room = len(self.table.count)
        keys, first = _first_of_each(instant * room + partition)
        members = keys if len(found) == 1 else np.unique(event * room + partition)
        if _ascend(keys // room):
            order = places = np.arange(len(keys))
        else:
            order = np.lexsort((first, keys // room))
            places = np.empty(len(keys), np.int64)
            places[order] = np.arange(len(keys))
        instant, partition = keys[order] // room, keys[order] % room
        number = self._count(partition)
        clock, tau = self._clocks(times[instant], number, start)
        only = None
        if len(found) == 1 and _ascend(instant):
            only = np.full(len(times), -1, np.int64)
            only[instant] = np.arange(len(instant))
        return Split(
            self._by, self.table, instant, partition, number, clock, tau, members, keys, places, len(times), only
        )

    def _alone(self, found: Sequence[Sequence[Rows]]) -> tuple[int, int] | None:
        """The stream and the partition of the only event of one instant, if it is in one partition and that is known:
        what single pushes nearly always are."""
        stream, values = -1, None
        for member in self._plan.runner.members:
            rows = found[member.stream][member.request]
            if rows.low == rows.high:
                continue
            if rows.high - rows.low > 1:
                return None
            row = rows.values[rows.low]
            bound = tuple([int(row[column]) for column in member.columns])
            if values is None and 0 not in bound:
                stream, values = member.stream, bound
            elif (stream, values) != (member.stream, bound):
                return None
        partition = -1 if values is None else self.table.find_one(values)
        return None if partition < 0 else (stream, partition)

    def _split_of_one(self, stream: int, partition: int, times: I64, start: int) -> Split:
        room = len(self.table.count)
        number = self.table.count[partition : partition + 1].copy()
        self.table.count[partition] += 1
        clock, tau = self._clocks(times, number, start)
        first, whose = np.zeros(1, np.int64), np.array([partition], np.int64)
        members = whose + stream * room
        return Split(self._by, self.table, first, whose, number, clock, tau, members, whose, first, len(times), None)

    def _memberships(
        self, found: Sequence[Sequence[Rows]], where: Sequence[I64], instants: int
    ) -> tuple[I64, I64, Ids]:
        """Of each mapping that puts an event into a partition: a number for the event, its instant, the values. In an
        order that each instant's events alone decide."""
        events, places, values = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)], [_no_values(self._by)]
        for member in self._plan.runner.members:
            rows = found[member.stream][member.request]
            if rows.low == rows.high:
                continue
            bound = rows.values[rows.low : rows.high][:, list(member.columns)]
            at = where[member.stream][rows.event[rows.low : rows.high]]
            if not bound.all():
                whole = bound.all(axis=1)
                bound, at = bound[whole], at[whole]
            event = member.stream * instants + at
            if np.array_equal(event, events[-1]) and np.array_equal(bound, values[-1]):
                continue  # as the GPM before says
            events.append(event)
            places.append(at)
            values.append(bound)
        return np.concatenate(events), np.concatenate(places), np.concatenate(values)

    def _count(self, partition: I64) -> I64:
        """The number of each instant among those of its partition."""
        number = np.empty(len(partition), np.int64)
        number_instants(partition, self.table.count, number)
        return number

    def _clocks(self, time: I64, number: I64, start: int) -> tuple[I64, I64]:
        window = self._plan.window
        if window is None:
            return time, np.full(len(time), BEFORE_ALL, np.int64)
        clock = number if window.events else time
        return clock, cut_of(window, clock, start)

    def _forgettable(self, count: int) -> Bools:
        """A partition's next tumbling window of n EVENTS depends on how many it has had."""
        window = self._plan.window
        if not self._plan.runner.deferred and window is not None and window.events and not window.sliding:
            whole: Bools = self.table.count[:count] % window.size == 0
            return whole
        return np.full(count, not self._plan.runner.deferred, np.bool_)


def _ascend(keys: I64) -> bool:
    """Whether each is larger than the one before."""
    return bool((keys[1:] > keys[:-1]).all())


def _first_of_each(keys: I64) -> tuple[I64, I64]:
    """The distinct keys, ascending, and the first place of each."""
    if _ascend(keys):
        return keys, np.arange(len(keys))
    distinct, first = np.unique(keys, return_index=True)
    return distinct, first


def _no_values(by: tuple[Variable, ...]) -> Ids:
    return np.zeros((0, len(by)), np.uint32)
