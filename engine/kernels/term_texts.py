"""Many terms at a time: texts → ids, ids → texts. `D` is the pointer table of the term table."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numba import carray  # type: ignore[attr-defined]  # Numba does not list it

from oxiseq.engine import kinds
from oxiseq.engine.kernels.options import inner, kernel
from oxiseq.engine.kernels.raw import move, set_byte
from oxiseq.engine.kernels.term_table import ENTRY, find, hashed
from oxiseq.engine.kernels.views import _pointer, _word

_LABEL: Final = 3
"""Bytes of `_:b`, which stands before the serial number of a blank node."""


@kernel
def intern_texts(D: int, data: int, ends: Any, first: int, ids: Any) -> int:
    """Find the ids (u32[n]) of texts `first`, first + 1...; the number of the first that is not known, or n.

    Text i is data[ends[i]:ends[i + 1]]; ends i64[n + 1].
    """
    for i in range(first, ids.shape[0]):
        term = find(D, data, ends[i], ends[i + 1], hashed(data, ends[i], ends[i + 1]))
        if term == 0:
            return i
        ids[i] = term
    return ids.shape[0]


@kernel
def measure_texts(D: int, ids: Any, ends: Any) -> None:
    """Fill `ends` i64[n + 1] with where the text of each id ends; 0, unbound, has an empty text."""
    entries = carray(_pointer(_word(D, 3)), (_word(D, 4),), ENTRY)
    own = carray(_pointer(_word(D, 9)), (_word(D, 10),), np.int32)
    kind = carray(_pointer(_word(D, 12)), (_word(D, 13),), np.uint8)
    exact = carray(_pointer(_word(D, 18)), (_word(D, 19),), np.int64)
    ends[0] = 0
    for i in range(ids.shape[0]):
        term = ids[i]
        length = np.int64(entries[own[term]].length)
        if kind[term] == kinds.BLANK:
            length = _LABEL + digits(exact[term])
        elif kind[term] == kinds.NONE:
            length = 0
        ends[i + 1] = ends[i] + length


@kernel
def write_texts(D: int, ids: Any, ends: Any, out: int) -> None:
    """Write the texts of the ids one after the other, each up to its end, from the address `out` on."""
    entries = carray(_pointer(_word(D, 3)), (_word(D, 4),), ENTRY)
    own = carray(_pointer(_word(D, 9)), (_word(D, 10),), np.int32)
    kind = carray(_pointer(_word(D, 12)), (_word(D, 13),), np.uint8)
    exact = carray(_pointer(_word(D, 18)), (_word(D, 19),), np.int64)
    text = _word(D, 6)
    for i in range(ids.shape[0]):
        term = ids[i]
        if kind[term] == kinds.BLANK:
            write_digits(exact[term], out + ends[i + 1])
            set_byte(out + ends[i], ord("_"))
            set_byte(out + ends[i] + 1, ord(":"))
            set_byte(out + ends[i] + 2, ord("b"))
        else:
            move(out + ends[i], text + entries[own[term]].start, ends[i + 1] - ends[i])


@inner
def digits(number: int) -> int:
    """How many digits a number has that is not negative."""
    count = 1
    while number >= 10:
        number //= 10
        count += 1
    return count


@inner
def write_digits(number: int, end: int) -> None:
    """The digits of a number, the last one before the address `end`."""
    while True:
        end -= 1
        set_byte(end, ord("0") + number % 10)
        number //= 10
        if number == 0:
            return
