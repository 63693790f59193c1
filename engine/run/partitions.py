"""PARTITION BY: the instants of a batch, each split into one instant for every partition that it belongs to.

In the flow: GPM occurrences → **instants of partitions** → rows of letters → one sequence run for all partitions,
in which the partition's number is part of every key (kernels/sequence/partitions.py). An event belongs to the
partition of every value that some GPM's pattern, its FILTERs aside, binds in it; its rows there are the mappings
with that value, and those of GPMs that do not bind it (semantics.md 2.1).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from pyoxigraph import Variable

from oxiseq.engine.kernels.memory.pointers import address_of
from oxiseq.engine.kernels.sequence import splitting as sp
from oxiseq.engine.matches.partitions import I64, Bools, Ids, Partitioned, PartitionTable
from oxiseq.engine.patterns.matcher import Rows
from oxiseq.engine.plan.query import GpmPlan, QueryPlan
from oxiseq.engine.run.letters import Frame
from oxiseq.engine.terms.dictionary import TermDictionary
from oxiseq.engine.terms.saved import Stateful, spread
from oxiseq.grammar.records import dataclass
from oxiseq.grammar.scope import certain_variables


@dataclass(frozen=True, slots=True)
class Several:
    """How instants of partitions are found where an event may be in several."""

    members: I64
    """Keys (stream, instant, partition), ascending: whose event is in which partition."""
    keys: I64
    """Keys (instant, partition), ascending."""
    places: I64
    """The place of each of `keys` among the instants of partitions."""
    instants: int
    """How many instants the batch has."""


@dataclass(frozen=True, slots=True)
class Split:
    """The instants of partitions in a batch, in order. Of each: `instant`, which of the batch's it is part of;
    `partition`; `number` among the partition's own; `clock`. `owned` finds them, or else `several`."""

    by: tuple[Variable, ...]
    table: PartitionTable
    instant: I64
    partition: I64
    number: I64
    clock: I64
    owned: I64 | None
    """i64[streams, instants]: the instant of the only partition that the event is in; -1: it is in none."""
    several: Several | None
    plain: frozenset[str]
    """GPMs whose mappings are where their event is: they bind all of `by`, or none of it."""

    def instants_of(self, plan: GpmPlan, where: I64 | None) -> I64 | None:
        """By event the instant of partitions in which all mappings of a GPM are, -1: none; None: it takes `frame`.
        `where`: the instant of each event; None: they are the same."""
        return self.owned_by(plan.stream, where) if plan.name in self.plain else None

    def owned_by(self, stream: int, where: I64 | None) -> I64 | None:
        """As of `instants_of`, for mappings that are where their event is."""
        if self.owned is None:
            return None
        owned: I64 = self.owned[stream]
        return owned if where is None else owned[where]

    def frame(self, plan: GpmPlan, frame: Frame) -> Frame:
        """The mappings of a GPM as they are seen in partitions."""
        return self.seen(plan.stream, [v for v in self.by if v in plan.parts.variables], frame)

    def seen(self, stream: int, known: Sequence[Variable], frame: Frame) -> Frame:
        """Mappings of a stream's events, which have these of `by`, as they are seen in partitions."""
        if self.several is not None:
            return self._frame_of_several(stream, frame, known, self.several)
        assert self.owned is not None
        where = self.owned[stream][frame.where]
        keep = where >= 0
        for variable in known:
            keep &= self.table.values(self.partition[where], self.by.index(variable)) == frame.columns[variable]
        if not keep.all():
            frame, where = frame.take(keep), where[keep]
        return Frame(where, frame.columns)

    def _frame_of_several(self, stream: int, frame: Frame, known: Sequence[Variable], several: Several) -> Frame:
        room = len(self.table.count)
        event = stream * several.instants + frame.where
        if len(known) == len(self.by):
            number = self.table.find(frame.table(self.by))
            row = np.flatnonzero(number >= 0)
            member = event[row] * room + number[row]
            at = np.minimum(np.searchsorted(several.members, member), len(several.members) - 1)
            row = row[several.members[at] == member]
            number = number[row]
        else:
            low = np.searchsorted(several.members, event * room)
            counts = np.searchsorted(several.members, (event + 1) * room) - low
            row = np.repeat(np.arange(len(event)), counts)
            ends = np.cumsum(counts)
            number = several.members[np.arange(len(row)) - np.repeat(ends - counts - low, counts)] % room
            for variable in known:
                values = self.table.values(number, self.by.index(variable))
                keep = values == frame.columns[variable][row]
                row, number = row[keep], number[keep]
        where = several.places[np.searchsorted(several.keys, frame.where[row] * room + number)]
        if len(where) > 1 and (where[1:] < where[:-1]).any():
            order = np.argsort(where, kind="stable")
            row, where = row[order], where[order]
        return Frame(where, {v: c[row] for v, c in frame.columns.items()})


class Putting(NamedTuple):
    """What puts events of a stream into partitions: rows, and which of their columns are the values."""

    stream: int
    rows: Rows
    columns: tuple[int, ...]


class Partitions(Stateful):
    """Splits the instants of a query's batches, or those of queries that partition alike. `capacity`: partitions that
    there is room for to begin with."""

    made_of = (spread("table"),)

    def __init__(self, plan: QueryPlan, sequence: Partitioned, capacity: int, terms: TermDictionary) -> None:
        assert plan.query.partition is not None
        self._plan = plan
        self._by = by = plan.query.partition.by
        self._plain = frozenset(name for name, gpm in plan.runner.gpms.items() if is_plain(gpm, by))
        self.table = PartitionTable(len(self._by), sequence, capacity, terms, self._forgettable)

    def split_rows(self, found: Sequence[Sequence[Rows]], where: Sequence[I64], times: I64) -> Split | None:
        """As `split`; `found`: per stream the rows of each request."""
        members = self._plan.runner.members
        return self.split([Putting(m.stream, found[m.stream][m.request], m.columns) for m in members], where, times)

    def split(self, found: Sequence[Putting], where: Sequence[I64], times: I64) -> Split | None:
        """The instants of partitions; `where`: instants by event. None: there are none."""
        found = [each for each in found if each.rows.low < each.rows.high]
        owner = self._owned(found, where, len(times))
        if owner is not None:
            return self._split_owned(owner, times)
        event, instant, values = self._memberships(found, where, len(times))
        if not len(event):
            return None
        partition = self.table.number(values)
        room = len(self.table.count)
        members = np.unique(event * room + partition)
        keys, first = np.unique(instant * room + partition, return_index=True)
        order = np.lexsort((first, keys // room))
        places = np.empty(len(keys), np.int64)
        places[order] = np.arange(len(keys))
        instant, partition = keys[order] // room, keys[order] % room
        number = np.empty(len(partition), np.int64)
        sp.number_instants(partition, self.table.count, number)
        clock = self._clocks(times[instant], number)
        several = Several(members, keys, places, len(times))
        return Split(self._by, self.table, instant, partition, number, clock, None, several, self._plain)

    def _owned(self, found: Sequence[Putting], where: Sequence[I64], instants: int) -> I64 | None:
        """By stream and instant the partition of the event; None: some are in several."""
        owner = np.full((len(where), instants), -1, np.int64)
        sources: dict[tuple[int, ...], None] = {}
        for stream, rows, columns in found:
            at = address_of(where[stream]) if len(where) > 1 else 0
            lies = (*rows.addresses, rows.values.shape[1], at, stream, rows.low, rows.high)
            sources[(*lies, *columns)] = None  # equal GPMs have the same rows
        whole = np.array(list(sources), np.int64).reshape(-1, sp.HIGH + 1 + len(self._by))
        table, places = np.ascontiguousarray(whole[:, : sp.HIGH + 1]), np.ascontiguousarray(whole[:, sp.HIGH + 1 :])
        outcome = self.table.own(table, places, owner)
        if outcome == sp.FRESH:
            self.table.number(self._memberships(found, where, instants)[2])
            owner.fill(-1)
            outcome = self.table.own(table, places, owner)
        return owner if outcome == sp.OWNED else None

    def _split_owned(self, owner: I64, times: I64) -> Split | None:
        room = np.empty((3, len(times)), np.int64)
        count = sp.place_owned(owner, self.table.count, *room)
        if not count:
            return None
        instant, partition, number = room[:, :count]
        clock = self._clocks(times[instant], number)
        return Split(self._by, self.table, instant, partition, number, clock, owner, None, self._plain)

    def _memberships(self, found: Sequence[Putting], where: Sequence[I64], instants: int) -> tuple[I64, I64, Ids]:
        """Of each mapping that puts an event into a partition: a number for the event, its instant, the values. In an
        order that each instant's events alone decide."""
        events, places, values = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)], [_no_values(self._by)]
        for stream, rows, columns in found:
            bound = _columns(rows.values[rows.low : rows.high], columns)
            at = rows.event[rows.low : rows.high]
            if len(where) > 1:
                at = where[stream][at]
            if not bound.all():
                whole = bound.all(axis=1)
                bound, at = bound[whole], at[whole]
            event = at + stream * instants if stream else at
            if np.array_equal(event, events[-1]) and np.array_equal(bound, values[-1]):
                continue  # as the GPM before says
            events.append(event)
            places.append(at)
            values.append(bound)
        return np.concatenate(events), np.concatenate(places), np.concatenate(values)

    def _clocks(self, time: I64, number: I64) -> I64:
        window = self._plan.window
        return number if window is not None and window.events else time

    def _forgettable(self, count: int) -> Bools:
        """A partition's next tumbling window of n EVENTS depends on how many it has had."""
        window = self._plan.window
        if not self._plan.runner.deferred and window is not None and window.events and not window.sliding:
            whole: Bools = self.table.count[:count] % window.size == 0
            return whole
        return np.full(count, not self._plan.runner.deferred, np.bool_)


def is_plain(plan: GpmPlan, by: tuple[Variable, ...]) -> bool:
    """Whether a mapping's values are those of its event's only partition."""
    return set(by) <= certain_variables(plan.parts.pattern) or set(by).isdisjoint(plan.parts.variables)


def _columns(values: Ids, columns: tuple[int, ...]) -> Ids:
    """Some columns of a table; one alone is only looked at."""
    return values[:, columns[0] : columns[0] + 1] if len(columns) == 1 else values[:, list(columns)]


def _no_values(by: tuple[Variable, ...]) -> Ids:
    return np.zeros((0, len(by)), np.uint32)
