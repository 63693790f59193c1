"""Record layouts and numbered scalars of the windows' kernels (windows.md, section 4)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from oxiseq.engine.kernels.memory.pointers import Array

ENTRY = np.dtype(
    [
        ("s", "u4"),
        ("p", "u4"),
        ("o", "u4"),
        ("of", "i4"),  # its view; -1: free
        ("last", "i8"),  # clock of the last event that holds the triple
        ("sn", "i4"),  # next and previous entry of the view with the same subject, newest first
        ("sp", "i4"),
        ("pn", "i4"),  # ... predicate
        ("pp", "i4"),
        ("on", "i4"),  # ... object
        ("op", "i4"),
        ("vn", "i4"),  # ... of the view
        ("vp", "i4"),
        ("ln", "i4"),  # all entries in order of `last`; of a free one: the next free one
        ("lp", "i4"),
    ],
    align=True,
)
"""A triple in a view: one cache line."""
assert ENTRY.itemsize == 64

BUCKET = np.dtype([("key", "i8"), ("head", "i4"), ("count", "i4")], align=True)
"""The entries of a view that agree in one position: key = (3 * view + position) << 32 | term; count 0: no bucket."""

STORED = np.dtype([("head", "i4"), ("count", "i4")], align=True)
"""The entries of a view, newest first."""

NOTED = np.dtype([("last", "i8"), ("s", "u4"), ("p", "u4"), ("o", "u4"), ("of", "i4")], align=True)
"""A triple of this instant that is to be put into a view."""

OUT = np.dtype([("at", "i4"), ("query", "i4"), ("kind", "i4"), ("doubt", "i4")], align=True)
"""A row: number of the instant, query, NEW, ENDED or ALL; whether a filter is still to be decided."""

LEVEL = np.dtype(
    [
        ("bound", "i8"),  # variables that levels above have bound
        ("open", "i8"),  # patterns that are still to be joined
        ("pattern", "i4"),
        ("next", "i4"),  # entry to be tried next
        ("side", "i4"),  # which chain it is in
        ("doubt", "i4"),
    ],
    align=True,
)
"""A join in work: the pattern of each level and how far its chain has been walked."""

BEST = np.dtype([("head", "i4"), ("count", "i4"), ("side", "i4")], align=True)
"""By level and open pattern the shortest chain known."""

LISTED = np.dtype([("first", "i8"), ("last", "i8")], align=True)
"""By source its entries in order of `last`; -1: none."""

VIEW = np.dtype(
    [
        ("s", "u4"),  # constants, 0: any
        ("p", "u4"),
        ("o", "u4"),
        ("equal", "i4"),
        ("index", "i4"),  # 1: subjects are looked up, 2: predicates, 4: objects
        ("filter0", "i4"),
        ("filter1", "i4"),
        ("start0", "i4"),
        ("start1", "i4"),
        ("source", "i4"),  # whose triples it holds
    ],
    align=True,
)

FILTER = np.dtype([("condition", "i4"), ("position", "i4"), ("code0", "i4"), ("code1", "i4")], align=True)
"""A view's filter: number of the condition, the position that it is about, its program."""

QUERY = np.dtype(
    [
        ("pattern0", "i4"),
        ("pattern1", "i4"),
        ("with0", "i4"),  # from here on by variable: the patterns that have it
        ("joint0", "i4"),
        ("joint1", "i4"),
        ("width", "i4"),
    ],
    align=True,
)

PATTERN = np.dtype([("of", "i4"), ("s", "i4"), ("p", "i4"), ("o", "i4")], align=True)
"""Its view and its variables; -1: a constant."""

START = np.dtype([("query", "i4"), ("pattern", "i4")], align=True)
"""The pattern of a query that a view's new entry matches."""

JOINT = np.dtype([("mask", "i8"), ("code0", "i4"), ("code1", "i4")], align=True)
"""A filter of several variables (a mask of them), and its program."""

WHOLE, BY_SUBJECT, BY_PREDICATE, BY_OBJECT, SINGLE = range(5)
"""Sides: the chain of a view, of a bucket by position, or one entry."""

INDEX_SUBJECT, INDEX_PREDICATE, INDEX_OBJECT = 1, 2, 4

NEW, ENDED, ALL = 1, 2, 4

(
    TOP,  # entry records ever used
    FREE,  # first free one below, -1: none
    COUNT,  # entries
    BUCKETS,  # in use
    INSTANT,  # of the batch, in work
    PHASE,
    EVENT,
    TRIPLE,
    NOTES,  # triples noted
    NOTE,  # which of them is being put in
    QUERY_AT,  # whose rows are being listed
    ENTRY_AT,  # whose joins are in work; -1: none
    START_AT,
    DEPTH,  # of the join in work; -1: none
    SKIP,  # entry that positions behind START may not have; -1: none
    OF_QUERY,
    START_PATTERN,
    KIND,
    ROWS,  # in the output
    DOUBTFUL,  # of them
    ASKED_CONDITION,
    ASKED_TERM,
    STEPS,  # entries tried in joins, for tests of complexity
    SCALARS,
) = range(24)

REFRESH, EVICT, INSERT, LIST = range(4)

DONE, NEED_ENTRIES, NEED_BUCKETS, NEED_NOTES, NEED_DECISION, OUT_FULL = range(6)


class Tables(NamedTuple):
    """A compiled plan."""

    predicate: Array
    """i32[sources, ids] by id of a predicate's term: number of its lists of views; 0 for no constant of the source."""
    view0: Array
    view_at: Array
    """Lists of views by number: for 1 + source those with any predicate, for a predicate's those with any object."""
    with_object: Array
    """u8 by predicate's number: whether there are views with a constant object."""
    objects: Array
    """i64[slots, 2]: predicate's number << 32 | object → list; -1: free."""
    object0: Array
    object_at: Array
    views: Array
    filters: Array
    starts: Array
    queries: Array
    patterns: Array
    contains: Array
    joint: Array
    code: Array


class Memory(NamedTuple):
    """A run."""

    scalars: Array
    entries: Array
    pairs: Array
    buckets: Array
    stored: Array
    listed: Array
    notes: Array
    reports: Array
    """i32 by query: NEW | ENDED | ALL."""
    levels: Array
    best: Array
    values: Array
    """i64 by variable: term ids of the join in work."""
    numbers: Array
    machine: Array
    """The stack machine's scratch."""
    one: Array
    """i64[1]: the term that a view's filter is about."""
    memo: Array
    out: Array
    out_values: Array
    batch: Array
    """i64: the pointer table of the batch in work."""


class Batch(NamedTuple):
    """Events, C-contiguous; instant k is the events until[k] : until[k + 1]."""

    offset: Array
    subject: Array
    predicate: Array
    object: Array
    clock: Array
    """i64 by event, ascending within each source."""
    source: Array
    """i32 by event, ascending within an instant."""
    until: Array
    low: Array
    """i64[instants, sources]: what has this clock or an earlier one is out."""
