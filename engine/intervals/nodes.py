"""Operators at work: what has come in, what comes of it out.

Where it stands: plan → **nodes**. `step` is given what has come since the last one, `begin` tells that the instants
before are over. A step is either of the stream or of what has no time (`Arrived.timeless`: at first, and again when the
knowledge base has changed); the latter makes no row with a time, for what has come before keeps its answers.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray
from pyoxigraph import Literal, NamedNode

from oxiseq.engine.intervals.conditions import RowConditions, RowExpression
from oxiseq.engine.intervals.knowledge import Knowledge
from oxiseq.engine.intervals.plan import (
    ClosurePlan,
    ExistsTest,
    ExtendPlan,
    FilterPlan,
    JoinPlan,
    MinusPlan,
    OptionalPlan,
    Plan,
    ProjectPlan,
    TestPlan,
    TimelessPlan,
    TriplePlan,
    UnionPlan,
    is_timeless,
)
from oxiseq.engine.intervals.rows import NEVER, Column, Rows, concat, empty, timeless
from oxiseq.engine.intervals.table import Table
from oxiseq.engine.kernels.intervals.joining import (
    ANY,
    COME_FIRST,
    EMPTY_END,
    EMPTY_START,
    KEPT_BY,
    KEPT_FIRST,
    SAME,
    first_ones,
)
from oxiseq.engine.terms.dictionary import TermDictionary
from oxiseq.grammar.algebra import TimeOp

_NO_LOOSE: Final = np.zeros((0, 2), np.int64)


@dataclass(frozen=True, slots=True)
class Arrived:
    """What a step is about: triples of the stream (columns subject, predicate, object), or, with `knowledge`, what has
    no time."""

    triples: Rows
    knowledge: Knowledge | None = None

    @property
    def timeless(self) -> bool:
        return self.knowledge is not None


class Node(ABC):
    """An operator at work."""

    def __init__(self, columns: Sequence[Column], children: Sequence[Node], tables: Sequence[Table] = ()) -> None:
        self.columns = tuple(columns)
        self.children = tuple(children)
        self.tables = tuple(tables)
        self.nothing = empty(len(self.columns))

    @abstractmethod
    def step(self, arrived: Arrived) -> Rows:
        """The new rows."""

    def begin(self) -> None:
        """The instants before are over."""
        return

    def everything(self) -> Iterator[Node]:
        """It and all below it."""
        yield self
        for child in self.children:
            yield from child.everything()


class _Leaf(Node):
    def __init__(self, plan: TriplePlan, terms: TermDictionary) -> None:
        super().__init__(plan.columns, ())
        self._plan = plan
        self._constants = [(i, terms.constant(p)) for i, p in enumerate(plan.places)
                           if isinstance(p, NamedNode | Literal)]  # fmt: skip
        self._but = [terms.constant(p) for p in plan.but]
        self._places = [plan.places.index(c) for c in plan.columns]
        self._same = [
            (plan.places.index(p), i) for i, p in enumerate(plan.places)
            if not isinstance(p, NamedNode | Literal) and plan.places.index(p) != i
        ]

    def step(self, arrived: Arrived) -> Rows:
        if arrived.knowledge is not None:
            return self._of(arrived.knowledge.triples(self._plan.places))
        rows = self._of(arrived.triples)
        if self._plan.limit == NEVER or not len(rows):
            return rows
        return rows.take(rows.end - rows.start <= self._plan.limit)

    def _of(self, triples: Rows) -> Rows:
        if not len(triples):
            return self.nothing
        keep: NDArray[np.bool_] | None = None
        for place, constant in self._constants:
            here = triples.values[:, place] == constant
            keep = here if keep is None else keep & here
        for first, second in self._same:
            here = triples.values[:, first] == triples.values[:, second]
            keep = here if keep is None else keep & here
        if self._but:
            here = ~np.isin(triples.values[:, 1], self._but)
            keep = here if keep is None else keep & here
        if keep is not None:
            triples = triples.take(np.flatnonzero(keep))
        return triples.columns(self._places)


class _Timeless(Node):
    def __init__(self, plan: TimelessPlan, terms: TermDictionary) -> None:
        super().__init__(plan.columns, ())
        self._asked = plan.asked
        ids = [[0 if t is None else terms.constant(t) for t in row] for row in plan.rows]
        self._rows = np.array(ids, np.uint32).reshape(len(plan.rows), len(plan.columns))

    def step(self, arrived: Arrived) -> Rows:
        if arrived.knowledge is None:
            return self.nothing
        if self._asked:
            return timeless(arrived.knowledge.answer(self._asked, self.columns))
        return timeless(self._rows)


@dataclass(frozen=True, slots=True)
class _Sides:
    """The columns of one side of a pair, and which of them are always bound."""

    columns: tuple[Column, ...]
    certain: frozenset[Column]


@dataclass(frozen=True, slots=True)
class _Shared:
    """How two operators' columns meet: the keys, the columns that may be unbound, and where each column of the pair
    comes from."""

    left_key: NDArray[np.int64]
    right_key: NDArray[np.int64]
    loose: NDArray[np.int64]
    more: tuple[int, ...]
    """Columns of the right that the left has not."""

    @classmethod
    def of(cls, left: Plan | _Sides, right: Plan | _Sides) -> _Shared:
        both = [c for c in left.columns if c in right.columns]
        sure = [c for c in both if c in left.certain and c in right.certain]
        loose = [(left.columns.index(c), right.columns.index(c)) for c in both if c not in sure]
        return cls(
            np.array([left.columns.index(c) for c in sure], np.int64),
            np.array([right.columns.index(c) for c in sure], np.int64),
            np.array(loose, np.int64).reshape(len(loose), 2),
            tuple(i for i, c in enumerate(right.columns) if c not in left.columns),
        )

    @property
    def turned(self) -> NDArray[np.int64]:
        """`loose`, seen from the right."""
        return np.ascontiguousarray(self.loose[:, ::-1])

    def pairs(self, left: Rows, right: Rows) -> Rows:
        """Row by row the pair, with the hull of both."""
        values = np.empty((len(left), left.values.shape[1] + len(self.more)), np.uint32)
        values[:, : left.values.shape[1]] = left.values
        values[:, left.values.shape[1] :] = right.values[:, list(self.more)]
        for a, b in self.loose.tolist():
            values[:, a] = np.where(left.values[:, a] == 0, right.values[:, b], left.values[:, a])
        return Rows(values, np.minimum(left.start, right.start), np.maximum(left.end, right.end))


class _Join(Node):
    """Both sides are kept, as far as the other side may still need them: of SEQ only the first, of EQUALS for the
    instant, of a join with what has no time nothing but that."""

    def __init__(self, plan: JoinPlan, left: Node, right: Node) -> None:
        shared = _Shared.of(plan.left, plan.right)
        self._left = Table(len(left.columns), shared.left_key.tolist(), plan.limit)
        self._right = Table(len(right.columns), shared.right_key.tolist(), plan.limit)
        super().__init__(plan.columns, (left, right), (self._left, self._right))
        self._shared, self._limit, self._op = shared, plan.limit, plan.op
        self._keeps_left = plan.op is not None or not is_timeless(plan.right)
        self._keeps_right = plan.op is TimeOp.EQUALS or (plan.op is None and not is_timeless(plan.left))
        self._modes = {None: (ANY, ANY), TimeOp.SEQ: (COME_FIRST, KEPT_FIRST), TimeOp.EQUALS: (SAME, SAME)}[plan.op]

    def begin(self) -> None:
        if self._op is TimeOp.EQUALS:
            self._left.clear()
            self._right.clear()

    def step(self, arrived: Arrived) -> Rows:
        left, right = self.children[0].step(arrived), self.children[1].step(arrived)
        if self._op is not None:
            left, right = left.timed(), right.timed()
        parts = []
        if len(left) and len(self._right):
            i, j = self._right.probe(left, self._shared.left_key, self._shared.loose, self._modes[0], self._limit)
            parts.append(self._shared.pairs(left.take(i), self._right.rows.take(j)))
        dropped = arrived.timeless or self._keeps_left
        if len(left) and (dropped or len(right)):
            self._left.add(left)
        if len(right) and len(self._left):
            i, j = self._left.probe(right, self._shared.right_key, self._shared.turned, self._modes[1], self._limit)
            parts.append(self._shared.pairs(self._left.rows.take(j), right.take(i)))
        if not dropped:
            self._left.clear()
        if self._keeps_right or (arrived.timeless and self._op is None):
            self._right.add(right)
        return _only_timeless(concat(parts, len(self.columns)), arrived).distinct()


class _Optional(Node):
    def __init__(self, plan: OptionalPlan, main: Node, other: Node, terms: TermDictionary) -> None:
        shared = _Shared.of(plan.main, plan.other)
        self._kept = Table(len(other.columns), shared.right_key.tolist(), plan.limit)
        pair = _Sides(plan.columns, plan.main.certain | plan.other.certain)
        self._tests = [_Exists(test, pair, terms) for test in plan.tests]
        tested = [node for test in self._tests for node in test.nodes]
        kept = [table for test in self._tests for table in test.tables]
        super().__init__(plan.columns, (main, other, *tested), (self._kept, *kept))
        self._shared, self._limit, self._op = shared, plan.limit, plan.op
        self._conditions = RowConditions(plan.conditions, plan.columns, terms)
        self._mode = {None: KEPT_BY, TimeOp.OPTIONALSEQ: KEPT_FIRST, TimeOp.EQUALSOPTIONAL: SAME}[plan.op]

    def begin(self) -> None:
        if self._op is TimeOp.EQUALSOPTIONAL:
            self._kept.clear()

    def step(self, arrived: Arrived) -> Rows:
        for test in self._tests:
            test.take(arrived)
        other = self.children[1].step(arrived)
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


class _Others:
    """Rows of another pattern that rows are compared with: that agree and ended by then.

    Unless something is asked of the pair (`whole`), each combination of what is compared is kept once: the one that
    ended first is there for all time.
    """

    def __init__(self, main: _Sides, other: Plan, whole: bool) -> None:
        self._places = [i for i, c in enumerate(other.columns) if whole or c in main.columns]
        self._columns = tuple(other.columns[i] for i in self._places)
        self.shared = _Shared.of(main, _Sides(self._columns, other.certain & frozenset(self._columns)))
        self.pair = _Sides(
            (*main.columns, *(self._columns[i] for i in self.shared.more)),
            main.certain | (other.certain & frozenset(self._columns)),
        )
        self._whole = whole
        self._kept = Table(len(self._columns), self.shared.right_key.tolist())
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
            rows = rows.take(np.argsort(rows.end, kind="stable"))
            none = np.zeros(len(rows), np.int64)
            rows = rows.take(np.flatnonzero(first_ones(rows.values, none, none, 0)))
            i, _ = self._all.probe(rows, self._key, _NO_LOOSE, ANY)
            new = np.ones(len(rows), np.bool_)
            new[i] = False
            rows = rows.take(new)
            self._all.add(rows)
        self._kept.add(rows)

    def pairs(self, main: Rows) -> tuple[NDArray[np.int64], Rows]:
        """The pairs: numbers of rows of `main`, and their partners."""
        i, j = self._kept.probe(main, self.shared.left_key, self.shared.loose, KEPT_BY)
        return i, self._kept.rows.take(j)


class _Exists:
    """An `ExistsTest` at work on rows of some columns."""

    def __init__(self, test: ExistsTest, main: _Sides, terms: TermDictionary) -> None:
        self.node = build(test.other, terms)
        self._wanted = test.wanted
        self._whole = bool(test.conditions or test.tests)
        self._others = _Others(main, test.other, self._whole)
        self._conditions = RowConditions(test.conditions, self._others.pair.columns, terms)
        self._tests = [_Exists(t, self._others.pair, terms) for t in test.tests]

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


class _Test(Node):
    def __init__(self, plan: TestPlan, main: Node, terms: TermDictionary) -> None:
        self._exists = _Exists(plan.test, _Sides(main.columns, plan.main.certain), terms)
        super().__init__(plan.columns, (main, *self._exists.nodes), tuple(self._exists.tables))

    def step(self, arrived: Arrived) -> Rows:
        self._exists.take(arrived)
        rows = self.children[0].step(arrived)
        return rows.take(self._exists.passed(rows)) if len(rows) else rows


class _Minus(Node):
    def __init__(self, plan: MinusPlan, main: Node, other: Node) -> None:
        self._others = _Others(_Sides(main.columns, plan.main.certain), plan.other, whole=False)
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


class _Union(Node):
    def __init__(self, plan: UnionPlan, branches: Sequence[Node], terms: TermDictionary) -> None:
        super().__init__(plan.columns, branches)
        self._numbers = [terms.constant(Literal(n)) for n in range(len(branches))]
        self._places = [[self.columns.index(c) for c in branch.columns] for branch in branches]

    def step(self, arrived: Arrived) -> Rows:
        parts = []
        for branch, places, number in zip(self.children, self._places, self._numbers, strict=True):
            rows = branch.step(arrived)
            if len(rows):
                values = np.zeros((len(rows), len(self.columns)), np.uint32)
                values[:, places] = rows.values
                values[:, -1] = number
                parts.append(Rows(values, rows.start, rows.end))
        return concat(parts, len(self.columns))


class _Filter(Node):
    def __init__(self, plan: FilterPlan, child: Node, terms: TermDictionary) -> None:
        super().__init__(plan.columns, (child,))
        self._conditions = RowConditions(plan.conditions, plan.columns, terms)

    def step(self, arrived: Arrived) -> Rows:
        return self._conditions.passing(self.children[0].step(arrived))


class _Extend(Node):
    def __init__(self, plan: ExtendPlan, child: Node, terms: TermDictionary) -> None:
        super().__init__(plan.columns, (child,))
        self._expression = RowExpression(plan.expression, child.columns, terms)

    def step(self, arrived: Arrived) -> Rows:
        rows = self.children[0].step(arrived)
        if not len(rows):
            return self.nothing
        computed = self._expression.values(rows)
        return Rows(np.concatenate([rows.values, computed[:, None]], axis=1), rows.start, rows.end)


class _Project(Node):
    def __init__(self, plan: ProjectPlan, child: Node) -> None:
        super().__init__(plan.columns, (child,))
        self._places, self._distinct = plan.places, plan.distinct

    def step(self, arrived: Arrived) -> Rows:
        rows = self.children[0].step(arrived)
        if not len(rows):
            return self.nothing
        rows = rows.columns(self._places)
        return rows.distinct() if self._distinct else rows


class _Closure(Node):
    """Paths of one step or more: what has come goes on from paths that are kept, then on along kept steps."""

    def __init__(self, plan: ClosurePlan, step: Node) -> None:
        self._paths, self._steps = Table(2, (1,), plan.limit), Table(2, (0,), plan.limit)
        super().__init__(plan.columns, (step,), (self._paths, self._steps))
        self._limit = plan.limit
        self._begin, self._end = np.zeros(1, np.int64), np.ones(1, np.int64)

    def step(self, arrived: Arrived) -> Rows:
        steps = self.children[0].step(arrived)
        if not len(steps):
            return self.nothing
        i, j = self._paths.probe(steps, self._begin, _NO_LOOSE, ANY, self._limit)
        found = concat([steps, _on(self._paths.rows.take(j), steps.take(i))], 2)
        found = _only_timeless(found, arrived).distinct()
        self._steps.add(steps)
        new = found
        while len(new):
            i, j = self._steps.probe(new, self._end, _NO_LOOSE, ANY, self._limit)
            more = _only_timeless(_on(new.take(i), self._steps.rows.take(j)), arrived)
            new = concat([found, more], 2).distinct(len(found))
            found = concat([found, new], 2)
        self._paths.add(found)
        return found


def _on(first: Rows, second: Rows) -> Rows:
    """Paths, each with one that begins where it ends."""
    values = np.stack([first.values[:, 0], second.values[:, 1]], axis=1)
    return Rows(values, np.minimum(first.start, second.start), np.maximum(first.end, second.end))


def _only_timeless(rows: Rows, arrived: Arrived) -> Rows:
    if not arrived.timeless or not len(rows):
        return rows
    return rows.take((rows.end == EMPTY_END) & (rows.start == EMPTY_START))


def _first(rows: Rows) -> NDArray[np.bool_]:
    found: NDArray[np.bool_] = first_ones(rows.values, rows.start, rows.end, 0)
    return found


def build(plan: Plan, terms: TermDictionary) -> Node:
    """The operators of a plan, that have not seen anything."""
    match plan:
        case TriplePlan():
            return _Leaf(plan, terms)
        case TimelessPlan():
            return _Timeless(plan, terms)
        case JoinPlan():
            return _Join(plan, build(plan.left, terms), build(plan.right, terms))
        case OptionalPlan():
            return _Optional(plan, build(plan.main, terms), build(plan.other, terms), terms)
        case MinusPlan():
            return _Minus(plan, build(plan.main, terms), build(plan.other, terms))
        case TestPlan():
            return _Test(plan, build(plan.main, terms), terms)
        case UnionPlan():
            return _Union(plan, [build(b, terms) for b in plan.branches], terms)
        case FilterPlan():
            return _Filter(plan, build(plan.child, terms), terms)
        case ExtendPlan():
            return _Extend(plan, build(plan.child, terms), terms)
        case ProjectPlan():
            return _Project(plan, build(plan.child, terms))
        case ClosurePlan():
            return _Closure(plan, build(plan.step, terms))
