"""Ids of the terms that the cells of a table stand for; each distinct cell of a batch is written as a term once."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray
from pyoxigraph import Literal

from oxiseq.engine import kinds
from oxiseq.engine.events.cells import Cells, Coded, cell_terms, is_text
from oxiseq.engine.events.exported import Exported
from oxiseq.engine.events.number_ids import number_ids
from oxiseq.engine.extras import needed
from oxiseq.engine.kernels.cea.rows import find_cells
from oxiseq.engine.kernels.events.arrow import F64
from oxiseq.engine.kernels.matches.numbering import enter_rows, find_rows
from oxiseq.engine.kernels.memory.growing import longer
from oxiseq.engine.kernels.memory.pointers import call
from oxiseq.engine.kernels.memory.slots import SLOT, slots_for
from oxiseq.engine.terms.dictionary import TermDictionary
from oxiseq.engine.terms.saved import Stateful

if TYPE_CHECKING:
    import pyarrow as pa
else:
    pa = needed("pyarrow")

I64: TypeAlias = NDArray[np.int64]
_DENSE: Final = 4
"""Possible keys per row up to which a table of them is faster than sorting,"""
_FEW: Final = 1024
"""and so many more."""
_MOST_KNOWN: Final = 1 << 14
"""Cells whose ids are remembered from batch to batch."""
_KEY: Final = 80
"""Bytes of a cell's key and its id."""


class ColumnIds(Stateful):
    """The ids of one attribute's cells, known by text or number for a while, until ids are freed at the latest."""

    def __init__(self, terms: TermDictionary) -> None:
        self._terms = terms
        self._generation = terms.generation
        self._begin()

    def _begin(self) -> None:
        """Nothing is known."""
        self._texts: dict[str, int] = {}
        self._of_codes = Recent(self._by_code)
        self._numbers: dict[int, _NumberIds] = {}
        """By kind."""

    @property
    def bytes(self) -> int:
        """What it remembers takes about so much."""
        numbers = sum([known.bytes for known in self._numbers.values()])
        return sys.getsizeof(self._texts) + _KEY * len(self._texts) + numbers

    def of(self, cells: Cells, rows: I64 | slice) -> I64:
        """The ids of some rows' terms, 0 where one is missing."""
        if self._generation != self._terms.generation:
            self._generation = self._terms.generation
            self._begin()
        if isinstance(cells, Coded):
            codes = cells.codes[rows]
            if len(cells.values) <= _DENSE * len(codes) + _FEW:
                ids: I64 = self._of_codes.of(cells.values)[codes]
            else:
                used, place = np.unique(codes, return_inverse=True)
                of_used = self._by_code(cells.values.take(_arrow(used[used >= 0])))
                ids = of_used[place - np.count_nonzero(used < 0)]
            return ids
        known = self._numbers.get(cells.kind)
        if known is None or known.full:
            known = self._numbers[cells.kind] = _NumberIds(self._terms, cells.kind)
        found = known.of(cells.values[rows])
        if len(cells.valid):
            found[~cells.valid[rows]] = 0
        return found

    def find(self, array: Exported, place: int, stored: int, values: I64, at: int) -> bool:
        """Whether all numbers of a column are known: then their ids are in `values[:, at]`. The column: as of
        `find_cells`."""
        known = self._numbers.get(kinds.INTEGER if stored < F64 else kinds.DOUBLE)
        if known is None or self._generation != self._terms.generation:
            return False
        return known.find(array, place, stored, values, at)

    def _by_code(self, values: pa.Array) -> I64:
        """i64[values + 1]: their ids; the last one, that of the code -1, is 0."""
        ids = self._of_texts(values.to_pylist()) if is_text(values.type) else self._terms.intern_all(cell_terms(values))
        return np.append(ids, 0).astype(np.int64)

    def _of_texts(self, texts: Sequence[str]) -> I64:
        if len(self._texts) > _MOST_KNOWN:
            self._texts = {}
        known = self._texts
        fresh = [text for text in texts if text not in known]
        if fresh:
            known.update(zip(fresh, self._terms.intern_all(map(Literal, fresh)).tolist(), strict=True))
        return np.array([known[text] for text in texts], np.int64)


class _NumberIds:
    """The ids of numbers of a kind, known by their bits. Those of a batch that are not known are written together."""

    def __init__(self, terms: TermDictionary, kind: int) -> None:
        self._terms, self._kind = terms, kind
        self._count = 0
        self._known, self._ids = np.zeros((_FEW, 2), np.uint32), np.zeros(_FEW, np.int64)
        self._slots = np.zeros(slots_for(_FEW), SLOT)
        self._key = np.zeros((1, 2), np.uint32)

    @property
    def full(self) -> bool:
        """Whether it is time to begin again."""
        return self._count > _MOST_KNOWN

    @property
    def bytes(self) -> int:
        """Of its arrays."""
        return self._known.nbytes + self._ids.nbytes + self._slots.nbytes

    def of(self, values: NDArray[Any]) -> I64:
        """Of i64[n] or f64[n]."""
        if values.dtype == np.float64:
            values = np.where(np.isnan(values), np.nan, values)  # one of them
        rows = np.ascontiguousarray(values).view(np.uint32).reshape(-1, 2)
        numbers = np.empty(len(rows), np.int64)
        if find_rows(rows, self._slots, self._known, numbers):
            self._learn(np.unique(values[numbers < 0].view(np.int64)))
            find_rows(rows, self._slots, self._known, numbers)
        return self._ids[numbers]

    def find(self, array: Exported, place: int, stored: int, values: I64, at: int) -> bool:
        """As of ColumnIds."""
        return not call(find_cells, array, place, stored, self._slots, self._known, self._ids, self._key, values, at)

    def _learn(self, keys: I64) -> None:
        """Numbers that are different and new, by their bits."""
        values = keys if self._kind == kinds.INTEGER else keys.view(np.float64)
        first, count = self._count, self._count + len(keys)
        if count > len(self._ids):
            self._known, self._ids = longer(self._known, 2 * count), longer(self._ids, 2 * count)
            self._slots = np.zeros(slots_for(2 * count), SLOT)
            enter_rows(np.arange(first), self._slots, self._known)
        self._known[first:count] = keys.view(np.uint32).reshape(-1, 2)
        self._ids[first:count] = number_ids(self._terms, self._kind, values)
        self._count = count
        enter_rows(np.arange(first, count), self._slots, self._known)


def _arrow(numbers: NDArray[np.int32]) -> pa.Array:
    """They as an Arrow array. Not `pa.array`, which imports pandas where it is installed."""
    return pa.Array.from_buffers(pa.int32(), len(numbers), [None, pa.py_buffer(numbers)])


class Recent:
    """What was made of an Arrow array, for batches that share it. `make`: array → what is kept by it."""

    def __init__(self, make: Callable[[pa.Array], NDArray[Any]]) -> None:
        self._make = make
        self._memory: list[Any] = []
        self._of: tuple[pa.Array, NDArray[Any]] | None = None
        """Keeps a reference to the array, so that its memory is not reused for another one."""

    def of(self, values: pa.Array) -> NDArray[Any]:
        """The same for the same memory."""
        places = [None if x is None else (x.address, x.size) for x in values.buffers()]
        memory = [values.type, len(values), values.offset, *places]
        if self._of is None or memory != self._memory:
            self._memory, self._of = memory, (values, self._make(values))
        return self._of[1]


def sorted_keys(keys: I64) -> tuple[I64, I64]:
    """The distinct keys, ascending, and the place of each key among them."""
    low = int(keys.min(initial=0))
    bound = int(keys.max(initial=0)) - low + 1
    if bound < 2**62:
        distinct, place = distinct_numbers(keys - low, bound)
        return distinct + low, place
    distinct, place = np.unique(keys, return_inverse=True)
    return distinct, place.astype(np.int64)


def distinct_numbers(keys: I64, bound: int) -> tuple[I64, I64]:
    """`sorted_keys` of keys that are below `bound`, and not negative."""
    if bound > _DENSE * len(keys) + _FEW:
        distinct, inverse = np.unique(keys, return_inverse=True)
        return distinct, inverse.astype(np.int64)
    met = np.zeros(bound, np.bool_)
    met[keys] = True
    distinct = np.flatnonzero(met)
    place = np.zeros(bound, np.int64)
    place[distinct] = np.arange(len(distinct))
    return distinct, place[keys]
