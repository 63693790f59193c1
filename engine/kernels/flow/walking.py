"""The chains of an arrangement in which a row may find what agrees with it, one after the other.

A walk can be gone on with where it was. Its place is the beginning of an i64 array: MASK_AT, ENTRY_AT, LINK_AT.
"""

from __future__ import annotations

from typing import Final

from oxiseq.engine.kernels.compiling.options import inner
from oxiseq.engine.kernels.flow import arrangement as v
from oxiseq.engine.kernels.flow.arrangement import LIVE, Arrangement
from oxiseq.engine.kernels.flow.arranging import first_of_chain, link_number
from oxiseq.engine.kernels.memory.hashing import key_tag
from oxiseq.engine.kernels.memory.pointers import WORDS, Array, Ptr
from oxiseq.engine.kernels.memory.slots import fetch_slot

(
    MASK_AT,  # of the entries that are walked
    ENTRY_AT,  # next entry of the chain; -1: no chain is being walked
    LINK_AT,  # number of its links
    PLACES,
) = range(4)
_BY_KEY: Final = WORDS * Arrangement._fields.index("by_key")
_FAR: Final = 1 << 12
"""Entries from which on it pays to fetch memory ahead."""
_AHEAD: Final = 8
"""So many rows."""


@inner
def fetch_ahead(A: Ptr[Arrangement], rows: Array, i: int, count: int, key: Array, loose: Array) -> None:
    """Have memory fetched where a row soon after row `i` of `count` will look."""
    if i + _AHEAD < count and v.seen(A).shape[0] == 1 and v.scalars(A)[LIVE] > _FAR:
        fetch_slot(A, _BY_KEY, key_tag(rows, i + _AHEAD, 0, key, loose, 0, 0))


@inner
def enter_chain(at: Array, A: Ptr[Arrangement], rows: Array, i: int, key: Array, loose: Array, bound: int) -> bool:
    """Begin the chain of the mask at which the walk is, for row `i`, which binds the loose columns `bound`; unless one
    is being walked, or is not needed. False: room is wanted for its links."""
    mask = at[MASK_AT]
    if at[ENTRY_AT] < 0 and v.seen(A)[mask] > 0:
        number = link_number(A, mask, mask & bound)
        if number < 0:
            return False
        at[LINK_AT] = number
        at[ENTRY_AT] = first_of_chain(A, rows, i, key, loose, mask, mask & bound, number)
    return True


@inner
def compatible(rows: Array, i: int, checked: Array, halves: Array, e: int, others: Array) -> bool:
    """Whether a row and an entry agree in the columns at `checked` and `others` where both have a value."""
    for c in range(checked.shape[0]):
        one, other = rows[i, checked[c]], halves[e, v.ROW + others[c]]
        if one != other and one != 0 and other != 0:
            return False
    return True
