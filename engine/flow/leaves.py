"""Where the rows of triple patterns come from: windows on streams, and the KB's graphs.

In the flow: events that come into windows, bounds below which they are out, the KB's graphs when they have
changed → **rows that come and go**, by instant → operators. A graph of the KB is a window that holds the newest answer.
It says which events make an instant and what has left the windows by then, calls the kernel, grows its memory on
demand, and decides what needs exact arithmetic or functions of strings.

An **instant** is all consecutive events of one time: they are merged, and a query is answered once, after the last of
them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from oxiseq.engine.events.batch import EventBatch
from oxiseq.engine.flow.delta import I64, Buffer, Ids
from oxiseq.engine.flow.flow import Flow
from oxiseq.engine.flow.instants import merged, moved
from oxiseq.engine.flow.knowledge import KbGraph
from oxiseq.engine.flow.nodes.fed import Windowed
from oxiseq.engine.flow.nodes.node import Node
from oxiseq.engine.flow.plan import FlowPlan, GraphPlace, Only, Patterns, Place, WindowPlace
from oxiseq.engine.flow.times import known_rows
from oxiseq.engine.flow.views import PatternView, compile_views
from oxiseq.engine.kernels.flow import windowing as k
from oxiseq.engine.kernels.flow.arrangement import NEVER
from oxiseq.engine.kernels.flow.buffers import DONE, NEED_OUT, NEED_ROOM
from oxiseq.engine.kernels.memory.growing import AS_I64, AS_U32, longer, plain
from oxiseq.engine.kernels.memory.pointers import WORDS, Bound, Pointers, Replaceable, call
from oxiseq.engine.kernels.terms.columns import TermColumns
from oxiseq.engine.matching.conditions import ConditionMemo
from oxiseq.engine.terms.dictionary import TermDictionary
from oxiseq.engine.terms.saved import KnownTerms, SavedTerms, State, Stateful, unsaved
from oxiseq.engine.window import BEFORE_ALL, Window
from oxiseq.grammar.algebra import TriplePattern

_NEWEST: Final = Window(1, 1, counted=True)
"""Of a source that holds its last event."""
_NOTES: Final = 32
_CHANGED: Final = 1 << 8
"""Rows of patterns that come or go before operators are stepped."""
_UNDRIVEN: Final = (0, 0, 0, 0, 0)


class Moves(NamedTuple):
    """How windows move through several instants: by content the events that come in, in the order of their places,
    each at the instant of a number: i64[events] each; and low: i64[instants, contents], the places below which events
    are out, none of which falls."""

    batches: Sequence[EventBatch]
    places: Sequence[I64]
    instants: Sequence[I64]
    low: I64


class Leaves(Stateful):
    """The patterns of a plan at work, one in each conjunction (conjunctions.py). nodes: its operators; windows: those
    of its contents, by number; only: which changes operators need, if not all."""

    made_of = (unsaved("_memory.arrays"),)

    def __init__(
        self,
        plan: FlowPlan,
        nodes: Sequence[Node],
        windows: Sequence[Window],
        only: Mapping[Patterns, Only],
        terms: TermDictionary,
    ) -> None:
        forms = {place: form for place, form in enumerate(plan.forms) if isinstance(form, Patterns)}
        self.graphs = _graphs(forms.values())
        """The queries to the KB: further sources, behind the windows."""
        number: dict[Place, int] = {WindowPlace(n): n for n in range(len(windows))}
        number |= {graph.place: len(windows) + n for n, graph in enumerate(self.graphs)}
        self.outs = [nodes[place].out for place in forms]
        """What changes of each pattern, in the plan's order, until the next push."""
        self._roomy: list[Buffer] = []
        self._terms, self._streams = terms, len(windows)
        self._windows = (*windows, *(_NEWEST for _ in self.graphs))
        views = [
            PatternView(form, _windowed(nodes[place]), out, only.get(form, ""))
            for (place, form), out in zip(forms.items(), self.outs, strict=True)
        ]
        compiled = compile_views(views, number, terms)
        self._rows = [view.rows.rows for view in views]
        self._conditions, self._by_memo = compiled.conditions, compiled.by_memo
        self._memo = ConditionMemo(compiled.conditions, terms)
        self._tables = Pointers(compiled.tables)
        self._memory = Replaceable(_allocated(compiled.tables.views["source"], len(self._windows), compiled.depth))
        self._columns: TermColumns | None = None
        self._one = _One(np.zeros(1, np.int64), np.zeros(1, np.int32), np.arange(2), np.zeros((1, 1), np.int64))
        self._counts = np.zeros(len(self._windows), np.int64)
        """Instants by source so far, where its window counts them."""
        self._clock = int(BEFORE_ALL)
        self._versions = 0
        self._failed: Exception | None = None
        """Why the last batch was taken in by half."""
        self._flow: Flow | None = None
        """The operators that the kernel steps,"""
        self._tick = 0
        """from this tick on."""

    # --- events in ----------------------------------------------------------------------------------

    def push(
        self, batches: Sequence[EventBatch], graphs: Sequence[EventBatch], tick: int, flow: Flow | None = None
    ) -> I64:
        """Events by window, each in order of time, none of an instant of earlier pushes, and the present content of the
        KB's graphs, at the time of the first event, if it has changed. The instants' times; each node's changes go into
        `outs`, that of instant k at `tick` + k. flow: its operators are stepped meanwhile, and what they find is in its
        `found`. Raises ValueError for times that fall, LimitError."""
        if len(self._windows) == 1 and len(batches[0]) == 1:
            return self._push_one(batches[0], tick, flow)
        if graphs:
            first = np.array([min(int(batch.time[0]) for batch in batches if len(batch))])
            batches = [*batches, *(replace(graph, time=first) for graph in graphs)]
        else:
            batches = [*batches, *(EventBatch.empty() for _ in self.graphs)]
        each = merged(self._windows, batches, self._counts)
        if len(each.time) and (each.time[0] < self._clock or any(_falls(batch.time) for batch in batches)):
            raise ValueError("events are not in order of time")
        self._work(each.batch, each.clock, each.source, each.first, each.low, tick, flow)
        if len(each.time):
            self._clock = int(each.time[-1])
        return each.time

    def _push_one(self, batch: EventBatch, tick: int, flow: Flow | None) -> I64:
        """One event: what a live stream brings."""
        window, one = self._windows[0], self._one
        time = batch.time.item(0)
        if time < self._clock:
            raise ValueError("events are not in order of time")
        clock = self._counts.item(0) + 1 if window.counted else time
        one.clock[0], one.low[0, 0] = clock, window.low_of(clock)
        self._work(batch, one.clock, one.source, one.first, one.low, tick, flow)
        self._counts[0] += window.counted
        self._clock = time
        return batch.time

    def move(self, moves: Moves, graphs: Sequence[EventBatch], tick: int) -> None:
        """Several instants, for a run whose windows get their contents from outside; the present content of the KB's
        graphs, if that has changed, holds from the first on. Each node's changes go into `outs` as those of `push`.
        Raises LimitError."""
        if not self.outs:  # all rows are given
            return
        instants, clocks = [*moves.instants], [places + 1 for places in moves.places]
        self._versions += bool(graphs)
        for batch in graphs:
            instants.append(np.zeros(len(batch), np.int64))
            clocks.append(np.full(len(batch), self._versions))
        low = np.full((len(moves.low), len(self._windows)), self._versions - 1)
        low[:, : self._streams] = moves.low
        each = moved([*moves.batches, *graphs], instants, clocks, low)
        self._work(each.batch, each.clock, each.source, each.first, low, tick)

    @property
    def instants(self) -> list[int]:
        """By window how many instants it has had, if it counts them."""
        found: list[int] = self._counts[: self._streams].tolist()
        return found

    def start(self, instants: Sequence[int]) -> None:
        """Windows have had so many, and hold nothing."""
        self._counts[: len(instants)] = instants

    def _work(
        self,
        batch: EventBatch,
        clock: I64,
        source: NDArray[np.int32],
        first: I64,
        bounds: I64,
        tick: int,
        flow: Flow | None = None,
    ) -> None:
        """Have the kernel work through the batch. Raises LimitError."""
        if self._failed is not None:
            raise self._failed
        s, p, o = plain(batch.subject, AS_U32), plain(batch.predicate, AS_U32), plain(batch.object, AS_U32)
        offset, clock, bounds = plain(batch.offset, AS_I64), plain(clock, AS_I64), plain(bounds, AS_I64)
        if self._conditions:
            self._learn(batch)
        scalars, self._flow, self._tick = self._memory.arrays.scalars, flow, tick
        scalars[k.INSTANT : k.NOTE + 1], scalars[k.TICK], scalars[k.MOST] = 0, tick, _CHANGED
        scalars[k.STEPS : k.FIRST + 1] = _UNDRIVEN if flow is None else flow.driven()
        for out in self._roomy:
            out.clear()
        self._roomy = [out for out in self._roomy if out.roomy]
        while need := self._kernel(offset, s, p, o, clock, source, first, bounds):
            try:
                self._make_room(need)
            except Exception as error:
                self._failed = error
                raise

    @property
    def _kernel(self) -> Bound:
        """What works through events."""
        if self._columns is not self._terms.columns:
            self._columns = self._terms.columns
            self._advance = Bound(k.advance, self._tables, self._memory, Pointers(self._columns))
        return self._advance

    def _make_room(self, need: int) -> None:
        """Serves the kernel's need. Raises LimitError."""
        memory = self._memory.arrays
        if need == NEED_OUT:
            out = self.outs[int(memory.scalars[k.WHICH])]
            out.grow()
            if out.roomy and out not in self._roomy:
                self._roomy.append(out)
        elif need == NEED_ROOM:
            self._rows[int(memory.scalars[k.WHICH])].make_room()
        elif need == k.NEED_NOTES:
            self._memory.set(memory._replace(notes=longer(memory.notes, 2 * len(memory.notes))))
        elif need > k.NEED_DECISION:
            self._step(need, int(memory.scalars[k.WHICH]))
        else:
            condition, term = int(memory.scalars[k.ASKED_CONDITION]), int(memory.scalars[k.ASKED_TERM])
            self._memo.outcomes(condition, np.array([term]))
            self._memory.set(memory._replace(memo=self._memo.table))

    def _step(self, need: int, which: int) -> None:
        """Serves the operators' needs. Raises LimitError."""
        flow = self._flow
        assert flow is not None  # else the kernel does not ask
        if need == k.NEED_FIRST:
            flow.step(self._tick)
        elif need == k.NEED_STEP:
            flow.go_on(which)
        elif need == k.NEED_CHECK:
            flow.check()
        else:
            flow.found.grow()

    def _learn(self, batch: EventBatch) -> None:
        """Ask conditions that the machine lacks functions for about all terms of the batch at once."""
        memo = self._memo.reserve()
        if memo is not self._memory.arrays.memo:
            self._memory.set(self._memory.arrays._replace(memo=memo))
        for position, number, predicate in self._by_memo:
            ids = batch.ids[position]
            self._memo.outcomes(number, ids[batch.predicate == predicate] if predicate else ids)

    # --- its memory ----------------------------------------------------------------------------------

    @property
    def triples(self) -> int:
        """Of how many patterns' rows."""
        return int(self._memory.arrays.scalars[k.COUNT])

    def save(self, terms: SavedTerms) -> State:
        """Its state between pushes."""
        kept = [rows.kept for rows in self._rows]
        for rows, _ in kept:
            terms.ids(rows)
        return {
            "rows": [rows for rows, _ in kept],
            "last": [last for _, last in kept],
            "instants": self._counts.copy(),
            "clock": self._clock,
            "versions": self._versions,
        }

    def restore(self, state: State, terms: KnownTerms) -> None:
        """Go on from a saved state; for one that has not seen anything. Raises ValueError for another plan's."""
        if len(state["rows"]) != len(self._rows):
            raise ValueError("the state of another plan")
        self._counts[:], self._clock = state["instants"], int(state["clock"])
        self._versions = int(state["versions"])
        given, every = list[I64](), list[Ids]()
        for number, (rows, last) in enumerate(zip(state["rows"], state["last"], strict=True)):
            width = self.outs[number].width
            padded = np.zeros((len(last), 3), np.uint32)
            padded[:, :width] = known_rows(np.asarray(rows).reshape(len(last), width), (), terms)
            given.append(np.column_stack([np.full(len(last), number), last]))
            every.append(padded)
        if not given:
            return
        numbers, found = np.concatenate(given), np.concatenate(every)
        order = np.argsort(numbers[:, 1], kind="stable")
        numbers, found = np.ascontiguousarray(numbers[order], np.int64), np.ascontiguousarray(found[order])
        self._memory.arrays.scalars[k.NOTE] = 0
        while (need := call(k.enter, self._tables, self._memory, numbers, found)) != DONE:
            self._make_room(need)


class _One(NamedTuple):
    """The kernel's input for a batch of one event."""

    clock: I64
    source: NDArray[np.int32]
    first: I64
    low: I64


def _allocated(sources: NDArray[np.int32], windows: int, depth: int) -> k.Windowing:
    """Nothing there. sources: by pattern the number of its window; depth: of the stack machine."""
    patterns = len(sources)
    listed = np.zeros(patterns, k.LISTED)
    listed["clock"], listed["first"], listed["last"], listed["source"] = NEVER, -1, -1, sources
    return k.Windowing(
        scalars=np.zeros(k.SCALARS, np.int64),
        listed=listed,
        oldest=np.full(windows, NEVER, np.int64),
        notes=np.zeros(max(_NOTES, patterns), k.NOTED),
        touched=np.zeros(patterns, np.int32),
        written=np.zeros(patterns, np.int32),
        row=np.zeros((2, 3), np.uint32),
        numbers=np.zeros((depth, 2), np.float64),
        machine=np.zeros((depth, 4), np.int64),
        one=np.zeros(1, np.int64),
        memo=np.zeros((1, 1), np.uint8),
        batch=np.zeros(WORDS * len(k.Batch._fields), np.int64),
    )


def _windowed(node: Node) -> Windowed:
    assert isinstance(node, Windowed)
    return node


def _falls(numbers: I64) -> bool:
    """Whether a number is smaller than the one before."""
    return len(numbers) > 1 and bool(np.any(numbers[1:] < numbers[:-1]))


def _graphs(forms: Iterable[Patterns]) -> list[KbGraph]:
    """The KB's graphs, each with all patterns that are about it."""
    found: dict[GraphPlace, dict[TriplePattern, None]] = {}
    for form in forms:
        for pattern, place in zip(form.patterns, form.places, strict=True):
            if isinstance(place, GraphPlace):
                found.setdefault(place, {})[pattern] = None
    return [KbGraph(place, tuple(patterns)) for place, patterns in found.items()]
