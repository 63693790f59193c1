"""Rows and those of arrangements that agree with them: pairs of two, of several at once, or what new rows find in one
(operators.md, 3.2, 3.7). Joins keep no rows: arrangements do, and are stepped before.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, Literal, TypeAlias

import numpy as np

from oxiseq.engine import kinds
from oxiseq.engine.bounds import READS
from oxiseq.engine.errors import LimitError
from oxiseq.engine.flow.delta import Buffer, Ids
from oxiseq.engine.flow.operators.arrange import ArrangeNode
from oxiseq.engine.flow.operators.computing import conditions_on
from oxiseq.engine.flow.operators.node import Call, KernelNode
from oxiseq.engine.flow.operators.rows import Copying
from oxiseq.engine.flow.operators.sources import column
from oxiseq.engine.flow.times import LATEST, times_at
from oxiseq.engine.kernels.flow import conjoining as k
from oxiseq.engine.kernels.flow import joining as j
from oxiseq.engine.kernels.flow.arrangement import MOST_LOOSE
from oxiseq.engine.kernels.flow.buffers import TOO_MANY_READS
from oxiseq.engine.kernels.flow.joining import ENTRY_AT, PLACES, SIDE, Joining, join
from oxiseq.engine.kernels.flow.moments import NO_END
from oxiseq.engine.kernels.memory.pointers import Pointers, Replaceable
from oxiseq.engine.terms.dictionary import TermDictionary
from oxiseq.grammar.algebra import Expression
from oxiseq.grammar.records import dataclass
from oxiseq.grammar.scope import expression_variables


@dataclass(frozen=True, slots=True)
class Join:
    """The pairs of two arrangements that agree: all columns of the left, then all of the right. `key` and `loose` of
    both are as long."""

    left: int
    right: int


Only: TypeAlias = Literal["", "COME", "GO"]
"""Which rows are needed: those that come, those that go, or all."""


@dataclass(frozen=True, slots=True)
class JoinAll:
    """The joined rows of several sources of one triple pattern each, all at once: nothing is kept of parts. columns: by
    source the variable that each of its columns is; a row has the variables in order. conditions: those for which some
    do not hold are left out, as soon as that is seen; a FILTER behind it decides."""

    children: tuple[int, ...]
    columns: tuple[tuple[int, ...], ...]
    only: Only = ""
    conditions: tuple[Expression, ...] = ()


@dataclass(frozen=True, slots=True)
class Look:
    """New rows, and those that they find in an arrangement at the end of their tick: PAIRS, all columns of both; those
    that find something (WITH) or nothing (WITHOUT). A found row has the same `key`, and `loose` where both have a
    value, has ended before (BEFORE) the start of the new one, or by its end (BY), and both together last `limit` at
    most: with neither an order nor a limit rows need no interval. earlier: rows of the same tick are not found; counts:
    that a pair is there counts, however long it lasts."""

    child: int
    kept: int
    key: tuple[int, ...]
    loose: tuple[int, ...] = ()
    order: Literal["ANY", "BEFORE", "BY"] = "ANY"
    what: Literal["PAIRS", "WITH", "WITHOUT"] = "PAIRS"
    limit: int | None = None
    earlier: bool = False
    counts: bool = False


Sign: TypeAlias = Literal["<", "=", ">"]


SIGNS: Final[Mapping[str, tuple[Sign, Sign]]] = {
    "<": ("<", ">"),
    "<=": ("<", ">"),
    ">": (">", "<"),
    ">=": (">", "<"),
    "=": ("=", "="),
}
"""By comparison: the first operand's relation to the second, and the converse."""


@dataclass(frozen=True, slots=True)
class Bound:
    """A condition on pairs: the row's column at `place` is above (">"), below or equal to the table's at `column`, as
    numbers. It may let others pass: a FILTER behind it decides."""

    place: int
    column: int
    sign: Sign


@dataclass(frozen=True, slots=True)
class Lookup:
    """The pairs of rows with those of an arrangement, in the order of one of its columns, that compare with them so:
    all columns of both. What is arranged is there before the first row comes, and does not change."""

    child: int
    table: int
    bound: Bound


_ANY: Final = 1 << 62
"""Rows that may be tried where no bound is given."""


class JoinNode(KernelNode):
    """The pairs of two."""

    def __init__(self, left: ArrangeNode, right: ArrangeNode) -> None:
        super().__init__(left.inputs[0].width + right.inputs[0].width, (left.inputs[0], right.inputs[0]))
        self._sides = left, right
        places = np.zeros(PLACES, np.int64)
        places[[SIDE, ENTRY_AT]] = -1
        self._memory = Replaceable(Joining(places))

    def call(self) -> Call:
        (left, right), (a, b) = self._sides, self.inputs
        return Call(join, (self._memory, left, a, right, b, self.out))

    def provide(self, answer: int) -> None:
        for side in self._sides:
            side.make_room()


class JoinAllNode(KernelNode):
    """The joined rows of several triple patterns."""

    def __init__(self, form: JoinAll, width: int, kept: Sequence[ArrangeNode], terms: TermDictionary) -> None:
        super().__init__(width, tuple(each.inputs[0] for each in kept))
        self._kept, self._terms = kept, terms
        self._conditions = Pointers(conditions_on(form.conditions, width, terms)[1])
        count = len(kept)
        scalars = np.zeros(k.SCALARS, np.int64)
        scalars[k.COME], scalars[k.GO], scalars[[k.DEPTH, k.TICK]] = form.only != "GO", form.only != "COME", -1
        scalars[k.READS] = _ANY
        masks = [sum(1 << i for i, mine in enumerate(form.columns) if v in mine) for v in range(width)]
        self._memory = Pointers(
            k.Conjoining(
                scalars,
                np.array([each.address for each in kept], np.int64),
                np.array([buffer.address for buffer in self.inputs], np.int64),
                np.zeros(count, np.int64),
                np.zeros(count, np.int64),
                np.cumsum([0, *map(len, form.columns)], dtype=np.int64),
                np.array([v for mine in form.columns for v in mine], np.int64),
                np.array(masks, np.int64),
                np.full((count, 8), -1),
                np.zeros(count, k.LEVEL),
                np.zeros(count * count, k.BEST),
                np.zeros(count, np.int64),
                np.array([_mask(each, width) for each in form.conditions], np.int64),
                np.zeros((count, max(map(len, form.columns))), np.uint32),
            )
        )

    def call(self) -> Call:
        return Call(k.conjoin, (self._memory, self._conditions, self._terms, self.out))

    def bound(self, made: int, reads: int) -> None:
        super().bound(made, reads)
        self._memory.arrays.scalars[k.READS] = reads

    def provide(self, answer: int) -> None:
        scalars = self._memory.arrays.scalars
        if answer == TOO_MANY_READS:
            raise LimitError(scalars.item(k.READS) + 1, scalars.item(k.READS), READS.what)
        self._kept[scalars.item(k.WHICH)].make_room()


def _mask(condition: Expression, width: int) -> int:
    """The columns that it reads."""
    read = expression_variables(condition)
    return sum(1 << i for i in range(width) if column(i) in read)


_END: Final = 2
"""Column of the time at which an interval ends."""
_ORDERS: Final = {"ANY": j.ANY, "BEFORE": j.BEFORE, "BY": j.BY}
_WHAT: Final = {"PAIRS": j.PAIRS, "WITH": j.WITH, "WITHOUT": j.WITHOUT}


class LookNode(KernelNode):
    """It keeps no rows: it reads the arrangement, which has been stepped before."""

    def __init__(self, form: Look, child: Buffer, kept: ArrangeNode) -> None:
        super().__init__(child.width + (kept.inputs[0].width if form.what == "PAIRS" else 0), (child,))
        self._kept = kept
        self._scalars = scalars = np.zeros(j.SCALARS, np.int64)
        scalars[j.ORDER], scalars[j.WHAT] = _ORDERS[form.order], _WHAT[form.what]
        scalars[j.LIMIT] = LATEST if form.limit is None else form.limit
        scalars[j.EARLIER], scalars[ENTRY_AT] = form.earlier, -1
        scalars[j.TIMED] = form.order != "ANY" or form.limit is not None
        loose = [np.array(part, np.int64) for part in (form.loose[:MOST_LOOSE], form.loose[MOST_LOOSE:])]
        self._memory = Pointers(j.Looking(scalars, np.array(form.key, np.int64), *loose))

    def call(self) -> Call:
        return Call(j.look, (self._memory, self.inputs[0], self._kept, self.out))

    def provide(self, answer: int) -> None:
        self._kept.make_room()

    def learn(self) -> None:
        """Rows without a time have come, or are no longer there: whether it has to look for them in whole chains."""
        if self._scalars[j.TIMED]:
            ends = times_at(self._kept.kept[0], _END)
            self._scalars[j.TIMELESS] = bool((ends == NO_END).any())


_SIGNS: Final = {"<": j.BELOW, "=": j.EQUAL, ">": j.ABOVE}


class LookupNode(Copying):
    """The table in the order of one of its columns, as numbers; it is read when the first row comes."""

    def __init__(self, bound: Bound, child: Buffer, table: ArrangeNode, terms: TermDictionary) -> None:
        width = table.inputs[0].width
        super().__init__(child.width + width, (child,))
        self._bound, self._table, self._terms = bound, table, terms
        self._known = False
        self._memory = Replaceable(self._ordered(np.zeros((0, width), np.uint32)))

    def _ordered(self, rows: Ids) -> j.Between:
        columns, ids = self._terms.columns, rows[:, self._bound.column]
        number, kind, quality = columns.number[ids], columns.kind[ids], columns.quality[ids]
        whole = (quality & kinds.ROUNDED != 0) & np.isin(kind, (kinds.INTEGER, kinds.DECIMAL, kinds.DOUBLE))
        places = np.zeros(j.BETWEEN_PLACES, np.int64)
        places[j.PLACE], places[j.SIGN], places[j.MADE] = self._bound.place, _SIGNS[self._bound.sign], -1
        places[j.ALL] = not (whole & ~np.isnan(number)).all()
        order = np.argsort(number, kind="stable")
        return j.Between(places, np.ascontiguousarray(number[order]), np.ascontiguousarray(rows[order]))

    def read(self) -> None:
        """Read the table, which is another now."""
        rows, _ = self._table.kept
        self._known = bool(len(rows))
        self._memory.set(self._ordered(rows))

    def call(self) -> Call:
        if not self._known:
            self.read()
        return Call(j.between, (self._memory, self._terms, self.inputs[0], self.out))
