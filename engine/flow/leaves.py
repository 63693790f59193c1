"""Where the rows of triple patterns come from: windows on streams, and the KB's graphs.

In the flow: events that come into windows, bounds below which they are out, the KB's graphs when they have
changed → **rows that come and go**, by instant → operators. A graph of the KB is a window that holds the newest answer.
It says which events make an instant and what has left the windows by then, calls the kernel, grows its memory on
demand, and decides what needs exact arithmetic or functions of strings.

An **instant** is all consecutive events of one time: they are merged, and a query is answered once, after the last of
them.

Triple patterns are compiled to flat arrays, which say which triples each of them accepts (windows.md, section 3). What
the stack machine leaves undecided about a condition on one variable Python decides, by a table of outcomes
(matching/conditions.py).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Final, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray
from pyoxigraph import Variable

from oxiseq.engine.events.batch import EventBatch
from oxiseq.engine.expressions.program import compile_program
from oxiseq.engine.flow.delta import I64, Buffer, Ids
from oxiseq.engine.flow.flow import Flow
from oxiseq.engine.flow.knowledge import KbGraph
from oxiseq.engine.flow.operators.node import Node
from oxiseq.engine.flow.operators.sources import Windowed
from oxiseq.engine.flow.plan import FlowPlan, GraphPlace, Only, Patterns, Place, WindowPlace
from oxiseq.engine.flow.times import known_rows
from oxiseq.engine.kernels.flow import windowing as k
from oxiseq.engine.kernels.flow.arrangement import NEVER
from oxiseq.engine.kernels.flow.buffers import DONE, NEED_OUT, NEED_ROOM
from oxiseq.engine.kernels.memory.growing import longer
from oxiseq.engine.kernels.memory.pointers import AS_I64, AS_U32, WORDS, Bound, Pointers, Replaceable, call, plain
from oxiseq.engine.kernels.terms.columns import TermColumns
from oxiseq.engine.matching.bgp import slot_of
from oxiseq.engine.matching.conditions import Condition, ConditionMemo, condition
from oxiseq.engine.matching.tables import Routes, csr
from oxiseq.engine.terms.dictionary import TermDictionary
from oxiseq.engine.terms.saved import KnownTerms, SavedTerms, State, Stateful, unsaved
from oxiseq.engine.window import BEFORE_ALL, Window
from oxiseq.grammar.algebra import TermOrVariable, TriplePattern
from oxiseq.grammar.records import dataclass

_WANTED: Final[Mapping[Only, int]] = {"COME": k.COMES, "GO": k.GOES, "": k.COMES | k.GOES}
Filter: TypeAlias = tuple[int, int]
"""Number of a condition, and the position that it is about."""


class PatternView(NamedTuple):
    """A source: its pattern, where its rows go, and which changes are needed."""

    form: Patterns
    rows: Windowed
    out: Buffer
    only: Only

    @property
    def parts(self) -> tuple[TermOrVariable, TermOrVariable, TermOrVariable]:
        """Subject, predicate, object."""
        (pattern,) = self.form.patterns
        return pattern.subject, pattern.predicate, pattern.object


class CompiledViews(NamedTuple):
    """All sources of a plan. depth: of the stack machine; by_memo: position, number of a condition, predicate (0: any)
    where all terms of a batch are asked about at once."""

    tables: k.Views
    conditions: tuple[Condition, ...]
    depth: int
    by_memo: tuple[tuple[int, int, int], ...]


def compile_views(views: Sequence[PatternView], sources: Mapping[Place, int], terms: TermDictionary) -> CompiledViews:
    """sources: numbers of windows and graphs."""
    conditions: dict[Condition, int] = {}
    filters = [_filters(view, conditions) for view in views]
    programs = [compile_program(c.expression, {c.variables[0]: 0}, terms).code.tolist() for c in conditions]
    ends, code = csr(programs)
    filter0, _ = csr([[c for c, _ in mine] for mine in filters])
    routes = Routes(len(sources))
    records = []
    for number, view in enumerate(views):
        slot, source = slot_of(view.parts, terms), sources[view.form.places[0]]
        routes.add(number, slot.predicate, slot.object, source)
        variables = dict.fromkeys(t for t in view.parts if isinstance(t, Variable))
        places = [view.parts.index(v) for v in variables]
        constants, within = (slot.subject, slot.predicate, slot.object, slot.equal), filter0[number : number + 2]
        columns = (*places, 0, 0, 0)[:3]
        rows, out = view.rows.rows.address, view.out.address
        records.append((*constants, *within, source, _WANTED[view.only], len(places), *columns, rows, out))
    view0, view_at = csr(routes.lists)
    object0, object_at = csr([*routes.by_object.values()])
    return CompiledViews(
        k.Views(
            predicate=routes.predicate,
            view0=view0,
            view_at=view_at,
            with_object=routes.with_object,
            objects=routes.objects,
            object0=object0,
            object_at=object_at,
            views=np.array(records, k.VIEW),
            filters=np.array([(c, at, ends[c], ends[c + 1]) for mine in filters for c, at in mine], k.FILTER),
            code=code,
        ),
        tuple(conditions),
        max((code[1] for code in programs), default=1),
        tuple(
            (at, c, records[number][1])
            for number, mine in enumerate(filters)
            for c, at in mine
            if [*conditions][c].wants_memo
        ),
    )


def _filters(view: PatternView, conditions: dict[Condition, int]) -> list[Filter]:
    """A pattern's filters, on one variable each."""
    made = map(condition, dict.fromkeys(view.form.filters))
    return [(conditions.setdefault(each, len(conditions)), view.parts.index(each.variables[0])) for each in made]


_BEGIN: Final = np.zeros(1, np.int64)


@dataclass(frozen=True, slots=True)
class Merged:
    """Events in order of time, then of source. clock: i64[events]; source: i32[events]; first: i64[instants + 1], where
    each instant begins; time: i64[instants]; low: i64[instants, sources]."""

    batch: EventBatch
    clock: I64
    source: NDArray[np.int32]
    first: I64
    time: I64
    low: I64


def merged(windows: Sequence[Window], batches: Sequence[EventBatch], counts: I64) -> Merged:
    """Complete events by source, each in order of time. counts: i64[sources], the instants of each source so far; they
    continue here."""
    if len(windows) == 1 and len(batches[0]):
        return _of_one_source(windows[0], batches[0], counts)
    busy = [number for number, batch in enumerate(batches) if len(batch)]
    if len(busy) == 1 and batches[busy[0]].time[0] == batches[busy[0]].time[-1]:
        return _one_instant(windows, batches[busy[0]], busy[0], counts)
    times = [batch.time for batch in batches]
    instants = _distinct(np.sort(np.concatenate(times), kind="stable"))
    low = np.empty((len(instants), len(windows)), np.int64)
    clocks = []
    for number, (window, time) in enumerate(zip(windows, times, strict=True)):
        clock, now = time, instants
        if window.counted:
            own = _distinct(time)
            clock = counts[number] + 1 + np.searchsorted(own, time)
            now = counts[number] + np.searchsorted(own, instants, "right")
            counts[number] += len(own)
        clocks.append(clock)
        low[:, number] = window.low(now)
    source = np.repeat(np.arange(len(batches), dtype=np.int32), [len(time) for time in times])
    batch, clock = EventBatch.concat(batches), np.concatenate(clocks)
    if sum(len(time) > 0 for time in times) > 1:
        order = np.argsort(batch.time, kind="stable")
        batch, clock, source = batch.take(order), clock[order], source[order]
    first = np.append(np.searchsorted(batch.time, instants), len(batch))
    return Merged(batch, clock.astype(np.int64), source, first.astype(np.int64), instants, low)


def _of_one_source(window: Window, batch: EventBatch, counts: I64) -> Merged:
    """The same for one window: its events as they are."""
    clock = batch.time
    differs = clock[1:] != clock[:-1]
    alone = differs.all()  # each is an instant of its own
    first = np.arange(len(batch) + 1) if alone else np.concatenate([_BEGIN, differs.nonzero()[0] + 1, [len(batch)]])
    now = time = clock if alone else clock[first[:-1]]
    if window.counted:
        now = np.arange(counts[0] + 1, counts[0] + len(first))
        clock = now if alone else np.repeat(now, np.diff(first))
        counts[0] += len(now)
    return Merged(batch, clock, np.zeros(len(batch), np.int32), first, time, window.low(now)[:, None])


def moved(batches: Sequence[EventBatch], instants: Sequence[I64], clocks: Sequence[I64], low: I64) -> Merged:
    """Events of instants that have been numbered. By source the numbers of their instants, ascending, and their clocks;
    the instants' times are their numbers."""
    busy = [number for number, batch in enumerate(batches) if len(batch)]
    source = np.repeat(np.array(busy, np.int32), [len(batches[number]) for number in busy])
    batch = EventBatch.concat([batches[number] for number in busy])
    none = np.zeros(0, np.int64)
    at = np.concatenate([none, *(instants[number] for number in busy)])
    clock = np.concatenate([none, *(clocks[number] for number in busy)])
    if len(busy) > 1:
        order = np.argsort(at, kind="stable")
        batch, clock, source, at = batch.take(order), clock[order], source[order], at[order]
    first = np.searchsorted(at, np.arange(len(low) + 1))
    return Merged(batch, clock, source, first, np.arange(len(low)), low)


def _distinct(ascending: I64) -> I64:
    """Each once."""
    once: I64 = ascending[np.diff(ascending, prepend=ascending[:1] - 1) != 0]
    return once


def _one_instant(windows: Sequence[Window], batch: EventBatch, source: int, counts: I64) -> Merged:
    """The same for events of one source at one time: what a live stream brings."""
    time, events = int(batch.time[0]), len(batch)
    counts[source] += windows[source].counted
    clocks = [int(count) if window.counted else time for window, count in zip(windows, counts, strict=True)]
    low = [window.low_of(clock) for window, clock in zip(windows, clocks, strict=True)]
    return Merged(
        batch,
        np.full(events, clocks[source]),
        np.full(events, source, np.int32),
        np.array([0, events]),
        batch.time[:1],
        np.array([low]),
    )


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
        """The operators that the kernel steps."""

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
        scalars, self._flow = self._memory.arrays.scalars, flow
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
            flow.step(int(self._memory.arrays.scalars[k.TICK]))
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
