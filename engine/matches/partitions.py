"""PARTITION BY: the values that partitions have ↔ their numbers, the same table for every runner.

Values are ids of terms in normal form, whichever stream they come from (semantics.md 3): a table's text `x` and the
literal `"x"` of an RDF event are of one partition, and 1 and 1.0 of two. A number is given again when the runner
remembers nothing of its partition: one that comes again must then be as one that has never been.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from oxiseq.engine.kernels.matches.numbering import enter_rows, find_rows
from oxiseq.engine.kernels.memory.growing import longer
from oxiseq.engine.kernels.memory.slots import SLOT, slots_for
from oxiseq.engine.kernels.sequence.splitting import own_events
from oxiseq.engine.terms.dictionary import AnyIds, TermDictionary
from oxiseq.engine.terms.saved import KnownTerms, SavedTerms, State, Stateful

Ids: TypeAlias = NDArray[np.uint32]
I64: TypeAlias = NDArray[np.int64]
Bools: TypeAlias = NDArray[np.bool_]


class Partitioned(Protocol):
    """A runner whose state is apart for each partition."""

    @property
    def records(self) -> int:
        """How many records its state has: looking for partitions in use takes so long."""

    def begin_partitions(self, fresh: I64, count: int) -> None:
        """There are `count` partitions; those `fresh` are new, or have other values from now on."""

    def partitions_in_use(self, count: int) -> Bools:
        """Of which of the `count` partitions something is remembered."""


def _all(count: int) -> Bools:
    return np.ones(count, np.bool_)


class PartitionTable(Stateful):
    """`count` i64: how many instants of each partition there have been. `width`: values of each; `forgettable`: of so
    many partitions, which may be forgotten if the runner remembers nothing of them."""

    def __init__(
        self,
        width: int,
        runner: Partitioned,
        capacity: int,
        terms: TermDictionary,
        forgettable: Callable[[int], Bools] = _all,
    ) -> None:
        self.count = np.zeros(capacity, np.int64)
        self._values = np.zeros((capacity, width), np.uint32)
        self._runner, self._terms, self._forgettable = runner, terms, forgettable
        self._top = 0
        self._free: list[int] = []
        self._given = self._look_after = 0
        """Numbers given since it was looked for those that are free, and before that is done again."""
        self._place_all()

    def save(self, terms: SavedTerms) -> State:
        """All numbers ever given, those free now included."""
        return {
            "count": self.count[: self._top],
            "values": terms.ids(self._values[: self._top]),
            "free": np.array(self._free, np.int64),
        }

    def restore(self, state: State, terms: KnownTerms) -> None:
        """Continue from a saved state; for a table without partitions."""
        values = terms.ids(state["values"])
        self._top, self._free = len(values), state["free"].tolist()
        self._lengthen(max(self._top, len(self.count)))
        self.count[: self._top], self._values[: self._top] = state["count"], values
        self._place_all()

    def adopt(self, other: PartitionTable) -> tuple[I64, I64]:
        """Has the partitions of another table, too: by their numbers there the numbers here, and how many instants of
        them more there have been here."""
        there = _all(other._top)
        there[other._free] = False
        mine = np.flatnonzero(there)
        fresh = self.find(other._values[mine]) < 0
        numbers = self.number(other._values[mine])
        self.count[numbers[fresh]] = other.count[mine[fresh]]
        place, more = np.zeros((2, other._top), np.int64)
        place[mine], more[mine] = numbers, self.count[numbers] - other.count[mine]
        return place, more

    @property
    def live(self) -> int:
        """How many partitions are known."""
        return self._top - len(self._free)

    @property
    def bytes(self) -> int:
        """Of its arrays, and of the texts of its values."""
        texts = self._terms.text_bytes(self._values[: self._top])
        return self.count.nbytes + self._values.nbytes + self._slots.nbytes + texts

    def held_ids(self) -> tuple[AnyIds, ...]:
        """The values of partitions."""
        return (self._values[: self._top],)

    def values(self, numbers: I64, column: int) -> Ids:
        """One of the values of each of these partitions."""
        held: Ids = self._values[numbers, column]
        return held

    def find(self, values: AnyIds) -> I64:
        """The number of each row's partition, −1 where it has none."""
        return self._find(values)[0]

    def _find(self, values: AnyIds) -> tuple[I64, int]:
        """And how many rows have none."""
        numbers = np.empty(len(values), np.int64)
        return numbers, find_rows(values.astype(np.uint32, order="C"), self._slots, self._values, numbers)

    def own(self, sources: I64, columns: I64, owner: I64) -> int:
        """Put the partition of each event into `owner`; the answer, and parameters, are those of `own_events`."""
        key = np.zeros((1, self._values.shape[1]), np.uint32)
        return int(own_events(sources, columns, self._slots, self._values, key, owner))

    def number(self, values: AnyIds) -> I64:
        """`find`, and new partitions where there are none."""
        numbers, missing = self._find(values)
        if not missing:
            return numbers
        new = _distinct(values[numbers < 0])
        if len(self._free) + len(self.count) - self._top < len(new):
            self._make_room(len(new), numbers)
        fresh = np.array([self._take() for _ in range(len(new))], np.int64)
        self._given += len(fresh)
        self._values[fresh] = new
        self.count[fresh] = 0
        enter_rows(fresh, self._slots, self._values)
        self._runner.begin_partitions(fresh, len(self.count))
        return self.find(values)

    def forget_unused(self, present: I64 | None = None) -> None:
        """Forget partitions of which nothing is remembered, but for those `present`."""
        unused = ~self._runner.partitions_in_use(self._top) & self._forgettable(self._top)
        unused[self._free] = False
        if present is not None:
            unused[present] = False
        self._given, self._look_after = 0, self._runner.records
        gone = np.flatnonzero(unused)
        if len(gone):
            self._values[gone] = 0
            self._free += gone.tolist()
            self._place_all()

    def _take(self) -> int:
        if self._free:
            return self._free.pop()
        self._top += 1
        return self._top - 1

    def _make_room(self, wanted: int, present: I64) -> None:
        """Numbers for so many new partitions: a constant per number given, whatever else is remembered."""
        if self._given >= self._look_after:
            self.forget_unused(present[present >= 0])
        size = len(self.count)
        while len(self._free) + size - self._top < max(wanted, size // 2):
            size *= 2
        self._lengthen(size)

    def _lengthen(self, size: int) -> None:
        if size > len(self.count):
            self.count, self._values = longer(self.count, size), longer(self._values, size)
            self._place_all()

    def _place_all(self) -> None:
        """Make the hash table again."""
        self._slots = np.zeros(slots_for(len(self.count)), SLOT)
        there = _all(self._top)
        there[self._free] = False
        enter_rows(np.flatnonzero(there), self._slots, self._values)


def _distinct(values: AnyIds) -> AnyIds:
    """The distinct rows, ascending."""
    return np.unique(values)[:, None] if values.shape[1] == 1 else np.unique(values, axis=0)
