"""Rows kept for joins: found by their columns, as of each tick of the batch in work (operators.md, 3.1)."""

from __future__ import annotations

from typing import Final

import numpy as np

from oxiseq.engine.errors import LimitError
from oxiseq.engine.flow.delta import I64, Buffer, Delta, Ids
from oxiseq.engine.flow.operators.node import ALL_TIME, Call, KeepsRows, Lifetime, lifetime_scalars
from oxiseq.engine.flow.times import times_at
from oxiseq.engine.kernels.flow import arrangement as k
from oxiseq.engine.kernels.flow.arranging import arrange, fill_by_key, fill_by_row, forget
from oxiseq.engine.kernels.flow.windowing import LIST_HALVES
from oxiseq.engine.kernels.memory.pointers import Addressed, Replaceable, call
from oxiseq.engine.terms.saved import unsaved
from oxiseq.grammar.records import dataclass


@dataclass(frozen=True, slots=True)
class Arrange:
    """Rows kept, to be found by their columns at `key` (unbound being a value like others) and at `loose`, which agree
    where both sides have a value. coming: rows only come; memory: where these cannot be made of facts again, the name
    of the source by which they are passed on, if there is one."""

    child: int
    key: tuple[int, ...]
    loose: tuple[int, ...] = ()
    lifetime: Lifetime | None = None
    coming: bool = False
    memory: str = ""


_LINE: Final = 8
"""Words of a line of the cache."""
_MANY: Final = 1 << 10
"""Listed rows, of which there is one such table for each pattern, from which on room for half as many more is made."""


class ArrangeNode(KeepsRows, Addressed[k.Arrangement]):
    """`out` stays empty: joins read the kept rows, and those of `inputs[0]`. room: rows to begin with; listed: another
    kernel takes them in (kernels/flow/windowing.py), and lists them."""

    made_of = (unsaved("_memory.arrays"),)

    def __init__(
        self, form: Arrange, child: Buffer, room: int = 64, clock: I64 = ALL_TIME, *, listed: bool = False
    ) -> None:
        super().__init__(child.width, (child,))
        self._form = form
        self._least, self._clock = room, clock
        self._listed = listed
        self._link0 = k.ROW + child.width + child.width % 2 + LIST_HALVES * listed
        self._memory = Replaceable(self._allocated(room))
        self.address = self._memory.address
        """Of its memory, for kernels."""

    def call(self) -> Call:
        return Call(arrange, (self._memory, self.inputs[0]))

    def provide(self, answer: int) -> None:
        self.make_room()

    # --- memory -------------------------------------------------------------------------------------

    def _allocated(self, room: int) -> k.Arrangement:
        """Nothing kept."""
        width, (key, loose) = self.inputs[0].width, (self._form.key, self._form.loose)
        by, checked = loose[: k.MOST_LOOSE], loose[k.MOST_LOOSE :]
        # What is listed is looked for in `by_row` whatever the key: a pattern without variables has no columns at all.
        whole, coming = not loose and set(key) == {*range(width)} and not self._listed, self._form.coming
        masks = 1 << len(by)
        memory = k.Arrangement.allocate(
            entries=room, words=_words(self._link0, 1), found=0 if whole or coming else room, chains=room, masks=masks
        )
        scalars = memory.scalars
        scalars[k.WIDTH], scalars[k.WHOLE], scalars[k.COMING] = width, whole, coming
        scalars[k.COUNTED] = self._listed
        scalars[k.SHIFT], scalars[k.LEAST] = len(by), self._least
        scalars[k.LINK0], scalars[k.LINKS] = self._link0, 1
        scalars[[k.FREE, k.DEAD]] = -1
        scalars[[k.CLOCK, k.BEGINS, k.LIMIT]] = lifetime_scalars(self._form.lifetime, self._clock)
        if not by:
            memory.asked[0] = 1  # the chains by key alone are always there
        columns = (np.array(part, np.int64) for part in (key, by, checked))
        return memory._replace(**dict(zip(("key", "loose", "checked"), columns, strict=True)))

    def make_room(self) -> None:
        """What the kernel lacks, if anything. Raises LimitError where entries cannot be numbered any more."""
        memory = self._memory.arrays
        lack, memory.scalars[k.LACK] = int(memory.scalars[k.LACK]), k.NOTHING
        if lack == k.ENTRIES:
            self._more_entries(memory)
        elif lack == k.KEYS:
            self._more_keys(memory)
        elif lack == k.LINKS_EACH:
            self._more_links(memory)
        elif lack == k.LESS:
            self._keep(*self._rows())

    def _more_entries(self, memory: k.Arrangement) -> None:
        half = self._listed and len(memory.words) >= _MANY
        size = len(memory.words) * 3 // 2 if half else 2 * len(memory.words)
        most = 1 << 30 - int(memory.scalars[k.SHIFT])
        if size > most:
            raise LimitError(len(memory.words), most // 2, "rows kept for a join")
        memory = memory.grow("entries", size)
        if memory.scalars[k.WHOLE] or memory.scalars[k.COMING]:
            self._memory.set(memory)
        else:
            self._memory.set(memory.grow("found", size))
            call(fill_by_row, self._memory)

    def _more_keys(self, memory: k.Arrangement) -> None:
        wanted = max(int(memory.scalars[k.WANTED]), len(memory.by_key))
        self._memory.set(memory.grow("chains", wanted))
        call(fill_by_key, self._memory)

    def _more_links(self, memory: k.Arrangement) -> None:
        links = 1 + int(memory.scalars[k.LINKS])
        memory.scalars[k.LINKS] = links
        made = memory.declared["words"].make(len(memory.words), _words(self._link0, links))
        made[:, : memory.words.shape[1]] = memory.words
        self._memory.set(memory._replace(words=made))

    def _keep(self, rows: Ids, weight: I64) -> None:
        """Keep these and no others, all from before the next tick. Those with a lifetime are entered in order of time,
        as they came."""
        lifetime = self._form.lifetime
        if lifetime is not None:
            order = np.argsort(times_at(rows, lifetime.start + 2), kind="stable")
            rows, weight = rows[order], weight[order]
        self._memory.set(self._allocated(max(self._least, 2 * len(rows))))
        kept = Buffer(rows.shape[1], 0)
        kept.put(Delta(np.full(len(rows), k.BEFORE_ALL), weight, rows))
        while call(arrange, self._memory, kept):
            self.make_room()

    def _rows(self) -> tuple[Ids, I64]:
        """The rows that are there, and their weights."""
        memory = self._memory.arrays
        live = np.flatnonzero(memory.words[: memory.scalars[k.TOP], k.DIED] == k.NEVER)
        last = k.ROW + self.inputs[0].width
        return memory.halves[live, k.ROW : last], memory.words[live, k.WEIGHT]

    def forget(self, *, now: bool = False) -> None:
        if self._form.lifetime is not None:
            call(forget, self._memory, int(now))

    # --- facts, and the saved state -----------------------------------------------------------------

    @property
    def kept(self) -> tuple[Ids, I64]:
        """The rows that are there, a copy, and their weights."""
        return self._rows()

    @property
    def records(self) -> int:
        return int(self._memory.arrays.scalars[k.LIVE])


def _words(link0: int, links: int) -> int:
    """Words of an entry: a line of the cache if it fits and would be half of it."""
    words = link0 // 2 + links
    return _LINE if _LINE // 2 < words <= _LINE else words
