"""FILTER: rows for which the stack machine says that all conditions hold. BIND: rows with a value behind them that
depends on some of their columns, and is known for each of these.
"""

from __future__ import annotations

import numpy as np

from oxiseq.engine.arrays.declared import Arrays, array
from oxiseq.engine.kernels.compiling.options import inner, kernel
from oxiseq.engine.kernels.expressions.machine import TRUE, UNDECIDED, truth
from oxiseq.engine.kernels.flow import buffers
from oxiseq.engine.kernels.flow.buffers import DONE, NEED_OUT, Delta
from oxiseq.engine.kernels.flow.copying import copy_row
from oxiseq.engine.kernels.memory.hashing import key_tag, row_tag
from oxiseq.engine.kernels.memory.pointers import Ptr
from oxiseq.engine.kernels.memory.slots import SLOT, find_key, put_slot, slots_for
from oxiseq.engine.kernels.terms import table as worth
from oxiseq.engine.kernels.terms.table import Terms

# --- conditions ------------------------------------------------------------------------------------


NEED_DECISION = 4
"""More that the kernel answers: Python is to decide about the row `next`, and may go on from there."""


class Sifting(Arrays):
    """Conditions."""


next_row = array(Sifting, "next", np.int64)  # i64[1]: the row that comes next; 0 between batches
_ends = array(Sifting, "ends", np.int64)  # i64[conditions + 1]: where the program of each begins in `code`
_code = array(Sifting, "code", np.int32)
values = array(Sifting, "values", np.int64)  # i64[columns + 1]: the ids of a row, and 0
_numbers = array(Sifting, "numbers", np.float64, 2)
_machine = array(Sifting, "machine", np.int64, 2)  # the stack machine's scratch
_memo = array(Sifting, "memo", np.uint8, 2)  # u8[1, 1]: no program looks into it


@kernel
def sift(S: Ptr[Sifting], D: Terms, IN: Delta, OUT: Delta) -> int:
    """Write the rows of a delta that pass. D: the dictionary (kernels/terms/table.py)."""
    following, rows, row = next_row(S), buffers.rows(IN), values(S)
    top, room = buffers.count(OUT), buffers.at(OUT).shape[0]
    for i in range(following[0], buffers.count(IN)[0]):
        for c in range(rows.shape[1]):
            row[c] = rows[i, c]
        outcome = _outcome(S, D)
        if outcome == UNDECIDED or (outcome == TRUE and top[0] == room):
            following[0] = i
            return NEED_DECISION if outcome == UNDECIDED else NEED_OUT
        if outcome == TRUE:
            copy_row(IN, i, OUT, top[0])
            top[0] += 1
    following[0] = 0
    return DONE


@inner
def _outcome(S: Ptr[Sifting], D: Terms) -> int:
    """TRUE if all conditions hold; else the first other outcome."""
    for number in range(_ends(S).shape[0] - 1):
        outcome = outcome_of(S, D, number)
        if outcome != TRUE:
            return outcome
    return TRUE


@inner
def outcome_of(S: Ptr[Sifting], D: Terms, number: int) -> int:
    """Of one condition on `values`."""
    return truth(
        _code(S),
        _ends(S)[number],
        _ends(S)[number + 1],
        values(S),
        worth.kind(D),
        worth.number(D),
        worth.exact(D),
        worth.quality(D),
        _memo(S),
        _numbers(S),
        _machine(S),
    )


# --- values ----------------------------------------------------------------------------------------


NEED_VALUE = 4
"""More that the kernel answers: it wants to know (`learn`) the value of the first row that it has not written."""


class Extending(Arrays):
    """Values that are known."""


_count = array(Extending, "count", np.int64, rows=1)  # how many
_places = array(Extending, "places", np.int64)  # the columns that the value depends on
_known_slots = array(Extending, "slots", SLOT, rows="values", slots=slots_for)  # a value that is known
_keys = array(Extending, "keys", np.uint32, 2, rows="values", columns="width")
_known_values = array(Extending, "values", np.uint32, rows="values")  # ids, 0 for none


@kernel
def extend(E: Ptr[Extending], IN: Delta, OUT: Delta) -> int:
    """Write the rows of a delta with their values."""
    rows, top, room, made = buffers.rows(IN), buffers.count(OUT), buffers.at(OUT).shape[0], buffers.rows(OUT)
    width = rows.shape[1]
    for i in range(top[0], buffers.count(IN)[0]):
        tag = key_tag(rows, i, 0, _places(E), _places(E), 0, 0)
        known = find_key(_known_slots(E), tag, _keys(E), rows, i, _places(E))
        if known < 0:
            return NEED_VALUE
        if i == room:
            return NEED_OUT
        copy_row(IN, i, OUT, i)
        made[i, width] = _known_values(E)[known]
        top[0] = i + 1
    return DONE


@kernel
def learn(E: Ptr[Extending], IN: Delta, i: int, value: int) -> None:
    """The value of row `i` of a delta, which is not known; there is room."""
    places, keys, rows, known = _places(E), _keys(E), buffers.rows(IN), _count(E)
    for c in range(places.shape[0]):
        keys[known[0], c] = rows[i, places[c]]
    _known_values(E)[known[0]] = value
    put_slot(_known_slots(E), key_tag(rows, i, 0, places, places, 0, 0), known[0])
    known[0] += 1


@kernel
def fill_slots(E: Ptr[Extending]) -> None:
    """Enter all values in a table that is empty."""
    keys = _keys(E)
    for known in range(_count(E)[0]):
        put_slot(_known_slots(E), row_tag(keys, known, 0, keys.shape[1]), known)
