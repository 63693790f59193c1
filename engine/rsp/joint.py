"""Queries over the same windows, answered together: all instants of a batch at once, of all queries (operators.md, 7).

Where it stands: complete events in order → one plan of operators with several roots (engine/flow/sharing) → **what each
query tells**. A query tells what it tells alone, in the same order: what it has is a function of what its windows hold.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple, TypeAlias

import numpy as np
from pyoxigraph import Literal

from oxiseq.engine.events.batch import EventBatch
from oxiseq.engine.flow.delta import I64, Delta, Ids
from oxiseq.engine.flow.flow import Flow
from oxiseq.engine.flow.knowledge import Knowledge
from oxiseq.engine.flow.leaves import Leaves
from oxiseq.engine.flow.plan import Asked, FlowPlan, Join, Patterns, draws, inputs
from oxiseq.engine.flow.sharing.joining import Output, joined
from oxiseq.engine.flow.standing import wanted_of
from oxiseq.engine.flow.told import Told
from oxiseq.engine.rsp.full_rows import FullRows
from oxiseq.engine.rsp.joint_kb import JointKnowledge
from oxiseq.engine.rsp.plan import RspPlan
from oxiseq.engine.rsp.steady import full_rows, is_steady, window_of
from oxiseq.engine.terms.dictionary import TermDictionary
from oxiseq.engine.windows import Report as Wanted
from oxiseq.grammar.rsp_algebra import RangeWindow, Report

_NO_BLANKS = np.zeros(0, np.uint32)


def why_alone(plan: RspPlan) -> str | None:
    """Why a query is answered by itself, whatever others there are; None: it shares with those that read the same
    streams through the same windows."""
    if plan.events:
        return "it looks for event patterns"
    if not plan.rhythm.every_instant:
        return "it has instants of its own (REPORT)"
    operators = [operator for content in plan.contents for operator in content.window.operators]
    if not is_steady(plan) or any(isinstance(o, RangeWindow) and o.events for o in operators):
        return "its windows are others than stretches of time"
    if draws(plan.flow.plan):
        return "it draws values by chance"
    return None


Piece: TypeAlias = tuple[Sequence[int], int, int]
"""The numbers of the queries that tell some rows of a part: from one to another, which is not among them."""


class Part(NamedTuple):
    """What some queries tell: when and what. Each has one piece of it at most."""

    at: I64
    rows: FullRows
    pieces: Sequence[Piece]


class JointAnswers:
    """All that changes for several queries whose windows are the same and which none of `why_alone` holds for. known:
    what each knows of the KB, if they read it."""

    def __init__(self, plans: Sequence[RspPlan], terms: TermDictionary, known: Sequence[Knowledge] = ()) -> None:
        self._contents = plans[0].contents
        joint = joined([plan.flow.plan for plan in plans])
        self._flow = Flow(joint.plan, terms)
        windows = [window_of(content.window.operators[0]) for content in self._contents]
        self._leaves = Leaves(joint.plan, windows, _wanted(joint.plan, joint.outputs, plans), terms)
        for place, out in zip(self._leaves.nodes, self._leaves.outs, strict=True):
            self._flow.connect(place, out)
        self._sinks = [sink for output in joint.outputs for sink in _sinks(joint.plan, output, plans, terms)]
        self._roots = self._flow.roots([sink.root for sink in self._sinks])
        self._always = [number for number, sink in enumerate(self._sinks) if sink.tells_all]
        for output in joint.outputs:
            if output.table is not None:
                rows = _table(output, terms)
                self._flow.feed(output.table, Delta(np.zeros(len(rows), np.int64), np.ones(len(rows), np.int64), rows))
        self._asked = [place for place, form in enumerate(joint.plan.forms) if isinstance(form, Asked)]
        tables = [form for form in joint.plan.forms if isinstance(form, Asked)]
        self.knowledge = JointKnowledge([graph.place for graph in self._leaves.graphs], tables, known)
        self._tick = 0
        """The next one."""

    def advance(self, batches: Sequence[EventBatch]) -> Iterator[Part]:
        """Complete events by stream in order of time: what is told. All have asked the KB before. Raises LimitError."""
        first, times = self._step(batches, self.knowledge.changed)
        if len(times):
            for number in {*self._always, *self._roots.filled()}:
                sink = self._sinks[number]
                yield from sink.told(self._flow.rows(sink.root), first, times)

    def pass_over(self, batches: Sequence[EventBatch]) -> None:
        """The same, where nothing is told and the KB is what it was. Raises LimitError."""
        _, times = self._step(batches, self.knowledge.unchanged)
        if len(times):
            for number in self._roots.filled():
                sink = self._sinks[number]
                sink.pass_over(self._flow.rows(sink.root))

    def _step(self, batches: Sequence[EventBatch], knows_more: Callable[[], bool]) -> tuple[int, I64]:
        first, graphs = self._tick, list[EventBatch]()
        if not any(map(len, batches)):
            return first, np.zeros(0, np.int64)
        if knows_more():
            graphs = self.knowledge.graphs()
            for place, delta in zip(self._asked, self.knowledge.tables(first), strict=True):
                self._flow.feed(place, delta)
        times = self._leaves.push([batches[content.stream] for content in self._contents], graphs, first)
        self._tick += len(times)
        self._flow.step(first)
        return first, times

    def held_ids(self) -> Iterator[Ids]:
        """The terms of all that it may still look at."""
        yield from self._flow.held_ids()
        yield from self.knowledge.held_ids()
        for sink in self._sinks:
            yield sink.held_ids()

    @property
    def state(self) -> dict[str, int]:
        """Numbers of live records."""
        return {"triples": self._leaves.triples, "rows": self._flow.records + sum(map(len, self._sinks))}

    @property
    def bytes(self) -> int:
        """How large it is."""
        return self._leaves.bytes + self._flow.bytes + sum(sink.bytes for sink in self._sinks)


class _Sink:
    """A root of the plan, as some queries tell it. queries: by row of the table the numbers of those; one: one of them,
    which stands for all."""

    def __init__(
        self, plan: FlowPlan, output: Output, queries: Sequence[Sequence[int]], one: RspPlan, terms: TermDictionary
    ) -> None:
        self.root, self._one, self._terms = output.root, one, terms
        self._queries = queries
        self._by_row = int(output.table is not None)
        compared = one.flow.compared + self._by_row
        self._told = Told(one.report, plan.widths[output.root], compared, plan.raw[output.root])
        numbers = _numbers(len(output.queries), terms) if self._by_row else _NO_BLANKS
        self._order = np.argsort(numbers)
        self._numbers = numbers[self._order]

    @property
    def tells_all(self) -> bool:
        """Whether it tells something where nothing changes, too."""
        return self._one.report is Report.RSTREAM

    def told(self, delta: Delta, first: int, times: I64) -> Iterator[Part]:
        """What is told of a change, at instants of these times."""
        at, values = self._told.rows(delta, first, len(times))
        if not len(at):
            return
        if not self._by_row:
            at, rows = full_rows(self._one, at, values, _NO_BLANKS, self._terms)
            yield Part(times[at], rows, [(self._queries[0], 0, len(at))])
            return
        number = self._order[np.searchsorted(self._numbers, values[:, 0])]
        key = number * len(times) + at
        order = np.argsort(key, kind="stable")
        key, rows = full_rows(self._one, key[order], values[order, 1:], _NO_BLANKS, self._terms)
        number, at = np.divmod(key, len(times))
        bounds = np.flatnonzero(np.diff(number, prepend=-1))
        lows = bounds.tolist()
        each = zip(number[bounds].tolist(), lows, [*lows[1:], len(number)], strict=True)
        yield Part(times[at], rows, [(self._queries[row], low, high) for row, low, high in each])

    def pass_over(self, delta: Delta) -> None:
        """What has changed at instants at which nothing is told."""
        self._told.pass_over(delta)

    def held_ids(self) -> Ids:
        """The terms of what has been told."""
        return self._told.held_ids()

    def __len__(self) -> int:
        return len(self._told)

    @property
    def bytes(self) -> int:
        """How large it is."""
        return self._told.bytes


def _sinks(
    plan: FlowPlan, output: Output, plans: Sequence[RspPlan], terms: TermDictionary
) -> Iterator[_Sink]:
    """Queries that tell the same rows may tell them otherwise: what is new or what is gone, in an order or none."""
    ways: dict[tuple[object, ...], list[list[int]]] = {}
    for row, queries in enumerate(output.queries):
        for number in queries:
            one = plans[number]
            way = one.report, one.flow.compared, one.flow.order
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


def _wanted(plan: FlowPlan, outputs: Sequence[Output], plans: Sequence[RspPlan]) -> list[Wanted]:
    """Which rows of each conjunction are needed."""
    wanted = {place: Wanted(0) for place, form in enumerate(plan.forms) if isinstance(form, Patterns)}
    for output in outputs:
        below = _below(plan, output.root)
        if any(isinstance(plan.forms[place], Join) for place in below):
            wanted.update(dict.fromkeys(below & wanted.keys(), Wanted.NEW | Wanted.ENDED))
        for number in (number for mine in output.queries for number in mine):
            one = plans[number]
            for place in below & wanted.keys():
                wanted[place] |= wanted_of(one.flow.plan, one.report, one.flow.compared)
    return [*wanted.values()]


def _below(plan: FlowPlan, root: int) -> set[int]:
    """All operators that one is made of."""
    found = {root}
    for place in range(root, -1, -1):
        if place in found:
            found.update(inputs(plan.forms[place]))
    return found
