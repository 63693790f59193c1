"""Row ids of matches → answers, for queries whose columns are variables as their rows bind them."""

from __future__ import annotations

from typing import Final

import numpy as np

from oxiseq.engine.arrays.declared import Arrays, array
from oxiseq.engine.kernels.compiling.options import kernel
from oxiseq.engine.kernels.matches.records import PLACE_BITS
from oxiseq.engine.kernels.memory.pointers import Array, Ptr
from oxiseq.engine.kernels.sequence.letter_rows import RowBlock, row_letter, row_stored, row_time

_PLACE: Final = (1 << PLACE_BITS) - 1


class AnswerColumns(Arrays):
    """What `write_answers` knows of the query."""


_again = array(AnswerColumns, "again", np.int32)  # place → the repeat that begins again there, −1 none
_inside = array(AnswerColumns, "inside", np.uint8, 2)  # by place and repeat: 1 if the place lies in the repeat
_column = array(AnswerColumns, "column", np.int32)  # answer column → stored variable, −1 unbound
_hidden = array(AnswerColumns, "hidden", np.uint8, 2)  # by repeat: scratch


@kernel
def write_answers(
    A: Ptr[AnswerColumns],
    B: Ptr[RowBlock],
    offset: int,
    found: Array,
    ends: Array,
    time: Array,
    values: Array,
    event_letter: Array,
    event_time: Array,
) -> None:
    """MatchBatch's arrays for matches as row ids and places: found i64[f], ends i64[n + 1].

    A: address of AnswerColumns, B: of the row store's RowBlock, in which a row is at its id plus `offset`.
    A variable has its last visible binding (see kernels.paths).
    """
    again, inside, column, hidden = _again(A), _inside(A), _column(A), _hidden(A)
    letter, times, stored = row_letter(B), row_time(B), row_stored(B)
    repeats = inside.shape[1]
    for m in range(ends.shape[0] - 1):
        for c in range(column.shape[0]):
            values[m, c] = 0
        for repeat in range(repeats):
            hidden[repeat, 0] = 0
        for i in range(ends[m + 1] - 1, ends[m] - 1, -1):
            row, place = (found[i] >> PLACE_BITS) + offset, found[i] & _PLACE
            event_letter[i] = letter[row]
            event_time[i] = times[row]
            shown = True
            for repeat in range(repeats):
                if hidden[repeat, 0] != 0 and inside[place, repeat] != 0:
                    shown = False
            if shown:
                for c in range(column.shape[0]):
                    if column[c] >= 0 and values[m, c] == 0:
                        values[m, c] = stored[row, column[c]]
            if again[place] >= 0:
                hidden[again[place], 0] = 1
        time[m] = event_time[ends[m + 1] - 1]
