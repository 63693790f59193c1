"""Record layouts and numbered scalars of the automaton's kernels."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from oxiseq.engine.kernels.matches.records import MATCH_NEEDS, MATCH_SCALARS, begins_with_matches
from oxiseq.engine.kernels.memory.pointers import Array

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
        ("tau", "i8"),  # windows of an attribute (ageing.py): what starts before it is forgotten,
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
    NEED_PURGE,  # what a partition has forgotten is to be dropped now (ageing.py)
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
    COUNTS,
    LEAST,
    TELLS_COUNTS,
    SIZES,
) = range(13)
"""Places in Cache.sizes. SIZE: events of a window; LIMIT: matches per event; STRIDE: symbols that there is room
for; SYMBOLS: those that there are; CHOOSES: 1 if a strategy chooses; DISORDER: see ageing.py; COUNTS: 1 if what ends is
counted (counting.py); fewer than LEAST are ignored; TELLS_COUNTS: 1 if only numbers are wanted."""


class Cache(NamedTuple):
    """The steps of the automaton that are known."""

    sizes: Array  # i64
    moves: Array  # MOVE[states * STRIDE]; state 0 is before a run begins
    relevant: Array  # u64[states, WORDS]: bits that a state's moves depend on
    step_state: Array  # i32: steps that have been made: of a state ...
    step_bits: Array  # u64[n, WORDS]: ... by an event with these of its relevant bits ...
    step_move: Array  # MOVE: ... its move
    step_table: Array  # i32: open addressing over steps
    restless: Array  # i32[states]
    seat: Array  # i32[states]: its place in `fresh`, if
    seated: Array  # i64[states]: ... it is the attempt's SERIAL
    symbols: Array  # u64[STRIDE, WORDS]
    table: Array  # i32: open addressing over symbols


class Memory(NamedTuple):
    """The running state; it begins as every runner's does (matches/records.py)."""

    scalars: Array
    nodes: Array
    weights: Array
    spans: Array
    finals: Array
    stack: Array
    path: Array
    out_rows: Array
    out_ends: Array
    out_marks: Array  # the end of each match, as number of the event in the batch
    spine: Array
    parts: Array
    live: Array
    fresh: Array  # LIVE: the partition's new records while an event is in work


assert begins_with_matches(Memory._fields)


class Events(NamedTuple):
    """A batch."""

    symbol: Array  # u64[n, WORDS]
    partition: Array  # i64[n]; -1: in none
    clock: Array  # i64[n]: what starts here has this clock (windows of time and attribute)
    cut: Array  # i64[n]: what ends here must start at this clock or later (the same)


class Few(NamedTuple):
    """Room for a batch of few events, and what places them in the window; it begins as `Events`."""

    symbol: Array
    partition: Array
    clock: Array
    cut: Array
    attribute: Array  # f64[n]: values of the window's attribute, NaN: none; empty in other windows
    numbers: Array  # i64: the kind of window; of one of time its size in microseconds
    size: Array  # f64[1]: of a window of an attribute
    double: Array  # f64[1], scratch,
    word: Array  # i64[1]: the same memory


assert Few._fields[: len(Events._fields)] == Events._fields
