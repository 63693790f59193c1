"""Arrays behind one pointer table.

A Numba call that takes fifty arrays costs microseconds, and minutes to compile, since each array is seven
arguments all the way down, and each call counts references. So the kernels take the address of one table per
group (tables `T`, memory `S`, rows `R`, term columns `C`) of (address, rows, columns) triples, and each function
looks at the arrays that it needs (engine.md, section 9, rule 4). Whoever makes a `Pointers` keeps all alive.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from llvmlite import ir
from numba import from_dtype, types
from numba.core import cgutils
from numba.extending import intrinsic

from oxiseq.engine.kernels import records as k
from oxiseq.engine.kernels.view import View

WORDS = 3
"""Of each array in the table: address, rows, columns."""


class Pointers:
    """The pointer table of arrays of one or two dimensions, C-contiguous and writable; keeps them alive."""

    def __init__(self, arrays: Sequence[k.Array]) -> None:
        self._arrays = tuple(arrays)
        words: list[int] = []
        for i, array in enumerate(arrays):
            if not (array.flags.c_contiguous and array.flags.writeable):
                raise ValueError(f"array {i} is not C-contiguous and writable")
            columns = array.shape[1] if array.ndim == 2 else 1
            words += (address_of(array), len(array), columns)
        self._table = np.array(words, np.int64)
        self.address = address_of(self._table)
        """What the kernels take."""


def address_of(array: k.Array) -> int:
    """The address of an array's first element, for kernels; whoever asks keeps the array alive."""
    return int(array.__array_interface__["data"][0])  # a third of what `ctypes.data` takes


def call(function: Callable[..., Any], *args: Pointers | k.Array | int) -> Any:
    """Call a kernel with the addresses of pointer tables, which stay alive meanwhile."""
    return function(*(arg.address if isinstance(arg, Pointers) else arg for arg in args))


def _view(group: Any, name: str, dtype: Any, ndim: int = 1) -> Any:
    """The function from a pointer table's address to the array `name` of the named tuple `group`."""
    view = View(from_dtype(np.dtype(dtype)), ndim)
    first = WORDS * group._fields.index(name)

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        table = builder.inttoptr(args[0], ir.IntType(64).as_pointer())
        address, rows, columns = (builder.load(cgutils.gep_inbounds(builder, table, first + i)) for i in range(WORDS))
        made = cgutils.create_struct_proxy(view)(context, builder)
        made.data = builder.inttoptr(address, made.data.type)
        made.rows, made.columns = rows, columns
        return made._getvalue()

    def typed(typing_context: Any, table: Any) -> tuple[Any, Callable[..., Any]]:
        return view(types.int64), generate

    typed.__name__ = name
    return intrinsic(typed)


# --- Tables ------------------------------------------------------------------------------------------

edges: Any = _view(k.Tables, "edges", k.EDGE)
probes: Any = _view(k.Tables, "probes", k.PROBE)
filters: Any = _view(k.Tables, "filters", k.FILTER)
leads: Any = _view(k.Tables, "leads", k.LEAD)
arms_of: Any = _view(k.Tables, "arms_of", np.int32)
arms_at: Any = _view(k.Tables, "arms_at", np.int32)
starts_of: Any = _view(k.Tables, "starts_of", np.int32)
starts_at: Any = _view(k.Tables, "starts_at", np.int32)
guards_of: Any = _view(k.Tables, "guards_of", np.int32)
guards_at: Any = _view(k.Tables, "guards_at", np.int32)
leads_of: Any = _view(k.Tables, "leads_of", np.int32)
leads_at: Any = _view(k.Tables, "leads_at", np.int32)
equal: Any = _view(k.Tables, "equal", np.int32, 2)
compatible: Any = _view(k.Tables, "compatible", np.int32, 2)
either: Any = _view(k.Tables, "either", np.int32, 2)
uses: Any = _view(k.Tables, "uses", np.int32)
chain: Any = _view(k.Tables, "chain", np.int32)
next: Any = _view(k.Tables, "next", np.int32, 2)
fill: Any = _view(k.Tables, "fill", np.int32, 2)
code: Any = _view(k.Tables, "code", np.int32)
sizes: Any = _view(k.Tables, "sizes", np.int64)

# --- Memory ------------------------------------------------------------------------------------------

scalars: Any = _view(k.Memory, "scalars", np.int64)
nodes: Any = _view(k.Memory, "nodes", k.NODE)
groups: Any = _view(k.Memory, "groups", k.GROUP)
keys: Any = _view(k.Memory, "keys", np.int64, 2)
links: Any = _view(k.Memory, "links", k.LINK)
buckets: Any = _view(k.Memory, "buckets", k.BUCKET)
bucket_keys: Any = _view(k.Memory, "bucket_keys", np.int64, 2)
table: Any = _view(k.Memory, "table", np.int32)
bucket_table: Any = _view(k.Memory, "bucket_table", np.int32)
entries: Any = _view(k.Memory, "entries", k.ENTRY)
entry_keys: Any = _view(k.Memory, "entry_keys", np.int64, 2)
chains: Any = _view(k.Memory, "chains", k.CHAIN)
pending: Any = _view(k.Memory, "pending", np.int32, 2)
pending_keys: Any = _view(k.Memory, "pending_keys", np.int64, 2)
fired: Any = _view(k.Memory, "fired", np.int32)
finals: Any = _view(k.Memory, "finals", np.int64, 2)
closings: Any = _view(k.Memory, "closings", k.CLOSING)
memo: Any = _view(k.Memory, "memo", np.int64, 2)
asked: Any = _view(k.Memory, "asked", np.int64, 2)
lead_table: Any = _view(k.Memory, "lead_table", np.int32)
lead_keys: Any = _view(k.Memory, "lead_keys", np.int64, 2)
stack: Any = _view(k.Memory, "stack", np.int64, 2)
path: Any = _view(k.Memory, "path", np.int64)
out_rows: Any = _view(k.Memory, "out_rows", np.int64)
out_ends: Any = _view(k.Memory, "out_ends", np.int64)
key: Any = _view(k.Memory, "key", np.int64)
vector: Any = _view(k.Memory, "vector", np.int64)
spine: Any = _view(k.Memory, "spine", np.int64)

# --- Rows --------------------------------------------------------------------------------------------

letter: Any = _view(k.Rows, "letter", np.int32)
values: Any = _view(k.Rows, "values", np.int64, 2)
measures: Any = _view(k.Rows, "measures", np.float64, 2)
measure_kinds: Any = _view(k.Rows, "measure_kinds", np.uint8, 2)
instant: Any = _view(k.Rows, "instant", np.int64)
clock: Any = _view(k.Rows, "clock", np.int64)
tau: Any = _view(k.Rows, "tau", np.int64)
first: Any = _view(k.Rows, "first", np.int64)
base: Any = _view(k.Rows, "base", np.int64)

# --- k.TermColumns -------------------------------------------------------------------------------------

kind: Any = _view(k.TermColumns, "kind", np.uint8)
number: Any = _view(k.TermColumns, "number", np.float64)
exact: Any = _view(k.TermColumns, "exact", np.int64)
quality: Any = _view(k.TermColumns, "quality", np.uint8)
