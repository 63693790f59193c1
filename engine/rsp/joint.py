"""Queries over the same windows, answered together: all instants of a batch at once, of all queries (operators.md, 7).

In the flow: complete events in order → one plan of operators with several roots (engine/flow/sharing) → **what each
query emits**. A query emits what it emits alone, in the same order: its answer is a function of its windows' contents.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple, TypeAlias

import numpy as np
from pyoxigraph import Literal

from oxiseq.engine.bounds import ROWS
from oxiseq.engine.errors import LimitError
from oxiseq.engine.events.batch import EventBatch
from oxiseq.engine.flow.conjunctions import apart
from oxiseq.engine.flow.delta import I64, Delta, Ids
from oxiseq.engine.flow.flow import Flow
from oxiseq.engine.flow.knowledge import Knowledge
from oxiseq.engine.flow.leaves import Leaves
from oxiseq.engine.flow.ordering import in_order
from oxiseq.engine.flow.plan import Asked, FlowPlan, Join, Only, Patterns, draws, inputs
from oxiseq.engine.flow.sharing.joining import Output, joined
from oxiseq.engine.flow.standing import only_of
from oxiseq.engine.flow.told import Told
from oxiseq.engine.rsp.full_rows import FullRows
from oxiseq.engine.rsp.joint_kb import JointKnowledge
from oxiseq.engine.rsp.plan import RspPlan
from oxiseq.engine.rsp.steady import full_rows, is_steady, window_of
from oxiseq.engine.terms.dictionary import TermDictionary
from oxiseq.engine.terms.saved import Stateful, unsaved
from oxiseq.engine.window import Window
from oxiseq.grammar.rsp_algebra import Report

_NO_BLANKS = np.zeros(0, np.uint32)


def why_alone(plan: RspPlan) -> str | None:
    """Why a query is answered by itself, whatever others there are; None: it shares with those that read the same
    streams through the same windows and are answered at the same instants."""
    if plan.consumes:
        return "items that have justified an answer of it are not used again"
    if draws(plan.flow.plan):
        return "it draws values by chance"
    return None if is_steady(plan) else _why_not_general(plan)


def _why_not_general(plan: RspPlan) -> str | None:
    if plan.events_read_kb:
        return "its event patterns ask the knowledge base"
    if not all(content.window.moves for content in plan.contents):
        return "its windows keep events for ever"
    return None


Piece: TypeAlias = tuple[Sequence[int], int, int]
"""The numbers of the queries that emit some rows of a part: a range, its end excluded."""


class Part(NamedTuple):
    """What some queries emit, and when. Each has one piece of it at most."""

    at: I64
    rows: FullRows
    pieces: Sequence[Piece]


class Numbered(NamedTuple):
    """The same, of instants by their numbers."""

    at: I64
    rows: FullRows
    pieces: Sequence[Piece]


class Joint(Stateful):
    """The operators of several queries over the same windows as one plan. flows: their plans; windows: of its leaves;
    known: each one's answers of the KB, if they read it."""

    made_of = unsaved("leaves"), unsaved("flow"), unsaved("knowledge"), unsaved("_sinks")

    def __init__(
        self,
        plans: Sequence[RspPlan],
        flows: Sequence[FlowPlan],
        windows: Sequence[Window],
        terms: TermDictionary,
        known: Sequence[Knowledge] = (),
    ) -> None:
        joint = joined(flows)
        self.plan, needed = apart(joint.plan, _only(joint.plan, joint.outputs, plans))
        here = dict(zip(joint.plan.also, self.plan.also, strict=True))
        outputs = [
            o._replace(root=here[o.root], table=None if o.table is None else here[o.table]) for o in joint.outputs
        ]
        self.flow = Flow(self.plan, terms)
        self.leaves = Leaves(self.plan, self.flow.nodes, windows, needed, terms)
        self._sinks = [sink for output in outputs for sink in _sinks(self.plan, output, plans, terms)]
        self._roots = self.flow.roots([sink.root for sink in self._sinks])
        self._always = [number for number, sink in enumerate(self._sinks) if sink.tells_all]
        for output in outputs:
            if output.table is not None:
                rows = _table(output, terms)
                self.flow.feed(output.table, Delta(np.zeros(len(rows), np.int64), np.ones(len(rows), np.int64), rows))
        tables = {place: form for place, form in enumerate(self.plan.forms) if isinstance(form, Asked)}
        self._tables = [*tables]
        graphs = [graph.place for graph in self.leaves.graphs]
        self.knowledge = JointKnowledge(graphs, [*tables.values()], known)
        self._bounds = terms.bounds

    def bound(self) -> None:
        """From now on what operators make at an instant is bounded, as for each query alone."""
        self.flow.bound(self._bounds.made, self._bounds.reads)

    def know(self, knows_more: Callable[[], bool], tick: int) -> Sequence[EventBatch]:
        """The present content of the KB's graphs if `knows_more`, which is called; tables go to their operators."""
        if not knows_more():
            return ()
        for place, delta in zip(self._tables, self.knowledge.tables(tick), strict=True):
            self.flow.feed(place, delta)
        return self.knowledge.graphs()

    def told(self, first: int, instants: int) -> Iterator[Numbered]:
        """What the last step emits, whose instants were the ticks from `first` on. Raises LimitError."""
        for number in {*self._always, *self._roots.filled()} if instants else ():
            sink = self._sinks[number]
            yield from sink.told(self.flow.rows(sink.root), first, instants)

    def pass_over(self) -> None:
        """Emits nothing of the last step."""
        for number in self._roots.filled():
            sink = self._sinks[number]
            sink.pass_over(self.flow.rows(sink.root))

    @property
    def state(self) -> dict[str, int]:
        """Numbers of live records."""
        return {"triples": self.leaves.triples, "rows": self.flow.records + sum(map(len, self._sinks))}


class JointAnswers(Stateful):
    """All that changes for several queries that are answered at every instant of their streams (`is_steady`)."""

    made_of = (unsaved("_joint"),)

    def __init__(self, plans: Sequence[RspPlan], terms: TermDictionary, known: Sequence[Knowledge] = ()) -> None:
        self._contents = plans[0].contents
        windows = [window_of(content.window.operators[0]) for content in self._contents]
        self._joint = Joint(plans, [plan.flow.plan for plan in plans], windows, terms, known)
        self._tick = 0
        """The next one."""

    @property
    def knowledge(self) -> JointKnowledge:
        """The answers of the KB that all know."""
        return self._joint.knowledge

    def advance(self, batches: Sequence[EventBatch], passed: int) -> Iterator[Part]:
        """Complete events by stream in order of time, all before `passed`: what is emitted. All have asked the
        KB before. Raises LimitError."""
        self._joint.bound()
        first, times = self._step(batches, self.knowledge.changed)
        for at, rows, pieces in self._joint.told(first, len(times)):
            yield Part(times[at], rows, pieces)

    def take_up(self, parts: Iterable[Sequence[EventBatch]], before: Sequence[int]) -> None:
        """Restores the state after these events, by stream, part by part, and so many instants; the KB has not changed.
        Raises LimitError."""
        self._joint.leaves.start([before[content.stream] for content in self._contents])
        for batches in parts:
            _, times = self._step(batches, self.knowledge.unchanged)
            if len(times):
                self._joint.pass_over()

    def _step(self, batches: Sequence[EventBatch], knows_more: Callable[[], bool]) -> tuple[int, I64]:
        first = self._tick
        if not any(map(len, batches)):
            return first, np.zeros(0, np.int64)
        graphs = self._joint.know(knows_more, first)
        times = self._joint.leaves.push([batches[content.stream] for content in self._contents], graphs, first)
        self._tick += len(times)
        self._joint.flow.step(first)
        return first, times

    @property
    def state(self) -> dict[str, int]:
        """Numbers of live records."""
        return self._joint.state


class _Sink(Stateful):
    """A root of the plan, as some queries emit it. queries: by row of the table their numbers; one: one of them,
    which stands for all."""

    made_of = (unsaved("_told"),)

    def __init__(
        self, plan: FlowPlan, output: Output, queries: Sequence[Sequence[int]], one: RspPlan, terms: TermDictionary
    ) -> None:
        self.root, self._one, self._terms = output.root, one, terms
        self._queries = queries
        self._by_row = int(output.table is not None)
        compared = one.flow.compared + self._by_row
        raw, most = plan.raw[output.root], terms.bounds.rows
        width, tabled = plan.widths[output.root], bool(self._by_row)
        self._told = Told(one.report, width, compared, raw, self._in_order, most, tabled=tabled)
        numbers = _numbers(len(output.queries), terms) if self._by_row else _NO_BLANKS
        self._order = np.argsort(numbers)
        self._numbers = numbers[self._order]

    @property
    def tells_all(self) -> bool:
        """Whether it emits something even where nothing changes."""
        return self._one.report is Report.RSTREAM

    def told(self, delta: Delta, first: int, instants: int) -> Iterator[Numbered]:
        """The rows emitted for a change, at the instants from the tick `first` on."""
        at, values = self._told.rows(delta, first, instants)
        if self._told.too_many:  # each query finds by itself which of its instants are left out
            raise LimitError(max(self._told.too_many.values()), self._terms.bounds.rows, ROWS.what)
        if not len(at):
            return
        if not self._by_row:
            at, rows = full_rows(self._one, at, values, _NO_BLANKS, self._terms)
            yield Numbered(at, rows, [(self._queries[0], 0, len(at))])
            return
        number = self._order[np.searchsorted(self._numbers, values[:, 0])]
        key = number * instants + at
        order = np.argsort(key, kind="stable")
        key, rows = full_rows(self._one, key[order], values[order, 1:], _NO_BLANKS, self._terms)
        number, at = np.divmod(key, instants)
        bounds = np.flatnonzero(np.diff(number, prepend=-1))
        lows = bounds.tolist()
        each = zip(number[bounds].tolist(), lows, [*lows[1:], len(number)], strict=True)
        yield Numbered(at, rows, [(self._queries[row], low, high) for row, low, high in each])

    def _in_order(self, group: I64, rows: Ids) -> I64:
        return in_order(group, rows[:, self._by_row :], self._one.flow.order, _NO_BLANKS, self._terms)

    def pass_over(self, delta: Delta) -> None:
        """Takes the changes of instants at which nothing is emitted."""
        self._told.pass_over(delta)

    def __len__(self) -> int:
        return len(self._told)


def _sinks(plan: FlowPlan, output: Output, plans: Sequence[RspPlan], terms: TermDictionary) -> Iterator[_Sink]:
    """Queries with the same rows may emit them differently: the new or the retracted ones, in an order or none."""
    ways: dict[tuple[object, ...], list[list[int]]] = {}
    for row, queries in enumerate(output.queries):
        for number in queries:
            one = plans[number]
            way = one.report, one.flow.compared, one.flow.order, one.flow.times
            ways.setdefault(way, [[] for _ in output.queries])[row].append(number)
    for by_row in ways.values():
        one = next(plans[number] for mine in by_row for number in mine)
        yield _Sink(plan, output, by_row, one, terms)


def _numbers(count: int, terms: TermDictionary) -> Ids:
    """Terms that stand for the rows of a table."""
    return np.array([terms.constant(Literal(str(row))) for row in range(count)], np.uint32)


def _table(output: Output, terms: TermDictionary) -> Ids:
    """Its rows: numbers, constants."""
    numbers = _numbers(len(output.queries), terms)
    constants = [[terms.constant(each) for each in row] for row in output.constants]
    return np.column_stack([numbers, np.array(constants, np.uint32).reshape(len(numbers), -1)])


def _only(plan: FlowPlan, outputs: Sequence[Output], plans: Sequence[RspPlan]) -> dict[int, Only]:
    """Which rows of each conjunction are needed, if not all."""
    found: dict[int, Only] = {}
    for output in outputs:
        below = [place for place in _below(plan, output.root) if isinstance(plan.forms[place], Patterns)]
        every = any(isinstance(plan.forms[place], Join) for place in _below(plan, output.root))
        for one in (plans[number] for mine in output.queries for number in mine):
            only = "" if every else only_of(one.flow.plan, one.report, one.flow.compared)
            for place in below:
                if found.setdefault(place, only) != only:
                    found[place] = ""
    return found


def _below(plan: FlowPlan, root: int) -> set[int]:
    """All operators that one is made of."""
    found = {root}
    for place in range(root, -1, -1):
        if place in found:
            found.update(inputs(plan.forms[place]))
    return found
