"""The mappings of an EVENT definition as rows that come with their item into a window and go with it.

In the flow: mappings found on items, bounds of a window tick by tick → **changes** → a plan's `Given`
(events.py). Items are known by their places in their stream, which grow for ever.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from oxiseq.engine.flow.delta import I64, Delta, Ids
from oxiseq.engine.flow.plan import Given
from oxiseq.engine.flow.times import halves_of, ids_in, known_rows
from oxiseq.engine.kernels.memory.growing import longer
from oxiseq.engine.terms.saved import KnownTerms, SavedTerms, State

_LEAST = 64


class Occurring:
    """The rows of one definition on the items from some place on. form: the source that it feeds."""

    def __init__(self, form: Given) -> None:
        self._raw, self._width = form.raw, form.width
        self._items = len(form.raw) == 4
        self._nothing = Delta.none(self._width)
        self._clear()
        self._start = self._stop = 0
        """Where the window is."""

    def _clear(self) -> None:
        self._count = 0
        self._place = np.zeros(_LEAST, np.int64)
        self._used = np.zeros(_LEAST, np.bool_)
        self._rows = np.zeros((_LEAST, self._width), np.uint32)
        self.going = np.zeros(0, np.int64)
        """Numbers of rows that were used up while in the window, and have not gone yet."""

    def __len__(self) -> int:
        return self._count

    def add(self, place: I64, time: I64, values: Ids) -> None:
        """Mappings of further items, in the order of their places: i64[n], i64[n], u32[n, variables]."""
        if not len(place):
            return
        low, high = self._count, self._count + len(place)
        if high > len(self._place):
            self._resize(max(high, 2 * len(self._place)))
        numbers = [halves_of(time), halves_of(place)] if self._items else [halves_of(time)]
        self._place[low:high], self._used[low:high] = place, False
        self._rows[low:high] = np.concatenate([values, *numbers], axis=1)
        self._count = high

    def _resize(self, size: int) -> None:
        self._place, self._used, self._rows = (longer(a, size) for a in (self._place, self._used, self._rows))

    def move(self, starts: I64, stops: I64, tick: int) -> Delta:
        """Continue with the window, whose rows stay until `forget`. starts, stops: i64[ticks], neither falls: at tick
        `tick` + k it holds the items in the places [starts[k], stops[k])."""
        if self._stays(starts.item(-1), stops.item(-1)):
            return self._nothing
        rows, at, weight = self.changes(starts, stops)
        return Delta(at + tick, weight, self._rows[rows])

    def come_again(self, start: int) -> None:
        """Have the window hold nothing, before it moves from this place on."""
        self._start = self._stop = start

    def _stays(self, start: int, stop: int) -> bool:
        """Moves to the window's position, if no row comes or goes by that."""
        count, first = self._count, self._first()
        if count and (self._place.item(count - 1) >= self._stop or (first < count and self._place.item(first) < start)):
            return False
        self._start, self._stop = start, max(stop, self._stop)
        return True

    def changes(self, starts: I64, stops: I64) -> tuple[I64, I64, I64]:
        """The same: numbers of rows, at which tick from 0 on, ascending, each comes (1) or goes (-1). Those that have
        been used up before do neither. The numbers hold until `forget`."""
        place = self._place[: self._count]
        start, stop = int(starts[-1]), max(int(stops[-1]), self._stop)
        bounds = self._start, min(start, stop), self._stop, stop
        first, out, before, now = place.searchsorted(bounds).tolist()  # rows before these places
        came, leaves = (each.searchsorted(place[before:now], "right") for each in (stops, starts))
        come = np.flatnonzero((came < leaves) & ~self._used[before:now])
        # rows that go were in the window, or come in this batch
        left = starts.searchsorted(place[first:out], "right")
        goes = ~self._used[first:out]
        new = max(first, before)
        both = slice(new - before, max(new, out) - before)
        goes[new - first :] &= came[both] < leaves[both]
        go = np.flatnonzero(goes)
        rows, at = np.concatenate([before + come, first + go]), np.concatenate([came[come], left[go]])
        weight = np.repeat(np.array([1, -1]), (len(come), len(go)))
        self._start, self._stop = start, stop
        if len(at) > 1:
            order = at.argsort(kind="stable")
            rows, at, weight = rows[order], at[order], weight[order]
        return rows, at, weight

    def _first(self) -> int:
        """The first row that is in the window, or comes."""
        return int(self._place[: self._count].searchsorted(self._start))

    def forget(self) -> None:
        """Items that have left the window are not needed."""
        gone = self._first()
        if 2 * gone > self._count:
            self.going -= gone
            kept = slice(gone, self._count)
            parts = self._place[kept], self._used[kept], self._rows[kept]
            self._count -= gone
            room = max(_LEAST, 2 * self._count)
            self._place, self._used, self._rows = (longer(np.ascontiguousarray(part), room) for part in parts)

    @property
    def arrays(self) -> tuple[Ids, I64, NDArray[np.bool_], int]:
        """Of all rows their columns, the places of their items, whether these have been used up, as whoever uses them
        up writes here; and how many of them are in use."""
        return self._rows, self._place, self._used, self._count

    # --- its memory ----------------------------------------------------------------------------------

    @property
    def bytes(self) -> int:
        """How large its arrays are."""
        return self._place.nbytes + self._used.nbytes + self._rows.nbytes

    def held_ids(self) -> Iterable[Ids]:
        """The terms of the mappings."""
        return (ids_in(self._rows[: self._count], self._raw),)

    def save(self, terms: SavedTerms) -> State:
        """All of them, and where the window is."""
        kept = slice(0, self._count)
        terms.ids(*self.held_ids())
        return {
            "rows": self._rows[kept].copy(),
            "place": self._place[kept].copy(),
            "used": self._used[kept].copy(),
            "going": self.going.copy(),
            "window": [self._start, self._stop],
        }

    def restore(self, state: State, terms: KnownTerms) -> None:
        """Continue from a saved state."""
        self._count = count = len(state["place"])
        room = max(_LEAST, count)
        rows = np.asarray(state["rows"]).reshape(count, self._width)
        self._rows = longer(known_rows(rows, self._raw, terms), room)
        self._place = longer(state["place"].astype(np.int64), room)
        self._used = longer(state["used"].astype(np.bool_), room)
        self.going = state["going"].astype(np.int64)
        self._start, self._stop = (int(each) for each in state["window"])
