"""The arrays of the sequence kernels, each by the address of its pointer table: `nodes(S)`, `edges(T)`."""

from __future__ import annotations

import numpy as np

from oxiseq.engine.kernels.matches import views as matches
from oxiseq.engine.kernels.memory.pointers import view_of
from oxiseq.engine.kernels.sequence import records as k

# --- Tables ------------------------------------------------------------------------------------------

edges = view_of(k.Tables, "edges", k.EDGE)
probes = view_of(k.Tables, "probes", k.PROBE)
filters = view_of(k.Tables, "filters", k.FILTER)
leads = view_of(k.Tables, "leads", k.LEAD)
arms_of = view_of(k.Tables, "arms_of", np.int32)
arms_at = view_of(k.Tables, "arms_at", np.int32)
starts_of = view_of(k.Tables, "starts_of", np.int32)
starts_at = view_of(k.Tables, "starts_at", np.int32)
guards_of = view_of(k.Tables, "guards_of", np.int32)
guards_at = view_of(k.Tables, "guards_at", np.int32)
leads_of = view_of(k.Tables, "leads_of", np.int32)
leads_at = view_of(k.Tables, "leads_at", np.int32)
equal = view_of(k.Tables, "equal", np.int32, 2)
compatible = view_of(k.Tables, "compatible", np.int32, 2)
either = view_of(k.Tables, "either", np.int32, 2)
uses = view_of(k.Tables, "uses", np.int32)
chain = view_of(k.Tables, "chain", np.int32)
next = view_of(k.Tables, "next", np.int32, 2)
fill = view_of(k.Tables, "fill", np.int32, 2)
code = view_of(k.Tables, "code", np.int32)
lasting = view_of(k.Tables, "lasting", np.int64, 2)
aged_edges = view_of(k.Tables, "aged", np.int32)
sizes = view_of(k.Tables, "sizes", np.int64)

# --- Memory ------------------------------------------------------------------------------------------

finals = matches.finals
nodes = matches.nodes
scalars = matches.scalars
spine = matches.spine
weights = matches.weights
spans = matches.spans
stack = matches.stack
groups = view_of(k.Memory, "groups", k.GROUP)
keys = view_of(k.Memory, "keys", np.int64, 2)
links = view_of(k.Memory, "links", k.LINK)
buckets = view_of(k.Memory, "buckets", k.BUCKET)
bucket_keys = view_of(k.Memory, "bucket_keys", np.int64, 2)
table = view_of(k.Memory, "table", np.int32)
bucket_table = view_of(k.Memory, "bucket_table", np.int32)
entries = view_of(k.Memory, "entries", k.ENTRY)
entry_keys = view_of(k.Memory, "entry_keys", np.int64, 2)
chains = view_of(k.Memory, "chains", np.int32)
waits = view_of(k.Memory, "waits", k.WAIT)
pending = view_of(k.Memory, "pending", np.int32, 2)
pending_keys = view_of(k.Memory, "pending_keys", np.int64, 2)
fired = view_of(k.Memory, "fired", np.int32)
closings = view_of(k.Memory, "closings", k.CLOSING)
memo = view_of(k.Memory, "memo", np.int64, 2)
asked = view_of(k.Memory, "asked", np.int64, 2)
lead_table = view_of(k.Memory, "lead_table", np.int32)
lead_keys = view_of(k.Memory, "lead_keys", np.int64, 2)
key = view_of(k.Memory, "key", np.int64)
vector = view_of(k.Memory, "vector", np.int64)
scratch = view_of(k.Memory, "scratch", np.float64, 2)
scratch_entries = view_of(k.Memory, "scratch_entries", np.int64, 2)
no_memo = view_of(k.Memory, "scratch_entries", np.uint8, 2)
"""For code without memo tables: never read, but of the type that the machine is compiled for elsewhere."""
aged = view_of(k.Memory, "aged", k.AGED)
lapses = view_of(k.Memory, "lapses", k.CLOSING)
ages = view_of(k.Memory, "ages", k.AGES)
floors = view_of(k.Memory, "floors", np.int64)
moments = view_of(k.Memory, "moments", np.int64)
tally = view_of(k.Memory, "tally", np.uint64, 2)
tally_keys = view_of(k.Memory, "tally_keys", np.int64, 2)
tally_table = view_of(k.Memory, "tally_table", np.int32)
numbers = view_of(k.Memory, "numbers", np.int64)

# --- Rows --------------------------------------------------------------------------------------------

letter = view_of(k.Rows, "letter", np.int32)
values = view_of(k.Rows, "values", np.int64, 2)
measures = view_of(k.Rows, "measures", np.float64, 2)
measure_kinds = view_of(k.Rows, "measure_kinds", np.uint8, 2)
instant = view_of(k.Rows, "instant", np.int64)
clock = view_of(k.Rows, "clock", np.int64)
tau = view_of(k.Rows, "tau", np.int64)
first = view_of(k.Rows, "first", np.int64)
base = view_of(k.Rows, "base", np.int64)
partition = view_of(k.Rows, "partition", np.int64)
moment = view_of(k.Rows, "moment", np.int64)
time = view_of(k.Rows, "time", np.int64)
reach = view_of(k.Rows, "reach", np.int64)
