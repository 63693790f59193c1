"""The rows emitted for an answer at an instant: all, the new ones, or the retracted ones (operators.md, 2.3).

In the flow: changes of the answer, of which none come and go within a tick → **rows to emit**, each as often as its
multiplicity says.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from oxiseq.engine.errors import LimitError
from oxiseq.engine.flow.bag import Bag
from oxiseq.engine.flow.delta import I64, MOST_ROWS, Delta, Ids
from oxiseq.engine.flow.times import HasRows
from oxiseq.engine.kernels.flow.buffers import tell, told_rows
from oxiseq.engine.kernels.matches.numbering import enter_rows, find_rows
from oxiseq.engine.kernels.memory.slots import SLOT, slots_for
from oxiseq.grammar.rsp_algebra import Report

Order: TypeAlias = Callable[[I64, Ids], NDArray[np.int64]]
"""The numbers of rows, as they are emitted. Given: i64[n], ascending, equal for rows emitted together; the rows."""


class Told(HasRows):
    """Remembers the answer, if all of it is emitted. compared: how many columns, from the first, identify a row; those
    behind are for the order in which rows are emitted. raw: columns that hold numbers. most: rows of an instant past
    which none of it is emitted; tabled: of each query, whose number is in the first column."""

    _saved_as = "rows", "counts"

    def __init__(
        self,
        report: Report,
        width: int,
        compared: int,
        raw: Sequence[int],
        order: Order,
        most: int,
        *,
        tabled: bool = False,
    ) -> None:
        self._report, self._width, self._compared, self._raw = report, width, compared, raw
        self._order = order
        self._most, self._tabled = most, tabled
        self._answer = Bag(width)
        self.too_many: dict[int, int] = {}
        """How many rows instants would have had of which none was emitted, by their numbers in the last call."""
        self._nothing = np.zeros(0, np.int64), np.zeros((0, width), np.uint32)

    def __len__(self) -> int:
        return len(self._answer)

    def rows(self, delta: Delta, first: int, instants: int) -> tuple[I64, Ids]:
        """Numbers of instants, ascending, and the rows emitted at them; the instants are the ticks from `first` on."""
        self.too_many = {}
        if self._report is Report.RSTREAM:
            return self._all(delta, first, instants)
        if not len(delta.at):
            return self._nothing
        if self._compared < self._width:
            delta = self._net(delta)
        sign = 1 if self._report is Report.ISTREAM else -1
        count = told_rows(delta.weight, sign)
        if not count:
            return self._nothing
        if count > self._most:
            delta = self._bounded(delta, sign, first)
            count = told_rows(delta.weight, sign)
        at, rows = np.empty(count, np.int64), np.empty((count, self._width), np.uint32)
        tell(delta.at, delta.weight, delta.rows, sign, first, at, rows)
        return at, rows

    def pass_over(self, delta: Delta) -> None:
        """Takes the changes of instants at which nothing is emitted."""
        if self._report is Report.RSTREAM:
            self._answer.add(delta.rows, delta.weight)

    def _bounded(self, delta: Delta, sign: int, first: int) -> Delta:
        """Without the changes of instants at which too many rows would be emitted."""
        emitted = np.maximum(sign * delta.weight, 0)
        at, place = np.unique(delta.at, return_inverse=True)
        total = np.bincount(place, emitted, len(at)).astype(np.int64)
        for k in np.flatnonzero(total > self._most).tolist():
            mine = place == k
            if (most := self._of_one(delta.rows[mine], emitted[mine])) > self._most:
                self.too_many[int(at[k]) - first] = most
        left_out = np.isin(delta.at - first, [*self.too_many])
        return delta.take(~left_out) if self.too_many else delta

    def _of_one(self, rows: Ids, count: NDArray[np.int64]) -> int:
        """How many of these rows, each of which is there so often, the query has that has most."""
        if not self._tabled:
            return int(count.sum())
        _, query = np.unique(rows[:, 0], return_inverse=True)
        return int(np.bincount(query, count).max(initial=0))

    def _net(self, delta: Delta) -> Delta:
        """Of rows that are equal where they are compared, as many as come more than go, or go more than come: the first
        of them in the order in which they are emitted. So they are a function of the answers before and now."""
        groups = self._groups(delta)
        net = np.bincount(groups, delta.weight).astype(np.int64)[groups]
        unlike = np.sign(net) != np.sign(delta.weight)
        if not unlike.any():
            return delta
        weight = np.where(unlike, 0, delta.weight)
        some = np.flatnonzero(~unlike & np.isin(groups, groups[unlike]))
        some = some[np.argsort(groups[some], kind="stable")]
        some = some[self._order(groups[some], delta.rows[some])]
        size = np.abs(weight[some])
        before = np.cumsum(size) - size
        before -= before[np.searchsorted(groups[some], groups[some])]
        weight[some] = np.sign(net[some]) * np.clip(np.abs(net[some]) - before, 0, size)
        kept = np.flatnonzero(weight)
        return Delta(delta.at[kept], weight[kept], delta.rows[kept])

    def _groups(self, delta: Delta) -> NDArray[np.int64]:
        """A number for each row, equal for those of one instant that are equal where they are compared."""
        count, compared = len(delta), self._compared
        keys, numbers = np.empty((count, compared + 2), np.uint32), np.arange(count)
        keys[:, :compared], keys[:, compared:] = delta.rows[:, :compared], delta.at[:, None].view(np.uint32)
        slots = np.zeros(slots_for(count), SLOT)
        enter_rows(numbers, slots, keys)
        find_rows(keys, slots, keys, numbers)
        return numbers

    def _all(self, delta: Delta, first: int, instants: int) -> tuple[I64, Ids]:
        ends = np.searchsorted(delta.at, np.arange(first, first + instants), "right").tolist()
        parts, done, shown, told, given = list[Ids](), -1, None, 0, 0
        for end in ends:
            if end > done:
                some = slice(max(done, 0), end)
                self._answer.add(delta.rows[some], delta.weight[some])
                shown, done, given = None, end, self._answer.size
                if given > self._most:
                    given = self._of_one(*self._answer.rows)
                if given <= self._most:
                    shown = self._shown()
            if shown is None:
                self.too_many[len(parts)] = given
                parts.append(self._nothing[1])
                continue
            parts.append(shown)
            told += len(shown)
            if told > MOST_ROWS:
                raise LimitError(told, MOST_ROWS, "rows that RSTREAM emits for one batch; push smaller batches")
        at = np.repeat(np.arange(instants), [len(part) for part in parts])
        return at, np.concatenate(parts) if parts else np.zeros((0, self._width), np.uint32)

    def _shown(self) -> Ids:
        """The answer, each row as often as it is there."""
        rows, counts = self._rows()
        return np.repeat(rows, np.maximum(counts, 0), axis=0)

    @property
    def bytes(self) -> int:
        """About how large the answer is."""
        return self._answer.bytes

    def _rows(self) -> tuple[Ids, I64]:
        """The answer, in the order in which its rows came, and how often each is there."""
        return self._answer.rows

    def _keep(self, rows: Ids, counts: I64) -> None:
        self._answer.replace(rows, counts)
