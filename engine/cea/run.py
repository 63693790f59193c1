"""A run of a compiled CEQL query: events with symbols in, complex events out.

In the flow: events → tuples → symbols → **run** → matches. It calls the kernel, gives it room, and answers
what it does not know: numbers of new symbols, steps of the automaton.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from oxiseq.engine.bounds import STEPS, InstantBound
from oxiseq.engine.cea.cache import StepCache
from oxiseq.engine.cea.events import MarkedEvents, sizes_of
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
)
from oxiseq.engine.cea.plan import CeaPlan
from oxiseq.engine.cea.queries import QueryStreaks
from oxiseq.engine.cea.saved import in_use, restore_memory, save_memory
from oxiseq.engine.cea.subsets import SILENT, Subsets
from oxiseq.engine.cea.windows import Placed
from oxiseq.engine.errors import LimitError
from oxiseq.engine.extras import needed
from oxiseq.engine.kernels.cea import records as k
from oxiseq.engine.kernels.cea.advance import advance
from oxiseq.engine.kernels.cea.collect import collect, renumber
from oxiseq.engine.kernels.cea.few import enter_few
from oxiseq.engine.kernels.matches import records as matches
from oxiseq.engine.kernels.memory.growing import plain
from oxiseq.engine.kernels.memory.pointers import Pointers, call
from oxiseq.engine.matches.frozen import FrozenMatches
from oxiseq.engine.matches.runner import MatchRunner, Weigher
from oxiseq.engine.omissions import InstantError
from oxiseq.engine.terms.saved import KnownTerms, SavedTerms, State, part, unsaved, value

if TYPE_CHECKING:
    from oxiseq.engine.matches import choice
else:
    choice = needed("oxiseq.engine.matches.choice")

I64 = NDArray[np.int64]
_COLLECT_EVERY = 1 << 14
_COUNTERS = [k.SERIAL, k.TOUCHED, k.BEHIND]
"""Scalars that continue when partial matches are given up. The cache remembers numbers that SERIAL had."""
_U64, _I64 = np.dtype(np.uint64), np.dtype(np.int64)
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
        self._streaks: QueryStreaks | None = None
        """Of queries of which each is a partition."""
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
        self._tau = k.BEFORE_ALL
        self._newest: int | None = None
        """See `_begin`."""
        self._forgotten = 0
        """`oldest` when memory of events was freed last."""

    def feed(self, events: MarkedEvents) -> FoundEvents:
        """Take in a batch; the complex events that end in it. Those that end at an event where they are past a limit
        are as if they were none: see `take_omitted`."""
        symbol, partition, time = plain(events.symbol, _U64), plain(events.partition, _I64), plain(events.time, _I64)
        E = self._placed.place(symbol, partition, time, events.attribute, events.event, events.cut)
        self._holders.append(symbol, partition, len(time), len(self._memory.parts))
        self._memory.scalars[k.AT] = 0
        return self._fed(E, partition, time, events.batch)

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
        return self._fed(placed.placed_few, placed.few.partition, time)

    def _fed(
        self, E: Pointers[k.Events], partition: I64, time: I64, batch: tuple[int, int] | None = None
    ) -> FoundEvents:
        """What ends in a batch that has been placed: the first events of `partition`. `batch`: as of MarkedEvents."""
        self._times, self._events, rows = time, E.arrays, len(time)
        count, newest = batch or (rows, time.item(-1) if rows else 0)
        if self._by_time and count:
            self._newest = newest
        table = self._tables.of
        self._work(lambda: call(advance, table(self._cache.arrays), table(self._memory), E))
        self._weigh()
        if self._streaks is not None:
            self._streaks.answered(self._parts, partition, ends=True)
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
    def _begin(self) -> int:
        """The cut of the newest event, whose time has waited here until somebody wants to know."""
        if self._newest is not None:
            self._tau, self._newest = self._placed.cut(self._newest), None
        return self._tau

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

    def begin_query(self, number: int, back: int, running: int = 0) -> None:
        """From now on partitions are queries (run/tuple_family.py), among them this one, in a window of `back` µs: each
        consumes and is left out by itself, `running` times before."""
        if self._streaks is None:
            self._streaks = QueryStreaks()
            self._streaks.begin(0, int(self._memory.scalars[matches.OMITTED]))
        self._sizes[k.CONSUME] = min(self._sizes[k.CONSUME], 1) * matches.THE_PARTITION
        self._streaks.begin(number, running)
        longer = max(back - self._placed.back, 0)
        if self._begin != k.BEFORE_ALL:
            self._tau -= longer
        self._placed.back += longer
        self.begin_partitions(np.array([number]), 1 << number.bit_length())

    def take_omitted_of(self) -> dict[int, list[InstantError]]:
        """As `take_omitted`, by query."""
        return {} if self._streaks is None else self._streaks.take()

    def _note(self, bound: InstantBound, given: int | LimitError, instant: int, *, final: bool = False) -> None:
        if self._streaks is None:
            super()._note(bound, given, instant, final=final)
            return
        at, partition = int(self._memory.scalars[k.AT]), self._events.partition
        self._streaks.answered(self._parts, partition)
        if self._streaks.leave_out(at, int(partition[at]), bound, given, instant, self.bounds):
            self._events.symbol[at:][partition[at:] == partition[at]] = 0

    def take_over(self, other: CeaRun, numbers: Iterable[tuple[int, int, int]], shift: int) -> None:
        """Other queries come, with what `other` remembers of them: their numbers there and here, and how long their
        windows are; their positions are more by `shift` here."""
        self.collect()
        other.collect()
        for there, here, back in numbers:
            self.begin_query(here, back, other._running(there))
        S, T = self._memory, other._memory
        node, live = int(S.scalars[matches.NODE_TOP]), int(S.scalars[k.LIVE_TOP])
        nodes, blocks = int(T.scalars[matches.NODE_TOP]), int(T.scalars[k.LIVE_TOP])
        S = S.grow("nodes", max(len(S.nodes), node + nodes)).grow("live", max(len(S.live), live + blocks))
        made, moved = S.nodes[node : node + nodes], S.live[live : live + blocks]
        made[:], moved[:] = T.nodes[:nodes], T.live[:blocks]
        made["pos"] += np.where(made["leaf"] < 0, shift << matches.PLACE_BITS, 0)
        for kind in ("left", "right", "leaf"):
            made[kind] += np.where(made[kind] >= 0, node, 0)
        moved["node"] += node
        states = np.zeros(other._cache.states, np.int32)
        for state in np.unique(T.live["state"][in_use(T)]).tolist():
            states[state] = self._cache.number_of(other._cache.state(state))
        moved["state"] = states[moved["state"]]
        for there, here, _ in numbers:
            S.parts[here] = T.parts[there]
            S.parts[here]["first"] += live
            S.parts[here]["count"] *= T.parts[there]["epoch"] == T.scalars[k.EPOCH]
            S.parts[here]["epoch"] = S.scalars[k.EPOCH]
        S.scalars[[matches.NODE_TOP, k.LIVE_TOP]] = node + nodes, live + blocks
        self._memory, self.oldest = S, min(self.oldest, other.oldest + shift)

    def _running(self, number: int) -> int:
        """How often a query has been left out, one event after the other."""
        return int(self._memory.scalars[matches.OMITTED]) if self._streaks is None else self._streaks.running(number)

    def state_of(self, number: int, back: int, shift: int) -> State:
        """What one of several queries would save if it were alone, whose window is of `back` µs, whose own positions
        are less by `shift`."""
        if self._collected:  # several are saved one after the other
            self.collect()
            self._collected = 0
        S, tau, position = self._memory, self._begin, self.position - shift
        if tau != k.BEFORE_ALL:
            tau += self._placed.back - back
        part = S.parts[number : number + 1].copy()
        part["count"] *= part["epoch"] == S.scalars[k.EPOCH]
        part["epoch"] = S.scalars[k.EPOCH]
        first, count = int(part["first"][0]), int(part["count"][0])
        part["first"], part["clock"] = 0, position
        top, live = int(S.scalars[matches.NODE_TOP]), S.live[first : first + count].copy()
        nodes, weights = S.nodes[:top].copy(), S.weights[:top]
        S = S._replace(scalars=S.scalars.copy(), nodes=nodes, weights=weights, live=live, parts=part)
        marks, floors = np.zeros(len(S.nodes), np.int32), np.zeros(1, np.int64)
        oldest = int(call(collect, self._tables.of(self._cache.arrays), Pointers(S), marks, floors, tau)) - shift
        part["room"] = part["count"]
        S = S._replace(nodes=nodes[: S.scalars[matches.NODE_TOP]].copy())
        nodes = S.nodes
        nodes["pos"] -= np.where(nodes["leaf"] < 0, shift << matches.PLACE_BITS, 0)
        S.scalars[[k.LIVE_TOP, k.BASE, matches.OMITTED]] = part["count"][0], position, self._running(number)
        memory = save_memory(S, self._cache)
        return {
            "holders": None,
            "oldest": min(oldest, position),
            "collected": self._collected,
            "tau": tau,
            "memory": memory,
        }

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
            self._newest = last
        self.oldest = self.position
        self._holders.forget(self.position)

    @property
    def position(self) -> int:
        """How many events came in."""
        return int(self._memory.scalars[k.BASE])

    @property
    def behind(self) -> int:
        """At how many events a window of an attribute reached back to forgotten events: matches that end there
        may be missing (kernels/cea/ageing.py)."""
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
        self._tau = self._begin
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
        at, tau = int(scalars[k.AT]), self._begin
        if self._by_time and at < len(self._times):
            tau = self._placed.cut(int(self._times[at]))
        busy = 0 if not full else BUSY_NODES if self._weigher is None else WEIGHED_NODES
        self._memory, oldest = free_nodes(self._tables.of(self._cache.arrays), self._memory, tau, again, busy=busy)
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
