"""Ids of the terms that the cells of a table stand for; each distinct cell of a batch is parsed once."""

from __future__ import annotations

import sys
from collections.abc import Callable, Hashable, Sequence
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray
from pyoxigraph import Literal

from oxiseq.engine.events.cells import Cells, Coded, cell_terms, is_text
from oxiseq.engine.extras import needed
from oxiseq.engine.terms.dictionary import TermDictionary
from oxiseq.engine.terms.texts import Term

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


class ColumnIds:
    """The ids of one attribute's cells, known by text or number for a while, until ids are freed at the latest."""

    def __init__(self, terms: TermDictionary) -> None:
        self._terms = terms
        self._generation = terms.generation
        self._known: dict[Hashable, int] = {}
        self._of_codes = Recent(self._by_code)

    @property
    def bytes(self) -> int:
        """What it remembers takes about so much."""
        return sys.getsizeof(self._known) + _KEY * len(self._known)

    def of(self, cells: Cells, rows: I64 | slice) -> I64:
        """The ids of some rows' terms, 0 where one is missing."""
        if self._generation != self._terms.generation:
            self._known, self._generation = {}, self._terms.generation
            self._of_codes = Recent(self._by_code)
        if len(self._known) > _MOST_KNOWN:
            self._known = {}
        if isinstance(cells, Coded):
            codes = cells.codes[rows]
            if len(cells.values) <= _DENSE * len(codes) + _FEW:
                ids: I64 = self._of_codes.of(cells.values)[codes]
            else:
                used, place = np.unique(codes, return_inverse=True)
                of_used = self._by_code(cells.values.take(_arrow(used[used >= 0])))
                ids = of_used[place - np.count_nonzero(used < 0)]
            return ids
        values = cells.values[rows]
        if values.dtype == np.float64:
            values = np.where(np.isnan(values), np.nan, values)  # one of them
        keys, place = sorted_keys(values.view(np.int64))
        by_key = zip(keys.tolist(), keys.view(values.dtype).tolist(), strict=True)
        of_key = self._ids([(cells.kind, key, value) for key, value in by_key], lambda key: cells.term(key[2]))
        return np.where(cells.present[rows], of_key[place], 0)

    def _by_code(self, values: pa.Array) -> I64:
        """i64[values + 1]: their ids; the last one, that of the code -1, is 0."""
        known = is_text(values.type)
        ids = self._ids(values.to_pylist(), Literal) if known else self._terms.intern_all(cell_terms(values))
        return np.append(ids, 0).astype(np.int64)

    def _ids(self, keys: Sequence[Any], term: Callable[[Any], Term]) -> I64:
        known = self._known
        for key in keys:
            if key not in known:
                known[key] = self._terms.intern(term(key))
        return np.array([known[key] for key in keys], np.int64)


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
