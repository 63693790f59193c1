"""BIND: rows with a value behind them that depends on some of their columns, and is known for each of these."""

from __future__ import annotations

import numpy as np

from oxiseq.engine.arrays.declared import Arrays, array
from oxiseq.engine.kernels.compiling.options import kernel
from oxiseq.engine.kernels.flow import buffers
from oxiseq.engine.kernels.flow.buffers import DONE, NEED_OUT, Delta
from oxiseq.engine.kernels.flow.copying import copy_row
from oxiseq.engine.kernels.memory.hashing import key_tag, row_tag
from oxiseq.engine.kernels.memory.pointers import Ptr
from oxiseq.engine.kernels.memory.slots import SLOT, find_key, put_slot, slots_for

NEED_VALUE = 4
"""More that the kernel answers: it wants to know (`learn`) the value of the first row that it has not written."""


class Extending(Arrays):
    """Values that are known."""


count = array(Extending, "count", np.int64, rows=1)  # how many
_places = array(Extending, "places", np.int64)  # the columns that the value depends on
_slots = array(Extending, "slots", SLOT, rows="values", slots=slots_for)  # a value that is known
_keys = array(Extending, "keys", np.uint32, 2, rows="values", columns="width")
_values = array(Extending, "values", np.uint32, rows="values")  # ids, 0 for none


@kernel
def extend(E: Ptr[Extending], IN: Delta, OUT: Delta) -> int:
    """Write the rows of a delta with their values."""
    rows, top, room, made = buffers.rows(IN), buffers.count(OUT), buffers.at(OUT).shape[0], buffers.rows(OUT)
    width = rows.shape[1]
    for i in range(top[0], buffers.count(IN)[0]):
        tag = key_tag(rows, i, 0, _places(E), _places(E), 0, 0)
        known = find_key(_slots(E), tag, _keys(E), rows, i, _places(E))
        if known < 0:
            return NEED_VALUE
        if i == room:
            return NEED_OUT
        copy_row(IN, i, OUT, i)
        made[i, width] = _values(E)[known]
        top[0] = i + 1
    return DONE


@kernel
def learn(E: Ptr[Extending], IN: Delta, i: int, value: int) -> None:
    """The value of row `i` of a delta, which is not known; there is room."""
    places, keys, rows, known = _places(E), _keys(E), buffers.rows(IN), count(E)
    for c in range(places.shape[0]):
        keys[known[0], c] = rows[i, places[c]]
    _values(E)[known[0]] = value
    put_slot(_slots(E), key_tag(rows, i, 0, places, places, 0, 0), known[0])
    known[0] += 1


@kernel
def fill_slots(E: Ptr[Extending]) -> None:
    """Enter all values in a table that is empty."""
    keys = _keys(E)
    for known in range(count(E)[0]):
        put_slot(_slots(E), row_tag(keys, known, 0, keys.shape[1]), known)
