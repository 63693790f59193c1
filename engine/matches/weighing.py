"""The matches that end, by their nodes, as weights: none is listed, and Python sees a batch at a time. One for both
runners (kernels/matches/weighing.py).

In the flow: finals of a batch → **weights** → rows of groups.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from oxiseq.engine.kernels.matches import weighing as w
from oxiseq.engine.kernels.matches import weights as numbers
from oxiseq.engine.kernels.matches.records import DONE, NEED_STACK
from oxiseq.engine.kernels.memory.growing import longer
from oxiseq.engine.kernels.memory.pointers import Pointers, call
from oxiseq.engine.matches.measures import MOST_LIMBS, Measures, new_form, reformed, words_of
from oxiseq.engine.terms.saved import Stateful, unsaved

I64 = NDArray[np.int64]
U64 = NDArray[np.uint64]
_MANY: Final = 1 << 12
"""Labels of least values, beyond which those that nothing has are forgotten."""
_FIRST: Final = 16
"""Rows, and nodes of a path, that there is room for to begin with."""


class Rows(NamedTuple):
    """Rows behind one another. `base`: no earlier one is below a final; `ids`: i64[n, attributes]; `letter`: i32[n],
    None where the places of nodes say what they count with."""

    base: int
    ids: I64
    letter: NDArray[np.int32] | None


ReadRows: TypeAlias = Callable[[int], Rows]
"""The rows from one on, or from `base` on where that is later."""


class NodeWeigher(Stateful):
    """Weighs for one query. `held`: which of `measures` the row of a letter, or at a place, counts with; `rises`:
    what has left the window never comes back."""

    made_of = (unsaved("_measures"),)

    def __init__(self, measures: Measures, held: NDArray[np.bool_], read: ReadRows, *, rises: bool = True) -> None:
        self._measures, self._held, self._read, self._rises = measures, held, read, rises
        self.form = new_form(1, measures)
        self._weights, self._known = np.zeros((0, words_of(self.form)), np.uint64), np.zeros((0, w.KNOWN), np.int64)
        self._stack = np.zeros(_FIRST, np.int64)
        self._begin(0)

    def _begin(self, first: int) -> None:
        """Nothing is known of nodes, nor of rows from `first` on."""
        self._known[:] = 0
        self._first, self._count, self._fresh, self._by_place = first, 0, True, False
        self._values = np.zeros((_FIRST, self._measures.sums + self._measures.leasts), np.int64)
        self._flags, self._letter = np.zeros(_FIRST, np.uint64), np.zeros(_FIRST, np.int32)

    def moved(self) -> None:
        """Nodes have other numbers now."""
        self._known[:] = 0
        self._fresh = True

    def weigh(self, S: Any, finals: I64, cut: I64, at: I64, line: I64) -> U64:
        """The weights of finals, those of a line together, of the form `form`; `at`: a number of the end of each, in
        all batches."""
        if self._measures.measures:
            self._take_rows()
        finals, cut, at, line = map(np.ascontiguousarray, (finals, cut, at, line))
        limbs = int(self.form[numbers.LIMBS])
        while True:
            form = new_form(limbs, self._measures)
            words = words_of(form)
            if not np.array_equal(form, self.form):
                self._weights = reformed(self._weights, self.form, form, np.arange(self.form[numbers.SUMS]))
                self.form = form
            if len(self._weights) < len(S.nodes):
                self._weights, self._known = longer(self._weights, len(S.nodes)), longer(self._known, len(S.nodes))
            one = np.zeros((1, words), np.uint64)
            one[0, :2] = 1
            one[0, words - self._measures.leasts :] = numbers.NO_VALUE
            out = np.zeros((int(line[-1]) + 1, words), np.uint64)
            state = np.array([self._first, self._rises, self._by_place], np.int64)
            rows = self._values, self._flags, self._letter, *self._measures.masks(self._held)
            arrays = w.Weighing(
                state, form, self._known, self._weights, one, *rows, finals, cut, at, line, out, self._stack
            )
            need = call(w.weigh, Pointers(S), Pointers(arrays))
            if need == DONE:
                return out
            if need == NEED_STACK:
                self._stack = longer(self._stack, 2 * len(self._stack))
            else:
                limbs = min(2 * limbs, MOST_LIMBS)

    def _take_rows(self) -> None:
        """Have the columns of the rows that have come since the last time."""
        measures = self._measures
        if self._fresh and measures.labels > _MANY:
            measures.begin()
            self._begin(self._first)
        base, ids, letter = self._read(self._first + self._count)
        columns = measures.of(ids)
        if measures.relabelled() and (self._count or not self._fresh):  # the labels that weights have are others now
            self._begin(base)
            base, ids, letter = self._read(base)
            columns = measures.of(ids)
        self._fresh = False
        skip = base - self._first
        if 2 * skip > self._count:
            kept = max(self._count - skip, 0)
            for array in (self._values, self._flags, self._letter):
                array[:kept] = array[self._count - kept : self._count].copy()
            self._first, self._count = base, kept
        sums, width, count = measures.sums, columns.values.shape[1], self._count + len(ids)
        old = self._values.shape[1] - measures.leasts
        if width > self._values.shape[1]:  # new sums come before the least values
            self._values = np.insert(self._values, [old] * (sums - old), 0, axis=1)
        if count > len(self._flags):
            room = max(count, 2 * len(self._flags))
            self._values, self._flags = longer(self._values, room), longer(self._flags, room)
            self._letter = longer(self._letter, room)
        new = slice(self._count, count)
        self._values[new], self._flags[new] = columns
        self._letter[new] = 0 if letter is None else letter
        self._by_place, self._count = letter is None, count
