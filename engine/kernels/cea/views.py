"""The arrays of the automaton's kernels, each by the address of its pointer table: `nodes(S)`, `moves(A)`."""

from __future__ import annotations

import numpy as np

from oxiseq.engine.kernels.cea import records as k
from oxiseq.engine.kernels.matches import views as matches
from oxiseq.engine.kernels.memory.pointers import view_of

# --- Cache -------------------------------------------------------------------------------------------

sizes = view_of(k.Cache, "sizes", np.int64)
moves = view_of(k.Cache, "moves", k.MOVE)
relevant = view_of(k.Cache, "relevant", np.uint64, 2)
step_state = view_of(k.Cache, "step_state", np.int32)
step_bits = view_of(k.Cache, "step_bits", np.uint64, 2)
step_move = view_of(k.Cache, "step_move", k.MOVE)
step_table = view_of(k.Cache, "step_table", np.int32)
restless = view_of(k.Cache, "restless", np.int32)
seat = view_of(k.Cache, "seat", np.int32)
seated = view_of(k.Cache, "seated", np.int64)
symbols = view_of(k.Cache, "symbols", np.uint64, 2)
table = view_of(k.Cache, "table", np.int32)

# --- Memory ------------------------------------------------------------------------------------------

finals = matches.finals
nodes = matches.nodes
out_ends = matches.out_ends
out_marks = matches.out_marks
out_rows = matches.out_rows
scalars = matches.scalars
spine = matches.spine
stack = matches.stack
weights = matches.weights
parts = view_of(k.Memory, "parts", k.PART)
live = view_of(k.Memory, "live", k.LIVE)
fresh = view_of(k.Memory, "fresh", k.LIVE)

# --- Events ------------------------------------------------------------------------------------------

symbol = view_of(k.Events, "symbol", np.uint64, 2)
partition = view_of(k.Events, "partition", np.int64)
clock = view_of(k.Events, "clock", np.int64)
cut = view_of(k.Events, "cut", np.int64)
