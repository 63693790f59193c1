"""Times in rows: an i64 as two raw columns (operators.md, 2.1), and what is saved and held of rows that have some.

The upper half comes first. Its sign is turned, so that the halves, read as unsigned numbers one after the other, stand
in the order of the times.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Sequence
from typing import Any, ClassVar, Final

import numpy as np

from oxiseq.engine.flow.delta import I64, Ids
from oxiseq.engine.terms.dictionary import AnyIds
from oxiseq.engine.terms.saved import KnownTerms, SavedTerms, State, Stateful, numbers

_TURNED: Final = np.uint64(1 << 63)
_HALF: Final = np.uint64(32)
LATEST: Final = np.iinfo(np.int64).max
NEVER: Final = 1 << 62
"""A limit of lengths that none passes."""


def halves_of(times: I64) -> Ids:
    """i64[n] → u32[n, 2]."""
    turned = np.ascontiguousarray(times, np.int64).view(np.uint64) ^ _TURNED
    found = np.empty((len(turned), 2), np.uint32)
    found[:, 0] = turned >> _HALF
    found[:, 1] = turned.astype(np.uint32)
    return found


def times_at(rows: Ids, place: int) -> I64:
    """The times at a place of rows and the one behind it: i64[n]."""
    turned = rows[:, place].astype(np.uint64) << _HALF | rows[:, place + 1]
    return (turned ^ _TURNED).view(np.int64)


# --- rows of which some columns are no ids ----------------------------------------------------------


def ids_in(rows: Ids, raw: Sequence[int]) -> Ids:
    """The columns that are ids."""
    return np.delete(rows, raw, axis=1) if raw else rows


def known_rows(rows: Ids, raw: Sequence[int], terms: KnownTerms) -> Ids:
    """Rows of a saved state, with ids of this dictionary; C-contiguous."""
    if not raw:
        return np.ascontiguousarray(terms.ids(rows))
    found = np.array(rows, np.uint32)
    places = [i for i in range(rows.shape[1]) if i not in raw]
    found[:, places] = terms.ids(found[:, places])
    return found


class HasRows(Stateful):
    """What has rows, of each a weight and perhaps more numbers, and can be made again of them."""

    _saved_as: ClassVar[Sequence[str]] = "rows", "weight"
    """The names of rows and numbers in a saved state."""
    _width: int
    _raw: Sequence[int]
    """Columns that are no ids."""

    @abstractmethod
    def _rows(self) -> tuple[Any, ...]:
        """The rows that are there, a copy, and their numbers, i64[n] each."""

    @abstractmethod
    def _keep(self, rows: Ids, /, *numbers: Any) -> None:
        """Have these and no others."""

    def held_ids(self) -> Iterable[AnyIds]:
        return (ids_in(self._rows()[0], self._raw),)

    def save(self, terms: SavedTerms) -> State:
        return self._saved(self._rows(), terms)

    def _saved(self, rows: tuple[Any, ...], terms: SavedTerms) -> State:
        terms.ids(ids_in(rows[0], self._raw))
        return dict(zip(self._saved_as, rows, strict=True))

    def restore(self, state: State, terms: KnownTerms) -> None:
        rows, *more = [state[name] for name in self._saved_as]
        rows = np.asarray(rows).reshape(len(more[0]), self._width)
        self._keep(known_rows(rows, self._raw, terms), *map(numbers, more))
