"""Rows counted and added up by group.

The kernel (kernels/flow/grouping.py) does it all, but for numbers that have too many digits for it, decimals among
doubles, and the texts of GROUP_CONCAT: for those it calls back, group by group.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, Literal

import numpy as np

from oxiseq.engine.flow.delta import I64, Buffer, Ids
from oxiseq.engine.flow.operators.group_values import Exact, Kept, Listed, Numbers, result
from oxiseq.engine.flow.operators.node import Call, Node
from oxiseq.engine.kernels.flow import groups as g
from oxiseq.engine.kernels.flow.buffers import DONE, NEED_OUT, NEED_ROOM
from oxiseq.engine.kernels.flow.grouping import NEED_TERMS, STRANGE, group
from oxiseq.engine.kernels.flow.results import SCRATCH
from oxiseq.engine.kernels.memory.growing import longer
from oxiseq.engine.kernels.memory.pointers import Replaceable, call
from oxiseq.engine.kernels.memory.slots import SLOT, slots_for
from oxiseq.engine.terms.dictionary import TermDictionary
from oxiseq.engine.terms.saved import KnownTerms, SavedTerms, State
from oxiseq.grammar.records import dataclass


@dataclass(frozen=True, slots=True)
class Sum:
    """An aggregate of a group that is a sum: COUNT of rows (`place` None) or of bound values, SUM, AVG; or all its
    values (GROUP_CONCAT, which are written in term order)."""

    name: Literal["COUNT", "SUM", "AVG", "GROUP_CONCAT"]
    place: int | None
    separator: str = " "


@dataclass(frozen=True, slots=True)
class Group:
    """A row for each group: its key, unbound being a value like others, then its sums, unbound where SPARQL has an
    error. Without keys there is one group, also of no rows, from the first tick on."""

    child: int
    key: tuple[int, ...]
    sums: tuple[Sum, ...]


_WHAT: Final = {"SUM": g.TOTAL, "AVG": g.MEAN, "GROUP_CONCAT": g.ASKED}
_TERMS_MORE: Final = 256
"""Results that there is made room for at once."""
_TEXT_MORE: Final = SCRATCH + 64 * _TERMS_MORE
_SHRINK_FROM: Final = 1 << 12
"""Rows of groups, and accumulators, from which on the memory shrinks when most of them are free."""
_SHRINK_AT: Final = 8
_ROOMS: Final = {g.FOR_GROUPS: "groups", g.FOR_WIDES: "wides", g.FOR_TOUCHED: "touched"}


class GroupNode(Node):
    """By key the sums of its rows. `room`: for how many groups there is memory to begin with."""

    def __init__(self, form: Group, child: Buffer, terms: TermDictionary, room: int = 16) -> None:
        super().__init__(len(form.key) + len(form.sums), (child,))
        self._terms = terms
        self._key = list(form.key)
        self._results = g.KEY + len(form.key)
        self._first_value = self._results + len(form.sums)
        self._first: int | None = None
        self._sums = form.sums
        added = [s for s in form.sums if s.place is not None and s.name != "GROUP_CONCAT"]
        self._added = tuple(dict.fromkeys(s.place for s in added if s.place is not None))
        numbers = {s.place for s in added if s.name != "COUNT"}
        self._numbers = {place: Numbers(place, terms) for place in self._added if place in numbers}
        self._listed = {
            s.place: Listed(s.place, terms) for s in form.sums if s.place is not None and s.name == "GROUP_CONCAT"
        }
        self._seen = 0
        """Rows of the batch that are in the kept values."""
        self._allocate(form, numbers, room)

    def _allocate(self, form: Group, numbers: set[int | None], room: int) -> None:
        values = np.array([(place, place in numbers) for place in self._added], g.VALUE)
        memory = g.GroupMemory.allocate(
            groups=room,
            words=self._first_value + g.VALUE_WORDS * len(values),
            touched=room,
            wides=1 + len(values),
            sums=len(form.sums),
            scratch=SCRATCH,
        )
        memory.scalars[[g.FREE, g.ANSWER]] = -1
        memory.scalars[g.WIDE_TOP] = 1
        sums = np.array([self._summed(s) for s in form.sums], g.SUMMED)
        self._memory = memory._replace(key=np.array(form.key, np.int64), values=values, sums=sums)
        self._table = Replaceable(self._memory)

    def _summed(self, each: Sum) -> tuple[int, int]:
        """What the kernel knows of a sum, and which value it is of."""
        if each.name == "COUNT":
            return (g.ROWS, 0) if each.place is None else (g.VALUES, self._added.index(each.place))
        value = 0 if each.place is None or each.name == "GROUP_CONCAT" else self._added.index(each.place)
        return _WHAT[each.name], value

    def _point(self, memory: g.GroupMemory) -> None:
        self._memory = memory
        self._table.set(memory)

    # --- the run ------------------------------------------------------------------------------------

    def begin(self, tick: int) -> bool:
        if not self._key and not self.records:  # one that is restored has its row
            self._first = tick
        return self._first is not None

    def step(self) -> None:
        given = self.inputs[0]
        if self._first is not None:
            self._begin_group(self._first)
            self._first = None
        elif not len(given):
            return
        self.go_on(call(group, self._table, self._terms, given, self.out))
        self.tidy()

    def call(self) -> Call | None:
        if self._listed:
            return None
        return Call(group, (self._table, self._terms, self.inputs[0], self.out))

    def go_on(self, answer: int) -> None:
        terms, given, out = self._terms, self.inputs[0], self.out
        while answer not in (DONE, STRANGE):
            if answer == NEED_OUT:
                out.grow()
            elif answer == NEED_ROOM:
                self._grow()
            elif answer == NEED_TERMS:
                terms.reserve(_TERMS_MORE, _TEXT_MORE)
            else:
                self._memory.scalars[g.ANSWER] = self._answer()
            answer = call(group, self._table, terms, given, out)
        if self._listed or answer == STRANGE:
            self._catch_up(len(given))
            self._seen = 0
            self._memory.scalars[g.STRANGE_ROWS] = 0

    def tidy(self) -> None:
        if len(self._memory.cells) > _SHRINK_FROM or len(self._memory.wides) > _SHRINK_FROM:
            self._shrink()

    def _begin_group(self, tick: int) -> None:
        """The group of all rows, which has its row at the first tick."""
        scalars, cells, touched = self._memory.scalars, self._memory.cells, self._memory.touched
        scalars[[g.TOP, g.LIVE, g.TOUCHED]] = 1
        scalars[g.TICK] = tick
        cells[0, g.STATE] = g.TOUCHED_BIT
        touched[0] = 0
        call(g.fill_slots, self._table)

    def _grow(self) -> None:
        """Twice the room where the kernel needs it."""
        wanted = int(self._memory.scalars[g.WANTED])
        self._point(self._memory.grow(_ROOMS[wanted]))
        if wanted == g.FOR_GROUPS:
            call(g.fill_slots, self._table)

    @property
    def records(self) -> int:
        return int(self._memory.scalars[g.LIVE])

    @property
    def bytes(self) -> int:
        return self._memory.bytes + sum(kept.size for kept in self._kept)

    # --- called back by the kernel ------------------------------------------------------------------

    @property
    def _kept(self) -> tuple[Kept, ...]:
        return *self._numbers.values(), *self._listed.values()

    def _answer(self) -> int:
        """The result of a sum of a group."""
        scalars = self._memory.scalars
        self._catch_up(int(scalars[g.ROW]))
        e = int(self._memory.touched[scalars[g.GROUP]])
        cells = self._memory.cells[e]
        each = self._sums[int(scalars[g.SUM])]
        key = cells[g.KEY : self._results].astype(np.uint32).tobytes()
        assert each.place is not None
        if each.name == "GROUP_CONCAT":
            return self._listed[each.place].text(key, each.separator)
        at = self._first_value + g.VALUE_WORDS * self._added.index(each.place)
        words = cells[at : at + g.VALUE_WORDS]
        exact = Exact.of(words, self._memory.wides[words[g.WIDE]], self._numbers[each.place].total(key))
        term = result(exact, mean=each.name == "AVG")
        return 0 if term is None else self._terms.intern(term)

    def _catch_up(self, row: int) -> None:
        """Take the batch's values up to a row, as far as they are kept here."""
        if row == self._seen or not (self._listed or self._memory.scalars[g.STRANGE_ROWS]):
            return
        delta = self.inputs[0].delta
        some = slice(self._seen, row)
        keys = np.ascontiguousarray(delta.rows[some][:, self._key])
        kept = self._kept if self._memory.scalars[g.STRANGE_ROWS] else tuple(self._listed.values())
        for each in kept:
            each.take(keys, delta.rows[some, each.place], delta.weight[some])
        self._seen = row

    # --- its saved state ------------------------------------------------------------------------------

    @property
    def _live(self) -> I64:
        """The rows of groups."""
        top = int(self._memory.scalars[g.TOP])
        return np.flatnonzero(self._memory.cells[:top, g.STATE] >= 0)

    def held_ids(self) -> Iterable[Ids]:
        top = int(self._memory.scalars[g.TOP])
        yield self._memory.cells[:top, g.KEY : self._first_value]
        for listed in self._listed.values():
            yield listed.ids()

    def _taken(self) -> tuple[I64, I64]:
        """The groups' cells, and their accumulators in the order in which they are numbered there, from 1 on."""
        cells = self._memory.cells[self._live]
        rows = [np.zeros(1, np.int64)]
        count = 1
        for at in self._wide_words:
            some = np.flatnonzero(cells[:, at])
            rows.append(cells[some, at].copy())
            cells[some, at] = np.arange(count, count + len(some))
            count += len(some)
        return cells, self._memory.wides[np.concatenate(rows)]

    @property
    def _wide_words(self) -> list[int]:
        """Where in a group's cells its accumulators are named."""
        return [self._first_value + g.VALUE_WORDS * i + g.WIDE for i in range(len(self._added))]

    def _put(self, cells: I64, wides: I64) -> None:
        """Hold these instead."""
        memory = self._memory
        scalars = memory.scalars
        scalars[[g.TOP, g.LIVE]] = len(cells)
        scalars[g.FREE], scalars[g.WIDE_FREE] = -1, 0
        scalars[[g.WIDE_TOP, g.WIDE_LIVE]] = len(wides), len(wides) - 1
        room = max(2 * len(cells), 16)
        self._point(
            memory._replace(
                cells=longer(cells, room),
                slots=np.zeros(slots_for(room), SLOT),
                touched=np.zeros(16, np.int64),
                wides=longer(wides, 2 * len(wides) + len(self._added)),
            )
        )
        call(g.fill_slots, self._table)

    def _shrink(self) -> None:
        """Give memory back of which hardly any is used."""
        scalars = self._memory.scalars
        groups, wides = int(scalars[g.LIVE]), int(scalars[g.WIDE_LIVE])
        if _is_empty(groups, len(self._memory.cells)) or _is_empty(wides, len(self._memory.wides)):
            self._put(*self._taken())

    def save(self, terms: SavedTerms) -> State:
        cells, wides = self._taken()
        terms.ids(cells[:, g.KEY : self._first_value])
        kept = [kept.save(terms) for kept in self._kept]
        return {"groups": cells, "wides": wides, "first": self._first, "kept": kept}

    def restore(self, state: State, terms: KnownTerms) -> None:
        cells = state["groups"].astype(np.int64)
        if cells.shape[1:] != self._memory.cells.shape[1:] or len(state["kept"]) != len(self._kept):
            raise ValueError("the state of another group")
        ids = slice(g.KEY, self._first_value)
        cells[:, ids] = terms.ids(cells[:, ids])
        self._put(cells, state["wides"].astype(np.int64))
        for kept, saved in zip(self._kept, state["kept"], strict=True):
            kept.restore(saved, terms)
        self._first = state["first"]


def _is_empty(used: int, room: int) -> bool:
    return room > _SHRINK_FROM and used * _SHRINK_AT < room
