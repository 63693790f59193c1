"""The arrays of the windows' kernels, each by the address of its pointer table: `entries(S)`, `queries(T)`."""

from __future__ import annotations

import numpy as np

from oxiseq.engine.kernels.memory.pointers import view_of
from oxiseq.engine.kernels.memory.slots import SLOT
from oxiseq.engine.kernels.windows import records as k

# --- Tables ------------------------------------------------------------------------------------------

predicate_number = view_of(k.Tables, "predicate", np.int32, 2)
view0 = view_of(k.Tables, "view0", np.int32)
view_at = view_of(k.Tables, "view_at", np.int32)
with_object = view_of(k.Tables, "with_object", np.uint8)
objects = view_of(k.Tables, "objects", np.int64, 2)
object0 = view_of(k.Tables, "object0", np.int32)
object_at = view_of(k.Tables, "object_at", np.int32)
views = view_of(k.Tables, "views", k.VIEW)
filters = view_of(k.Tables, "filters", k.FILTER)
starts = view_of(k.Tables, "starts", k.START)
queries = view_of(k.Tables, "queries", k.QUERY)
patterns = view_of(k.Tables, "patterns", k.PATTERN)
contains = view_of(k.Tables, "contains", np.int64)
joint = view_of(k.Tables, "joint", k.JOINT)
code = view_of(k.Tables, "code", np.int32)

# --- Memory ------------------------------------------------------------------------------------------

scalars = view_of(k.Memory, "scalars", np.int64)
entries = view_of(k.Memory, "entries", k.ENTRY)
pairs = view_of(k.Memory, "pairs", SLOT)
buckets = view_of(k.Memory, "buckets", k.BUCKET)
stored = view_of(k.Memory, "stored", k.STORED)
listed = view_of(k.Memory, "listed", k.LISTED)
notes = view_of(k.Memory, "notes", k.NOTED)
reports = view_of(k.Memory, "reports", np.int32)
levels = view_of(k.Memory, "levels", k.LEVEL)
best = view_of(k.Memory, "best", k.BEST)
values = view_of(k.Memory, "values", np.int64)
numbers = view_of(k.Memory, "numbers", np.float64, 2)
machine = view_of(k.Memory, "machine", np.int64, 2)
one = view_of(k.Memory, "one", np.int64)
memo = view_of(k.Memory, "memo", np.uint8, 2)
out = view_of(k.Memory, "out", k.OUT)
out_values = view_of(k.Memory, "out_values", np.uint32, 2)
batch = view_of(k.Memory, "batch", np.int64)

# --- Batch -------------------------------------------------------------------------------------------

offset = view_of(k.Batch, "offset", np.int64)
subject = view_of(k.Batch, "subject", np.uint32)
predicate = view_of(k.Batch, "predicate", np.uint32)
object_ = view_of(k.Batch, "object", np.uint32)
clock = view_of(k.Batch, "clock", np.int64)
source = view_of(k.Batch, "source", np.int32)
until = view_of(k.Batch, "until", np.int64)
low = view_of(k.Batch, "low", np.int64, 2)
