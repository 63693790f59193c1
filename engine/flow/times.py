"""Times in rows: an i64 as two raw columns (operators.md, 2.1), and what is saved and held of rows that have some.

The upper half comes first. Its sign is turned, so that the halves, read as unsigned numbers one after the other, stand
in the order of the times.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from oxiseq.engine.flow.delta import I64, Ids
from oxiseq.engine.terms.saved import KnownTerms, SavedTerms

_TURNED: Final = np.uint64(1 << 63)
_HALF: Final = np.uint64(32)
LATEST: Final = np.iinfo(np.int64).max
NO_START: Final = 1 << 62
NO_END: Final = -(1 << 62)
"""Of a row without a time: its start lies behind its end, and it changes no hull."""


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


def saved_rows(rows: Ids, raw: Sequence[int], terms: SavedTerms) -> Ids:
    """Rows for a saved state, which names their terms."""
    terms.ids(ids_in(rows, raw))
    return rows


def known_rows(rows: Ids, raw: Sequence[int], terms: KnownTerms) -> Ids:
    """Rows of a saved state, with ids of this dictionary; C-contiguous."""
    if not raw:
        return np.ascontiguousarray(terms.ids(rows))
    found = np.array(rows, np.uint32)
    places = [i for i in range(rows.shape[1]) if i not in raw]
    found[:, places] = terms.ids(found[:, places])
    return found
