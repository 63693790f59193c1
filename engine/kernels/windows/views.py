"""The arrays of the windows' kernels, each by the address of its pointer table: `entries(S)`, `queries(T)`."""

from __future__ import annotations

from typing import Any

import numpy as np

from oxiseq.engine.kernels.memory.pointers import view_of
from oxiseq.engine.kernels.windows import records as k

# --- Tables ------------------------------------------------------------------------------------------

predicate_number: Any = view_of(k.Tables, "predicate", np.int32, 2)
view0: Any = view_of(k.Tables, "view0", np.int32)
view_at: Any = view_of(k.Tables, "view_at", np.int32)
with_object: Any = view_of(k.Tables, "with_object", np.uint8)
objects: Any = view_of(k.Tables, "objects", np.int64, 2)
object0: Any = view_of(k.Tables, "object0", np.int32)
object_at: Any = view_of(k.Tables, "object_at", np.int32)
views: Any = view_of(k.Tables, "views", k.VIEW)
filters: Any = view_of(k.Tables, "filters", k.FILTER)
starts: Any = view_of(k.Tables, "starts", k.START)
queries: Any = view_of(k.Tables, "queries", k.QUERY)
patterns: Any = view_of(k.Tables, "patterns", k.PATTERN)
contains: Any = view_of(k.Tables, "contains", np.int64)
joint: Any = view_of(k.Tables, "joint", k.JOINT)
code: Any = view_of(k.Tables, "code", np.int32)

# --- Memory ------------------------------------------------------------------------------------------

scalars: Any = view_of(k.Memory, "scalars", np.int64)
entries: Any = view_of(k.Memory, "entries", k.ENTRY)
pairs: Any = view_of(k.Memory, "pairs", k.PAIR)
buckets: Any = view_of(k.Memory, "buckets", k.BUCKET)
stored: Any = view_of(k.Memory, "stored", k.STORED)
listed: Any = view_of(k.Memory, "listed", k.LISTED)
notes: Any = view_of(k.Memory, "notes", k.NOTED)
reports: Any = view_of(k.Memory, "reports", np.int32)
levels: Any = view_of(k.Memory, "levels", k.LEVEL)
best: Any = view_of(k.Memory, "best", k.BEST)
values: Any = view_of(k.Memory, "values", np.int64)
numbers: Any = view_of(k.Memory, "numbers", np.float64, 2)
machine: Any = view_of(k.Memory, "machine", np.int64, 2)
one: Any = view_of(k.Memory, "one", np.int64)
memo: Any = view_of(k.Memory, "memo", np.uint8, 2)
out: Any = view_of(k.Memory, "out", k.OUT)
out_values: Any = view_of(k.Memory, "out_values", np.uint32, 2)
batch: Any = view_of(k.Memory, "batch", np.int64)

# --- Batch -------------------------------------------------------------------------------------------

offset: Any = view_of(k.Batch, "offset", np.int64)
subject: Any = view_of(k.Batch, "subject", np.uint32)
predicate: Any = view_of(k.Batch, "predicate", np.uint32)
object_: Any = view_of(k.Batch, "object", np.uint32)
clock: Any = view_of(k.Batch, "clock", np.int64)
source: Any = view_of(k.Batch, "source", np.int32)
until: Any = view_of(k.Batch, "until", np.int64)
low: Any = view_of(k.Batch, "low", np.int64, 2)
