"""Views (view.py) of the arrays of a pointer table by their number, and of memory at addresses: for kernels whose
tables hold many arrays of few types. They are intrinsics like the views of pointers.py.

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

from oxiseq.engine.kernels.memory.pointers import WORDS
from oxiseq.engine.kernels.memory.view import View, view_at


def _numbered(dtype: Any, ndim: int = 1) -> Any:
    """The function from a pointer table's address and a number to the array, k rows or k rows of columns."""
    type_ = View(from_dtype(np.dtype(dtype)), ndim)

    def view(typing_context: Any, table: Any, number: Any) -> tuple[Any, Callable[..., Any]]:
        return type_(types.int64, types.int64), generate

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        word = ir.IntType(64)
        table = builder.inttoptr(args[0], word.as_pointer())
        first = builder.mul(args[1], word(WORDS))
        places = (builder.add(first, word(i)) for i in range(WORDS))
        address, rows, columns = (builder.load(builder.gep(table, [place])) for place in places)
        return view_at(builder, context.get_value_type(type_), address, rows, columns)

    return intrinsic(view)


def _with_columns(dtype: Any) -> Any:
    """The function from a pointer table's address, a number and how many columns there are to the array."""
    type_ = View(from_dtype(np.dtype(dtype)), 2)

    def view(typing_context: Any, table: Any, number: Any, columns: Any) -> tuple[Any, Callable[..., Any]]:
        return type_(types.int64, types.int64, types.int64), generate

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        word = ir.IntType(64)
        table = builder.inttoptr(args[0], word.as_pointer())
        first = builder.mul(args[1], word(WORDS))
        address, rows = (builder.load(builder.gep(table, [builder.add(first, word(i))])) for i in range(2))
        return view_at(builder, context.get_value_type(type_), address, rows, args[2])

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

_I64S = View(types.int64, 1)
_U32_TABLE = View(types.uint32, 2)


@intrinsic
def _i64_at(typing_context: Any, address: Any, count: Any) -> tuple[Any, Callable[..., Any]]:
    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return view_at(builder, context.get_value_type(_I64S), args[0], args[1], ir.IntType(64)(1))

    return _I64S(types.int64, types.int64), generate


@intrinsic
def _u32_at(typing_context: Any, address: Any, rows: Any, columns: Any) -> tuple[Any, Callable[..., Any]]:
    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return view_at(builder, context.get_value_type(_U32_TABLE), *args)

    return _U32_TABLE(types.int64, types.int64, types.int64), generate


i64_at: Any = _i64_at
"""i64[count] at an address."""
u32_at: Any = _u32_at
"""u32[rows, columns] at an address."""
