"""Mappings of letters → rows for the sequence kernel and for the row store, in one pass.

In the flow: GPM rows, letter by letter → **rows by instant, then letter** → sequence kernel. The mappings of a
letter lie somewhere in memory in order of instants; they are merged, projected on what the sequence compares and
on what matches need later, and written where both are read.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from oxiseq.engine.arrays.declared import Arrays, array
from oxiseq.engine.kernels.compiling.options import inner, kernel
from oxiseq.engine.kernels.memory.numbers import i64
from oxiseq.engine.kernels.memory.pointed import (
    i64_at,
    u32_at,
)
from oxiseq.engine.kernels.memory.pointers import Array, Ptr
from oxiseq.engine.kernels.sequence import records as v
from oxiseq.engine.kernels.sequence.records import NEVER_CLOSES, Rows

# columns of a source
LETTER, EVENT, VALUES, WIDTH, WHERE, LOW, HIGH, NEXT = range(8)
"""The letter; addresses of i64 events and u32[*, width] values; the address of i64 instants by event (0: they are the
same; -1: the event is in none, and its rows are left out); its rows `low : high`. NEXT is scratch."""

# places in `settings`
FIRST_NUMBER, BY_NUMBER, FIRST_ROW, STORE_AT, EPOCH, EVERY = range(6)
"""The number of the batch's first instant; whether clocks are numbers of instants; the id of the first row, where the
row store puts it, which KB answers it was checked against; whether instants without rows are written, too."""
CLOCKS_AT, INSTANTS_AT, NUMBERS_AT, PARTITIONS_AT = range(6, 10)
"""Addresses of i64 by instant, or 0: its clock, where that is neither its time nor its number; and where instants are
those of partitions, which of the batch's it is part of, its number in its partition, its partition."""
SETTINGS: Final = 10

UNBOUND, THE_PARTITION = -1, -2
"""What a column may be instead of one of a source's: nothing, or the number of the row's partition + 1."""


class RowBlock(Arrays):
    """Rows as the row store has them. epoch: which KB answers they were checked against."""


row_letter = array(RowBlock, "letter", np.int32, rows="rows")
row_time = array(RowBlock, "time", np.int64, rows="rows")  # in µs
_row_clock = array(RowBlock, "clock", np.int64, rows="rows")
row_stored = array(RowBlock, "stored", np.uint32, 2, rows="rows", columns="width")  # term ids
_row_epoch = array(RowBlock, "epoch", np.int32, rows="rows")


class LetterColumns(Arrays):
    """Which column of a letter's source each column of its rows is, UNBOUND or THE_PARTITION."""


_compared = array(LetterColumns, "compared", np.int32, 2)  # by letter and column
_stored = array(LetterColumns, "stored", np.int32, 2)  # by letter and stored variable
_settings = array(LetterColumns, "settings", np.int64)


@inner
def _place(sources: Array, i: int) -> int:
    """The instant of the source's next row, behind those that are in none; after the last one, one that never comes."""
    while sources[i, LOW] < sources[i, HIGH]:
        event = i64_at(sources[i, EVENT], sources[i, HIGH])[sources[i, LOW]]
        here = event if sources[i, WHERE] == 0 else i64_at(sources[i, WHERE], event + 1)[event]
        if here >= 0:
            return here
        sources[i, LOW] += 1
    return i64(NEVER_CLOSES)


@inner
def _open(R: Ptr[Rows], settings: Array, times: Array, here: int, count: int, k: int) -> None:
    """Instant `here` of `count` becomes the k-th that is written."""
    moment = here
    if settings[PARTITIONS_AT] != 0:
        moment = i64_at(settings[INSTANTS_AT], count)[here]
        v.partition(R)[k] = i64_at(settings[PARTITIONS_AT], count)[here]
        v.moment(R)[k] = settings[FIRST_NUMBER] + moment
        v.instant(R)[k] = i64_at(settings[NUMBERS_AT], count)[here]
        v.clock(R)[k] = i64_at(settings[CLOCKS_AT], count)[here]
    else:
        now = settings[FIRST_NUMBER] + here if settings[BY_NUMBER] else times[here]
        if settings[CLOCKS_AT] != 0:
            now = i64_at(settings[CLOCKS_AT], count)[here]
        v.instant(R)[k] = settings[FIRST_NUMBER] + here
        v.clock(R)[k] = now
    v.time(R)[k] = times[moment]


@inner
def _value(found: Array, row: int, column: int, partition: int) -> int:
    """What a row has in a column."""
    if column >= 0:
        return i64(found[row, column])
    return partition if column == THE_PARTITION else i64(0)


@inner
def _set_lengths(R: Ptr[Rows], rows: int, instants: int) -> None:
    """Of the arrays of sequence Rows: four by row, two by instant, `first`, which has one more, and times."""
    lengths = i64_at(R, 33)
    for number in range(4):
        lengths[3 * number + 1] = rows
    for number in range(4, 6):
        lengths[3 * number + 1] = instants
    lengths[3 * 6 + 1] = instants + 1
    lengths[3 * 10 + 1] = instants


@kernel
def write_rows(
    L: Ptr[LetterColumns], R: Ptr[Rows], B: Ptr[RowBlock], sources: Array, times_at: int, moments: int, count: int
) -> int:
    """Merge the sources; returns the number of instants written: those that have rows, or all.

    L: address of LetterColumns; R: of sequence Rows, with room for all rows and instants, whose lengths are set here;
    B: of the row store's RowBlock, with room behind STORE_AT. sources: i64[k, 8], by letter. times_at: the address of
    i64[moments], by instant of the batch; count: how many instants there are, those of partitions if there are some.
    """
    compared, stored, settings = _compared(L), _stored(L), _settings(L)
    times = i64_at(times_at, moments)
    total = 0
    for i in range(sources.shape[0]):
        total += sources[i, HIGH] - sources[i, LOW]
    every = settings[EVERY] == 1
    _set_lengths(R, total, count if every else total)
    letter, values, measures, measure_kinds = v.letter(R), v.values(R), v.measures(R), v.measure_kinds(R)
    clock, first, base, time = v.clock(R), v.first(R), v.base(R), v.time(R)
    kept_letter, kept_time, kept_clock = row_letter(B), row_time(B), _row_clock(B)
    kept, kept_epoch = row_stored(B), _row_epoch(B)
    at, epoch = settings[STORE_AT], settings[EPOCH]
    base[0] = settings[FIRST_ROW]
    for i in range(sources.shape[0]):
        sources[i, NEXT] = _place(sources, i)
    n, k = 0, 0
    while True:
        here = k if every else NEVER_CLOSES
        for i in range(sources.shape[0]):
            here = min(here, sources[i, NEXT])
        if here >= count:
            break
        _open(R, settings, times, here, count, k)
        first[k] = n
        partition = v.partition(R)[k] + 1 if settings[PARTITIONS_AT] != 0 else i64(0)
        for i in range(sources.shape[0]):
            number = sources[i, LETTER]
            while sources[i, NEXT] == here:
                row = sources[i, LOW]
                found = u32_at(sources[i, VALUES], sources[i, HIGH], sources[i, WIDTH])
                letter[n] = number
                for c in range(compared.shape[1]):
                    values[n, c] = _value(found, row, i64(compared[number, c]), partition)
                for m in range(measures.shape[1]):
                    measures[n, m] = 0.0
                    measure_kinds[n, m] = 0
                kept_letter[at + n] = number
                kept_time[at + n] = time[k]
                kept_clock[at + n] = clock[k]
                kept_epoch[at + n] = epoch
                for c in range(kept.shape[1]):
                    kept[at + n, c] = _value(found, row, i64(stored[number, c]), partition)
                n += 1
                sources[i, LOW] = row + 1
                sources[i, NEXT] = _place(sources, i)
        k += 1
    first[k] = n
    _set_lengths(R, n, k)
    return k
