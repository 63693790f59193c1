"""Operators that look at what may be missing: EXISTS, MINUS, and parts that are optional."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from oxiseq.engine.intervals.conditions import RowConditions
from oxiseq.engine.intervals.nodes.node import Arrived, Late, Node
from oxiseq.engine.intervals.nodes.sides import NO_LOOSE, Shared, Sides
from oxiseq.engine.intervals.plan import ExistsTest, MinusPlan, OptionalPlan, Plan, TestPlan
from oxiseq.engine.intervals.rows import NEVER, Column, Rows, concat
from oxiseq.engine.intervals.table import Table
from oxiseq.engine.kernels.intervals.joining import ANY, KEPT_BY, KEPT_FIRST, SAME, first_ones
from oxiseq.engine.terms.dictionary import TermDictionary
from oxiseq.grammar.algebra import TimeOp

Build: TypeAlias = Callable[[Plan, TermDictionary], Node]


class Optional(Node):
    def __init__(self, plan: OptionalPlan, main: Node, other: Node, terms: TermDictionary, build: Build) -> None:
        shared = Shared.of(plan.main, plan.other)
        self._kept = Table(len(other.columns), shared.right_key.tolist(), plan.limit)
        pair = Sides(plan.columns, plan.main.certain | plan.other.certain)
        self._tests = [Exists(test, pair, terms, build) for test in plan.tests]
        tested = [node for test in self._tests for node in test.nodes]
        kept = [table for test in self._tests for table in test.tables]
        super().__init__(plan.columns, (main, other, *tested), (self._kept, *kept))
        self._shared, self._limit, self._op = shared, plan.limit, plan.op
        self._other = Late(other, plan.late)
        self._conditions = RowConditions(plan.conditions, plan.columns, terms)
        self._mode = {None: KEPT_BY, TimeOp.OPTIONALSEQ: KEPT_FIRST, TimeOp.EQUALSOPTIONAL: SAME}[plan.op]

    @property
    def parts(self) -> Iterator[tuple[Table, tuple[Column, ...]]]:
        yield self._kept, self.children[1].columns

    def begin(self) -> None:
        self._kept.add(self._other.rest().timed())
        if self._op is TimeOp.EQUALSOPTIONAL:
            self._kept.clear()

    def step(self, arrived: Arrived) -> Rows:
        for test in self._tests:
            test.take(arrived)
        other = self._other.step(arrived)
        main = self.children[0].step(arrived)
        if self._op is not None:
            other, main = other.timed(), main.timed()
        self._kept.add(other)
        if not len(main):
            return self.nothing
        i, j = self._kept.probe(main, self._shared.left_key, self._shared.loose, self._mode, self._limit)
        pairs = self._shared.pairs(main.take(i), self._kept.rows.take(j))
        alone = np.ones(len(main), np.bool_)
        if len(pairs):
            keep = self._conditions.keep(pairs)
            for test in self._tests:
                keep &= test.passed(pairs)
            alone[i[keep]] = False
            pairs = pairs.take(keep)
        values = np.zeros((int(alone.sum()), len(self.columns)), np.uint32)
        values[:, : main.values.shape[1]] = main.values[alone]
        singles = Rows(values, main.start[alone], main.end[alone])
        return concat([pairs, singles], len(self.columns)).distinct()


class Others:
    """Rows of another pattern that rows are compared with: that agree and ended by then.

    Unless something is asked of the pair (`whole`), each combination of what is compared is kept once: the one that
    ended first is there for all time. What has no time is kept besides: it goes when the knowledge base changes.
    `limit`: the longest hull of a pair.
    """

    def __init__(self, main: Sides, other: Plan, whole: bool, limit: int = NEVER) -> None:
        self._places = [i for i, c in enumerate(other.columns) if whole or c in main.columns]
        self._columns = tuple(other.columns[i] for i in self._places)
        self.shared = Shared.of(main, Sides(self._columns, other.certain & frozenset(self._columns)))
        self.pair = Sides(
            (*main.columns, *(self._columns[i] for i in self.shared.more)),
            main.certain | (other.certain & frozenset(self._columns)),
        )
        self._whole, self._limit = whole, limit
        self._kept = Table(len(self._columns), self.shared.right_key.tolist(), limit)
        self._all = Table(len(self._columns), range(len(self._columns)))
        self._key = np.arange(len(self._columns))
        self.tables = (self._kept, self._all)
        self.both = np.array(
            [(main.columns.index(c), i) for i, c in enumerate(self._columns) if c in main.columns], np.int64
        ).reshape(-1, 2)
        """The columns that are compared."""

    def take(self, rows: Rows) -> None:
        """More of them."""
        if not len(rows):
            return
        rows = rows.columns(self._places)
        if not self._whole:
            rows = self._new(rows) if len(rows.timed()) else rows.distinct()
        self._kept.add(rows)

    def _new(self, rows: Rows) -> Rows:
        """The combinations that have not come before, each as it ended first."""
        rows = rows.take(np.argsort(rows.end, kind="stable"))
        none = np.zeros(len(rows), np.int64)
        rows = rows.take(np.flatnonzero(first_ones(rows.values, none, none, 0)))
        i, _ = self._all.probe(rows, self._key, NO_LOOSE, ANY)
        new = np.ones(len(rows), np.bool_)
        new[i] = False
        rows = rows.take(new)
        self._all.add(rows)
        return rows

    def pairs(self, main: Rows) -> tuple[NDArray[np.int64], Rows]:
        """The pairs: numbers of rows of `main`, and their partners."""
        i, j = self._kept.probe(main, self.shared.left_key, self.shared.loose, KEPT_BY, self._limit)
        return i, self._kept.rows.take(j)


class Exists:
    """An `ExistsTest` at work on rows of some columns."""

    def __init__(self, test: ExistsTest, main: Sides, terms: TermDictionary, build: Build) -> None:
        self.node = build(test.other, terms)
        self._wanted = test.wanted
        self._whole = bool(test.conditions or test.tests)
        self._others = Others(main, test.other, self._whole, test.limit)
        self._conditions = RowConditions(test.conditions, self._others.pair.columns, terms)
        self._tests = [Exists(t, self._others.pair, terms, build) for t in test.tests]

    @property
    def nodes(self) -> Iterator[Node]:
        """The operators that it asks."""
        yield self.node
        for test in self._tests:
            yield from test.nodes

    @property
    def tables(self) -> Iterator[Table]:
        """What it keeps itself."""
        yield from self._others.tables
        for test in self._tests:
            yield from test.tables

    def take(self, arrived: Arrived) -> None:
        """What has come for it."""
        self._others.take(self.node.step(arrived))
        for test in self._tests:
            test.take(arrived)

    def passed(self, rows: Rows) -> NDArray[np.bool_]:
        """bool[n]: which rows pass."""
        i, partners = self._others.pairs(rows)
        if len(i) and self._whole:
            pairs = self._others.shared.pairs(rows.take(i), partners)
            keep = self._conditions.keep(pairs)
            for test in self._tests:
                keep &= test.passed(pairs)
            i = i[keep]
        found = np.zeros(len(rows), np.bool_)
        found[i] = True
        return found if self._wanted else ~found


class Test(Node):
    def __init__(self, plan: TestPlan, main: Node, terms: TermDictionary, build: Build) -> None:
        self._exists = Exists(plan.test, Sides(main.columns, plan.main.certain), terms, build)
        super().__init__(plan.columns, (main, *self._exists.nodes), tuple(self._exists.tables))

    def step(self, arrived: Arrived) -> Rows:
        self._exists.take(arrived)
        rows = self.children[0].step(arrived)
        return rows.take(self._exists.passed(rows)) if len(rows) else rows


class Minus(Node):
    def __init__(self, plan: MinusPlan, main: Node, other: Node) -> None:
        self._others = Others(Sides(main.columns, plan.main.certain), plan.other, whole=False)
        super().__init__(plan.columns, (main, other), self._others.tables)

    def step(self, arrived: Arrived) -> Rows:
        self._others.take(self.children[1].step(arrived))
        main = self.children[0].step(arrived)
        if not len(main):
            return main
        i, partners = self._others.pairs(main)
        both = self._others.both
        meet = (main.values[i][:, both[:, 0]] != 0) & (partners.values[:, both[:, 1]] != 0)
        keep = np.ones(len(main), np.bool_)
        keep[i[meet.any(axis=1)]] = False
        return main.take(keep)
