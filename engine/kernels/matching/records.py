"""What the match kernel reads and writes: tables of the compiled patterns, scratch memory, rows.

The number of columns that is declared is known to the compiler.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from oxiseq.engine.arrays.declared import Arrays, array


class MatchTables(Arrays):
    """The compiled GPMs of one stream. CSR: `x0` starts, `x` members. All C-contiguous and writable."""


predicate = array(MatchTables, "predicate", np.int32)
"""By term id: number of the predicate, 0 none; ids beyond its end are no predicate of a slot."""
slot0 = array(MatchTables, "slot0", np.int32)
slot = array(MatchTables, "slot", np.int32)
"""predicate number → its slots without a constant object; number 0 means none, 1 the slots with a
variable predicate, which every triple is checked against."""
objects = array(MatchTables, "objects", np.int64, 2, columns=2, known=True)
"""[2^h, 2]: (predicate number << 32 | object id, or −1; number of its list), linear probing."""
object0 = array(MatchTables, "object0", np.int32)
object_slot = array(MatchTables, "object_slot", np.int32)
"""List number → the slots with that predicate and constant object."""
with_object = array(MatchTables, "with_object", np.int32)
"""By predicate number: 1 if some slot has it with a constant object."""
slots = array(MatchTables, "slots", np.int64, 2, columns=6, known=True)
"""[slot, 6]: subject, object (0: any), flags, first and last trigger, unused."""
trigger = array(MatchTables, "trigger", np.int32)  # the instances that are looked at when a slot is hit
instance0 = array(MatchTables, "instance0", np.int32)
"""instance → its first pattern; patterns of all instances lie one after the other."""
pattern_slot = array(MatchTables, "pattern_slot", np.int32)
order0 = array(MatchTables, "order0", np.int32)  # pattern → first step of the join order that begins with it
steps = array(MatchTables, "steps", np.int32, 2, columns=7, known=True)
"""[step, 7]: slot, variable in s, p, o (−1 constant), bits bound before (1 s, 2 p, 4 o), first and last filter."""
filters = array(MatchTables, "filters", np.int32, 2, columns=5, known=True)
"""[filter, 5]: program, variable of a quick one (−1: it is not), outcome if below, if above; ladder (−1 none)."""
filter_number = array(MatchTables, "filter_number", np.float64)  # the constant of a quick filter `?v op number`
filter_mask = array(MatchTables, "filter_mask", np.int64)  # the GPMs that have the filter
ladders = array(MatchTables, "ladders", np.int64, 2, columns=5, known=True)
"""[ladder, 5]: variable, mask of all its GPMs, first rung, rungs, the filter that comes after it."""
rung = array(MatchTables, "rung", np.float64)  # constants of the ladders, ascending, one unused at each end
rung_fails = array(MatchTables, "rung_fails", np.int64)
"""Mask of the GPMs whose filters are false for values between the rung before and this one."""
gpm0 = array(MatchTables, "gpm0", np.int32)
gpm = array(MatchTables, "gpm", np.int32)  # instance → its GPMs; the k-th has bit k
column0 = array(MatchTables, "column0", np.int32)
column = array(MatchTables, "column", np.int32)  # GPM → the variables whose ids its rows hold
program0 = array(MatchTables, "program0", np.int32)
code = array(MatchTables, "code", np.int32)  # program → its code
widths = array(MatchTables, "widths", np.int64)
"""Most variables of an instance, most patterns, stack depth, most slots that one triple can hit."""

SUBJECT_OBJECT, SUBJECT_PREDICATE, PREDICATE_OBJECT = 1, 2, 4
"""Flags of a slot: which positions must be equal (a repeated variable)."""
HAS_SUBJECT, HAS_OBJECT = 8, 16
"""Flags of a slot: a constant to be compared; constant objects that the hash has found already are not."""


# places in MatchMemory.state
FIRST: Final = 0
"""The event to begin with; on return the one to go on with."""
ROWS: Final = 1
DOUBTFUL: Final = 2
"""Rows with a flag."""
LIMITS: Final = 3
"""How many pairs of an event and a GPM are beyond a limit."""
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


state = array(MatchMemory, "state", np.int64, rows=STATES)
views = array(MatchMemory, "views", np.int64, 2, rows="slots", columns=4, known=True)
"""[slot, 4]: stamp of the event that filled it, first and last hit, number of hits."""
touched = array(MatchMemory, "touched", np.int64, rows="slots")
hits = array(MatchMemory, "hits", np.int64, 2, rows="hits", columns=5, known=True)
"""[hit, 5]: slot, s, p, o, next hit of the slot (−1 none)."""
chain = array(MatchMemory, "chain", np.int64, 2, rows="hits", columns=3, known=True)
"""[hit, 3]: hash chains: 0 by subject, 1 by object, 2 for finding duplicates."""
head = array(MatchMemory, "head", np.int64, 2, rows="heads", columns=6, known=True)
"""[heads, 6]: first hit of chains 0 to 2, valid for the event with the stamp in columns 3 to 5."""
built = array(MatchMemory, "built", np.int64, 2, rows="slots", columns=2, known=True)
"""[slot, 2]: stamp of the event for which chains 0, 1 hold the slot's hits."""
candidates = array(MatchMemory, "candidates", np.int64, rows="instances")
values = array(MatchMemory, "values", np.int64, rows="variables")  # the variables' term ids
depths = array(MatchMemory, "depths", np.int64, 2, rows="patterns", columns=4, known=True)
"""[depth, 4]: next hit, chain (−1: the slot's own), GPMs alive, GPMs with an undecided filter."""
limits = array(MatchMemory, "limits", np.int64, 2, rows="limits", columns=3, known=True)
"""[n, 3]: an event, a GPM that is beyond a limit there, TOO_MANY_ROWS or TOO_MANY_VISITS; events ascend."""
numbers = array(MatchMemory, "numbers", np.float64, 2, rows="depth", columns=2)
entries = array(MatchMemory, "entries", np.int64, 2, rows="depth", columns=4)  # the stack machine's
memo = array(MatchMemory, "memo", np.uint8, 2, rows=1, columns=1)  # [table, term]
out = array(MatchMemory, "out", np.int64, 2, rows="out", columns=3, known=True)
"""[row, 3]: event, GPM, 1 if a filter was undecided."""
out_values = array(MatchMemory, "out_values", np.uint32, 2, rows="out", columns="width")
event = array(MatchMemory, "event", np.int64, rows="out")
flag = array(MatchMemory, "flag", np.uint8, rows="out")
row_values = array(MatchMemory, "row_values", np.uint32, 2, rows="out", columns="width")  # the same rows, sorted by GPM
row0 = array(MatchMemory, "row0", np.int64, rows="ends")  # GPM → its rows
wanted = array(MatchMemory, "wanted", np.int64, rows="groups")
"""Instance → mask of those of its GPMs whose rows somebody wants."""
