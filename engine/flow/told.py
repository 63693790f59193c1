"""The rows emitted for an answer at an instant: all, the new ones, or the retracted ones (operators.md, 2.3).

In the flow: changes of the answer, of which none come and go within a tick → **rows to emit**, each as often as its
multiplicity says.

A bag has each row with its multiplicity (SPARQL 1.1, 18.1.2): what answers are compared with and emitted from, where
operators do not keep them: RSTREAM, and queries over the store. Adding a row costs one look into a dictionary; rows are
in the order in which they were first added.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from oxiseq.engine.errors import LimitError
from oxiseq.engine.flow.delta import I64, MOST_ROWS, Delta, Ids
from oxiseq.engine.flow.times import HasRows
from oxiseq.engine.kernels.flow.buffers import tell, told_rows
from oxiseq.engine.kernels.matches.numbering import enter_rows, find_rows
from oxiseq.engine.kernels.memory.slots import SLOT, slots_for
from oxiseq.grammar.rsp_algebra import Report

_PER_ROW: Final = 150
"""Bytes of a row in a dictionary, without its columns."""


class Bag:
    """Rows u32[n, width] with multiplicities, which may pass through numbers below 0."""

    def __init__(self, width: int) -> None:
        self._width = width
        self._counts: dict[bytes, int] = {}
        self.size = 0
        """The number of rows, each as often as its multiplicity says where that is above 0."""

    def __len__(self) -> int:
        return len(self._counts)

    def add(self, rows: Ids, weight: I64) -> None:
        """Adds to the multiplicities of rows, or takes from them where a weight is below 0."""
        counts = self._counts
        for key, more in zip(self._keys(rows), weight.tolist(), strict=True):
            before = counts.get(key, 0)
            count = before + more
            self.size += max(count, 0) - max(before, 0)
            if count:
                counts[key] = count
            else:
                del counts[key]

    def replace(self, rows: Ids, weight: I64) -> tuple[Ids, I64]:
        """Holds these rows and no others from now on. Returns the rows whose multiplicity has changed, and by how
        much."""
        before, self._counts, self.size = self._counts, {}, 0
        self.add(rows, weight)
        now = self._counts
        changed = {key: count - before.get(key, 0) for key, count in now.items() if count != before.get(key, 0)}
        changed |= {key: -count for key, count in before.items() if key not in now}
        return self._columns(changed)

    @property
    def rows(self) -> tuple[Ids, I64]:
        """A copy of the rows, and their multiplicities."""
        return self._columns(self._counts)

    def held_ids(self) -> Iterable[Ids]:
        """The ids of its rows."""
        return (self.rows[0],)

    def _keys(self, rows: Ids) -> list[bytes]:
        """The bytes of each row."""
        if not self._width:
            return [b""] * len(rows)
        return np.ascontiguousarray(rows).view(f"V{4 * self._width}").reshape(-1).tolist()

    def _columns(self, counts: Mapping[bytes, int]) -> tuple[Ids, I64]:
        rows = np.frombuffer(bytearray(b"".join(counts)), np.uint32).reshape(len(counts), self._width)
        return rows, np.array([*counts.values()], np.int64)

    @property
    def bytes(self) -> int:
        """About how large it is."""
        return len(self._counts) * (_PER_ROW + 4 * self._width)


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
