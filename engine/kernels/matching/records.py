"""What the match kernel reads and writes: tables of the compiled patterns, scratch memory, rows.

Each group becomes one pointer table (pointers.Pointers); the constants beside the fields are their places in it.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from oxiseq.engine.arrays.declared import Arrays, array


class MatchTables(Arrays):
    """The compiled GPMs of one stream. CSR: `x0` starts, `x` members. All C-contiguous and writable."""


array(MatchTables, "predicate", np.int32)
"""By term id: number of the predicate, 0 none; ids beyond its end are no predicate of a slot."""
array(MatchTables, "slot0", np.int32)
array(MatchTables, "slot", np.int32)
"""predicate number → its slots without a constant object; number 0 means none, the last one the slots
with a variable predicate, which every triple is checked against."""
array(MatchTables, "objects", np.int64, 2)
"""[2^h, 2]: (predicate number << 32 | object id, or −1; number of its list), linear probing."""
array(MatchTables, "object0", np.int32)
array(MatchTables, "object_slot", np.int32)  # list number → the slots with that predicate and constant object
array(MatchTables, "with_object", np.int32)  # by predicate number: 1 if some slot has it with a constant object
array(MatchTables, "slots", np.int64, 2)  # [slot, 6]: subject, object (0: any), flags, first and last trigger, unused
array(MatchTables, "trigger", np.int32)  # the instances that are looked at when a slot is hit
array(MatchTables, "instance0", np.int32)
"""instance → its first pattern; patterns of all instances lie one after the other."""
array(MatchTables, "pattern_slot", np.int32)
array(MatchTables, "order0", np.int32)  # pattern → first step of the join order that begins with it
array(MatchTables, "steps", np.int32, 2)
"""[step, 7]: slot, variable in s, p, o (−1 constant), bits bound before (1 s, 2 p, 4 o), first and last filter."""
array(MatchTables, "filters", np.int32, 2)
"""[filter, 5]: program, variable of a quick one (−1: it is not), outcome if below, if above; ladder (−1 none)."""
array(MatchTables, "filter_number", np.float64)  # the constant of a quick filter `?v op number`
array(MatchTables, "filter_mask", np.int64)  # the GPMs that have the filter
array(MatchTables, "ladders", np.int64, 2)
"""[ladder, 5]: variable, mask of all its GPMs, first rung, rungs, the filter that comes after it."""
array(MatchTables, "rung", np.float64)  # constants of the ladders, ascending, one unused at each end
array(MatchTables, "rung_fails", np.int64)
"""Mask of the GPMs whose filters are false for values between the rung before and this one."""
array(MatchTables, "gpm0", np.int32)
array(MatchTables, "gpm", np.int32)  # instance → its GPMs; the k-th has bit k
array(MatchTables, "column0", np.int32)
array(MatchTables, "column", np.int32)  # GPM → the variables whose ids its rows hold
array(MatchTables, "program0", np.int32)
array(MatchTables, "code", np.int32)  # program → its code
array(MatchTables, "widths", np.int64)
"""Most variables of an instance, most patterns, stack depth, most slots that one triple can hit."""

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


class MatchMemory(Arrays):
    """Scratch arrays that are kept from call to call, and the rows."""


array(MatchMemory, "state", np.int64, rows=STATES)
array(MatchMemory, "views", np.int64, 2, rows="slots", columns=4)
"""[slot, 4]: stamp of the event that filled it, first and last hit, number of hits."""
array(MatchMemory, "touched", np.int64, rows="slots")
array(MatchMemory, "hits", np.int64, 2, rows="hits", columns=5)
"""[hit, 5]: slot, s, p, o, next hit of the slot (−1 none)."""
array(MatchMemory, "chain", np.int64, 2, rows="hits", columns=3)
"""[hit, 3]: hash chains: 0 by subject, 1 by object, 2 for finding duplicates."""
array(MatchMemory, "head", np.int64, 2, rows="heads", columns=6)
"""[heads, 6]: first hit of chains 0 to 2, valid for the event with the stamp in columns 3 to 5."""
array(MatchMemory, "built", np.int64, 2, rows="slots", columns=2)
"""[slot, 2]: stamp of the event for which chains 0, 1 hold the slot's hits."""
array(MatchMemory, "candidates", np.int64, rows="instances")
array(MatchMemory, "values", np.int64, rows="variables")  # the variables' term ids
array(MatchMemory, "depths", np.int64, 2, rows="patterns", columns=4)
"""[depth, 4]: next hit, chain (−1: the slot's own), GPMs alive, GPMs with an undecided filter."""
array(MatchMemory, "written", np.int64, rows="gpms")  # rows of each GPM on the present event
array(MatchMemory, "numbers", np.float64, 2, rows="depth", columns=2)
array(MatchMemory, "entries", np.int64, 2, rows="depth", columns=4)  # the stack machine's
array(MatchMemory, "memo", np.uint8, 2, rows=1, columns=1)  # [table, term]
array(MatchMemory, "out", np.int64, 2, rows="out", columns=3)  # [row, 3]: event, GPM, 1 if a filter was undecided
array(MatchMemory, "out_values", np.uint32, 2, rows="out", columns="width")
array(MatchMemory, "event", np.int64, rows="out")
array(MatchMemory, "flag", np.uint8, rows="out")
array(MatchMemory, "row_values", np.uint32, 2, rows="out", columns="width")  # the same rows, sorted by GPM
array(MatchMemory, "row0", np.int64, rows="ends")  # GPM → its rows
array(MatchMemory, "wanted", np.int64, rows="groups")  # instance → mask of those of its GPMs whose rows somebody wants

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
