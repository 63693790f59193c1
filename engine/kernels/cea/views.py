"""The arrays of the automaton's kernels, each by the address of its pointer table: `nodes(S)`, `moves(A)`."""

from __future__ import annotations

from typing import Any

import numpy as np

from oxiseq.engine.kernels.cea import records as k
from oxiseq.engine.kernels.matches import views as matches
from oxiseq.engine.kernels.memory.pointers import view_of

# --- Cache -------------------------------------------------------------------------------------------

sizes: Any = view_of(k.Cache, "sizes", np.int64)
moves: Any = view_of(k.Cache, "moves", k.MOVE)
relevant: Any = view_of(k.Cache, "relevant", np.uint64, 2)
step_state: Any = view_of(k.Cache, "step_state", np.int32)
step_bits: Any = view_of(k.Cache, "step_bits", np.uint64, 2)
step_move: Any = view_of(k.Cache, "step_move", k.MOVE)
step_table: Any = view_of(k.Cache, "step_table", np.int32)
restless: Any = view_of(k.Cache, "restless", np.int32)
seat: Any = view_of(k.Cache, "seat", np.int32)
seated: Any = view_of(k.Cache, "seated", np.int64)
symbols: Any = view_of(k.Cache, "symbols", np.uint64, 2)
table: Any = view_of(k.Cache, "table", np.int32)

# --- Memory ------------------------------------------------------------------------------------------

finals: Any = matches.finals
nodes: Any = matches.nodes
out_ends: Any = matches.out_ends
out_marks: Any = matches.out_marks
out_rows: Any = matches.out_rows
scalars: Any = matches.scalars
spine: Any = matches.spine
stack: Any = matches.stack
weights: Any = matches.weights
parts: Any = view_of(k.Memory, "parts", k.PART)
live: Any = view_of(k.Memory, "live", k.LIVE)
fresh: Any = view_of(k.Memory, "fresh", k.LIVE)

# --- Events ------------------------------------------------------------------------------------------

symbol: Any = view_of(k.Events, "symbol", np.uint64, 2)
partition: Any = view_of(k.Events, "partition", np.int64)
clock: Any = view_of(k.Events, "clock", np.int64)
cut: Any = view_of(k.Events, "cut", np.int64)
