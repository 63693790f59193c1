"""The arrays of the sequence kernels, each by the address of its pointer table: `nodes(S)`, `edges(T)`."""

from __future__ import annotations

from typing import Any

import numpy as np

from oxiseq.engine.kernels.matches import views as matches
from oxiseq.engine.kernels.memory.pointers import view_of
from oxiseq.engine.kernels.sequence import records as k

# --- Tables ------------------------------------------------------------------------------------------

edges: Any = view_of(k.Tables, "edges", k.EDGE)
probes: Any = view_of(k.Tables, "probes", k.PROBE)
filters: Any = view_of(k.Tables, "filters", k.FILTER)
leads: Any = view_of(k.Tables, "leads", k.LEAD)
arms_of: Any = view_of(k.Tables, "arms_of", np.int32)
arms_at: Any = view_of(k.Tables, "arms_at", np.int32)
starts_of: Any = view_of(k.Tables, "starts_of", np.int32)
starts_at: Any = view_of(k.Tables, "starts_at", np.int32)
guards_of: Any = view_of(k.Tables, "guards_of", np.int32)
guards_at: Any = view_of(k.Tables, "guards_at", np.int32)
leads_of: Any = view_of(k.Tables, "leads_of", np.int32)
leads_at: Any = view_of(k.Tables, "leads_at", np.int32)
equal: Any = view_of(k.Tables, "equal", np.int32, 2)
compatible: Any = view_of(k.Tables, "compatible", np.int32, 2)
either: Any = view_of(k.Tables, "either", np.int32, 2)
uses: Any = view_of(k.Tables, "uses", np.int32)
chain: Any = view_of(k.Tables, "chain", np.int32)
next: Any = view_of(k.Tables, "next", np.int32, 2)
fill: Any = view_of(k.Tables, "fill", np.int32, 2)
code: Any = view_of(k.Tables, "code", np.int32)
lasting: Any = view_of(k.Tables, "lasting", np.int64, 2)
aged_edges: Any = view_of(k.Tables, "aged", np.int32)
sizes: Any = view_of(k.Tables, "sizes", np.int64)

# --- Memory ------------------------------------------------------------------------------------------

finals: Any = matches.finals
nodes: Any = matches.nodes
scalars: Any = matches.scalars
spine: Any = matches.spine
weights: Any = matches.weights
spans: Any = matches.spans
stack: Any = matches.stack
groups: Any = view_of(k.Memory, "groups", k.GROUP)
keys: Any = view_of(k.Memory, "keys", np.int64, 2)
links: Any = view_of(k.Memory, "links", k.LINK)
buckets: Any = view_of(k.Memory, "buckets", k.BUCKET)
bucket_keys: Any = view_of(k.Memory, "bucket_keys", np.int64, 2)
table: Any = view_of(k.Memory, "table", np.int32)
bucket_table: Any = view_of(k.Memory, "bucket_table", np.int32)
entries: Any = view_of(k.Memory, "entries", k.ENTRY)
entry_keys: Any = view_of(k.Memory, "entry_keys", np.int64, 2)
chains: Any = view_of(k.Memory, "chains", k.CHAIN)
pending: Any = view_of(k.Memory, "pending", np.int32, 2)
pending_keys: Any = view_of(k.Memory, "pending_keys", np.int64, 2)
fired: Any = view_of(k.Memory, "fired", np.int32)
closings: Any = view_of(k.Memory, "closings", k.CLOSING)
memo: Any = view_of(k.Memory, "memo", np.int64, 2)
asked: Any = view_of(k.Memory, "asked", np.int64, 2)
lead_table: Any = view_of(k.Memory, "lead_table", np.int32)
lead_keys: Any = view_of(k.Memory, "lead_keys", np.int64, 2)
key: Any = view_of(k.Memory, "key", np.int64)
vector: Any = view_of(k.Memory, "vector", np.int64)
aged: Any = view_of(k.Memory, "aged", k.AGED)
lapses: Any = view_of(k.Memory, "lapses", k.CLOSING)
ages: Any = view_of(k.Memory, "ages", k.AGES)
floors: Any = view_of(k.Memory, "floors", np.int64)
moments: Any = view_of(k.Memory, "moments", np.int64)
tally: Any = view_of(k.Memory, "tally", np.uint64, 2)
tally_keys: Any = view_of(k.Memory, "tally_keys", np.int64, 2)
tally_table: Any = view_of(k.Memory, "tally_table", np.int32)
numbers: Any = view_of(k.Memory, "numbers", np.int64)

# --- Rows --------------------------------------------------------------------------------------------

letter: Any = view_of(k.Rows, "letter", np.int32)
values: Any = view_of(k.Rows, "values", np.int64, 2)
measures: Any = view_of(k.Rows, "measures", np.float64, 2)
measure_kinds: Any = view_of(k.Rows, "measure_kinds", np.uint8, 2)
instant: Any = view_of(k.Rows, "instant", np.int64)
clock: Any = view_of(k.Rows, "clock", np.int64)
tau: Any = view_of(k.Rows, "tau", np.int64)
first: Any = view_of(k.Rows, "first", np.int64)
base: Any = view_of(k.Rows, "base", np.int64)
partition: Any = view_of(k.Rows, "partition", np.int64)
moment: Any = view_of(k.Rows, "moment", np.int64)
time: Any = view_of(k.Rows, "time", np.int64)
