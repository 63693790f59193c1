"""A run of a compiled sequence: rows in, matches out.

In the flow: plan → events → rows → **run** → matches. It calls the kernel, grows its memory on demand,
and makes the decisions that need exact arithmetic or string functions.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from pyoxigraph import Variable

from oxiseq.engine.bounds import TRIES
from oxiseq.engine.expressions.exists import Ask, holds_with
from oxiseq.engine.kernels.matches import records as matches
from oxiseq.engine.kernels.memory.pointers import Array, Pointers, call
from oxiseq.engine.kernels.sequence import records as k
from oxiseq.engine.kernels.sequence.advance import advance, measure
from oxiseq.engine.kernels.sequence.entries import chain_entries
from oxiseq.engine.kernels.sequence.indexes import remove_dead
from oxiseq.engine.matches.found import Found
from oxiseq.engine.matches.runner import MatchRunner, Weigher
from oxiseq.engine.sequence.counts import Counts, more_limbs, more_tallies, take_counts
from oxiseq.engine.sequence.memory import (
    Capacities,
    allocate,
    begin_partitions,
    forget_answers,
    free_entries,
    grow,
    keep_answers,
    make_nodes,
    more_questions,
    partitions_in_use,
    restore_memory,
    save_memory,
    standing_entries,
    without_spare_nodes,
)
from oxiseq.engine.sequence.tables import CompiledFilter, CompiledFold, SequenceTables
from oxiseq.engine.terms.dictionary import TermDictionary
from oxiseq.engine.terms.saved import KnownTerms, SavedTerms, State, unsaved, value

_TRUE, _FALSE = 1, 0
_OFTEN = 4
"""Collections of one batch after which there is more room."""


class RowBuffer:
    """A batch of rows, sorted by instant; `kernels.letter_rows` fills it.

    `instants`: how many instants are in it; arrays and pointers are replaced when `reserve` has to grow them.
    """

    def __init__(self, compiled: SequenceTables, capacity: int = 16) -> None:
        self._columns = max((len(columns) for columns in compiled.columns), default=0) or 1
        self._measures = max(compiled.measure_count, 1)
        self._partitioned = compiled.clauses.partitioned
        self.instants = 0
        self._allocate(capacity)

    @classmethod
    def empty(cls, compiled: SequenceTables) -> RowBuffer:
        """A batch without rows."""
        return cls(compiled, 0)

    def reserve(self, count: int) -> None:
        """Room for so many rows, and instants; what was there is lost."""
        if count > self._capacity:
            self._allocate(max(count, 2 * self._capacity))

    def count_of(self, time: int, partitions: NDArray[np.int64]) -> int:
        """How many of its instants are at a time (µs), and of these partitions."""
        there = self.arrays.time[: self.instants] == time
        return int(np.count_nonzero(there & np.isin(self.arrays.partition[: self.instants], partitions)))

    def _allocate(self, capacity: int) -> None:
        self._capacity = capacity
        self.arrays = k.Rows.allocate(
            rows=capacity,
            instants=capacity,
            firsts=capacity + 1,
            columns=self._columns,
            measures=self._measures,
            partitioned=int(self._partitioned),
        )
        self.pointers = Pointers(self.arrays)
        """With the lengths of the present batch, once it has been filled."""


class Choice(Protocol):
    """Keeps some of the matches that end at one instant."""

    def pick(self, S: k.Memory, rows: Any, /) -> k.Memory:
        """Memory whose finals stand for those, in the order of emission; nodes refer to these `rows`."""


class SequenceRun(MatchRunner[k.Memory]):
    """The running state of one sequence. `oldest_row`: no node refers to an earlier row; `ask` answers the EXISTS of
    its filters, if they have some; `choice` keeps some of an instant's matches, if the tables say so; `weigher` has all
    finals."""

    made_of = value("oldest_row", name="oldest"), unsaved("_allocated")

    _AT, _PHASE = k.INSTANT, k.PHASE

    def __init__(
        self,
        compiled: SequenceTables,
        terms: TermDictionary,
        capacities: Capacities | None = None,
        ask: Ask | None = None,
        choice: Choice | None = None,
        weigher: Weigher[k.Memory] | None = None,
    ) -> None:
        self._compiled = compiled
        self._terms = terms
        self.ask = ask
        self._capacities = capacities or Capacities()
        super().__init__(weigher)
        self._allocated: k.Memory | None = None  # a query among many may never have a row
        self._generation = terms.generation
        self._choice = choice
        self._counts: list[Counts] = []
        self.oldest_row = 0
        self._first_row = self._collections = self._passed = 0
        """Of the batch in work, or of the last one; how often nodes have been full in it; how far time comes (µs)."""
        self._rows, self._store = self._no_rows, None

    @property
    def _memory(self) -> k.Memory:
        if self._allocated is None:
            self._allocated = allocate(self._compiled, self._capacities)
        return self._allocated

    @_memory.setter
    def _memory(self, memory: k.Memory) -> None:
        self._allocated = memory

    @cached_property
    def _no_rows(self) -> RowBuffer:
        return RowBuffer.empty(self._compiled)

    def reserve(self) -> None:
        """Have memory, whatever comes."""
        assert self._memory is self._allocated

    @property
    def _scalars(self) -> NDArray[np.int64]:
        return _NOTHING_YET if self._allocated is None else self._allocated.scalars

    @property
    def waits(self) -> bool:
        """Whether the clock alone may complete a match: something waits for its window to close, or a bound to pass."""
        return bool(self._scalars[k.WAITING])

    @property
    def deadline(self) -> int | None:
        """A match may be complete when this time (µs) has passed; None if only another event can complete one."""
        if not self.waits:
            return None
        memory = self._memory
        tables = self._compiled.tables
        timed = memory.scalars[k.CLOSINGS] and not tables.sizes[k.NUMBERED]
        due = [_first_close(memory, memory.closings[: memory.scalars[k.CLOSINGS]])] if timed else []
        if memory.scalars[k.LAPSES] and any(edge.waits and edge.lasting for edge in self._compiled.graph.edges):
            due.append(_first_close(memory, memory.lapses[: memory.scalars[k.LAPSES]]))
        for edge in tables.aged[int(tables.sizes[k.MOVING]) : int(tables.sizes[k.AGEING])].tolist():
            oldest = int(memory.ages["oldest"][edge])
            if oldest >= 0:
                due.append(int(memory.aged["time"][oldest] + tables.edges["limit"][edge]))
        first = min(due, default=k.NEVER_CLOSES)
        return None if first == k.NEVER_CLOSES else first

    def feed(
        self,
        rows: RowBuffer | None,
        until: int,
        store: Any = None,
        passed: int | None = None,
        origin: int | None = 0,
        first: int = 0,
    ) -> Found:
        """Work through `rows` (None: there are none); then let the clock reach `until`, the smallest that may
        still come; `passed` is the same in µs, if that is another unit; `origin`: the first clock of the first tumbling
        window, None: as its memory says; `store`: the rows that nodes refer to, for its choice; `first`: the first
        instant in `rows` that is to be worked through. Where matches of an instant are past a limit, it is as if there
        were none, and where what comes there tries too much, as if it had not come: see `take_omitted`."""
        tables, memory = self._compiled.tables, self._memory
        # the number of an event's graph means another event in each batch
        if memory.scalars[k.MEMOS]:
            forget_answers(memory, changed=self.ask is not None or self._generation != self._terms.generation)
        self._generation = self._terms.generation
        memory.scalars[k.INSTANT] = first
        if origin is not None:
            memory.origins[0] = origin
        if rows is None:
            rows = self._no_rows
        arrays, passed = rows.arrays, until if passed is None else passed
        self._rows, self._store, self._times, self._passed = rows, store, arrays.time[: rows.instants], passed
        self._first_row, self._collections = int(arrays.base[0]), 0
        self.bounds = self._terms.bounds
        table = self._tables.of
        T, R = table(tables), rows.pointers
        if self._compiled.measure_count:
            call(measure, T, table(memory), R, table(self._terms.columns))
        memory.meter[k.MOST_READS] = self.bounds.reads
        # new terms may move their columns
        self._work(lambda: call(advance, T, table(self._memory), R, table(self._terms.columns), until, passed))
        self._weigh()
        return self._taken()

    def _provide(self, need: int, at: int) -> None:
        memory = self._memory
        if need == k.NEED_DECISIONS:
            self._decide()
        elif need == k.BEYOND:
            self._leave_out(at)
        elif need in (matches.NEED_LIMBS, k.NEED_TALLIES):
            self._counts.append(take_counts(memory))
            self._memory = more_limbs(memory) if need == matches.NEED_LIMBS else more_tallies(memory)
        else:
            table = self._tables.of
            self._memory = grow(table(self._compiled.tables), table(memory), memory, need, self._compiled)

    def _leave_out(self, at: int) -> None:
        """What comes at an instant of the batch is tried too often: nothing of it is read."""
        self._note(TRIES, self.bounds.reads + 1, self._times.item(at))
        self._pass_by()
        self._memory.scalars[[k.PENDING, k.FIRED]] = 0
        self._memory = without_spare_nodes(self._memory)

    @property
    def _limit(self) -> int:
        return self._compiled.clauses.limit

    @property
    def _waited(self) -> bool:
        return bool(self._scalars[k.PHASE] == k.EMIT_CLOSED)

    def _time_of(self, at: int) -> int:
        """Or when they were decided, or how far time has come behind the last one."""
        if self._waited and not self._compiled.tables.sizes[k.NUMBERED]:
            return int(self._scalars[k.MOMENT])
        return super()._time_of(at) if at < len(self._times) else self._passed

    def _clocks_of(self, at: NDArray[np.int64]) -> NDArray[np.int64]:
        return self._rows.arrays.clock[at]

    def take_counts(self) -> Counts:
        """What has been counted since the last call, of a run that counts matches instead of listing them."""
        if self._allocated is not None:
            self._counts.append(take_counts(self._allocated))
        counts, self._counts = self._counts, []
        return Counts.joined(counts)

    def collect(self) -> None:
        """Free the nodes that are dead now, and learn `oldest_row`."""
        if self._allocated is not None:
            self._free(again=False)

    def _choose(self, instant: int) -> None:
        memory = self._memory
        if 2 * int(memory.scalars[matches.NODE_TOP]) > len(memory.nodes):
            self._free(again=False)  # a strategy makes nodes behind them, and would only grow
        super()._choose(instant)

    def _chosen(self, instant: int) -> k.Memory:
        assert self._choice is not None
        return self._choice.pick(self._memory, self._store)

    def _free(self, again: bool, *, full: bool = False) -> None:
        if full:
            self._collections += 1
            self._weigh()
        memory = self._memory
        tables = self._compiled.tables
        apart = tables.sizes[k.COUNTED] or (tables.windows["consumes"] != matches.NOTHING).any()
        owners = len(tables.windows) * (len(memory.floors) if apart else 1)
        pointers = self._tables.of(tables), self._tables.of(memory)
        # weighing begins anew after a collection, which is dear
        busy = full and (self._collections > _OFTEN or self._weigher is not None)
        self._memory, self.oldest_row = make_nodes(*pointers, memory, again, owners=owners, busy=busy)
        if self._weigher is not None:
            self._weigher.moved()

    def begin_partitions(self, fresh: NDArray[np.int64], count: int) -> None:
        """There are `count` partitions; those `fresh` are new, or have another meaning from now on."""
        self._memory = begin_partitions(self._memory, fresh, count)

    def partitions_in_use(self, count: int) -> NDArray[np.bool_]:
        """Of which of the `count` partitions something is remembered."""
        return partitions_in_use(self._memory, self._compiled, count)

    @property
    def compiled(self) -> SequenceTables:
        """Its tables."""
        return self._compiled

    @property
    def memory_there(self) -> k.Memory | None:
        """Its memory, if it has some."""
        return self._allocated

    @property
    def alive(self) -> int:
        """Of what has just been collected the records without which other matches would be found, but for rows: not
        unions, of which there are more or fewer by what came in between."""
        if self._allocated is None:
            return 0
        nodes = self._allocated.nodes[: self._scalars[matches.NODE_TOP]]
        return self.records - int(np.count_nonzero(nodes["leaf"] >= 0))

    def pass_to(self, clock: int, instants: int) -> bool:
        """There have been so many instants, and before the next one this clock, in the window's unit, has passed;
        whether that is news. What is dead then goes with the next collection."""
        tables, memory = self._compiled.tables, self._allocated
        if memory is None or tables.sizes[k.COUNTED]:
            return False
        news, wait = clock > memory.scalars[k.CLOCK], memory.waits[0]
        memory.scalars[k.CLOCK] = max(clock, memory.scalars[k.CLOCK])
        if wait["first"] >= 0 and wait["instant"] + 1 < instants and not tables.sizes[k.PARTITIONED]:
            self._free_entries(memory, [0])
            news = True
        return bool(news)

    def pass_in(self, counts: NDArray[np.int64]) -> bool:
        """Partitions have had so many instants; whether something has waited in vain for the next one of its own."""
        memory = self._allocated
        if memory is None or not self._compiled.tables.sizes[k.STRICTS]:
            return False
        waits = memory.waits[: len(counts)]
        vain = np.flatnonzero((waits["first"] >= 0) & (waits["instant"] + 1 < counts[: len(waits)]))
        self._free_entries(memory, vain.tolist())
        return len(vain) > 0

    def _free_entries(self, memory: k.Memory, partitions: Iterable[int]) -> None:
        for p in partitions:
            free_entries(memory, memory.waits[p])
        call(chain_entries, self._tables.of(self._compiled.tables), self._tables.of(memory))

    def clean(self) -> None:
        """Free all that is dead, groups too that nobody has met since."""
        if self._allocated is not None:
            call(remove_dead, self._tables.of(self._compiled.tables), self._tables.of(self._allocated))
        self.collect()

    def give_away(self) -> k.Memory | None:
        """Its memory, if it has some, without what is dead; it has none from now on."""
        self.clean()
        memory, self._allocated, self.oldest_row = self._allocated, None, 0
        return memory

    def take_back(self, memory: k.Memory) -> None:
        """Have this memory; rows have been numbered anew."""
        self._memory, self.oldest_row = memory, 0

    def save(self, terms: SavedTerms) -> State:
        """Its state between batches, without what is dead."""
        self.clean()
        memory = None if self._allocated is None else save_memory(self._allocated, self._compiled, terms)
        return {**super().save(terms), "memory": memory}

    def restore(self, state: State, terms: KnownTerms) -> None:
        super().restore(state, terms)
        if state["memory"] is not None:
            self._memory = restore_memory(state["memory"], self._compiled, self._capacities, terms, self._terms.columns)

    @property
    def live(self) -> dict[str, int]:
        """Numbers of live records, for tests of leaks and for explanations."""
        s = self._scalars
        return {
            "nodes": int(s[matches.NODE_TOP]),
            "groups": int(s[k.GROUP_COUNT]),
            "buckets": int(s[k.BUCKET_COUNT]),
            "aged": int(s[k.AGED_COUNT]),
            "touched": int(s[k.TOUCHED]),
            "bytes": self.bytes,
        }

    @property
    def waiting(self) -> tuple[int, ...]:
        """Groups at each edge, in the order of the state graph's edges; some may be dead by now."""
        edges = len(self._compiled.graph.edges)
        if self._allocated is None:
            return (0,) * edges
        used = self._allocated.groups["edge"][: int(self._scalars[k.GROUP_TOP])]
        counts = np.bincount(used[used >= 0], minlength=edges)
        return tuple(counts.tolist())

    @property
    def records(self) -> int:
        """Nodes, groups, buckets and runs in age segments together."""
        s = self._scalars
        counts = (matches.NODE_TOP, k.GROUP_COUNT, k.BUCKET_COUNT, k.AGED_COUNT)
        return sum([int(s[count]) for count in counts])

    def _decide(self) -> None:
        memory = self._memory
        questions = memory.asked[: int(memory.scalars[k.ASKED])]
        answers = [self._answer(self._compiled.filters[int(q[0])], q[1:]) for q in questions]
        self._memory = keep_answers(memory, self._compiled, np.array(answers, np.int64))
        if len(questions) == len(memory.asked):
            self._memory = more_questions(self._memory)

    def _answer(self, asked: CompiledFilter | CompiledFold, vector: NDArray[np.int64]) -> int:
        if isinstance(asked, CompiledFold):
            kept = None if asked.kept is None else int(vector[asked.kept])
            return asked.fold.step(kept, {v: int(vector[place]) for v, place in asked.places}, self._terms)
        ids: dict[Variable, int] = {v: int(vector[place]) for v, place in asked.places}
        return _TRUE if holds_with(asked.check.condition, ids, self._terms, self.ask) else _FALSE


def _first_close(memory: k.Memory, heap: Array) -> int:
    """The first time in a heap of closings whose group is still there; NEVER_CLOSES: there is none."""
    for entries in (heap[:1], heap):  # mostly that of the first one is
        if len(standing := standing_entries(memory, entries)):
            return int(standing["close"].min())
    return k.NEVER_CLOSES


_NOTHING_YET = np.zeros(k.SCALARS, np.int64)
"""What a run without memory counts."""
