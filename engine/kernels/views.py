"""Arrays behind one pointer table.

A Numba call that takes fifty arrays costs microseconds, and minutes to compile, since each array is seven
arguments all the way down. So the kernels take one i64 array per group (tables `T`, memory `S`, rows `R`) of
(address, rows, columns) triples, and each function looks at the arrays that it needs (engine.md, section 9,
rule 4). Whoever makes a pointer table keeps its arrays alive: `records.Tables`, `Memory`, `Rows`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numba import carray, types
from numba.core import cgutils
from numba.extending import intrinsic

from oxiseq.engine.kernels import records as k
from oxiseq.engine.kernels.options import inner


@intrinsic
def _pointer(typing_context: Any, address: Any) -> tuple[Any, Callable[..., Any]]:
    """An address as a pointer that `carray` takes."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.inttoptr(args[0], cgutils.voidptr_t)

    return types.voidptr(address), generate


def point(arrays: Sequence[k.Array]) -> k.Array:
    """The pointer table of arrays of one or two dimensions, C-contiguous and writable."""
    table = np.zeros(3 * len(arrays), np.int64)
    for i, array in enumerate(arrays):
        if not (array.flags.c_contiguous and array.flags.writeable):
            raise ValueError(f"array {i} is not C-contiguous and writable")
        table[3 * i : 3 * i + 3] = array.ctypes.data, len(array), array.shape[1] if array.ndim == 2 else 1
    return table


# --- Tables -----------------------------------------------------------------------------------------


@inner
def edges(T: Any) -> Any:
    """`Tables.edges`."""
    return carray(_pointer(T[0]), (T[1],), k.EDGE)


@inner
def probes(T: Any) -> Any:
    """`Tables.probes`."""
    return carray(_pointer(T[3]), (T[4],), k.PROBE)


@inner
def filters(T: Any) -> Any:
    """`Tables.filters`."""
    return carray(_pointer(T[6]), (T[7],), k.FILTER)


@inner
def leads(T: Any) -> Any:
    """`Tables.leads`."""
    return carray(_pointer(T[9]), (T[10],), k.LEAD)


@inner
def arms_of(T: Any) -> Any:
    """`Tables.arms_of`."""
    return carray(_pointer(T[12]), (T[13],), np.int32)


@inner
def arms_at(T: Any) -> Any:
    """`Tables.arms_at`."""
    return carray(_pointer(T[15]), (T[16],), np.int32)


@inner
def starts_of(T: Any) -> Any:
    """`Tables.starts_of`."""
    return carray(_pointer(T[18]), (T[19],), np.int32)


@inner
def starts_at(T: Any) -> Any:
    """`Tables.starts_at`."""
    return carray(_pointer(T[21]), (T[22],), np.int32)


@inner
def guards_of(T: Any) -> Any:
    """`Tables.guards_of`."""
    return carray(_pointer(T[24]), (T[25],), np.int32)


@inner
def guards_at(T: Any) -> Any:
    """`Tables.guards_at`."""
    return carray(_pointer(T[27]), (T[28],), np.int32)


@inner
def leads_of(T: Any) -> Any:
    """`Tables.leads_of`."""
    return carray(_pointer(T[30]), (T[31],), np.int32)


@inner
def leads_at(T: Any) -> Any:
    """`Tables.leads_at`."""
    return carray(_pointer(T[33]), (T[34],), np.int32)


@inner
def equal(T: Any) -> Any:
    """`Tables.equal`."""
    return carray(_pointer(T[36]), (T[37], T[38]), np.int32)


@inner
def compatible(T: Any) -> Any:
    """`Tables.compatible`."""
    return carray(_pointer(T[39]), (T[40], T[41]), np.int32)


@inner
def either(T: Any) -> Any:
    """`Tables.either`."""
    return carray(_pointer(T[42]), (T[43], T[44]), np.int32)


@inner
def uses(T: Any) -> Any:
    """`Tables.uses`."""
    return carray(_pointer(T[45]), (T[46],), np.int32)


@inner
def chain(T: Any) -> Any:
    """`Tables.chain`."""
    return carray(_pointer(T[48]), (T[49],), np.int32)


@inner
def next(T: Any) -> Any:
    """`Tables.next`."""
    return carray(_pointer(T[51]), (T[52], T[53]), np.int32)


@inner
def fill(T: Any) -> Any:
    """`Tables.fill`."""
    return carray(_pointer(T[54]), (T[55], T[56]), np.int32)


@inner
def code(T: Any) -> Any:
    """`Tables.code`."""
    return carray(_pointer(T[57]), (T[58],), np.int32)


@inner
def sizes(T: Any) -> Any:
    """`Tables.sizes`."""
    return carray(_pointer(T[60]), (T[61],), np.int64)


# --- Memory -----------------------------------------------------------------------------------------


@inner
def scalars(S: Any) -> Any:
    """`Memory.scalars`."""
    return carray(_pointer(S[0]), (S[1],), np.int64)


@inner
def nodes(S: Any) -> Any:
    """`Memory.nodes`."""
    return carray(_pointer(S[3]), (S[4],), k.NODE)


@inner
def groups(S: Any) -> Any:
    """`Memory.groups`."""
    return carray(_pointer(S[6]), (S[7],), k.GROUP)


@inner
def keys(S: Any) -> Any:
    """`Memory.keys`."""
    return carray(_pointer(S[9]), (S[10], S[11]), np.int64)


@inner
def links(S: Any) -> Any:
    """`Memory.links`."""
    return carray(_pointer(S[12]), (S[13],), k.LINK)


@inner
def buckets(S: Any) -> Any:
    """`Memory.buckets`."""
    return carray(_pointer(S[15]), (S[16],), k.BUCKET)


@inner
def bucket_keys(S: Any) -> Any:
    """`Memory.bucket_keys`."""
    return carray(_pointer(S[18]), (S[19], S[20]), np.int64)


@inner
def table(S: Any) -> Any:
    """`Memory.table`."""
    return carray(_pointer(S[21]), (S[22],), np.int32)


@inner
def bucket_table(S: Any) -> Any:
    """`Memory.bucket_table`."""
    return carray(_pointer(S[24]), (S[25],), np.int32)


@inner
def entries(S: Any) -> Any:
    """`Memory.entries`."""
    return carray(_pointer(S[27]), (S[28],), k.ENTRY)


@inner
def entry_keys(S: Any) -> Any:
    """`Memory.entry_keys`."""
    return carray(_pointer(S[30]), (S[31], S[32]), np.int64)


@inner
def chains(S: Any) -> Any:
    """`Memory.chains`."""
    return carray(_pointer(S[33]), (S[34],), k.CHAIN)


@inner
def pending(S: Any) -> Any:
    """`Memory.pending`."""
    return carray(_pointer(S[36]), (S[37], S[38]), np.int32)


@inner
def pending_keys(S: Any) -> Any:
    """`Memory.pending_keys`."""
    return carray(_pointer(S[39]), (S[40], S[41]), np.int64)


@inner
def fired(S: Any) -> Any:
    """`Memory.fired`."""
    return carray(_pointer(S[42]), (S[43],), np.int32)


@inner
def finals(S: Any) -> Any:
    """`Memory.finals`."""
    return carray(_pointer(S[45]), (S[46], S[47]), np.int64)


@inner
def closings(S: Any) -> Any:
    """`Memory.closings`."""
    return carray(_pointer(S[48]), (S[49],), k.CLOSING)


@inner
def memo(S: Any) -> Any:
    """`Memory.memo`."""
    return carray(_pointer(S[51]), (S[52], S[53]), np.int64)


@inner
def asked(S: Any) -> Any:
    """`Memory.asked`."""
    return carray(_pointer(S[54]), (S[55], S[56]), np.int64)


@inner
def lead_table(S: Any) -> Any:
    """`Memory.lead_table`."""
    return carray(_pointer(S[57]), (S[58],), np.int32)


@inner
def lead_keys(S: Any) -> Any:
    """`Memory.lead_keys`."""
    return carray(_pointer(S[60]), (S[61], S[62]), np.int64)


@inner
def stack(S: Any) -> Any:
    """`Memory.stack`."""
    return carray(_pointer(S[63]), (S[64], S[65]), np.int64)


@inner
def path(S: Any) -> Any:
    """`Memory.path`."""
    return carray(_pointer(S[66]), (S[67],), np.int64)


@inner
def out_rows(S: Any) -> Any:
    """`Memory.out_rows`."""
    return carray(_pointer(S[69]), (S[70],), np.int64)


@inner
def out_ends(S: Any) -> Any:
    """`Memory.out_ends`."""
    return carray(_pointer(S[72]), (S[73],), np.int64)


@inner
def key(S: Any) -> Any:
    """`Memory.key`."""
    return carray(_pointer(S[75]), (S[76],), np.int64)


@inner
def vector(S: Any) -> Any:
    """`Memory.vector`."""
    return carray(_pointer(S[78]), (S[79],), np.int64)


@inner
def spine(S: Any) -> Any:
    """`Memory.spine`."""
    return carray(_pointer(S[81]), (S[82],), np.int64)


# --- Rows -------------------------------------------------------------------------------------------


@inner
def letter(R: Any) -> Any:
    """`Rows.letter`."""
    return carray(_pointer(R[0]), (R[1],), np.int32)


@inner
def values(R: Any) -> Any:
    """`Rows.values`."""
    return carray(_pointer(R[3]), (R[4], R[5]), np.int64)


@inner
def measures(R: Any) -> Any:
    """`Rows.measures`."""
    return carray(_pointer(R[6]), (R[7], R[8]), np.float64)


@inner
def measure_kinds(R: Any) -> Any:
    """`Rows.measure_kinds`."""
    return carray(_pointer(R[9]), (R[10], R[11]), np.uint8)


@inner
def instant(R: Any) -> Any:
    """`Rows.instant`."""
    return carray(_pointer(R[12]), (R[13],), np.int64)


@inner
def clock(R: Any) -> Any:
    """`Rows.clock`."""
    return carray(_pointer(R[15]), (R[16],), np.int64)


@inner
def tau(R: Any) -> Any:
    """`Rows.tau`."""
    return carray(_pointer(R[18]), (R[19],), np.int64)


@inner
def first(R: Any) -> Any:
    """`Rows.first`."""
    return carray(_pointer(R[21]), (R[22],), np.int64)


@inner
def base(R: Any) -> Any:
    """`Rows.base`."""
    return carray(_pointer(R[24]), (R[25],), np.int64)
