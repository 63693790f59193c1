"""Ranks of rows at work: ORDER BY with LIMIT and OFFSET, MIN, MAX, SAMPLE, FIRST, LAST (operators.md, 3.5)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

import numpy as np

from oxiseq.engine.flow.delta import I64, Buffer, Delta, Ids
from oxiseq.engine.flow.operators.node import Call, OfRows
from oxiseq.engine.flow.times import ids_in
from oxiseq.engine.kernels.flow import rank_records as k
from oxiseq.engine.kernels.flow.buffers import NEED_ORDER
from oxiseq.engine.kernels.flow.ranking import fill_slots, rank
from oxiseq.engine.kernels.memory.pointers import Replaceable, call
from oxiseq.engine.terms.dictionary import TermDictionary
from oxiseq.engine.terms.order import TermOrder
from oxiseq.engine.terms.saved import unsaved
from oxiseq.grammar.records import dataclass


@dataclass(frozen=True, slots=True)
class Rank:
    """A column to order by, as ORDER BY does."""

    place: int
    descending: bool = False


def by_time(place: int, latest: bool) -> tuple[Rank, Rank]:
    """The order of a time, which is two raw columns."""
    return Rank(place, latest), Rank(place + 1, latest)


@dataclass(frozen=True, slots=True)
class Best:
    """By key the rows of the ranks [start, stop), or (`ties`) all that are equal to the first in `order`. Ranks go by
    `order`, then by the other columns, in term order, so that they are a function of what there is. A row of weight 3
    has three ranks. stop None: to the end."""

    child: int
    key: tuple[int, ...]
    order: tuple[Rank, ...]
    start: int = 0
    stop: int | None = None
    ties: bool = False


_MOST_RANKS: Final = 1 << 62
_SHRINK_FROM: Final = 4096
"""Entries from which on memory that is mostly empty is returned."""
_MOSTLY: Final = 8


class BestNode(OfRows):
    """By key the rows of some ranks, or all that are equal to the first. It keeps all rows of its input."""

    made_of = (unsaved("_memory.arrays"),)
    _saved_as = "rows", "weight", "told"

    def __init__(self, form: Best, child: Buffer, terms: TermDictionary, order: TermOrder, room: int = 16) -> None:
        """room: for how many rows to begin with."""
        super().__init__(child.width, (child,))
        self._form = form
        self._terms = terms
        self._order = order
        self._least = room
        self._bounds = _bounds(form)
        self._sequence = _sequence(form, child.width, child.raw)
        self._memory = Replaceable(self._empty(room, room))

    def _empty(self, entries: int, groups: int) -> k.RankMemory:
        form, borders = self._form, len(self._bounds)
        memory = k.RankMemory.allocate(
            entries=entries, groups=groups, borders=borders, width=self.out.width, key=len(form.key)
        )
        scalars = memory.scalars
        scalars[[k.FREE, k.GROUP_FREE, k.LISTED, k.CHANGED]] = k.LAST
        scalars[k.ORDERED] = len(form.order)
        scalars[k.TIES] = form.ties
        scalars[k.ENDLESS] = form.stop is None and not form.ties
        scalars[k.STARTS] = form.start > 0 and not form.ties
        return memory._replace(place=np.array(form.key, np.int64), sequence=self._sequence, bounds=self._bounds)

    @property
    def steps(self) -> int:
        """How many times two rows have been compared."""
        return int(self._memory.arrays.scalars[k.STEPS])

    @property
    def records(self) -> int:
        return int(self._memory.arrays.scalars[k.COUNT])

    def call(self) -> Call:
        return Call(rank, (self._memory, self._terms, self._order.pointers, self.inputs[0], self.out))

    def provide(self, answer: int) -> None:
        self._provide(answer, self.inputs[0])

    def step(self) -> None:
        super().step()
        self.tidy()

    def tidy(self) -> None:
        memory = self._memory.arrays
        if len(memory.entries) > max(_MOSTLY * int(memory.scalars[k.COUNT]), _SHRINK_FROM, self._least):
            self._keep(*self._rows())

    def _provide(self, answer: int, source: Buffer) -> None:
        if answer == NEED_ORDER:
            compared = self._sequence[self._sequence[:, 1] < k.BY_NUMBER, 0]
            self._order.prepare(np.ascontiguousarray(source.delta.rows[:, compared]))
        else:
            self._grow()

    def _grow(self) -> None:
        """Twice the room where it is full."""
        memory = self._memory.arrays
        scalars, entries, groups = memory.scalars, len(memory.entries), len(memory.groups)
        memory = memory.grow("entries", 2 * entries if scalars[k.COUNT] >= entries else entries)
        memory = memory.grow("groups", 2 * groups if scalars[k.GROUPS] >= groups else groups)
        self._memory.set(memory)
        call(fill_slots, self._memory)

    # --- its saved state ------------------------------------------------------------------------------

    def _rows(self) -> tuple[Ids, I64, I64]:
        """Rows, their weights, how many copies of each have been emitted."""
        memory = self._memory.arrays
        entries = memory.entries[: int(memory.scalars[k.TOP])]
        live = np.flatnonzero(entries["weight"])
        return memory.rows[live], entries["weight"][live], entries["told"][live]

    def _keep(self, rows: Ids, weight: I64, told: I64) -> None:
        """Keep these and nothing else."""
        self._memory.set(self._empty(max(self._least, 2 * len(rows)), self._least))
        source = Buffer(self.out.width)
        source.put(Delta(np.zeros(len(rows), np.int64), weight, rows))
        scalars = self._memory.arrays.scalars
        scalars[k.SILENT] = 1
        silent, order = Buffer(self.out.width), self._order.pointers
        while need := call(rank, self._memory, self._terms, order, source, silent):
            self._provide(need, source)
        scalars = self._memory.arrays.scalars
        scalars[k.SILENT] = scalars[k.STEPS] = 0
        entries = self._memory.arrays.entries[: len(rows)]
        for e in np.flatnonzero(entries["told"] != told).tolist():
            # blank nodes that have another order than where this was saved: emitted at the end of the next tick
            entries["told"][e], entries["was"][e] = told[e], weight[e]
            entries["chain"][e], scalars[k.LISTED] = scalars[k.LISTED], e

    def held_ids(self) -> Iterable[Ids]:
        yield ids_in(self._memory.arrays.rows[: int(self._memory.arrays.scalars[k.TOP])], self.inputs[0].raw)


def _bounds(form: Best) -> I64:
    """The ranks before which borders lie."""
    if form.ties:
        return np.ones(1, np.int64)
    start, stop = form.start, form.stop
    bounds = [start] if start else []
    if stop is not None:
        bounds.append(max(start, stop))
    return np.array([min(b, _MOST_RANKS) for b in bounds], np.int64)


def _sequence(form: Best, width: int, raw: Sequence[int]) -> I64:
    """What rows are ordered by (`RankMemory.sequence`): `order`, then the other columns, then, where values of `order`
    were equal, by their terms; columns that hold numbers, by these. All rows of a group have the same key."""
    up = [k.BY_NUMBER if c in raw else k.BY_VALUE for c in range(width)]
    down = [k.NUMBER_DOWN if c in raw else k.DOWN for c in range(width)]
    steps = [(r.place, (down if r.descending else up)[r.place]) for r in form.order]
    ordered = dict.fromkeys(r.place for r in form.order)
    if form.ties:  # rows that are equal in `order` need none among them
        return np.array(steps, np.int64).reshape(-1, 2)
    others = [c for c in range(width) if c not in form.key and c not in ordered]
    steps += [(c, k.BY_NUMBER if c in raw else k.BY_TERM) for c in others]
    steps += [(c, k.BY_TERM) for c in sorted(ordered) if c not in form.key and c not in raw]
    return np.array(steps, np.int64).reshape(-1, 2)
