"""Record layouts and numbered scalars of the automaton's kernels."""

from __future__ import annotations

from typing import Final

import numpy as np

from oxiseq.engine.arrays.declared import WHOLE, Arrays, array
from oxiseq.engine.kernels.matches.records import (
    MATCH_NEEDS,
    MATCH_SCALARS,
    MatchMemory,
    finals,
    nodes,
    out_ends,
    out_marks,
    out_rows,
    quotas,
    scalars,
    spine,
    stack,
    weights,
)
from oxiseq.engine.kernels.memory.slots import SLOT, slots_for

MOVE = np.dtype([("marked", "i4"), ("place", "i4"), ("other", "i4"), ("flags", "i4")], align=True)
"""A step of the deterministic automaton: states reached when the event is in D (place > 0) and when it is not;
NONE: nothing can follow."""
NONE = -1
KNOWN, MARKED_ENDS, OTHER_ENDS, OTHER_BEGINS = 1, 2, 4, 8
"""Flags. OTHER_BEGINS: the event may begin a run without being in D."""

LIVE = np.dtype([("maxs", "i8"), ("state", "i4"), ("node", "i4")], align=True)
"""All prefixes of a partition in one state: their node, and the largest start clock below it."""

PART = np.dtype(
    [
        ("clock", "i8"),  # events so far
        ("epoch", "i8"),  # its prefixes are forgotten if an earlier one than the run's
        ("tau", "i8"),  # windows of an attribute (moving.py): what starts before it is forgotten,
        ("gone", "i8"),  # the largest that it has been,
        ("low", "i8"),  # the smallest cut of the events since tau moved,
        ("aged", "i8"),  # how many those are
        ("first", "i4"),  # its block of live records
        ("count", "i4"),
        ("room", "i4"),
        ("restless", "i4"),  # 1: an event that no letter reads changes something
    ],
    align=True,
)
"""A partition."""

(
    LIVE_TOP,  # live records in use, those of blocks left behind included
    AT,  # event in work
    BASE,  # position of the batch's first event
    PHASE,
    CUT,  # what starts before does not match, though it may match later
    SERIAL,  # number of the attempt, which seats are of
    EPOCH,
    WANTED_STATE,
    WANTED_SYMBOL,
    TOUCHED,  # records looked at and made, for tests of complexity
    BEHIND,  # events whose window of an attribute reaches back to what has been forgotten
    SCALARS,
) = range(MATCH_SCALARS, MATCH_SCALARS + 12)

READ, EMIT = range(2)

(
    NEED_LIVE,
    NEED_FRESH,
    NEED_SYMBOL,
    NEED_STATE,
    NEED_PURGE,  # what a partition has forgotten is to be dropped now (moving.py)
) = range(MATCH_NEEDS, MATCH_NEEDS + 5)
"""Why the kernel returned."""

UNBOUNDED, BY_TIME, BY_EVENTS, BY_ATTRIBUTE = range(4)
"""Kinds of window."""
NEVER = -(1 << 63)
"""The clock of an event that cannot begin a match."""
BEFORE_ALL = 1 - (1 << 63)
"""No later than any other clock."""
CANNOT_END = (1 << 63) - 1
"""The cut of an event that cannot end a match: later than any clock."""

(
    KIND,
    SIZE,
    LIMIT,
    CONSUME,
    WORDS,
    STRIDE,
    SYMBOLS,
    CHOOSES,
    DISORDER,
    NOTES,
    SIZES,
) = range(11)
"""Places in Cache.sizes. SIZE: events of a window; LIMIT: matches per event; STRIDE: symbols that there is room
for; SYMBOLS: those that there are; CHOOSES: 1 if a strategy chooses; DISORDER: see moving.py; NOTES: 1 if what
ends is weighed (kernels/matches/weighing.py)."""


KEEP_ALL: Final = {"tau": BEFORE_ALL, "low": CANNOT_END}
"""What a partition has that is not to forget anything for now (moving.py)."""


QUERY = np.dtype([("back", "i8"), ("omitted", "i8")], align=True)
"""A query: how long its window of time is (µs); of several how many events were left out since the last answer."""


class Cache(Arrays):
    """What is known of the queries, and the steps of their automaton that are."""


queries = array(Cache, "queries", QUERY, rows="queries")  # of several each is a partition
sizes = array(Cache, "sizes", np.int64)
moves = array(Cache, "moves", MOVE, rows="states", each="symbols")
"""MOVE[states * STRIDE]; state 0 is before a run begins."""
relevant = array(Cache, "relevant", np.uint64, 2, rows="states", columns="words")
"""Bits that a state's moves depend on."""
step_key = array(Cache, "step_key", np.uint64, 2, rows="steps", columns="key")
"""Of steps that have been made a state and those of its relevant bits that an event has,"""
step_move = array(Cache, "step_move", MOVE, rows="steps")  # and the move
step_slots = array(Cache, "step_slots", SLOT, rows="steps", slots=slots_for)
key = array(Cache, "key", np.uint64, 2, rows=1, columns="key")  # scratch: one that is looked for
restless = array(Cache, "restless", np.int32, rows="states")
seat = array(Cache, "seat", np.int32, rows="states")  # its place in `fresh`, if
seated = array(Cache, "seated", np.int64, rows="states")  # ... it is the attempt's SERIAL
symbols = array(Cache, "symbols", np.uint64, 2, rows="symbols", columns="words")
symbol_slots = array(Cache, "symbol_slots", SLOT, rows="symbols", slots=slots_for)


class Memory(MatchMemory):
    """The running state; it begins as every runner's does."""


parts = array(Memory, "parts", PART, rows="parts", used=WHOLE, fill={"gone": BEFORE_ALL, **KEEP_ALL})
live = array(Memory, "live", LIVE, rows="live", used=LIVE_TOP)
fresh = array(Memory, "fresh", LIVE, rows="fresh")  # LIVE: the partition's new records while an event is in work


class Events(Arrays):
    """A batch."""


symbol = array(Events, "symbol", np.uint64, 2, rows="events", columns="words")
partition = array(Events, "partition", np.int64, rows="events")  # i64[n]; -1: in none
event = array(Events, "event", np.int64, rows="events")
"""Which of the batch's each is: of several queries, an event is one for each that reads it."""
clock = array(Events, "clock", np.int64, rows="events")
"""What starts here has this clock (windows of time and attribute)."""
cut = array(Events, "cut", np.int64, rows="events")
"""What ends here must start at this clock or later (windows of an attribute)."""


class Few(Events):
    """Room for a batch of few events, and what places them in the window."""


attribute = array(Few, "attribute", np.float64, rows="attributes")
"""Values of the window's attribute, NaN: none; empty in other windows."""
kind = array(Few, "kind", np.int64)  # of window
size = array(Few, "size", np.float64)  # of a window of an attribute, and half the step to the next double
double = array(Few, "double", np.float64)  # scratch,
word = array(Few, "word", np.int64)  # the same memory
