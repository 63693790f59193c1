"""The arrays that every runner's memory begins with, each by the address of its pointer table: `nodes(S)`."""

from __future__ import annotations

from typing import Any

import numpy as np

from oxiseq.engine.kernels.matches import records as k
from oxiseq.engine.kernels.memory.pointers import view_of

scalars: Any = view_of(k.MatchMemory, "scalars", np.int64)
nodes: Any = view_of(k.MatchMemory, "nodes", k.NODE)
weights: Any = view_of(k.MatchMemory, "weights", np.uint64, 2)
spans: Any = view_of(k.MatchMemory, "spans", np.int32, 2)
finals: Any = view_of(k.MatchMemory, "finals", np.int64, 2)
stack: Any = view_of(k.MatchMemory, "stack", np.int64, 2)
path: Any = view_of(k.MatchMemory, "path", np.int64)
out_rows: Any = view_of(k.MatchMemory, "out_rows", np.int64)
out_ends: Any = view_of(k.MatchMemory, "out_ends", np.int64)
out_marks: Any = view_of(k.MatchMemory, "out_marks", np.int64, 2)
spine: Any = view_of(k.MatchMemory, "spine", np.int64)
