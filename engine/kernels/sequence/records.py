"""Record layouts and the numbered scalars that the sequence kernels share (engine.md, section 3).

Fields that are read together lie together: access is random, so one record is one cache line or less.
"""

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
from oxiseq.engine.kernels.memory.pointers import view_of
from oxiseq.engine.kernels.memory.slots import SLOT, slots_for

GROUP = np.dtype(
    [
        ("maxs", "i8"),
        ("inserted", "i8"),  # instant of the last insert
        ("fired", "i8"),  # attempt that marked it for removal
        ("queued", "i8"),  # clock when it was put into the expiry queue
        ("hash", "u8"),
        ("edge", "i4"),  # -1: free
        ("node", "i4"),
        ("next", "i4"),  # expiry queue, or free list
        ("prev", "i4"),
        ("serial", "i8"),  # differs in a reused group from the one that waits for its window to close
        ("time", "i8"),  # time (µs) of the last insert
        ("close", "i8"),  # of a wait: the clock at which its window ends
        ("old", "i4"),  # of an age segment: its oldest entry, in front of the queue; -1: none
        ("new", "i4"),  # its newest entry, at the back
        ("turning", "i4"),  # 1: the back is being turned into a front
        ("reach", "i4"),  # of one marked for removal: 0 if it only takes a step of a negated group, else 1
    ],
    align=True,
)

AGED = np.dtype(
    [
        ("time", "i8"),  # when its run came to the gap, in µs
        ("group", "i4"),  # -1: free
        ("node", "i4"),  # its prefixes
        ("union", "i4"),  # in a front: those of all entries in the front that are not older
        ("next", "i4"),  # in a front the next newer entry, at a back the next older one; free list
        ("before", "i4"),  # neighbours in the order of the edge
        ("after", "i4"),
    ],
    align=True,
)
"""A run in an age segment. A group there is a queue of two stacks (answers.md 3.3); all entries of an edge are chained
in order of time, since they leave it in that order."""

AGES = np.dtype([("oldest", "i4"), ("newest", "i4")], align=True)
"""Of each edge the ends of that chain."""

LINK = np.dtype(
    [
        ("value", "f8"),  # heap order: smaller fires first
        ("left", "i4"),  # skew heap children, or list neighbours (left: next, right: previous)
        ("right", "i4"),
        ("parent", "i4"),
        ("bucket", "i4"),
        ("kind", "i4"),  # HEAP_NUMBER, HEAP_TIME, LISTED, NEVER
    ],
    align=True,
)
"""Membership of a group in the bucket of one of its edge's probes: links[group * probes + local]. Other links are
named by their number: those of one bucket may be of any edge."""

BUCKET = np.dtype(
    [
        ("kill", "i8"),  # instant of the last kill
        ("hash", "u8"),
        ("signature", "i4"),  # -1: free
        ("count", "i4"),
        ("number", "i4"),  # heap roots by kind of value
        ("time", "i4"),
        ("list", "i4"),
        ("next", "i4"),  # free list
    ],
    align=True,
)

ENTRY = np.dtype(
    [
        ("maxs", "i8"),
        ("edge", "i4"),  # -1: free
        ("node", "i4"),
        ("next", "i4"),  # the one behind in the chain of its hash; free list
        ("before", "i4"),  # the one in front there, -1: it is the first; in no chain: the sister before
        ("chain", "i4"),  # below 0: none
        ("sister", "i4"),  # the next one that its partition's instant has made
    ],
    align=True,
)
"""Runs that wait by ',': they live until the next instant of their partition."""

WAIT = np.dtype([("instant", "i8"), ("time", "i8"), ("first", "i4"), ("last", "i4")], align=True)
"""Of each partition (without PARTITION BY there is one): the instant that has made its entries, its time (µs), and the
entries, in the order in which they were made."""

CLOSING = np.dtype([("close", "i8"), ("serial", "i8"), ("group", "i4")], align=True)
"""A group that is a match once the window has closed, or dead from a time on: a binary heap by (close, serial)."""

EDGE = np.dtype(
    [
        ("op", "i4"),
        ("width", "i4"),
        ("probe0", "i4"),
        ("probe1", "i4"),
        ("waits", "i4"),  # no arms; WINDOW_END: emitted when the window closes, COUNTED_END: counted at once
        ("chained", "i4"),  # ',' edges: how many equalities all arms share
        ("chain0", "i4"),  # their key slots; in the gap of a negated group, those of the key of `then`
        ("stamps", "i4"),  # 1: some guard kills by a stamp on its bucket
        ("part", "i4"),  # slot of the partition's number + 1 in the key
        ("then", "i4"),  # the next age segment, or -1
        ("limit", "i8"),  # how old a run gets here (µs), or NO_AGE
        ("least", "i8"),  # of ',': bounds of the gap (µs)
        ("most", "i8"),
        ("lasting0", "i4"),  # (slot, µs) pairs: what began then and how long it lasts at most
        ("lasting1", "i4"),
        ("query", "i4"),
    ],
    align=True,
)

WINDOW = np.dtype(
    [
        ("size", "i8"),
        ("limit", "i8"),
        ("slides", "i4"),
        ("consumes", "i4"),
        ("together", "i4"),  # 1: what is counted in a window is counted together, whenever it ends
        ("reach", "i4"),
    ],
    align=True,
)
"""The window of a query (size 0: it has none), how many matches of an instant are emitted at most, the first ones
found, and what an instant with matches makes forgotten. `reach`: REACHES if it is to be told of the sequences that
begin to wait for time to decide them, LISTS_REACHED if they are emitted then, too."""

PROBE = np.dtype(
    [
        ("edge", "i4"),
        ("local", "i4"),  # number within the edge
        ("signature", "i4"),  # -1: it has no buckets
        ("index", "i4"),  # LIST, HEAP, STAMP, CHAINED, STARTS
        ("letter", "i4"),
        ("place", "i4"),  # number of the way into its target: see PLACE_BITS
        ("equal0", "i4"),
        ("equal1", "i4"),
        ("compatible0", "i4"),
        ("compatible1", "i4"),
        ("filter0", "i4"),
        ("filter1", "i4"),
        ("either0", "i4"),
        ("either1", "i4"),
        ("measure", "i4"),  # which of the letter's measures the heap compares with
        ("key0", "i4"),  # code of the key's side of that inequality
        ("key1", "i4"),
        ("sign", "i4"),  # 1: fires if key < measure; -1: if key > measure
        ("sole", "i4"),  # 1: the inequality is the only condition besides the bucket's equalities
        ("final", "i4"),
        ("negated", "i4"),  # slot of the leading negation's clock, NO_SLOT, or AT_START
        ("rowonly", "i4"),
        ("moves", "i4"),  # 1: a step of a negated group, which takes runs to another edge of their gap
        ("next0", "i4"),
        ("next1", "i4"),
        ("lead0", "i4"),
        ("lead1", "i4"),
    ],
    align=True,
)

SIGNATURE = np.dtype(
    [
        ("equal0", "i4"),  # those of one of its probes: all compare the same columns of the row
        ("equal1", "i4"),
        ("index", "i4"),
        ("measure", "i4"),
        ("sign", "i4"),
    ],
    align=True,
)
"""How rows of a letter find groups: all its arms, or all its guards, that compare the same columns of the row, and are
indexed by the same inequality, have common buckets. So one look finds the groups of all edges that wait for a row."""

FILTER = np.dtype([("code0", "i4"), ("code1", "i4"), ("uses0", "i4"), ("uses1", "i4")], align=True)

LEAD = np.dtype([("equal0", "i4"), ("equal1", "i4"), ("compatible", "i4"), ("part", "i4")], align=True)
"""A leading negation as one start sees it: (column of the negated row, column of the starting row) pairs.
`part`: which of them is the partition's number + 1."""

# how a probe finds its groups
LIST, HEAP, STAMP, CHAINED, STARTS = range(5)
# the order of a group in a bucket
HEAP_NUMBER, HEAP_TIME, LISTED, NEVER = range(4)
# operators
STRICT, NEXT, ANY = range(3)
NO_SLOT, AT_START = -1, -2
# what an edge without arms waits for
WINDOW_END, COUNTED_END = 1, 2

# numbered scalars of the running state
(
    GROUP_TOP,  # groups ever used
    GROUP_FREE,  # head of the free list
    GROUP_COUNT,
    BUCKET_TOP,
    BUCKET_FREE,
    BUCKET_COUNT,
    QUEUE_FRONT,
    QUEUE_BACK,
    ENTRY_TOP,  # entries ever used
    PENDING,
    FIRED,
    CLOSINGS,
    ATTEMPT,
    SERIAL,
    ASKED,
    MEMOS,
    LEADS,
    PHASE,
    INSTANT,  # index of the instant in work
    TOUCHED,  # groups and entries looked at, for tests of complexity
    CLOCK,  # of the instant in work, or of the last one
    HERE,  # the partition of the instant in work, 0 without partitions
    FORGOTTEN,  # with partitions CONSUME BY ANY: what started by this moment is forgotten
    CONSUMED,  # with partitions: the last moment with matches, FORGOTTEN from the next one on
    TALLIES,  # counts of matches in `tally`
    _BUCKET_ORIGIN,  # of earlier snapshots
    _BUCKET_WIDTH,
    WAVE,  # rises with each set of finals; odd: they waited for their windows to close
    AGED_TOP,  # entries of age segments ever used
    AGED_FREE,
    AGED_COUNT,
    DUE,  # no run in an age segment has to go on before this time, in µs
    MOMENT,  # when the finals that waited became matches
    WAITING,  # groups that become matches with time
    ENTRY_FREE,  # head of the free list
    LAPSES,
    SCALARS,
) = range(MATCH_SCALARS, MATCH_SCALARS + 37)

# phases of one instant
BEGIN, READ, WRITE, EMIT, EMIT_CLOSED = range(5)

# why the kernel returned
(
    NEED_GROUPS,
    NEED_BUCKETS,
    NEED_ENTRIES,
    NEED_PENDING,
    NEED_FIRED,
    NEED_FINALS,
    NEED_CLOSINGS,
    NEED_LEADS,
    NEED_DECISIONS,
    NEED_AGED,
    NEED_TALLIES,
    NEED_LAPSES,
    BEYOND,  # a query does more at the instant than it may
) = range(MATCH_NEEDS, MATCH_NEEDS + 13)


class Tables(Arrays):
    """The compiled sequence: read-only while it runs."""


windows = array(Tables, "windows", WINDOW)  # by query
edges = array(Tables, "edges", EDGE)
probes = array(Tables, "probes", PROBE)
filters = array(Tables, "filters", FILTER)
leads = array(Tables, "leads", LEAD)
signatures = array(Tables, "signatures", SIGNATURE)
arms_of = array(Tables, "arms_of", np.int32)  # CSR over letters: signatures of arms that a row of the letter fires
arms_at = array(Tables, "arms_at", np.int32)
starts_of = array(Tables, "starts_of", np.int32)
starts_at = array(Tables, "starts_at", np.int32)
chained_of = array(Tables, "chained_of", np.int32)  # arms of `,` edges
chained_at = array(Tables, "chained_at", np.int32)
measured = array(Tables, "measured", np.int32, 2)  # programs (code0, code1) of the measures of each letter
measures_at = array(Tables, "measures_at", np.int32)  # by letter
guards_of = array(Tables, "guards_of", np.int32)  # signatures
guards_at = array(Tables, "guards_at", np.int32)
leads_of = array(Tables, "leads_of", np.int32)  # leading negations that a row of the letter feeds
leads_at = array(Tables, "leads_at", np.int32)
equal = array(Tables, "equal", np.int32, 2)  # (slot, column)
compatible = array(Tables, "compatible", np.int32, 2)
either = array(Tables, "either", np.int32, 2)  # (position in the value vector, column, slot)
uses = array(Tables, "uses", np.int32)  # positions in the value vector that a filter reads
chain = array(Tables, "chain", np.int32)
"""Key slots of ',' chains, and of keys that go on in the gap of a negated group."""
next = array(Tables, "next", np.int32, 2)  # (edge, fill0)
fill = array(Tables, "fill", np.int32, 2)  # (column or special, slot or special) per key slot
code = array(Tables, "code", np.int32)  # programs of the filters
lasting = array(Tables, "lasting", np.int64, 2)  # (slot, µs)
aged_edges = array(Tables, "aged", np.int32)
"""Edges with a limit, those that make matches last, and of them those in a negated group's gap."""
sizes = array(Tables, "sizes", np.int64)  # WIDTH, COLUMNS, ...

# positions in Tables.sizes
(
    WIDTH,
    COLUMNS,
    PROBES,
    CHOICE,
    REACHING,
    PARTITIONED,
    COUNTED,
    MOVING,
    AGEING,
    NUMBERED,
    STRICTS,
) = range(11)
"""CHOICE: CHOOSES if a strategy chooses among an instant's finals, NOTES if these are written as they are
(matches/weighing.py). REACHING: 1 if some window has a `reach`. PARTITIONED: 1 if instants are those of partitions;
COUNTED: 1 if their clocks are their numbers in the partition, not to be compared between partitions. MOVING: how many
of the aged edges make no matches by themselves; AGEING: how many there are. NUMBERED: 1 if the window counts instants,
so that its clocks are no times. STRICTS: 1 if some edge is a `,`."""
CHOOSES, NOTES = 1, 2
REACHES, LISTS_REACHED = 1, 2
NO_AGE = -1
NEVER_CLOSES = 1 << 62
BEFORE_ALL = -(1 << 62)
"""No clock is so small."""
WORK_OF, READ_BY = range(2)
READS, MOST_READS, WHOLE_READ = range(3)
"""What a row has just read for one query, of what waits and lives; how much a query may read at one instant; and what
all have read in this attempt. It is the same however the events have come."""
FOR_QUESTION: Final = 256
FOR_MADE: Final = 32
"""Reads that a question to Python, and a prefix that is made, count for: they take as long, or memory."""
WORDS_BITS: Final = 5
"""So many words of a FILTER's program, as a power of 2, count for one read more."""
COLUMN, KEY, COALESCED, STRIDE = 1, 2, 3, 3
"""Where the first column, slot and coalesced value are in the value vector, and how far the next one is: so programs do
not depend on how many columns and slots there are."""
# specials in Tables.fill
FROM_CLOCK, FROM_NEGATED, FROM_TIME, FROM_FOLD = -2, -3, -4, -5
"""FROM_FOLD: what Python makes of the row and the run; the slot is the number of its filter."""


class Memory(MatchMemory):
    """The running state; it begins as every runner's does."""


groups = array(Memory, "groups", GROUP, rows="groups", used=GROUP_TOP)
keys = array(Memory, "keys", np.int64, 2, rows="groups", columns="width", used=GROUP_TOP, ids=True)
links = array(Memory, "links", LINK, rows="groups", each="probes")
buckets = array(Memory, "buckets", BUCKET, rows="buckets")
bucket_keys = array(Memory, "bucket_keys", np.int64, 2, rows="buckets", columns="width")
"""Their ids are in keys of groups, too. What finds groups is not saved, but made again (indexes.py)."""
table = array(Memory, "table", SLOT, rows="groups", slots=slots_for)  # of groups
bucket_table = array(Memory, "bucket_table", SLOT, rows="buckets", slots=slots_for)
entries = array(Memory, "entries", ENTRY, rows="entries", used=ENTRY_TOP)
entry_keys = array(Memory, "entry_keys", np.int64, 2, rows="entries", columns="width", used=ENTRY_TOP, ids=True)
chains = array(Memory, "chains", np.int32, rows="entries", slots=slots_for, fill=-1)
"""The first entry of each hash, or -1."""
waits = array(Memory, "waits", WAIT, rows="partitions", used=WHOLE, fill={"first": -1, "last": -1})
pending = array(Memory, "pending", np.int32, 2, rows="pending", columns=3)
"""Edge (-1: none any more), node, the group that a step of a negated group moves, or -1."""
pending_keys = array(Memory, "pending_keys", np.int64, 2, rows="pending", columns="width", ids=True)
fired = array(Memory, "fired", np.int32, rows="fired")
closings = array(Memory, "closings", CLOSING, rows="closings", used=CLOSINGS)
memo = array(Memory, "memo", np.int64, 2, rows="memo", columns="answer")  # filter + 1, answer, values
asked = array(Memory, "asked", np.int64, 2, rows="asked", columns="question")
"""Filter, value vector."""
lead_table = array(Memory, "lead_table", SLOT, rows="leads", slots=slots_for)
lead_keys = array(Memory, "lead_keys", np.int64, 2, rows="leads", columns="lead", used=LEADS, ids=True)
"""Lead, clock, values."""
key = array(Memory, "key", np.int64, rows="key")  # a key under construction
vector = array(Memory, "vector", np.int64, rows="vector")
"""What filters read: nothing, then a row's columns, a key's slots and coalesced values in turn (STRIDE)."""
scratch = array(Memory, "scratch", np.float64, 2, rows="depth", columns=2)
"""With the next one the stack of the machine that evaluates filters."""
scratch_entries = array(Memory, "scratch_entries", np.int64, 2, rows="depth", columns=4)
no_memo = view_of(Memory, "scratch_entries", np.uint8, 2)
"""For code without memo tables: never read, but of the type that the machine is compiled for elsewhere."""
aged = array(Memory, "aged", AGED, rows="aged", used=AGED_TOP)
ages = array(Memory, "ages", AGES, rows="edges", used=WHOLE, fill={"oldest": -1, "newest": -1})  # by edge
lapses = array(Memory, "lapses", CLOSING, rows="lapses", used=LAPSES)
"""Groups in which something has lasted too long from a time (µs) on: a heap."""
floors = array(Memory, "floors", np.int64, 2, rows="partitions", columns="queries", used=WHOLE, fill=BEFORE_ALL)
"""By partition (without PARTITION BY there is one) and query: everything that starts before has been consumed."""
moments = array(Memory, "moments", np.int64, rows="partitions", used=WHOLE)  # when it was seen last
numbers = array(Memory, "numbers", np.int64, rows="partitions", used=WHOLE)  # the number of its instant then
origins = array(Memory, "origins", np.int64, rows="queries", used=WHOLE)
"""By query the first clock of its first tumbling window."""
tally = array(Memory, "tally", np.uint64, 2, rows="tallies", columns="counted")
"""Matches counted ..."""
tally_keys = array(Memory, "tally_keys", np.int64, 2, rows="tallies", columns="tally")
"""... their bucket, edge and key."""
tally_table = array(Memory, "tally_table", SLOT, rows="tallies", slots=slots_for)
"""Open addressing over tallies."""
work = array(Memory, "work", np.int64, 2, rows="queries", columns=2)
"""By query the last attempt at which it read something, and how much that was: WORK_OF, READ_BY."""
meter = array(Memory, "meter", np.int64, rows=3)  # READS, MOST_READS, WHOLE_READ


class Rows(Arrays):
    """A batch of rows, sorted by instant."""


letter = array(Rows, "letter", np.int32, rows="rows")
values = array(Rows, "values", np.int64, 2, rows="rows", columns="columns")  # term ids
measures = array(Rows, "measures", np.float64, 2, rows="rows", columns="measures")
measure_kinds = array(Rows, "measure_kinds", np.uint8, 2, rows="rows", columns="measures")
instant = array(Rows, "instant", np.int64, rows="instants")
"""Number of the instant among the query's streams, or in its partition."""
clock = array(Rows, "clock", np.int64, rows="instants")
first = array(Rows, "first", np.int64, rows="firsts")  # rows of an instant
base = array(Rows, "base", np.int64, rows=1)  # row id of the first row
partition = array(Rows, "partition", np.int64, rows="instants", each="partitioned")  # whose instant it is
moment = array(Rows, "moment", np.int64, rows="instants", each="partitioned")
"""Number of the instant among all of them."""
time = array(Rows, "time", np.int64, rows="instants")  # of the instant, in µs
