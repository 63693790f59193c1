"""What the match kernel reads and writes: tables of the compiled patterns, scratch memory, rows.

Each group becomes one pointer table (pointers.Pointers); the constants beside the fields are their places in it.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from oxiseq.engine.kernels.memory.pointers import I32, I64


class MatchTables(NamedTuple):
    """The compiled GPMs of one stream. CSR: `x0` starts, `x` members. All C-contiguous and writable."""

    predicate: I32
    """by term id: number of the predicate, 0 none; ids beyond its end are no predicate of a slot"""
    slot0: I32
    slot: I32
    """predicate number → its slots without a constant object; number 0 means none, the last one the slots
    with a variable predicate, which every triple is checked against"""
    objects: I64
    """[2^h, 2]: (predicate number << 32 | object id, or −1; number of its list), linear probing"""
    object0: I32
    object_slot: I32
    """list number → the slots with that predicate and constant object"""
    with_object: I32
    """by predicate number: 1 if some slot has it with a constant object"""
    slots: I64
    """[slot, 6]: subject, object (0: any), flags, first and last trigger, unused"""
    trigger: I32
    """the instances that are looked at when a slot is hit"""
    instance0: I32
    """instance → its first pattern; patterns of all instances lie one after the other"""
    pattern_slot: I32
    order0: I32
    """pattern → first step of the join order that begins with it"""
    steps: I32
    """[step, 7]: slot, variable in s, p, o (−1 constant), bits bound before (1 s, 2 p, 4 o), first and last filter"""
    filters: I32
    """[filter, 5]: program, variable of a quick one (−1: it is not), outcome if below, if above; ladder (−1 none)"""
    filter_number: NDArray[np.float64]
    """the constant of a quick filter `?v op number`"""
    filter_mask: I64
    """the GPMs that have the filter"""
    ladders: I64
    """[ladder, 5]: variable, mask of all its GPMs, first rung, rungs, the filter that comes after it"""
    rung: NDArray[np.float64]
    """constants of the ladders, ascending, one unused at each end"""
    rung_fails: I64
    """mask of the GPMs whose filters are false for values between the rung before and this one"""
    gpm0: I32
    gpm: I32
    """instance → its GPMs; the k-th has bit k"""
    column0: I32
    column: I32
    """GPM → the variables whose ids its rows hold"""
    program0: I32
    code: I32
    """program → its code"""
    widths: I64
    """most variables of an instance, most patterns, stack depth, most slots that one triple can hit"""


(
    T_PREDICATE,
    T_SLOT0,
    T_SLOT,
    T_OBJECTS,
    T_OBJECT0,
    T_OBJECT_SLOT,
    T_WITH_OBJECT,
    T_SLOTS,
    T_TRIGGER,
    T_INSTANCE0,
    T_PATTERN_SLOT,
    T_ORDER0,
    T_STEPS,
    T_FILTERS,
    T_FILTER_NUMBER,
    T_FILTER_MASK,
    T_LADDERS,
    T_RUNG,
    T_RUNG_FAILS,
    T_GPM0,
    T_GPM,
    T_COLUMN0,
    T_COLUMN,
    T_PROGRAM0,
    T_CODE,
    T_WIDTHS,
) = range(26)

SUBJECT_OBJECT, SUBJECT_PREDICATE, PREDICATE_OBJECT = 1, 2, 4
"""Flags of a slot: which positions must be equal (a repeated variable)."""
HAS_SUBJECT, HAS_OBJECT = 8, 16
"""Flags of a slot: a constant to be compared; constant objects that the hash has found already are not."""


class MatchMemory(NamedTuple):
    """Scratch arrays that are kept from call to call, and the rows."""

    state: I64
    views: I64
    """[slot, 4]: stamp of the event that filled it, first and last hit, number of hits"""
    touched: I64
    hits: I64
    """[hit, 5]: slot, s, p, o, next hit of the slot (−1 none)"""
    chain: I64
    """[hit, 3]: hash chains: 0 by subject, 1 by object, 2 for finding duplicates"""
    head: I64
    """[heads, 6]: first hit of chains 0 to 2, valid for the event with the stamp in columns 3 to 5"""
    built: I64
    """[slot, 2]: stamp of the event for which chains 0, 1 hold the slot's hits"""
    candidates: I64
    values: I64
    """the variables' term ids"""
    depths: I64
    """[depth, 4]: next hit, chain (−1: the slot's own), GPMs alive, GPMs with an undecided filter"""
    written: I64
    """rows of each GPM on the present event"""
    numbers: NDArray[np.float64]
    entries: I64
    """the stack machine's"""
    memo: NDArray[np.uint8]
    """[table, term]"""
    out: I64
    """[row, 3]: event, GPM, 1 if a filter was undecided"""
    out_values: NDArray[np.uint32]
    event: I64
    flag: NDArray[np.uint8]
    row_values: NDArray[np.uint32]
    """the same rows, sorted by GPM"""
    row0: I64
    """GPM → its rows"""
    wanted: I64
    """instance → mask of those of its GPMs whose rows somebody wants"""


(
    M_STATE,
    M_VIEWS,
    M_TOUCHED,
    M_HITS,
    M_CHAIN,
    M_HEAD,
    M_BUILT,
    M_CANDIDATES,
    M_VALUES,
    M_DEPTHS,
    M_WRITTEN,
    M_NUMBERS,
    M_ENTRIES,
    M_MEMO,
    M_OUT,
    M_OUT_VALUES,
    M_EVENT,
    M_FLAG,
    M_ROW_VALUES,
    M_ROW0,
    M_WANTED,
) = range(21)

# places in MatchMemory.state
FIRST: Final = 0
"""The event to begin with; on return the one to go on with, or in question."""
ROWS: Final = 1
DOUBTFUL: Final = 2
"""Rows with a flag."""
GPM: Final = 3
"""On TOO_MANY_*: the GPM in question."""
STAMP: Final = 4
NEEDED: Final = 5
"""On NEED_ROOM: hits that one event may have."""
HASH_FROM: Final = 6
MOST_ROWS: Final = 7
MOST_VISITS: Final = 8
GROW_HEADS: Final = 9
STATES: Final = 10
