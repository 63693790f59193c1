"""A run of a compiled CEQL query: events with symbols in, complex events out.

In the flow: events → tuples → symbols → **run** → matches. It calls the kernel, gives it room, and answers
what it does not know: numbers of new symbols, steps of the automaton.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import TYPE_CHECKING, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from oxiseq.engine.bounds import STEPS, InstantBound
from oxiseq.engine.cea.cache import StepCache
from oxiseq.engine.cea.events import MarkedEvents, Placed
from oxiseq.engine.cea.held import Holders
from oxiseq.engine.cea.listed import FoundEvents, events_of
from oxiseq.engine.cea.memory import (
    BUSY_NODES,
    WEIGHED_NODES,
    Capacities,
    allocate,
    begin_parts,
    free_nodes,
    grow,
    keep_all,
    put_memory,
    restore_memory,
    save_memory,
    sizes_of,
)
from oxiseq.engine.cea.plan import CeaPlan
from oxiseq.engine.cea.subsets import SILENT, Subsets
from oxiseq.engine.errors import LimitError
from oxiseq.engine.extras import needed
from oxiseq.engine.kernels.cea import records as k
from oxiseq.engine.kernels.cea.advance import advance
from oxiseq.engine.kernels.cea.clocks import enter_few
from oxiseq.engine.kernels.cea.collect import renumber
from oxiseq.engine.kernels.matches import records as matches
from oxiseq.engine.kernels.memory.pointers import Pointers, call
from oxiseq.engine.matches.frozen import FrozenMatches
from oxiseq.engine.matches.runner import MatchRunner, Weigher
from oxiseq.engine.omissions import InstantError, Streak
from oxiseq.engine.terms.saved import KnownTerms, SavedTerms, State, part, unsaved, value

if TYPE_CHECKING:
    from oxiseq.engine.matches import choice
else:
    choice = needed("oxiseq.engine.matches.choice")

I64 = NDArray[np.int64]
_COLLECT_EVERY = 1 << 14
_COUNTERS = [k.SERIAL, k.TOUCHED, k.BEHIND]
"""Scalars that continue when partial matches are given up. The cache remembers numbers that SERIAL had."""
_POSITIONS = np.zeros(0, np.int64)
"""Rows of nodes are positions, without a table."""


class Ends(Protocol):
    """Who sees the complex events of each end as a set."""

    def see(self, found: FrozenMatches, holders: Holders, at: int, time: int) -> None:
        """Those that end at the event at position `at`, at `time` (µs); none may be left. Raises LimitError."""


Pick: TypeAlias = Callable[[k.Memory, Holders, int, int], k.Memory]
"""Of what ends at the event at a position, at a time (µs): memory whose finals stand for what is emitted."""


class CeaRun(MatchRunner[k.Memory]):
    """The running state of one query. `oldest`: no partial match refers to a position before it."""

    made_of = (
        part("_holders.history", "holders"),
        value("oldest"),
        value("_collected"),
        value("_tau"),
        unsaved("_memory"),
        unsaved("_cache.arrays"),
    )

    _AT, _PHASE = k.AT, k.PHASE

    def __init__(
        self,
        plan: CeaPlan,
        capacities: Capacities | None = None,
        ends: Ends | None = None,
        pick: Pick | None = None,
        weigher: Weigher[k.Memory] | None = None,
    ) -> None:
        """`ends`: receives the complex events of each end as a set, `weigher`: weighs those of all; then they are not
        emitted one by one. `pick`: for a query that has ORDER BY or SAMPLE, or of which a page is wanted."""
        self._capacities = capacities = capacities or Capacities()
        super().__init__(weigher)
        strategy, silent = plan.clauses.strategy, -1 if all(plan.runner.masks) else SILENT
        self._chooser = None if strategy is None else choice.Chooser(strategy, capacities.nodes // 4, silent)
        self.plan = plan
        self.oldest = 0
        subsets = Subsets(plan.runner)
        self._sizes = sizes_of(plan, capacities, pick is not None)
        self._cache = StepCache(plan, subsets, self._sizes, capacities.moves)
        self._holders = Holders(plan, subsets)
        none = np.zeros(0, np.int64)
        self._no_events = k.Events.allocate(events=0, words=1)
        self._times, self._events = none, self._no_events
        """Those of the batch in work."""
        self._omitted_of: dict[int, list[InstantError]] | None = None
        """Of queries of which each is a partition: as `_omitted`."""
        self._nothing = FoundEvents(none, none, none, np.zeros(1, np.int64), self._holders.masks[none], none)
        self._pick = pick
        self._ends = ends
        if ends is not None:
            self._sizes[k.CHOOSES], self._sizes[k.LIMIT] = 1, 1  # one is emitted, for CONSUME BY
        self._sizes[k.NOTES] = weigher is not None
        self._memory = allocate(capacities)
        self._placed = Placed(plan.query, plan.runner.words)
        self._collected = 0
        self._rebuilt = -1
        self._by_time = self._sizes[k.KIND] == k.BY_TIME
        self._now = k.BEFORE_ALL
        """The time of the newest event (µs), in windows of time."""
        self._forgotten = 0
        """`oldest` when memory of events was freed last."""

    def feed(self, events: MarkedEvents) -> FoundEvents:
        """Take in a batch; the complex events that end in it. Those that end at an event where they are past a limit
        are as if they were none: see `take_omitted`."""
        E = self._placed.place(events)
        self._holders.append(E.arrays.symbol, E.arrays.partition, len(events), len(self._memory.parts))
        self._memory.scalars[k.AT] = 0
        return self._fed(E, events.time, events.batch)

    @property
    def few(self) -> k.Few:
        """Where a batch may be written at once, for `feed_few`: its symbols, partitions and values of the window's
        attribute."""
        return self._placed.few

    def feed_few(self, time: I64, log: I64, low: int) -> FoundEvents:
        """As `feed`, of the events in `few`, at these times. The times are copied to `log` from place `low` on."""
        placed, memory = self._placed, self._tables.of(self._memory)
        history, held = self._holders.room(len(time), len(self._memory.parts))
        call(enter_few, memory, placed.placed_few, time, log, low, history, held)
        return self._fed(placed.placed_few, time)

    def _fed(self, E: Pointers[k.Events], time: I64, batch: tuple[int, int] | None = None) -> FoundEvents:
        """What ends in a batch that has been placed, whose events are at these times. `batch`: as of MarkedEvents."""
        self._times, self._events, rows = time, E.arrays, len(time)
        count, newest = batch or (rows, time.item(-1) if rows else 0)
        if self._by_time and count:
            self._now = newest
        table = self._tables.of
        self._work(lambda: call(advance, table(self._cache.arrays), table(self._memory), E))
        self._weigh()
        found = self._found()
        self._memory.scalars[k.BASE] += count
        self._times, self._events = self._no_events.partition, self._no_events  # those of the batch may go
        self._collect_at_times(rows)
        if self.oldest != self._forgotten:
            self._forgotten = self.oldest
            self._holders.forget(self.oldest)
        return found

    def _provide(self, need: int, at: int) -> None:
        if need == k.NEED_PURGE:
            self._free(again=False)
            number = int(self._events.partition[at])
            keep_all(self._memory.parts[number : number + 1])
        elif need in (k.NEED_SYMBOL, k.NEED_STATE):
            try:
                self._learn(need)
            except LimitError as error:
                self._pass_over(self._events.symbol, at, self._time_of(at), error)
        else:
            self._memory = grow(self._memory, need)

    @property
    def _limit(self) -> int:
        return int(self._sizes[k.LIMIT])

    @property
    def _tau(self) -> int:
        """The cut of the newest event in a window of time."""
        return self._now if self._now == k.BEFORE_ALL else self._now - self._back

    @_tau.setter
    def _tau(self, tau: int) -> None:
        self._now = tau if tau == k.BEFORE_ALL else tau + self._back

    @property
    def _back(self) -> int:
        """How long a window of time is (µs)."""
        return int(self._cache.queries["back"][0])

    def collect(self) -> None:
        """Free dead memory, to learn `oldest`."""
        self._times = self._no_events.partition
        self._free(again=False)

    def begin_partitions(self, fresh: I64, count: int) -> None:
        """Between batches: there are `count` partitions; those `fresh` are new, or have another meaning from now on."""
        self._memory = begin_parts(self._memory, fresh, count)
        self._holders.begin_partitions(fresh)

    def partitions_in_use(self, count: int) -> NDArray[np.bool_]:
        """Of which of the `count` partitions something is remembered: partial matches, or that a window of an attribute
        has forgotten some. Dead ones go first."""
        self.collect()
        parts = self._memory.parts[:count]
        used: NDArray[np.bool_] = (parts["count"] > 0) | (parts["gone"] != k.BEFORE_ALL)
        return used

    # --- several queries ------------------------------------------------------------------------------

    def begin_query(self, number: int, back: int, omitted: int = 0) -> None:
        """From now on partitions are queries (run/tuple_family.py), among them this one, in a window of `back` µs: each
        consumes and is left out by itself, `omitted` times before."""
        cache, count = self._cache, 1 << number.bit_length()
        if self._omitted_of is None:
            self._omitted_of = {}
            cache.queries["omitted"] = self._memory.scalars[matches.OMITTED]
        self._sizes[k.CONSUME] = min(self._sizes[k.CONSUME], 1) * matches.THE_PARTITION
        self.begin_partitions(np.array([number]), count)
        cache.more_queries(max(count, 2, len(cache.queries)))
        cache.queries[number] = back, omitted

    def take_omitted_of(self) -> dict[int, list[InstantError]]:
        """As `take_omitted`, by query."""
        assert self._omitted_of is not None
        omitted, self._omitted_of = self._omitted_of, {}
        return omitted

    def _note(self, bound: InstantBound, given: int | LimitError, instant: int, *, final: bool = False) -> None:
        if self._omitted_of is None:
            super()._note(bound, given, instant, final=final)
            return
        at, E = int(self._memory.scalars[k.AT]), self._events
        number = int(E.partition[at])
        query = self._cache.queries[number]
        streak = Streak(self.bounds, int(query["omitted"]))
        streak.leave_out(bound, given, instant)
        query["omitted"] = streak.running
        self._omitted_of.setdefault(number, []).extend(streak.take())
        if streak.over:
            E.symbol[at:][E.partition[at:] == number] = 0

    def take_over(self, other: CeaRun, numbers: Collection[tuple[int, int, int]], shift: int) -> None:
        """Other queries come, with what `other` remembers of them: their numbers there and here, and how long their
        windows are; their positions are more by `shift` here."""
        self.collect()
        places = {there: here for there, here, _ in numbers}
        for there, here, back in numbers:
            self.begin_query(here, back, other._omitted_at(there))
        self._put(other, places, shift)
        self.oldest = min(self.oldest, other.oldest + shift)

    def continue_one(self, other: CeaRun, number: int, shift: int) -> None:
        """For one that has not seen anything: go on as the query of a number in `other`, whose positions are less by
        `shift` here."""
        self._put(other, {number: 0}, -shift)
        scalars, position = self._memory.scalars, other.position - shift
        scalars[[k.BASE, matches.OMITTED]] = position, other._omitted_at(number)
        self._memory.parts[0]["clock"] = position
        self._now = other._now
        self.collect()

    def _omitted_at(self, number: int) -> int:
        """How often a query has been left out, one event after the other."""
        if self._omitted_of is None:
            return int(self._memory.scalars[matches.OMITTED])
        return int(self._cache.queries["omitted"][number])

    def _put(self, other: CeaRun, places: Mapping[int, int], shift: int) -> None:
        if other._collected:  # else it has been, for the one before
            other.collect()
            other._collected = 0
        self._memory = put_memory(self._memory, self._cache, other._memory, other._cache, places, shift)

    @property
    def idles(self) -> bool:
        """Whether events that no letter reads change nothing but the position: there is one partition, without partial
        matches."""
        if self._sizes[k.KIND] == k.BY_ATTRIBUTE:
            return False
        if self._live:
            self.collect()
        return not self._live

    def pass_by(self, count: int, last: int) -> None:
        """Such events have come, the last one at `last` (µs); there are no partial matches."""
        self._memory.scalars[k.BASE] += count
        self._memory.parts[0]["clock"] += count
        if self._by_time:
            self._now = last
        self.oldest = self.position
        self._holders.forget(self.position)

    @property
    def position(self) -> int:
        """How many events came in."""
        return int(self._memory.scalars[k.BASE])

    @property
    def behind(self) -> int:
        """At how many events a window of an attribute reached back to forgotten events: matches that end there
        may be missing (kernels/cea/moving.py)."""
        return int(self._memory.scalars[k.BEHIND])

    @property
    def state(self) -> dict[str, int]:
        """Numbers of records, for tests of leaks and for explanations."""
        s, cache = self._memory.scalars, self._cache
        return {
            "nodes": int(s[matches.NODE_TOP]),
            "live": self._live,
            "states": cache.states,
            "symbols": cache.symbols,
            "rebuilds": cache.rebuilds,
            "steps": cache.steps,
            "touched": int(s[k.TOUCHED]),
            "bytes": self.bytes,
        }

    @property
    def records(self) -> int:
        """Nodes and the places where they wait."""
        return int(self._memory.scalars[matches.NODE_TOP]) + self._live

    @property
    def _live(self) -> int:
        parts = self._memory.parts
        return int(parts["count"][parts["epoch"] == self._memory.scalars[k.EPOCH]].sum())

    def forget(self) -> None:
        """Give up all partial matches; positions and counters continue."""
        position, counters = self.position, self._memory.scalars[_COUNTERS]
        self._memory = allocate(self._capacities)
        self._memory.scalars[_COUNTERS] = counters
        self._memory.scalars[k.BASE] = self.oldest = position
        self._holders.forget(position)
        self._collected, self._rebuilt = 0, -1

    def save(self, terms: SavedTerms) -> State:
        """Its state between batches, without dead records."""
        self.collect()
        self._holders.forget(self.oldest)
        return {**super().save(terms), "memory": save_memory(self._memory, self._cache)}

    def restore(self, state: State, terms: KnownTerms) -> None:
        """Continue from a saved state; for a run that has not seen any event."""
        self._memory = restore_memory(state["memory"], self._cache, self._capacities)
        super().restore(state, terms)

    def _chosen(self, instant: int) -> k.Memory:
        """Those that the strategy keeps and ORDER BY, LIMIT, SAMPLE choose."""
        memory = self._memory
        if self._chooser is not None:
            memory = self._chooser.choose(memory, _POSITIONS, 0, self.bounds)
        at = int(memory.scalars[k.BASE] + memory.scalars[k.AT])
        if self._ends is not None:
            self._ends.see(FrozenMatches(memory), self._holders, at, instant)
        if self._pick is not None:
            memory = self._pick(memory, self._holders, at, instant)
            if not memory.scalars[matches.FINALS]:  # OFFSET leaves none of those that were found
                memory.scalars[matches.EMITTED] = 1
        return memory

    def _free(self, again: bool, *, full: bool = False) -> None:
        self._weigh()
        scalars = self._memory.scalars
        at = int(scalars[k.AT])
        now = int(self._times[at]) if self._by_time and at < len(self._times) else self._now
        busy = 0 if not full else BUSY_NODES if self._weigher is None else WEIGHED_NODES
        self._memory, oldest = free_nodes(self._tables.of(self._cache.arrays), self._memory, now, again, busy=busy)
        position = int(scalars[k.BASE]) + (int(self._events.event[at]) if at < len(self._times) else 0)
        self.oldest = max(self.oldest, min(oldest, position))
        if self._weigher is not None:
            self._weigher.moved()

    def _collect_at_times(self, events: int) -> None:
        """So that `oldest` moves even if nodes are few; amortised over the events."""
        self._collected += events
        if self._collected < _COLLECT_EVERY:
            return
        nodes, parts = int(self._memory.scalars[matches.NODE_TOP]), len(self._memory.parts)
        grows = self._chooser is not None and 2 * nodes > len(self._memory.nodes)  # strategies make room for theirs
        if grows or self._collected >= 2 * nodes + parts:
            self._collected = 0
            self.collect()

    def _learn(self, need: int) -> None:
        """Computes what the kernel lacks (a step, an answer), or grows an array; the kernel then repeats the event."""
        scalars, cache = self._memory.scalars, self._cache
        at = int(scalars[k.AT])
        symbols = need == k.NEED_SYMBOL
        known = not symbols and cache.add_step(int(scalars[k.WANTED_STATE]), int(scalars[k.WANTED_SYMBOL]))
        position = int(scalars[k.BASE]) + at
        if known or cache.grow(symbols, beyond=False):
            return
        if self._rebuilt == position:
            cache.grow(symbols, beyond=True)
            return
        self._rebuilt = position
        numbers = np.full(cache.states, -1, np.int32)
        numbers[0] = 1
        call(renumber, Pointers(self._memory), numbers)
        cache.rebuild(numbers)

    def _pass_over(self, symbols: NDArray[np.uint64], at: int, instant: int, error: LimitError) -> None:
        """The event at an instant (µs) takes too many steps: no letter reads it. If it has none already, the query is
        stopped."""
        self._note(STEPS, error, instant, final=not symbols[at].any())
        symbols[at] = 0

    def _clocks_of(self, at: I64) -> I64:
        """The positions of events."""
        return self._events.event[at] + self.position

    def _found(self) -> FoundEvents:
        """The drained output."""
        if not self._parts:
            return self._nothing
        found = self._taken()
        return events_of(found, self._events.event[found.marks[:, 0]] + self.position, self._holders)
