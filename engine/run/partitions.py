"""PARTITION BY: the instants of a batch, each split into one instant for every partition that it belongs to.

Where it stands: GPM occurrences → **instants of partitions** → rows of letters → one sequence run for all partitions,
in which the partition's number is part of every key (kernels/sequence/partitions.py). An event belongs to the
partition of every value that some GPM's pattern, its FILTERs aside, binds in it; what it shows there are the mappings
with that value, and those of GPMs that do not bind it (semantics.md 2.1).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from pyoxigraph import Variable

from oxiseq.engine.kernels.sequence.records import BEFORE_ALL
from oxiseq.engine.patterns.matcher import Rows
from oxiseq.engine.plan.query import GpmPlan, QueryPlan
from oxiseq.engine.run.letters import Frame
from oxiseq.engine.sequence.run import SequenceRun
from oxiseq.engine.sequence.states import PARTITION
from oxiseq.engine.terms.dictionary import AnyIds
from oxiseq.engine.terms.saved import KnownTerms, SavedTerms, State

Ids = NDArray[np.uint32]
I64 = NDArray[np.int64]


class PartitionTable:
    """Value → number of its partition. A number is free again when the run remembers nothing of the partition.

    `count` i64: how many instants of each partition there have been.
    """

    def __init__(self, width: int, sequence: SequenceRun, capacity: int) -> None:
        self.count = np.zeros(capacity, np.int64)
        self._values = np.zeros((capacity, width), np.uint32)
        self._sequence = sequence
        self._top = 0
        self._free: list[int] = []
        self._numbers: dict[bytes, int] = {}
        self._single = np.full(1 if width == 1 else 0, -1, np.int32)  # by term id

    def save(self, terms: SavedTerms) -> State:
        """All numbers ever given, those free now included."""
        return {
            "count": self.count[: self._top],
            "values": terms.ids(self._values[: self._top]),
            "free": np.array(self._free, np.int64),
        }

    def restore(self, state: State, terms: KnownTerms) -> None:
        """Go on from a saved state; for a table without partitions."""
        values = terms.ids(state["values"])
        self._top, self._free = len(values), state["free"].tolist()
        if self._top > len(self.count):
            self.count = np.zeros(self._top, np.int64)
            self._values = np.zeros(values.shape, np.uint32)
        self.count[: self._top], self._values[: self._top] = state["count"], values
        there = np.ones(self._top, np.bool_)
        there[self._free] = False
        self._enter(np.flatnonzero(there), values[there])

    def _enter(self, numbers: I64, values: Ids) -> None:
        """Let `find` find these partitions by their values."""
        if values.shape[1] == 1:
            self._cover(int(values.max(initial=0)) + 1)
            self._single[values[:, 0]] = numbers
        else:
            for row, at in zip(values, numbers.tolist(), strict=True):
                self._numbers[row.tobytes()] = at

    @property
    def live(self) -> int:
        """How many partitions are known."""
        return self._top - len(self._free)

    @property
    def bytes(self) -> int:
        """Of its arrays."""
        return self.count.nbytes + self._values.nbytes + self._single.nbytes

    def held_ids(self) -> tuple[AnyIds, ...]:
        """The values of partitions, some of which are forgotten."""
        return (self._values[: self._top],)

    def values(self, numbers: I64, column: int) -> Ids:
        """One of the values of each of these partitions."""
        held: Ids = self._values[numbers, column]
        return held

    def value(self, number: int, column: int) -> int:
        """The same of one partition."""
        return int(self._values[number, column])

    def find(self, values: Ids) -> I64:
        """The number of each row's partition, −1 where it has none."""
        if values.shape[1] == 1:
            ids = values[:, 0].astype(np.int64)
            return np.where(ids < len(self._single), self._single[np.minimum(ids, len(self._single) - 1)], -1)
        rows, inverse = np.unique(values, axis=0, return_inverse=True)
        numbers = np.array([self._numbers.get(row.tobytes(), -1) for row in rows], np.int64)
        return numbers[inverse.reshape(-1)]

    def find_one(self, values: tuple[int, ...]) -> int:
        """`find` for one row."""
        if len(values) == 1:
            return int(self._single[values[0]]) if values[0] < len(self._single) else -1
        return self._numbers.get(np.array(values, np.uint32).tobytes(), -1)

    def number(self, values: Ids, forgettable: NDArray[np.bool_] | None) -> I64:
        """`find`, and new partitions where there are none. `forgettable`: which may be forgotten if nothing is
        remembered of them, for when there is no room; None: none."""
        numbers = self.find(values)
        missing = np.flatnonzero(numbers < 0)
        if not len(missing):
            return numbers
        new = np.unique(values[missing], axis=0)
        if len(self._free) + len(self.count) - self._top < len(new):
            self._make_room(len(new), numbers, forgettable)
        fresh = np.array([self._take() for _ in range(len(new))], np.int64)
        self._values[fresh] = new
        self.count[fresh] = 0
        self._enter(fresh, new)
        self._sequence.begin_partitions(fresh, len(self.count))
        return self.find(values)

    def _take(self) -> int:
        if self._free:
            return self._free.pop()
        self._top += 1
        return self._top - 1

    def _cover(self, size: int) -> None:
        if size > len(self._single):
            longer = np.full(2 * size, -1, np.int32)
            longer[: len(self._single)] = self._single
            self._single = longer

    def _make_room(self, wanted: int, present: I64, forgettable: NDArray[np.bool_] | None) -> None:
        if forgettable is not None:
            gone = ~self._sequence.partitions_in_use(self._top) & forgettable[: self._top]
            gone[present[present >= 0]] = False
            gone[self._free] = False
            self._forget(np.flatnonzero(gone))
        size = len(self.count)
        while len(self._free) + size - self._top < max(wanted, size // 2):
            size *= 2
        if size > len(self.count):
            self.count = np.concatenate([self.count, np.zeros(size - len(self.count), np.int64)])
            self._values = np.concatenate(
                [self._values, np.zeros((size - len(self._values), self._values.shape[1]), np.uint32)]
            )

    def _forget(self, gone: I64) -> None:
        if self._values.shape[1] == 1:
            self._single[self._values[gone, 0]] = -1
        else:
            for row in self._values[gone]:
                del self._numbers[row.tobytes()]
        self._values[gone] = 0
        self._free += gone.tolist()


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
    """Where each of `keys` stands among the instants of partitions."""
    instants: int
    """How many instants the batch has."""

    def frame(self, plan: GpmPlan, frame: Frame) -> Frame:
        """The mappings of a GPM as they are seen in partitions."""
        if len(self.members) == 1 and self.instants == 1:
            return self._frame_of_one(plan, frame)
        room = len(self.table.count)
        event = plan.stream * self.instants + frame.where
        known = [v for v in self.by if v in plan.parts.variables]
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

    def __init__(self, plan: QueryPlan, sequence: SequenceRun, capacity: int) -> None:
        assert plan.query.partition is not None
        self._plan = plan
        self._by = plan.query.partition.by
        self.table = PartitionTable(len(self._by), sequence, capacity)

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
        partition = self.table.number(values, self._forgettable())
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
        return Split(self._by, self.table, instant, partition, number, clock, tau, members, keys, places, len(times))

    def _alone(self, found: Sequence[Sequence[Rows]]) -> tuple[int, int] | None:
        """The stream and the partition of the only event of one instant, if it is in one partition and that is known:
        what single pushes nearly always are."""
        stream, values = -1, None
        for member in self._plan.members:
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
        return Split(
            self._by, self.table, first, whose, number, clock, tau, whose + stream * room, whose, first, len(times)
        )

    def _memberships(
        self, found: Sequence[Sequence[Rows]], where: Sequence[I64], instants: int
    ) -> tuple[I64, I64, Ids]:
        """Of each mapping that puts an event into a partition: a number for the event, its instant, the values. In an
        order that each instant's events alone decide."""
        events, places, values = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)], [_no_values(self._by)]
        for member in self._plan.members:
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
        order = np.argsort(partition, kind="stable")
        run = partition[order]
        begins = np.concatenate([[True], run[1:] != run[:-1]])
        at = np.arange(len(run))
        number = np.empty(len(run), np.int64)
        number[order] = self.table.count[run] + at - np.maximum.accumulate(np.where(begins, at, 0))
        np.maximum.at(self.table.count, partition, number + 1)
        return number

    def _clocks(self, time: I64, number: I64, start: int) -> tuple[I64, I64]:
        window = self._plan.window
        if window is None:
            return time, np.full(len(time), BEFORE_ALL, np.int64)
        clock = number if window.events else time
        if window.sliding:
            return clock, clock - window.size
        return clock, start + (clock - start) // window.size * window.size

    def _forgettable(self) -> NDArray[np.bool_] | None:
        """A partition's next tumbling window of n EVENTS depends on how many it has had."""
        if self._plan.deferred:
            return None
        window = self._plan.window
        if window is not None and window.events and not window.sliding:
            whole: NDArray[np.bool_] = self.table.count % window.size == 0
            return whole
        return np.ones(len(self.table.count), np.bool_)


def _ascend(keys: I64) -> bool:
    """Whether each is larger than the one before."""
    return bool((keys[1:] > keys[:-1]).all())


def _first_of_each(keys: I64) -> tuple[I64, I64]:
    """The distinct keys, ascending, and where each stands first."""
    if _ascend(keys):
        return keys, np.arange(len(keys))
    distinct, first = np.unique(keys, return_index=True)
    return distinct, first


def _no_values(by: tuple[Variable, ...]) -> Ids:
    return np.zeros((0, len(by)), np.uint32)
