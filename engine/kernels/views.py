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
from numba import carray, types  # type: ignore[attr-defined]  # Numba does not list carray
from numba.core import cgutils
from numba.extending import intrinsic

from oxiseq.engine.kernels import records as k
from oxiseq.engine.kernels.options import inner


@intrinsic
def _to_pointer(typing_context: Any, address: Any) -> tuple[Any, Callable[..., Any]]:
    """An address as a pointer that `carray` takes."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.inttoptr(args[0], cgutils.voidptr_t)

    return types.voidptr(address), generate


@intrinsic
def _load_word(typing_context: Any, table: Any, index: Any) -> tuple[Any, Callable[..., Any]]:
    """The i64 at `index` of the table at an address."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        base = builder.inttoptr(args[0], ir.IntType(64).as_pointer())
        return builder.load(builder.gep(base, [args[1]]))

    return types.int64(types.int64, types.int64), generate


_pointer: Any = _to_pointer  # typed as what a kernel sees: without the typing context
_word: Any = _load_word


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


# --- Tables -----------------------------------------------------------------------------------------


@inner
def edges(T: Any) -> Any:
    """`Tables.edges`."""
    return carray(_pointer(_word(T, 0)), (_word(T, 1),), k.EDGE)


@inner
def probes(T: Any) -> Any:
    """`Tables.probes`."""
    return carray(_pointer(_word(T, 3)), (_word(T, 4),), k.PROBE)


@inner
def filters(T: Any) -> Any:
    """`Tables.filters`."""
    return carray(_pointer(_word(T, 6)), (_word(T, 7),), k.FILTER)


@inner
def leads(T: Any) -> Any:
    """`Tables.leads`."""
    return carray(_pointer(_word(T, 9)), (_word(T, 10),), k.LEAD)


@inner
def arms_of(T: Any) -> Any:
    """`Tables.arms_of`."""
    return carray(_pointer(_word(T, 12)), (_word(T, 13),), np.int32)


@inner
def arms_at(T: Any) -> Any:
    """`Tables.arms_at`."""
    return carray(_pointer(_word(T, 15)), (_word(T, 16),), np.int32)


@inner
def starts_of(T: Any) -> Any:
    """`Tables.starts_of`."""
    return carray(_pointer(_word(T, 18)), (_word(T, 19),), np.int32)


@inner
def starts_at(T: Any) -> Any:
    """`Tables.starts_at`."""
    return carray(_pointer(_word(T, 21)), (_word(T, 22),), np.int32)


@inner
def guards_of(T: Any) -> Any:
    """`Tables.guards_of`."""
    return carray(_pointer(_word(T, 24)), (_word(T, 25),), np.int32)


@inner
def guards_at(T: Any) -> Any:
    """`Tables.guards_at`."""
    return carray(_pointer(_word(T, 27)), (_word(T, 28),), np.int32)


@inner
def leads_of(T: Any) -> Any:
    """`Tables.leads_of`."""
    return carray(_pointer(_word(T, 30)), (_word(T, 31),), np.int32)


@inner
def leads_at(T: Any) -> Any:
    """`Tables.leads_at`."""
    return carray(_pointer(_word(T, 33)), (_word(T, 34),), np.int32)


@inner
def equal(T: Any) -> Any:
    """`Tables.equal`."""
    return carray(_pointer(_word(T, 36)), (_word(T, 37), _word(T, 38)), np.int32)


@inner
def compatible(T: Any) -> Any:
    """`Tables.compatible`."""
    return carray(_pointer(_word(T, 39)), (_word(T, 40), _word(T, 41)), np.int32)


@inner
def either(T: Any) -> Any:
    """`Tables.either`."""
    return carray(_pointer(_word(T, 42)), (_word(T, 43), _word(T, 44)), np.int32)


@inner
def uses(T: Any) -> Any:
    """`Tables.uses`."""
    return carray(_pointer(_word(T, 45)), (_word(T, 46),), np.int32)


@inner
def chain(T: Any) -> Any:
    """`Tables.chain`."""
    return carray(_pointer(_word(T, 48)), (_word(T, 49),), np.int32)


@inner
def next(T: Any) -> Any:
    """`Tables.next`."""
    return carray(_pointer(_word(T, 51)), (_word(T, 52), _word(T, 53)), np.int32)


@inner
def fill(T: Any) -> Any:
    """`Tables.fill`."""
    return carray(_pointer(_word(T, 54)), (_word(T, 55), _word(T, 56)), np.int32)


@inner
def code(T: Any) -> Any:
    """`Tables.code`."""
    return carray(_pointer(_word(T, 57)), (_word(T, 58),), np.int32)


@inner
def sizes(T: Any) -> Any:
    """`Tables.sizes`."""
    return carray(_pointer(_word(T, 60)), (_word(T, 61),), np.int64)


# --- Memory -----------------------------------------------------------------------------------------


@inner
def scalars(S: Any) -> Any:
    """`Memory.scalars`."""
    return carray(_pointer(_word(S, 0)), (_word(S, 1),), np.int64)


@inner
def nodes(S: Any) -> Any:
    """`Memory.nodes`."""
    return carray(_pointer(_word(S, 3)), (_word(S, 4),), k.NODE)


@inner
def groups(S: Any) -> Any:
    """`Memory.groups`."""
    return carray(_pointer(_word(S, 6)), (_word(S, 7),), k.GROUP)


@inner
def keys(S: Any) -> Any:
    """`Memory.keys`."""
    return carray(_pointer(_word(S, 9)), (_word(S, 10), _word(S, 11)), np.int64)


@inner
def links(S: Any) -> Any:
    """`Memory.links`."""
    return carray(_pointer(_word(S, 12)), (_word(S, 13),), k.LINK)


@inner
def buckets(S: Any) -> Any:
    """`Memory.buckets`."""
    return carray(_pointer(_word(S, 15)), (_word(S, 16),), k.BUCKET)


@inner
def bucket_keys(S: Any) -> Any:
    """`Memory.bucket_keys`."""
    return carray(_pointer(_word(S, 18)), (_word(S, 19), _word(S, 20)), np.int64)


@inner
def table(S: Any) -> Any:
    """`Memory.table`."""
    return carray(_pointer(_word(S, 21)), (_word(S, 22),), np.int32)


@inner
def bucket_table(S: Any) -> Any:
    """`Memory.bucket_table`."""
    return carray(_pointer(_word(S, 24)), (_word(S, 25),), np.int32)


@inner
def entries(S: Any) -> Any:
    """`Memory.entries`."""
    return carray(_pointer(_word(S, 27)), (_word(S, 28),), k.ENTRY)


@inner
def entry_keys(S: Any) -> Any:
    """`Memory.entry_keys`."""
    return carray(_pointer(_word(S, 30)), (_word(S, 31), _word(S, 32)), np.int64)


@inner
def chains(S: Any) -> Any:
    """`Memory.chains`."""
    return carray(_pointer(_word(S, 33)), (_word(S, 34),), k.CHAIN)


@inner
def pending(S: Any) -> Any:
    """`Memory.pending`."""
    return carray(_pointer(_word(S, 36)), (_word(S, 37), _word(S, 38)), np.int32)


@inner
def pending_keys(S: Any) -> Any:
    """`Memory.pending_keys`."""
    return carray(_pointer(_word(S, 39)), (_word(S, 40), _word(S, 41)), np.int64)


@inner
def fired(S: Any) -> Any:
    """`Memory.fired`."""
    return carray(_pointer(_word(S, 42)), (_word(S, 43),), np.int32)


@inner
def finals(S: Any) -> Any:
    """`Memory.finals`."""
    return carray(_pointer(_word(S, 45)), (_word(S, 46), _word(S, 47)), np.int64)


@inner
def closings(S: Any) -> Any:
    """`Memory.closings`."""
    return carray(_pointer(_word(S, 48)), (_word(S, 49),), k.CLOSING)


@inner
def memo(S: Any) -> Any:
    """`Memory.memo`."""
    return carray(_pointer(_word(S, 51)), (_word(S, 52), _word(S, 53)), np.int64)


@inner
def asked(S: Any) -> Any:
    """`Memory.asked`."""
    return carray(_pointer(_word(S, 54)), (_word(S, 55), _word(S, 56)), np.int64)


@inner
def lead_table(S: Any) -> Any:
    """`Memory.lead_table`."""
    return carray(_pointer(_word(S, 57)), (_word(S, 58),), np.int32)


@inner
def lead_keys(S: Any) -> Any:
    """`Memory.lead_keys`."""
    return carray(_pointer(_word(S, 60)), (_word(S, 61), _word(S, 62)), np.int64)


@inner
def stack(S: Any) -> Any:
    """`Memory.stack`."""
    return carray(_pointer(_word(S, 63)), (_word(S, 64), _word(S, 65)), np.int64)


@inner
def path(S: Any) -> Any:
    """`Memory.path`."""
    return carray(_pointer(_word(S, 66)), (_word(S, 67),), np.int64)


@inner
def out_rows(S: Any) -> Any:
    """`Memory.out_rows`."""
    return carray(_pointer(_word(S, 69)), (_word(S, 70),), np.int64)


@inner
def out_ends(S: Any) -> Any:
    """`Memory.out_ends`."""
    return carray(_pointer(_word(S, 72)), (_word(S, 73),), np.int64)


@inner
def key(S: Any) -> Any:
    """`Memory.key`."""
    return carray(_pointer(_word(S, 75)), (_word(S, 76),), np.int64)


@inner
def vector(S: Any) -> Any:
    """`Memory.vector`."""
    return carray(_pointer(_word(S, 78)), (_word(S, 79),), np.int64)


@inner
def spine(S: Any) -> Any:
    """`Memory.spine`."""
    return carray(_pointer(_word(S, 81)), (_word(S, 82),), np.int64)


# --- Rows -------------------------------------------------------------------------------------------


@inner
def letter(R: Any) -> Any:
    """`Rows.letter`."""
    return carray(_pointer(_word(R, 0)), (_word(R, 1),), np.int32)


@inner
def values(R: Any) -> Any:
    """`Rows.values`."""
    return carray(_pointer(_word(R, 3)), (_word(R, 4), _word(R, 5)), np.int64)


@inner
def measures(R: Any) -> Any:
    """`Rows.measures`."""
    return carray(_pointer(_word(R, 6)), (_word(R, 7), _word(R, 8)), np.float64)


@inner
def measure_kinds(R: Any) -> Any:
    """`Rows.measure_kinds`."""
    return carray(_pointer(_word(R, 9)), (_word(R, 10), _word(R, 11)), np.uint8)


@inner
def instant(R: Any) -> Any:
    """`Rows.instant`."""
    return carray(_pointer(_word(R, 12)), (_word(R, 13),), np.int64)


@inner
def clock(R: Any) -> Any:
    """`Rows.clock`."""
    return carray(_pointer(_word(R, 15)), (_word(R, 16),), np.int64)


@inner
def tau(R: Any) -> Any:
    """`Rows.tau`."""
    return carray(_pointer(_word(R, 18)), (_word(R, 19),), np.int64)


@inner
def first(R: Any) -> Any:
    """`Rows.first`."""
    return carray(_pointer(_word(R, 21)), (_word(R, 22),), np.int64)


@inner
def base(R: Any) -> Any:
    """`Rows.base`."""
    return carray(_pointer(_word(R, 24)), (_word(R, 25),), np.int64)


# --- TermColumns -----------------------------------------------------------------------------------


@inner
def kind(C: Any) -> Any:
    """`TermColumns.kind`."""
    return carray(_pointer(_word(C, 0)), (_word(C, 1),), np.uint8)


@inner
def number(C: Any) -> Any:
    """`TermColumns.number`."""
    return carray(_pointer(_word(C, 3)), (_word(C, 4),), np.float64)


@inner
def exact(C: Any) -> Any:
    """`TermColumns.exact`."""
    return carray(_pointer(_word(C, 6)), (_word(C, 7),), np.int64)


@inner
def quality(C: Any) -> Any:
    """`TermColumns.quality`."""
    return carray(_pointer(_word(C, 9)), (_word(C, 10),), np.uint8)
