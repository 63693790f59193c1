"""Arrays of a pointer table by their number, and arrays at addresses: for kernels whose tables hold many arrays of
few types. They are intrinsics like the views of pointers.py.

In `i32s(P, n)` and the like, `P` is the address of a `pointers.Pointers`, `n` the place of the array among those it was
made of.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from llvmlite import ir
from numba import from_dtype, types
from numba.extending import intrinsic
from numba.np.arrayobj import make_array, populate_array

from oxiseq.engine.kernels.memory.pointers import WORDS


def _array_at(context: Any, builder: Any, array_type: Any, address: Any, shape: Any) -> Any:
    """Code that makes an array, one row after the other, of memory at an address; for intrinsics."""
    word = ir.IntType(64)
    array = make_array(array_type)(context, builder)
    size = context.get_abi_sizeof(context.get_data_type(array_type.dtype))
    strides = [word(size)] if array_type.ndim == 1 else [builder.mul(shape[1], word(size)), word(size)]
    populate_array(
        array,
        data=builder.inttoptr(address, array.data.type),
        shape=shape,
        strides=strides,
        itemsize=word(size),
        meminfo=None,
    )
    return array._getvalue()


def _numbered(dtype: Any, ndim: int = 1) -> Any:
    """The function from a pointer table's address and a number to the array, k rows or k rows of columns."""
    array_type = types.Array(from_dtype(np.dtype(dtype)), ndim, "C")

    def view(typing_context: Any, table: Any, number: Any) -> tuple[Any, Callable[..., Any]]:
        return array_type(types.int64, types.int64), generate

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        word = ir.IntType(64)
        table = builder.inttoptr(args[0], word.as_pointer())
        first = builder.mul(args[1], word(WORDS))
        places = (builder.add(first, word(i)) for i in range(1 + ndim))
        address, *shape = (builder.load(builder.gep(table, [place])) for place in places)
        return _array_at(context, builder, array_type, address, shape)

    return intrinsic(view)


def _with_columns(dtype: Any) -> Any:
    """The function from a pointer table's address, a number and how many columns there are to the array."""
    array_type = types.Array(from_dtype(np.dtype(dtype)), 2, "C")

    def view(typing_context: Any, table: Any, number: Any, columns: Any) -> tuple[Any, Callable[..., Any]]:
        return array_type(types.int64, types.int64, types.int64), generate

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        word = ir.IntType(64)
        table = builder.inttoptr(args[0], word.as_pointer())
        first = builder.mul(args[1], word(WORDS))
        address, rows = (builder.load(builder.gep(table, [builder.add(first, word(i))])) for i in range(2))
        return _array_at(context, builder, array_type, address, [rows, args[2]])

    return intrinsic(view)


i32s = _numbered(np.int32)
i32_table = _numbered(np.int32, 2)
i64s = _numbered(np.int64)
i64_table = _numbered(np.int64, 2)
u32_table = _numbered(np.uint32, 2)
u8s = _numbered(np.uint8)
u8_table = _numbered(np.uint8, 2)
f64s = _numbered(np.float64)
f64_table = _numbered(np.float64, 2)

i32_rows = _with_columns(np.int32)
"""i32[k, columns], the number of columns known to the compiler: i32_rows(P, n, columns)."""
i64_rows = _with_columns(np.int64)

_I64S = types.Array(types.int64, 1, "C")
_U32_TABLE = types.Array(types.uint32, 2, "C")


@intrinsic
def _i64_at(typing_context: Any, address: Any, count: Any) -> tuple[Any, Callable[..., Any]]:
    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return _array_at(context, builder, _I64S, args[0], [args[1]])

    return _I64S(types.int64, types.int64), generate


@intrinsic
def _u32_at(typing_context: Any, address: Any, rows: Any, columns: Any) -> tuple[Any, Callable[..., Any]]:
    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return _array_at(context, builder, _U32_TABLE, args[0], [args[1], args[2]])

    return _U32_TABLE(types.int64, types.int64, types.int64), generate


i64_at: Any = _i64_at
"""i64[count] at an address."""
u32_at: Any = _u32_at
"""u32[rows, columns] at an address."""
