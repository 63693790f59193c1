"""A run of a compiled sequence whose matches are only counted and summed, apart by one key that all of their rows have:
it keeps no prefix, only what each instant of the window does to them (engine/matches/composed.py).

In the flow: rows of letters with symbols, keys and values → **run** → weights of ends → rows of groups.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray
from pyoxigraph import Variable

from oxiseq.engine.kernels.matches import composed as c
from oxiseq.engine.kernels.memory.pointers import Pointers
from oxiseq.engine.kernels.sequence.records import BEFORE_ALL
from oxiseq.engine.matches.composed import MOST_STATES, NO_REPORTS, Arcs, ComposedWindows, Ended, Rules, reports_of
from oxiseq.engine.matches.measures import Columns, Measures
from oxiseq.engine.matches.partitions import PartitionTable
from oxiseq.engine.omissions import InstantError
from oxiseq.engine.sequence.liveness import edges_by_source
from oxiseq.engine.sequence.memory import Capacities
from oxiseq.engine.sequence.positions import START
from oxiseq.engine.sequence.run import RowBuffer
from oxiseq.engine.sequence.states import PARTITION, Arm, Check, Column, Edge, Kept, StateGraph, Value, ValueKind
from oxiseq.engine.sequence.tables import SequenceTables
from oxiseq.engine.terms.dictionary import TermDictionary
from oxiseq.engine.terms.saved import SavedTerms, State, Stateful, part
from oxiseq.engine.window import cut_of
from oxiseq.grammar.algebra import Op, Window

I64 = NDArray[np.int64]
_NONE: Final = np.zeros(0, np.int64)
Key = tuple[Variable, ...]


def key_of(compiled: SequenceTables, *, so_far: bool) -> Key | None:
    """The variables whose values all rows of a match have in common, and on which alone it depends which rows make one;
    (PARTITION,) under PARTITION BY. None: it depends on more, or some rows lack them; or there are too many states, one
    of them for all matches `so_far`."""
    graph = compiled.graph
    if max(_states(graph)) + 1 + so_far > MOST_STATES:
        return None
    between = [(edge, key) for edge, key in zip(graph.edges, compiled.keys, strict=True) if edge.source != START]
    values = {frozenset(value for value in key) for _, key in between}
    names = {frozenset(value.variable for value in key) for key in values}
    if len(names) > 1 or any(value.kind is not ValueKind.BOUND for key in values for value in key):
        return None
    found = sorted((name for key in names for name in key if name is not None), key=str)
    if PARTITION in found and len(found) > 1:
        return None
    wanted = frozenset(found)
    if not all(wanted <= set(columns) for columns in compiled.columns):
        return None
    leaving = edges_by_source(graph)
    closed = all(_is_closed(edge, wanted) for edge in graph.edges) and all(
        _is_kept(arm, compiled.keys[following], wanted)
        for edge in graph.edges
        for arm in edge.arms
        for following in leaving.get(arm.target, ())
    )
    return tuple(found) if closed else None


def _is_closed(edge: Edge, key: frozenset[Variable]) -> bool:
    """Whether it depends on the key alone which rows an edge lets go on, or stop matches."""
    plain = not (edge.bounded or edge.waits or edge.moves or edge.follows or edge.counts is not None)
    if edge.source == START:
        return plain and not edge.guards and all(_compares(arm.check, frozenset()) for arm in edge.arms)
    return plain and all(_compares(check, key) for _, check in edge.compared)


def _compares(check: Check, key: frozenset[Variable]) -> bool:
    names = {variable for variable, _ in check.equal}
    same = all(variable == value.variable for variable, value in check.equal)
    return same and names == key and not check.compatible and not check.filters


def _is_kept(arm: Arm, following: Sequence[Value], key: frozenset[Variable]) -> bool:
    """Whether what matches carry on is the key that the row has, too."""
    fill = dict(arm.fill)
    for value in following:
        match fill[value]:
            case Column(variable) if variable == value.variable:
                continue
            case Kept(kept) if kept.variable == value.variable and any(v == kept.variable for v, _ in arm.check.equal):
                continue
        return False
    return True


def rules_of(
    compiled: SequenceTables, window: Window | None, *, merges: bool, so_far: bool, reports: int = c.NO_REPORTS
) -> Rules:
    """What rows of each letter do. `merges`: what ends at an instant is told of together; `so_far`: and all matches of
    the window; `reports`: at other moments, as the kernel says."""
    kind = c.UNBOUNDED if window is None else c.BY_CLOCK if window.sliding else c.TUMBLING
    graph, leaving, states = compiled.graph, edges_by_source(compiled.graph), _states(compiled.graph)
    once = sum(1 << states[n] for n, edge in enumerate(graph.edges) if edge.op is Op.STRICT and states[n])
    last = max(states) + so_far
    rules = Rules(kind, once=once, merges=merges, so_far=last if so_far else 0, reports=reports)
    rules.settings[c.STATES] = last + 1
    for symbol, letter in enumerate(compiled.letters):
        keep, arcs = -1 & ~once, list[tuple[int, int, int]]()
        for state, edge in zip(states, graph.edges, strict=True):
            mine = [arm for arm in edge.arms if arm.letter == letter]
            for arm in mine:
                following = [states[n] for n in leaving.get(arm.target, ())]
                if so_far and graph.states[arm.target].final:
                    following.append(last)
                arcs += _arcs(graph, state, arm.target, following, symbol + 1)
            fires = bool(mine) and edge.op is Op.NEXT
            if state and (fires or any(guard.letter == letter for guard in edge.guards)):
                keep &= ~(1 << state)
        rules.put(symbol, keep, arcs)
    return rules


def _states(graph: StateGraph) -> list[int]:
    """The number of the state in which matches wait at each edge; 0: before a match begins."""
    numbers = iter(range(1, len(graph.edges) + 1))
    return [0 if edge.source == START else next(numbers) for edge in graph.edges]


def _arcs(graph: StateGraph, source: int, target: int, following: Sequence[int], place: int) -> Arcs:
    ends = [(source, c.END, place)] if graph.states[target].final else []
    return [*ends, *((source, state, place) for state in following)]


class EndedRows(NamedTuple):
    """What ends at rows: their numbers in the batch, and the weights of each, of this form (see `Ended`)."""

    row: I64
    weights: NDArray[np.uint64]
    form: I64


class Reported(NamedTuple):
    """What reports tell: their numbers, whose matches where keys are apart, and the weights, of this form; those of
    one report in order of their first matches."""

    report: I64
    partition: I64
    weights: NDArray[np.uint64]
    form: I64


class _Rows(NamedTuple):
    """Rows of a batch: what they do and add, how many, in which order (None: theirs), and the instant of each."""

    steps: c.Steps
    rows: int
    columns: Columns
    order: I64 | None
    where: I64 | slice


class ComposedSequence(Stateful):
    """The running state of one sequence. Between batches it needs no row any more.

    `key`: see `key_of`; `held`: which of `measures` a row of each letter counts with, bool[letters, measures];
    `merges`, `so_far`, `reports`: see `rules_of`. `origin`: the first clock of the first tumbling window.
    """

    made_of = part("table", "keys"), part("_windows", "composed")

    oldest_row: Final = 1 << 62
    waits: Final = False
    deadline: Final = None

    def __init__(
        self,
        compiled: SequenceTables,
        window: Window | None,
        key: Key,
        measures: Measures,
        held: NDArray[np.bool_],
        terms: TermDictionary,
        capacities: Capacities | None = None,
        *,
        merges: bool,
        so_far: bool,
        reports: int = c.NO_REPORTS,
    ) -> None:
        capacities = capacities or Capacities()
        self._window, self.origin = window, 0
        rules = rules_of(compiled, window, merges=merges, so_far=so_far, reports=reports)
        nothing = np.zeros((1, held.shape[1]), np.bool_)
        parts = max(capacities.groups, 1) if key else 1
        self._windows = ComposedWindows(
            rules, measures, np.concatenate([nothing, held]), int(rules.settings[c.STATES]), parts, capacities.out
        )
        self._edges = len(compiled.graph.edges)
        self._partitioned = key == (PARTITION,)
        self._columns = np.array([[columns.index(v) for v in key] for columns in compiled.columns], np.int64)
        """[letter, key]: the column of a row that has it."""
        self._alike = bool((self._columns == self._columns[:1]).all())
        self.table = None if self._partitioned or not key else PartitionTable(len(key), self, parts, terms)

    def feed(self, buffer: RowBuffer, ids: I64) -> list[EndedRows]:
        """Take in a batch of rows whose attributes have these ids, i64[n, attributes]; what ends in it, in order. The
        caller reads its least and largest values before the next call, which may forget them."""
        if not buffer.instants:
            return []
        rows = self._rows(buffer, ids)
        base = self._windows.position
        found = self._windows.feed(Pointers(rows.steps), rows.rows, rows.columns)
        return [self._ended(ended, base, rows.order, rows.where) for ended in found]

    def report(self, buffer: RowBuffer, ids: I64, before: I64 = _NONE, cuts: I64 = _NONE) -> list[Reported]:
        """The same where reports tell of all matches of the window: each comes before one of the rows, or behind them,
        and tells of what starts at its cut or later."""
        rows = self._rows(buffer, ids)
        reports = reports_of(before, cuts, rows.order) if len(before) or rows.order is not None else NO_REPORTS
        found = self._windows.feed(Pointers(rows.steps), rows.rows, rows.columns, reports)
        return [self._reported(ended) for ended in found]

    def _reported(self, ended: Ended) -> Reported:
        if not len(ended.of):
            return Reported(ended.at, np.zeros(len(ended.at), np.int64), ended.weights, ended.form)
        order = np.lexsort((ended.of[:, 1], ended.at))
        return Reported(ended.at[order], ended.of[order, 0], ended.weights[order], ended.form)

    def _rows(self, buffer: RowBuffer, ids: I64) -> _Rows:
        """The rows of a batch as the windows read them, those of one instant and partition together."""
        arrays, instants = buffer.arrays, buffer.instants
        first = arrays.first[: instants + 1]
        count = int(first[-1])
        where: I64 | slice = slice(0, count)
        if count > instants:
            where = np.repeat(np.arange(instants), np.diff(first))
        letter, partition, order = arrays.letter[:count], self._partition(buffer, count, where), None
        if self.table is not None and not isinstance(where, slice):
            order = _together(where, partition)
            if order is not None:
                letter, partition, where, ids = letter[order], partition[order], where[order], ids[order]
        columns = self._windows.columns(ids)
        clock = arrays.clock[:instants]
        tau = np.full(instants, BEFORE_ALL) if self._window is None else cut_of(self._window, clock, self.origin)
        if instants:
            self._windows.tau = int(tau[-1])
        instant = arrays.instant[where]
        moment = arrays.moment[where] if self._partitioned else instant
        steps = c.Steps(letter, partition, arrays.clock[where], tau[where], instant, moment)
        return _Rows(steps, count, columns, order, where)

    def _ended(self, ended: Ended, base: int, order: I64 | None, where: I64 | slice) -> EndedRows:
        """As rows are numbered in the batch; those of an instant in order of their rows."""
        row, weights = ended.at - base, ended.weights
        if order is not None and not isinstance(where, slice):
            place = np.lexsort((order[row], where[row]))
            row, weights = order[row[place]], weights[place]
        return EndedRows(row, weights, ended.form)

    def _partition(self, buffer: RowBuffer, count: int, where: I64 | slice) -> I64:
        """Of each row."""
        if self._partitioned:
            found: I64 = buffer.arrays.partition[where]
            return found
        if self.table is None:
            return np.zeros(count, np.int64)
        return self.table.number(self.keys(buffer, slice(0, count)))

    def keys(self, buffer: RowBuffer, rows: I64 | slice) -> NDArray[np.uint32]:
        """The key's values, u32[n, key], of rows of a batch."""
        arrays = buffer.arrays
        values = arrays.values[rows]
        if self._alike:
            return values[:, self._columns[0]].astype(np.uint32)
        return np.take_along_axis(values, self._columns[arrays.letter[rows]], 1).astype(np.uint32)

    def values(self, partitions: I64, key: int) -> NDArray[np.uint32]:
        """One of the key's values of each of these, where it is apart by one that rows have."""
        assert self.table is not None
        return self.table.values(partitions, key)

    # --- as of SequenceRun ------------------------------------------------------------------------------

    def reserve(self) -> None:
        """It has memory."""

    def take_omitted(self) -> list[InstantError]:
        """None: nothing is listed."""
        return []

    def begin_partitions(self, fresh: I64, count: int) -> None:
        """There are `count` partitions; those `fresh` are new, or have another meaning from now on."""
        self._windows.begin_partitions(fresh, count)

    def partitions_in_use(self, count: int) -> NDArray[np.bool_]:
        """Of which of the `count` partitions something is remembered."""
        return self._windows.partitions_in_use(count)

    def collect(self) -> None:
        """Drop what has left the windows, and keys that nothing has."""
        self._windows.collect()
        if self.table is not None:
            self.table.forget_unused()

    @property
    def records(self) -> int:
        """Rows of windows, and keys."""
        return self._windows.records + (0 if self.table is None else self.table.live)

    @property
    def live(self) -> dict[str, int]:
        """Numbers of live records."""
        keys = {} if self.table is None else {"keys": self.table.live}
        return {**self._windows.state, **keys, "bytes": self.bytes}

    @property
    def waiting(self) -> tuple[int, ...]:
        """No groups wait at the edges: windows are composed."""
        return (0,) * self._edges

    def save(self, terms: SavedTerms) -> State:
        self.collect()
        return super().save(terms)


def _together(where: I64, partition: I64) -> I64 | None:
    """The order in which rows of one instant and partition follow each other, the partitions of an instant in order of
    their first rows; None: they do so already."""
    same = where[1:] == where[:-1]
    if not (same & (partition[1:] != partition[:-1])).any():
        return None
    order = np.lexsort((partition, where))
    new = np.ones(len(order), np.bool_)
    new[1:] = (where[order[1:]] != where[order[:-1]]) | (partition[order[1:]] != partition[order[:-1]])
    group = np.cumsum(new) - 1
    found: I64 = order[np.lexsort((order, order[np.flatnonzero(new)][group], where[order]))]
    return found
